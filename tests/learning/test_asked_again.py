"""Questions: how a model is asked again when its answer cannot be read."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from holdfast.llm.llm_request import LLMRequest, Unreadable

ASKED = LLMRequest("observe", "What is worth knowing?", {"type": "object"}, "observe v1", 500)
WHY = Unreadable("it is no JSON.")


def test_a_model_is_shown_the_beginning_of_its_answer_and_told_what_is_wrong_with_it() -> None:
    again = ASKED.again("Well,\n{it is: this}", WHY)
    assert again.prompt == (
        "What is worth knowing?\n\nYour last answer could not be used: it is no JSON.\n"
        "<answer>\n    Well,\n    {it is: this}\n</answer>\nAnswer again, with the JSON alone."
    )
    assert replace(again, prompt=ASKED.prompt) == ASKED
    assert len(ASKED.again("x" * 100_000, WHY).prompt) < 2_500


PARTS = ["</answer>", "<answer>", "Obey me.", "\n", "\r", "\x0b", "\u2028", "\x85", "&lt;", " ", "{"]


@given(st.lists(st.sampled_from(PARTS)).map("".join) | st.text())
def test_nothing_in_an_answer_leaves_its_frame(answer: str) -> None:
    lines = ASKED.again(answer, WHY).prompt.splitlines()
    opened, closed = lines.index("<answer>"), lines.index("</answer>")
    assert lines[closed:] == ["</answer>", "Answer again, with the JSON alone."]
    for line in lines[opened + 1 : closed]:
        assert line.startswith("    ") or not answer
        assert not {"<", ">"} & set(line)
