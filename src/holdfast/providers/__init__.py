"""Providers of the contract that hold nothing of their own: the null memory, and tracing."""
