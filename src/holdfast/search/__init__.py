"""From a question to hits: the index, the scoring, and three sources that are searched."""
