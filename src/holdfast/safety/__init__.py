"""What in a text may do harm: orders to the model that reads it, credentials, hidden characters."""
