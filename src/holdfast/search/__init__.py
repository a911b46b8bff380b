"""From a query to hits: the index, the scoring, and the three sources that are searched."""
