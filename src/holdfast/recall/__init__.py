"""From a question to hits: the index, the scoring, and the search that joins them."""
