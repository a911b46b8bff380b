"""Import and export of conversations: one file per format."""
