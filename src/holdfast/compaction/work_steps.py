"""The steps of a work session as lines of a summary: files, commands and errors, by the form of calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

from holdfast.compaction.own_words import own_words
from holdfast.messages.passages import LONGEST_NAME, PASTED, STEPS, Passage, grave, masked, passages
from holdfast.messages.tool_uses import ToolUse, rendered, tool_uses
from holdfast.text.sentences import one_line
from holdfast.types import Message

EDITED, READ, NAMED, RAN, FAILED = "Edited", "Read", "Named", "Ran", "Failed"
_FILES = (EDITED, READ, NAMED)
_WEIGHTS = {EDITED: 3, FAILED: 4, READ: 1, NAMED: 0, RAN: 1}
# Characters of a command and of the line of its error.
_COMMAND = 100
_NOTE = 160
# Characters of a script that are looked at.
_SCRIPT = 20_000
# Characters at either end of an output that are searched for an error.
_ENDS = 6_000
# Characters that are left for the name of the user who pasted a document.
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
# The beginnings of parts of a command line that do nothing by themselves, or only show something.
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
    """Return the words of a work session, numbered and without uses of tools, and its steps.

    In the messages of users, a pasted document is named as one. Nothing for any other conversation: one that
    is not `ongoing` work, without tools and pasted documents.
    """
    parts = [(message, *_split_pasted(message)) for message in messages if message.role != "tool"]
    used = len(parts) < len(messages) or any(said.calls or _USES.search(said.content) for said, *_ in parts)
    if not used and not ongoing and not any(pasted for _, _, pasted in parts):
        return []
    said: list[Passage] = []
    for message, own, pasted in parts:
        for text in filter(str.strip, (own, pasted)):
            bare = replace(message, content=text, calls=(), raw=None)
            said += (_number(passage, message.seq, pasted=text is pasted) for passage in passages((bare,)))
    at = messages[-1].at
    return [*said, *(Passage(line, "", at, STEPS) for line in lines(merged(steps_of(messages))))]


def _split_pasted(message: Message) -> tuple[str, str]:
    return own_words(message.content) if message.role == "user" else (_USES.split(message.content)[0], "")


def _number(passage: Passage, number: int, *, pasted: bool) -> Passage:
    if not pasted:
        return replace(passage, number=number)
    return replace(passage, number=number, speaker=f"{passage.speaker[:_SPEAKER]}{PASTED}", role=PASTED)


def steps_of(messages: Sequence[Message]) -> Iterator[Step]:
    """Yield the steps of a chat in their order, then the files that are named in it."""
    answers = [message for message in messages if message.role == "tool"]
    results = {call: answer for answer in answers for call in answer.answers or (answer.call_id,)}
    named: dict[str, list[int]] = {}
    for message in map(masked, messages):
        for call, use in zip(message.calls, tool_uses((replace(message, content="…"),)), strict=False):
            answer = results.get(call.id)
            yield from _steps_of_use(use, message, masked(answer).content if answer else "")
        said, *uses = _USES.split(message.content) if message.role == "assistant" else (message.content,)
        for text in uses:
            if written := rendered(replace(message, content=text)):
                if script := _FENCED.search(text):
                    written = replace(written, commands=(script[1],))
                told = (written.commands or ("\n```",))[0]
                yield from _steps_of_use(written, message, text.partition(told)[2])
        if message.role in ("user", "assistant") and len(said) <= _ENDS:
            for path in dict.fromkeys((*_PATH.findall(said), *_BARE.findall(said))):
                named.setdefault(path, []).append(message.seq)
    known = {path.rpartition("/")[2] for path in named if "/" in path}
    for path, numbers in named.items():
        if "/" in path or path in known:
            yield Step(NAMED, _short(path), numbers[-1], len(numbers))


def _steps_of_use(use: ToolUse, message: Message, output: str) -> Iterator[Step]:
    """Yield the steps of one use of a tool: its files, or its command and whether it failed."""
    number = message.seq
    paths = use.paths or tuple(path for text in use.texts for path in _PATH.findall(text)[:1])
    command = _command(use.commands[0]) if use.commands else ""
    if use.edits or not command:
        yield from (Step(EDITED if use.edits else READ, _short(path), number) for path in paths)
        return
    yield from (Step(NAMED, _short(path), number) for text in use.texts for path in _PATH.findall(text))
    error, ends = "", f"{output[:_ENDS]}\n{output[-_ENDS:]}" if len(output) > _ENDS else output
    failed = _EXIT.search(ends[:200]) is not None
    if failure := _FAILED.search(ends):
        error = one_line(failure[0])[:_NOTE]
        error = "" if grave(error) else error
    yield Step(FAILED if failed or error else RAN, command, number, 1, error)


def _short(path: str) -> str:
    parts = path.strip("`'\"").split("/")
    return "/".join([part for part in parts if part.strip(".~")][-_PARTS:])


def _command(text: str) -> str:
    """Return the last part of a command line that does something, without redirections."""
    text = _LINES.sub("…", _BODY.sub("", text[:_SCRIPT]))
    parts = [one_line(_GOES_TO.sub("", part)) for part in _JOINS.split(text)]
    for part in reversed(parts):
        whole = len(part) <= _COMMAND and not (part.count('"') % 2 or part.count("'") % 2 or "→" in part)
        # A single word may be the file that a tool was used on.
        if whole and part and not _ASIDE.match(part) and (" " in part or not set(part).intersection("/.")):
            return part
    return ""


def merged(steps: Iterable[Step]) -> list[Step]:
    """Return each step once, with its count and last message; an edited file counts as edited only."""
    kept: dict[tuple[str, str], Step] = {}
    for step in steps:
        key = (step.verb, step.note or step.what)
        before = kept.get(key, step._replace(number=0, times=0))
        what, number = max((step.what, step.number), (before.what, before.number), key=itemgetter(1))
        kept[key] = Step(step.verb, what, number, step.times + before.times, step.note or before.note)
    _join_bare(kept)
    for weaker, stronger in ((NAMED, READ), (READ, EDITED), (NAMED, EDITED)):
        for _, what in [key for key in kept if key[0] == weaker]:
            if above := kept.get((stronger, what)):
                times = above.times + kept.pop((weaker, what)).times
                kept[stronger, what] = above._replace(times=times)
    return list(kept.values())


def _join_bare(steps: dict[tuple[str, str], Step]) -> None:
    """Count a file that was named without its folder as the one file of that name, if there is one."""
    folders: dict[str, set[str]] = {}
    for verb, what in steps:
        if verb in _FILES and "/" in what:
            folders.setdefault(what.rpartition("/")[2], set()).add(what)
    for verb, what in [key for key in steps if key[0] in _FILES and len(folders.get(key[1], ())) == 1]:
        bare, whole = steps.pop((verb, what)), next(iter(folders[what]))
        known = steps.get((verb, whole), bare._replace(what=whole, times=0))
        number = max(known.number, bare.number)
        steps[verb, whole] = known._replace(number=number, times=known.times + bare.times)


def lines(steps: Sequence[Step]) -> list[str]:
    """Return steps as lines: one for the files of each verb, and one for each command, oldest first."""
    written: list[str] = []
    for verb in _FILES:
        files = [f"{step.what} #{step.number}{_times(step)}" for step in steps if step.verb == verb]
        written += [f"{verb}: {', '.join(files)}"] * bool(files)
    for step in sorted(steps, key=lambda step: step.number):
        if step.verb not in _FILES:
            note = f" → {step.note}" if step.note else ""
            written.append(f"{step.verb} #{step.number}{_times(step)}: {step.what}{note}")
    return written


def _times(step: Step) -> str:
    return f" ×{step.times}" if step.times > 1 else ""


def read_steps(line: str) -> list[Step]:
    """Return the steps of a line that `lines` wrote; none of any other."""
    verb, _, files = line.partition(": ")
    if verb in _FILES:
        steps = [Step(verb, match[1], int(match[2]), int(match[3] or 1)) for match in _FILE.finditer(files)]
        return steps if sum(len(match[0]) for match in _FILE.finditer(files)) == len(files) else []
    match = _STEP.fullmatch(line)
    return [Step(match[1], match[4], int(match[2]), int(match[3] or 1), match[5] or "")] if match else []


def chief(steps: Sequence[Step]) -> list[Step]:
    """Return the steps by importance; commands that ran once only where there is nothing else.

    A command that failed and ran later matters less than one that has not.
    """
    ran = {step.what: step.number for step in steps if step.verb == RAN}

    def rank(step: Step) -> tuple[int, int]:
        mended = step.verb == FAILED and ran.get(step.what, 0) > step.number
        return -_WEIGHTS[step.verb] - min(step.times, 9) + 2 * mended, -step.number

    return sorted([step for step in steps if step.times > 1 or step.verb != RAN] or steps, key=rank)
