"""From the log, records and hits to a window and a prompt within a token budget."""
