"""When to use the tools of a memory, for system texts."""

from __future__ import annotations

import re

import pytest

from holdfast import InvalidInput, Memory, tools
from holdfast.text.tokens import estimate_tokens
from holdfast.tools import guidance


def test_guidance_names_the_tools_that_are_offered(quick: Memory) -> None:
    for allow in (None, ["recall"], ["expand", "remember"], ["history"]):
        for read_only in (False, True):
            named = re.findall(r"`(\w+)`", guidance(quick, allow=allow, read_only=read_only))
            made = {tool.name for tool in quick.tools(allow=allow, read_only=read_only)}
            assert set(named) == made - {"history", "status"}


def test_guidance_takes_as_many_tokens_as_it_states(quick: Memory) -> None:
    assert tools.guidance is guidance
    assert estimate_tokens(guidance(quick)) <= 205
    assert "about 205 tokens" in str(guidance.__doc__)


def test_guidance_refuses_what_is_no_tool(quick: Memory) -> None:
    with pytest.raises(InvalidInput, match="nope"):
        guidance(quick, allow=["nope"])
