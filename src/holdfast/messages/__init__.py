"""From the chat formats of others to messages, and back."""
