"""Records: drafts, writes with versions, reads, undo, quarantine."""
