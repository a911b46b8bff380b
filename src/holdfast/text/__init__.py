"""Pure functions over text: no storage, no state."""
