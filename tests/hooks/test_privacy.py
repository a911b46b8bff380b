"""What the user keeps private is in no byte of the database, whatever is imported and learned."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from database_bytes import database_bytes
from holdfast import Memory, Unavailable
from holdfast_cli.formats.import_report import ImportReport
from holdfast_cli.formats.importing import import_paths
from holdfast_cli.formats.redaction import IGNORED
from holdfast_cli.hooks import pause, privacy
from holdfast_cli.hooks.privacy import Privacy
from holdfast_cli.hooks.project import project_of
from soak import cases
from stored_texts import whole
from tables import each
from transcripts import Json, claude, result, write_lines

NOON = datetime(2026, 1, 6, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a home with a project in it."""
    home = tmp_path / "home"
    (home / "shop" / "secrets").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("HOLDFAST_STATE", str(home / "state"))
    monkeypatch.delenv("HOLDFAST_PROJECT", raising=False)
    return home


def ignore(home: Path, *patterns: str) -> None:
    (home / "shop" / ".holdfastignore").write_text("\n".join(patterns))


def lines_of(home: Path, *said: tuple[str, object], folder: str = "shop", **more: object) -> list[Json]:
    """Return the lines of a session: who says what; a dict is a call of a tool with these arguments."""
    lines: list[Json] = []
    for number, (who, what) in enumerate(said):
        parent, own = f"m{number - 1}" if number else None, dict(more)
        content = what
        if isinstance(what, dict):
            name = "Bash" if "command" in what else "Read"
            content = [{"type": "tool_use", "id": f"t{number}", "name": name, "input": what}]
        elif who == "tool":
            content = result(f"t{number - 1}", str(what))
            own["toolUseResult"] = {"stdout": str(what)}
        at = (NOON + timedelta(minutes=number)).isoformat()
        own |= {"cwd": str(home / folder), "timestamp": at}
        lines.append(
            claude("assistant" if who == "assistant" else "user", f"m{number}", parent, content, **own)
        )
    return lines


def session(home: Path, *said: tuple[str, object], folder: str = "shop", **more: object) -> Path:
    """Write a session in a project."""
    return write_lines(home / "log" / "s1.jsonl", lines_of(home, *said, folder=folder, **more))


def brought_in(memory: Memory, path: Path) -> ImportReport:
    return import_paths(memory, path, rules=Privacy.read())


def said(memory: Memory) -> list[str]:
    return [one.content or json.dumps(one.calls[0].arguments) for one in memory.chat("s1").history()]


LINE = "the harbour cranes of {} are sold in october"
CRANES = LINE.format("zanzibarqx")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        ({"file_path": "secrets/plan.md"}, "{}"),
        ({"command": "cat secrets/plan.md"}, "{}"),
        ({"command": "cd secrets && cat plan.md"}, "{}"),
        ({"command": "python -c \"print(open('secrets/plan.md').read())\""}, "{}"),
        ({"command": "grep -rn cranes ."}, "src/a.py:1:x\nsecrets/plan.md:3:{}"),
        ({"command": "git diff"}, "diff --git a/local.env b/local.env\n+++ b/local.env\n+{}"),
        ({"command": "head -n 3 *"}, "==> local.env <==\n{}\n\n==> b <==\nb"),
        ({"pattern": "cranes", "path": "."}, "local.env:3:{}"),
        ({"input": "*** Begin Patch\n*** Update File: secrets/plan.md\n+{}\n*** End Patch"}, "ok {}"),
    ],
)
def test_what_tools_do_with_an_ignored_file_is_in_no_byte(
    location: str, tmp_path: Path, home: Path, arguments: Json, output: str
) -> None:
    ignore(home, "secrets/", "*.env")
    word = "zanzibarqx"
    line = LINE.format(word)
    path = session(
        home,
        ("user", "What is the plan for the cranes?"),
        ("assistant", json.loads(json.dumps(arguments).replace("{}", line))),
        ("tool", output.replace("{}", line)),
        ("assistant", f"The file has this line:\n> {line}\nThat is all."),
        ("assistant", {"command": f"cat > notes.txt <<X\n{line}\nX"}),
        ("tool", f"   12\u2192{line}"),
        ("user", "We decided to sell the other cranes in Porto before the end of the year."),
    )
    with Memory(location) as memory:
        report = brought_in(memory, path)
        assert (report.added, report.problems) == (7, ())
        memory.chat("s1").end()
        memory.chat("s1").extract()
        assert memory.recall("harbour cranes sold october", limit=10)
        read = said(memory)
        assert read[0] == "What is the plan for the cranes?"
        assert IGNORED in "".join(read[1:3])
        assert read[3] == f"The file has this line:\n{IGNORED}\nThat is all."
        again = brought_in(memory, path)
        assert (again.added, again.present, again.skipped) == (0, 7, ())
        assert word.encode() not in database_bytes(memory, location, tmp_path)


@each(
    ("line", "repeated"),
    [
        (CRANES, f"The plan says that {CRANES}, which is late."),
        (CRANES, f"It says: “T{CRANES[1:]}”"),
        (CRANES, f"Is it so that **{CRANES.replace('cranes', '`cranes`')}**?"),
        (CRANES, f"So {CRANES.replace(' of', chr(10) + '> of')}; thanks."),
        (CRANES, CRANES.upper()),
        (f"   12\u2192{CRANES}", f"Line 12 is {CRANES}"),
        (f'{{"plan": "{CRANES}"}}', f'It has {{"plan": "{CRANES}"}} in it.'),
        (
            "港口的起重机zanzibarqx将在十月全部出售给第三方公司",
            "文件里写着港口的起重机zanzibarqx将在十月全部出售给第三方公司，对吗？",
        ),
    ],
)
@each("place", ["user", "assistant", "tool", "argument"])
def test_a_line_of_an_ignored_file_within_a_sentence_is_left_out(
    quick: Memory, home: Path, line: str, repeated: str, place: str
) -> None:
    ignore(home, "secrets/")
    by = {"argument": ("assistant", {"command": f"echo '{repeated}' | mail ann"}), "tool": ("tool", repeated)}
    read = ("assistant", {"file_path": "secrets/plan.md"})
    call = [("assistant", {"command": "mail"})] if place == "tool" else []
    path = session(home, read, ("tool", f"# Plan\n{line}\nEnd"), *call, by.get(place, (place, repeated)))
    brought_in(quick, path)
    (last,) = quick.chat("s1").history()[-1:]
    assert "zanzibarqx" not in whole(last).lower()
    assert IGNORED in said(quick)[-1]
    quick.erase(chat="s1")


@each(
    ("line", "said_later"),
    [
        (CRANES, f"The plan says that {CRANES[:18]} and more."),
        ("-" * 30, f"| a | b |\n|{'-' * 40}|"),
        ('    "":        "",   "a"', 'It has "": "", "a" in it.'),
        ("def main() -> None:", "Then def main() -> None: begins."),
    ],
)
def test_what_is_less_than_a_line_of_an_ignored_file_is_stored(
    quick: Memory, home: Path, line: str, said_later: str
) -> None:
    ignore(home, "secrets/")
    read = ("assistant", {"file_path": "secrets/plan.md"})
    brought_in(quick, session(home, read, ("tool", line), ("user", said_later)))
    assert said(quick)[-1] == said_later
    quick.erase(chat="s1")


SHELL = """cat sec*/*|cat secret?/a|cat [s]ecrets/a|cat **/plan.md|cat $(pwd)/secrets/plan.md|cat prod.en[v]|
cat `pwd`/secrets/plan.md|cat "$(pwd)"/secrets/plan.md|cat "$PWD"/secrets/plan.md|cat $PWD/secrets/plan.md|
cat ${PWD}/secrets/plan.md|cat ${HOME}/shop/secrets/plan.md|cat "sec"rets/plan.md|cat $(pwd)/prod.env"""


@each("command", [command.strip() for command in SHELL.split("|")])
def test_however_a_shell_names_an_ignored_file(quick: Memory, home: Path, command: str) -> None:
    ignore(home, "/secrets/", "/*.env")
    for name in ("secrets/plan.md", "secrets/a", "prod.env"):
        (home / "shop" / name).touch()
    brought_in(quick, session(home, ("assistant", {"command": command}), ("tool", "the cranes are sold")))
    assert said(quick) == [json.dumps({"command": IGNORED}), IGNORED]
    quick.erase(chat="s1")


def test_what_tools_do_with_other_files_is_stored_whole(quick: Memory, home: Path) -> None:
    ignore(home, "secrets/", "*.env")
    lines = ["const url = process.env.URL;", "import secrets", "see local.envelope", "x: secrets are kept"]
    path = session(
        home,
        ("assistant", {"file_path": "src/a.js"}),
        ("tool", "process.env\nlocal.env: no\n" + "\n".join(lines)),
        ("assistant", {"command": "cat src/a.js"}),
        ("tool", "\n".join(lines)),
    )
    before = path.read_text()
    assert brought_in(quick, path).added == 4
    assert [one.raw for one in quick.chat("s1").history()] == list(map(json.loads, before.splitlines()))


REMINDER = '<system-reminder>Called the Read tool with the following input: {"file_path":"secrets/a.md"}'


def test_files_that_a_client_writes_into_a_prompt(quick: Memory, home: Path) -> None:
    ignore(home, "secrets/")
    secret = "zanzibar"
    prompts = [
        f"Content from @secrets/a.md:\n{secret}\nContent from @b.md:\nbee\n--- End of content ---\nThanks.",
        f'See <file path="secrets/a.md">{secret}</file> and <file path="b.md">bee</file>',
        f'<document source="{home}/shop/secrets/a.md">{secret}',
        f"{REMINDER}</system-reminder>\n<system-reminder>Result: {secret}</system-reminder> bee",
        f"<ide_selection>The user selected the lines 1 to 2 from secrets/a:\n{secret}\n</ide_selection> bee",
    ]
    brought_in(quick, session(home, *[("user", prompt) for prompt in prompts]))
    read = said(quick)
    assert all(IGNORED in one and secret not in one for one in read)
    assert ["bee" in one for one in read] == [True, True, False, True, True]
    assert read[0].endswith("--- End of content ---\nThanks.")


@pytest.mark.parametrize("pattern", ["/", "*"])
def test_a_project_that_is_covered_is_not_stored_at_all(quick: Memory, home: Path, pattern: str) -> None:
    ignore(home, pattern)
    path = session(home, ("user", "hello"), ("assistant", "hi"))
    report = brought_in(quick, path)
    assert (report.added, report.problems) == (0, ())
    assert [(one.reason, one.count) for one in report.skipped] == [(privacy.IGNORED_PROJECT, 2)]
    assert quick.chats() == []
    assert privacy.why_withheld(project_of(home / "shop")) == privacy.IGNORED_PROJECT
    # Let in later, it is read.
    ignore(home)
    assert brought_in(quick, path).added == 2


def test_what_was_left_out_stays_so_when_the_rules_change(memory: Memory, home: Path) -> None:
    ignore(home, "secrets/")
    path = session(home, ("assistant", {"file_path": "secrets/a.md"}), ("tool", "one"))
    brought_in(memory, path)
    ignore(home)
    report = brought_in(memory, path)
    assert (report.added, report.present, report.skipped) == (0, 2, ())
    assert said(memory)[1] == IGNORED


def test_a_call_of_an_earlier_part_covers_its_result(memory: Memory, home: Path) -> None:
    """A hook imports what was added to a transcript: the call may be stored, and its result new."""
    ignore(home, "secrets/")
    for command in ("cat secrets/a.md", "echo zanzibar > secrets/a.md; cat $F"):
        path = session(home, ("assistant", {"command": command}), ("tool", "zanzibar"))
        lines = path.read_text().splitlines()
        parts = [brought_in(memory, write_lines(path, [line])).added for line in lines]
        assert parts == [1, 1]
        assert said(memory)[1] == IGNORED
        assert "zanzibar" not in whole(memory.chat("s1").history())
        memory.erase(chat="s1")


def test_what_is_said_in_a_pause_stays_out_of_all_imports(memory: Memory, home: Path) -> None:
    path = session(home, *[("user", f"number {n}") for n in range(10)])
    project = project_of(home / "shop")
    pause.pause(project.name, str(project.root), now=NOON + timedelta(minutes=2, seconds=30))
    pause.resume(project.name, str(project.root), now=NOON + timedelta(minutes=4, seconds=30))
    pause.pause("", "", now=NOON + timedelta(minutes=7, seconds=30))
    for counts in ((6, 0), (0, 6)):
        report = brought_in(memory, path)
        assert (report.added, report.present) == counts
        assert said(memory) == [f"number {n}" for n in (0, 1, 2, 5, 6, 7)]
        told = [(one.reason, one.count, one.problem) for one in report.skipped]
        assert told == [(privacy.WHILE_PAUSED, 4, False)]
        pause.resume("", "")


def test_a_pause_holds_for_its_project_even_when_its_folder_is_gone(quick: Memory, home: Path) -> None:
    pause.pause("github.com/ada/gone", str(home / "gone"), now=NOON)
    assert brought_in(quick, session(home, ("user", "hello"), folder="gone/src")).added == 0
    assert brought_in(quick, session(home, ("user", "hello"))).added == 1
    for folder, why in (("shop", ""), ("gone/src", privacy.WHILE_PAUSED)):
        assert privacy.why_withheld(project_of(home / folder)) == why
    (home / "state" / "pauses.jsonl").write_text("{")
    assert privacy.why_withheld(project_of(home / "shop")) == privacy.DAMAGED
    with pytest.raises(Unavailable, match="damaged"):
        Privacy.read()


def test_the_result_of_a_call_that_was_made_in_a_pause_is_left_out(quick: Memory, home: Path) -> None:
    pause.pause("", "", now=NOON)
    pause.resume("", "", now=NOON + timedelta(seconds=30))
    path = session(home, ("assistant", {"command": "ls"}), ("tool", "zanzibar"), ("user", "and now?"))
    assert brought_in(quick, path).added == 1
    assert said(quick) == ["and now?"]


SECRET = st.builds(
    "{} {}".format,
    st.sampled_from(["zanqivor", "Qixolume", "wexiplo7"]),
    st.sampled_from(["hoxalum", "42-99-17", "ñuqelox\nbewixu", "x" * 90]),
)
TAGS = (
    *("<private>{}</private>", "<PRIVATE>\n{}\n</private>", "a <private>{}"),
    *("<private>b <private>c</private>{}</private> d", '< private why="x" >{}</ private >'),
)


@settings(max_examples=cases(10, 75), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_private_word_is_in_any_byte(tmp_path: Path, home: Path, data: st.DataObject) -> None:
    secret = data.draw(SECRET)
    prompt = data.draw(st.sampled_from(TAGS)).replace("{}", secret)
    cut = data.draw(st.integers(0, len(prompt)))
    parts = [{"type": "text", "text": one} for one in (prompt[:cut], prompt[cut:]) if one.strip()]
    repeats: list[tuple[str, object]] = [
        ("assistant", f"You said: {secret}"),
        ("assistant", {"command": f"echo '{secret}'"}),
        ("assistant", {"prompt": prompt}),
        ("tool", f"1\u2192{secret}\nmore"),
        ("tool", prompt),
        ("user", f"I mean {secret}."),
    ]
    repeated = data.draw(st.lists(st.sampled_from(repeats), max_size=5))
    extra: Json = data.draw(st.sampled_from([{}, {"display": prompt, "attachments": [{prompt: [secret]}]}]))
    asked = data.draw(st.sampled_from([prompt, parts]))
    said = [("user", "We decided on tea."), ("user", asked), *repeated, ("user", "Thanks.")]
    path = session(home, *said, **extra)
    location = str(tmp_path / "memory.db")
    for file in tmp_path.glob("memory.db*"):
        file.unlink()
    with Memory(location) as memory:
        assert brought_in(memory, path).problems == ()
        memory.chat("s1").end()
        memory.chat("s1").extract()
        memory.recall("zanqivor hoxalum tea")
        while_open = database_bytes(memory, location, tmp_path)
        assert (brought_in(memory, path).added, memory.chat("s1").stats().messages) == (0, len(said))
    for word in secret.lower().split():
        assert word.encode() not in while_open
        assert word.encode() not in database_bytes(memory, location, tmp_path)
        assert json.dumps(word)[1:-1].encode() not in while_open


PIECES = 'a|a/|../|a\\|a b|\n|1:|"|<a path=|<a path="secrets/x">|<system-reminder>|==> |-1-|~/|secrets/x\n|'
PIECES += "Called the Read tool with the following input: {|Content from @secrets/x:\n|<private>x</private>|"
PIECES += "zanzibar account 1\n"


@pytest.mark.scaled
@pytest.mark.slow
@pytest.mark.parametrize("piece", PIECES.split("|"))
def test_hostile_megabytes_are_read_in_linear_time(quick: Memory, home: Path, piece: str) -> None:
    ignore(home, "secrets/", "*a*b*c*d*.env")
    text = f"x {piece * (cases(50_000, 500_000) // len(piece))}"
    said = [("user", text), ("assistant", {"command": text}), ("tool", text), ("assistant", text)]
    path = session(home, ("user", "<private>zanzibar account 1</private>"), *said)
    assert brought_in(quick, path).added == 5
