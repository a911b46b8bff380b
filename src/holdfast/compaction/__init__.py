"""The tree of summaries that stands for old messages."""
