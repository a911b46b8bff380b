"""How a new fact relates to a known one: the same, a change, a conflict, or another."""
