"""Hooks of coding agents: what a client calls at each event of a session, and what it gets as its answer."""
