"""What is known: written under versions, read, undone."""
