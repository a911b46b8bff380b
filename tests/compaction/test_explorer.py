"""Whose a summary is: nobody finds it by its id but those who see its chat."""

from __future__ import annotations

import pytest
from compaction_chats import policy, tell

from holdfast import InvalidInput, Memory
from tables import each

ADA = {"tenant": "acme", "user": "ada"}
CODER, WRITER = {"agent": "coder"}, {"agent": "writer"}
SHARED = {"tenant": "acme", "user": ""}


@each(
    ("owner", "reader", "seen"),
    [
        (ADA, ADA, True),
        *((ADA, {"tenant": "acme", "user": user}, False) for user in ("bob", "Ada", "", "ada ")),
        (SHARED, ADA, True),
        *((SHARED, {"tenant": tenant, "user": "ada"}, False) for tenant in ("", "other")),
        (ADA | CODER, ADA, True),  # a handle without an agent sees all
        (SHARED | CODER, ADA | CODER, True),
        (SHARED | CODER, ADA | WRITER, False),
    ],
)
def test_who_sees_a_summary(owner: dict[str, str], reader: dict[str, str], seen: bool) -> None:
    with Memory(":memory:", user="root", admin=True) as memory:
        chat, here = memory.scoped(**owner).chat("c"), memory.scoped(**reader).chat("d")
        tell(chat, 40)
        chat.compact(full=True, policy=policy())
        for one in chat.tree():
            if seen:
                assert here.describe(one.id) == chat.describe(one.id)
                assert here.expand(one.id) == chat.expand(one.id)
            else:
                for call in (here.describe, here.expand):
                    with pytest.raises(InvalidInput):
                        call(one.id)
        assert here.tree() == []
