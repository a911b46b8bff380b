"""What a memory learns from what it is told: how a new text relates to those that it holds."""
