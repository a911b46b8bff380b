"""From history to a prompt: pure functions over messages and hits."""
