"""Adapters, one for each agent framework."""
