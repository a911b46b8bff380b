"""How answers are drawn on a terminal or written into a pipe."""
