"""What was done in a work session, as lines of a summary: files, commands, errors, by the form of calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from holdfast.compaction.own_words import own_words
from holdfast.messages.passages import LONGEST_NAME, PASTED, STEPS, Passage, grave, masked, passages
from holdfast.messages.tool_uses import ToolUse, rendered, tool_uses
from holdfast.text.sentences import one_line
from holdfast.types import Message

EDITED, READ, NAMED, RAN, FAILED = "Edited", "Read", "Named", "Ran", "Failed"
_FILES = (EDITED, READ, NAMED)
_WEIGHTS = {EDITED: 3, FAILED: 4, READ: 1, NAMED: 0, RAN: 1}
# Characters of a command and of the line that says what went wrong.
_COMMAND = 100
_NOTE = 160
# Characters of a script that are looked at.
_SCRIPT = 20_000
# Characters at either end of an output that are searched for what went wrong.
_ENDS = 6_000
# Characters that are left to the name of who pasted a document.
_SPEAKER = LONGEST_NAME - len(PASTED)
# Parts of a path that tell a file from others.
_PARTS = 2

_USES = re.compile(r"(?=<tool[-_]use[ >])")
_PATH = re.compile(r"(?<![\w/.:@-])(?:~?/|\.{1,2}/)?(?:[\w@.-]+/)+[\w@-][\w@.-]*\.[A-Za-z]\w{0,4}\b(?![/(])")
_BARE = re.compile(r"(?<![\w/.:@-])[\w@-][\w@.-]*\.[A-Za-z]\w{0,4}\b(?![/(])")
# A script of more than one line, as it is written into a message.
_FENCED = re.compile(r"\A[^`]{0,600}\n```(?:bash|sh|shell|zsh|console)\n(.{1,20000}?)\n```", re.DOTALL)
_LINES = re.compile(r"(['\"])[^'\"\n]*\n[^'\"]*\1")
_GOES_TO = re.compile(r"(?:\||>|\d>|<<|&(?!&)).*", re.DOTALL)
# What begins the parts of a command line that do nothing by themselves, or only show something.
_ASIDE = re.compile(
    r"(?:echo|printf|cd|export|rm|mkdir|sleep|set|for|do|done|if|then|else|fi|while|true|pwd|ls|cat|"
    r"head|tail|"
    r"wc|grep|find|awk|sed -n)\b|\w+=|[^\w./~$'\"]|\.\s"
)
_BODY = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1.*?(?:^[ \t]*\2[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_JOINS = re.compile(r"&&|;|\n")
_FAILED = re.compile(
    r"^\W{0,8}(?:(?:[\w./@-]+:\d+:\d+:|[\w.]*(?:Error|Exception):|--- FAIL:|panic:) [^\n]+"
    r"|(?:\w+ ){0,3}(?:error|failed|fatal)(?: \w+){0,3}: [^\n]+|(?-i:FAILED|ERROR) \S+[^\n]+)",
    re.MULTILINE | re.IGNORECASE,
)
_EXIT = re.compile(
    r"^\W{0,4}(?:exit (?:code|status)|exited with(?: code)?):? ?[1-9]\d{0,2}\b", re.IGNORECASE | re.MULTILINE
)
_STEP = re.compile(rf"({RAN}|{FAILED}) #(\d+)(?: ×(\d+))?: (.+?)(?: → (.+))?")
_FILE = re.compile(r"(?<!\S)(\S{1,300}) #(\d+)(?: ×(\d+))?(?:, |$)")


class Step(NamedTuple):
    """A file that was edited, read or named, or a command that ran or failed; `number`: the last message."""

    verb: str
    what: str
    number: int
    times: int = 1
    note: str = ""


def work_passages(messages: Sequence[Message], *, ongoing: bool = False) -> list[Passage]:
    """Return what was said, numbered and without uses of tools, and what was done.

    Of what users sent, their own words are theirs; a pasted document is named as one. Nothing for any other
    conversation: one that is not `ongoing` work and in which no tool is used.
    """
    parts = [(message, *_parts(message)) for message in messages if message.role != "tool"]
    used = any(one.role == "tool" or one.calls or _USES.search(one.content) for one in messages)
    if not used and not ongoing and not any(pasted for _, _, pasted in parts):
        return []
    said: list[Passage] = []
    for message, own, pasted in parts:
        for text in filter(str.strip, (own, pasted)):
            bare = replace(message, content=text, calls=(), raw=None)
            said += (_numbered(one, message.seq, pasted=text is pasted) for one in passages((bare,)))
    at = messages[-1].at
    return [*said, *(Passage(line, "", at, STEPS) for line in lines(merged(steps_of(messages))))]


def _parts(message: Message) -> tuple[str, str]:
    return own_words(message.content) if message.role == "user" else (_USES.split(message.content)[0], "")


def _numbered(passage: Passage, number: int, *, pasted: bool) -> Passage:
    if not pasted:
        return replace(passage, number=number)
    return replace(passage, number=number, speaker=f"{passage.speaker[:_SPEAKER]}{PASTED}", role=PASTED)


def steps_of(messages: Sequence[Message]) -> Iterator[Step]:
    """Yield what was done in a chat, in its order, then the files that were named in it."""
    results = {call: one for one in messages if one.role == "tool" for call in one.answers or (one.call_id,)}
    named: dict[str, list[int]] = {}
    for message in map(masked, messages):
        for call, use in zip(message.calls, tool_uses((replace(message, content="…"),)), strict=False):
            answer = results.get(call.id)
            yield from _of_use(use, message, masked(answer).content if answer else "")
        said, *uses = _USES.split(message.content) if message.role == "assistant" else (message.content,)
        for text in uses:
            if written := rendered(replace(message, content=text)):
                if script := _FENCED.search(text):
                    written = replace(written, commands=(script[1],))
                told = (written.commands or ("\n```",))[0]
                yield from _of_use(written, message, text.partition(told)[2])
        if message.role in ("user", "assistant") and len(said) <= _ENDS:
            for path in dict.fromkeys((*_PATH.findall(said), *_BARE.findall(said))):
                named.setdefault(path, []).append(message.seq)
    known = {path.rpartition("/")[2] for path in named if "/" in path}
    for path, numbers in named.items():
        if "/" in path or path in known:
            yield Step(NAMED, _short(path), numbers[-1], len(numbers))


def _of_use(use: ToolUse, message: Message, output: str) -> Iterator[Step]:
    """Yield what one use of a tool did: its files, or its command and whether it failed."""
    number = message.seq
    paths = use.paths or tuple(path for text in use.texts for path in _PATH.findall(text)[:1])
    command = _command(use.commands[0]) if use.commands else ""
    if use.edits or not command:
        yield from (Step(EDITED if use.edits else READ, _short(path), number) for path in paths)
        return
    yield from (Step(NAMED, _short(path), number) for text in use.texts for path in _PATH.findall(text))
    error, ends = "", f"{output[:_ENDS]}\n{output[-_ENDS:]}" if len(output) > _ENDS else output
    failed = _EXIT.search(ends[:200]) is not None
    if found := _FAILED.search(ends):
        error = one_line(found[0])[:_NOTE]
        error = "" if grave(error) else error
    yield Step(FAILED if failed or error else RAN, command, number, 1, error)


def _short(path: str) -> str:
    parts = path.strip("`'\"").split("/")
    return "/".join([part for part in parts if part.strip(".~")][-_PARTS:])


def _command(text: str) -> str:
    """Return the last part of a command line that does something, without where its input and output go."""
    text = _LINES.sub("…", _BODY.sub("", text[:_SCRIPT]))
    parts = [one_line(_GOES_TO.sub("", part)) for part in _JOINS.split(text)]
    for part in reversed(parts):
        whole = len(part) <= _COMMAND and not (part.count('"') % 2 or part.count("'") % 2 or "→" in part)
        # A single word may be the file that a tool was used on.
        if whole and part and not _ASIDE.match(part) and (" " in part or not set(part).intersection("/.")):
            return part
    return ""


def merged(steps: Iterable[Step]) -> list[Step]:
    """Return each step once, with how often and where last; a file that was edited counts as that only."""
    found: dict[tuple[str, str], Step] = {}
    for step in steps:
        key = (step.verb, step.note or step.what)
        before = found.get(key)
        note = step.note or (before.note if before else "")
        times = step.times + (before.times if before else 0)
        number = max(step.number, before.number if before else 0)
        what = before.what if before and before.number > step.number else step.what
        found[key] = Step(step.verb, what, number, times, note)
    _join_bare(found)
    for weaker, stronger in ((NAMED, READ), (READ, EDITED), (NAMED, EDITED)):
        for _, what in [key for key in found if key[0] == weaker]:
            if above := found.get((stronger, what)):
                times = above.times + found.pop((weaker, what)).times
                found[stronger, what] = above._replace(times=times)
    return list(found.values())


def _join_bare(found: dict[tuple[str, str], Step]) -> None:
    """Count a file that was named without its folder as the one file of that name, if there is one."""
    folders: dict[str, set[str]] = {}
    for verb, what in found:
        if verb in _FILES and "/" in what:
            folders.setdefault(what.rpartition("/")[2], set()).add(what)
    for verb, what in [key for key in found if key[0] in _FILES and len(folders.get(key[1], ())) == 1]:
        bare, whole = found.pop((verb, what)), next(iter(folders[what]))
        known = found.get((verb, whole), bare._replace(what=whole, times=0))
        number = max(known.number, bare.number)
        found[verb, whole] = known._replace(number=number, times=known.times + bare.times)


def lines(steps: Sequence[Step]) -> list[str]:
    """Return steps as lines: files by what was done with them, and one for each command, oldest first."""
    written: list[str] = []
    for verb in _FILES:
        files = [f"{one.what} #{one.number}{_times(one)}" for one in steps if one.verb == verb]
        written += [f"{verb}: {', '.join(files)}"] * bool(files)
    for one in sorted(steps, key=lambda one: one.number):
        if one.verb not in _FILES:
            note = f" → {one.note}" if one.note else ""
            written.append(f"{one.verb} #{one.number}{_times(one)}: {one.what}{note}")
    return written


def _times(step: Step) -> str:
    return f" ×{step.times}" if step.times > 1 else ""


def read_steps(line: str) -> list[Step]:
    """Return the steps of a line that `lines` wrote; none of any other."""
    verb, _, files = line.partition(": ")
    if verb in _FILES:
        found = [Step(verb, one[1], int(one[2]), int(one[3] or 1)) for one in _FILE.finditer(files)]
        return found if sum(len(one[0]) for one in _FILE.finditer(files)) == len(files) else []
    match = _STEP.fullmatch(line)
    return [Step(match[1], match[4], int(match[2]), int(match[3] or 1), match[5] or "")] if match else []


def chief(steps: Sequence[Step]) -> list[Step]:
    """Return the steps that matter, the chief ones first; commands that ran once only if alone.

    A command that failed and ran later matters less than one that has not.
    """
    ran = {one.what: one.number for one in steps if one.verb == RAN}

    def rank(one: Step) -> tuple[int, int]:
        mended = one.verb == FAILED and ran.get(one.what, 0) > one.number
        return -_WEIGHTS[one.verb] - min(one.times, 9) + 2 * mended, -one.number

    return sorted([one for one in steps if one.times > 1 or one.verb != RAN] or steps, key=rank)
