"""Harmful parts of a text: orders to the model that reads it, credentials, hidden characters."""
