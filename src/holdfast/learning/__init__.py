"""From history to records, in the background."""
