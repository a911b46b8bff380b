"""Who may have written something."""

from typing import Literal

Writer = Literal["user", "agent", "tool", "reflect", "system", "import"]
WRITERS: tuple[Writer, ...] = ("user", "agent", "tool", "reflect", "system", "import")
