"""What an agent may do with a memory, as typed functions."""

from holdfast.tools.usage import guidance

__all__ = ["guidance"]
