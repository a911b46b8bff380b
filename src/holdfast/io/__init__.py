"""Conversations from elsewhere into a memory, and out of it again: one file per format."""
