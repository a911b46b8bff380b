"""Prompts: which there are, a user's own, and how their places are filled."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import InvalidInput
from holdfast.llm.prompt_files import PromptTemplate, load, versions
from holdfast.text.tokens import estimate_tokens
from tables import each

PARTS = {"step": "s", "type": "t", "known": "k", "transcript": "said"}
OWN = "$type $step: $known, $transcript"


def test_the_usual_version_is_loaded() -> None:
    prompt = load("session")
    assert (prompt.name, prompt.version, prompt.label) == ("session", "v1", "session v1")
    assert versions("session") == ["v1", "v2"], "the newest is the thorough one"
    assert load("session", "v2").label == "session v2"


def test_the_instructions_are_short() -> None:
    whole = load("session").only({"session", "facts", "episode", "profile"})
    assert estimate_tokens(whole.fill(step="s", type="t", profile="p", transcript="said")) <= 550
    assert estimate_tokens(load("session").only({"session", "known"}).fill(**PARTS)) <= 350


@each("version", ["v0", "v999", "V1", "", " ", "mine.md", "no/such/file", "\0.md", "x" * 5_000 + ".md"])
def test_an_unknown_version_lists_those_that_there_are(version: str) -> None:
    with pytest.raises(InvalidInput, match=r"Use one of v1"):
        load("session", version)


def test_a_users_own_prompt_is_named_after_its_file_and_may_be_beside_us_but_not_pose_as_one_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("short.md", "v1.md"):
        (tmp_path / name).write_text(OWN, "utf-8")
    monkeypatch.chdir(tmp_path)
    for file in ("short.md", str(tmp_path / "short.md")):
        prompt = load("session", file)
        assert (prompt.label, prompt.fill(**PARTS)) == ("session short", "t s: k, said")
    with pytest.raises(InvalidInput, match="named like a version"):
        load("session", "v1.md")
    with pytest.raises(InvalidInput, match="Use one of v1"):
        load("session", str(tmp_path))


@pytest.mark.parametrize("text", ["$step $known", f"{OWN} $more"])
def test_a_users_own_prompt_must_have_the_same_places(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mine.md"
    file.write_text(text, "utf-8")
    with pytest.raises(InvalidInput, match="has places for"):
        load("session", str(file))


def test_a_file_that_is_no_text_is_no_prompt(tmp_path: Path) -> None:
    file = tmp_path / "mine.md"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="cannot be read"):
        load("session", str(file))


def test_parts_are_not_filled_again() -> None:
    prompt = PromptTemplate("p", "v1", "$one, ${two}, $$3")
    assert prompt.fill(one="$two $nothing $$", two="2") == "$two $nothing $$, 2, $3"
