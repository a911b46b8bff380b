"""Benchmarks that users can run: how well recall finds, and how fast everything is, beside what others do."""
