"""What an agent may do with a memory, as typed functions."""
