"""Claude Code: the session logs under `~/.claude/projects`, with their branches and subagents."""

import json
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import chain

from holdfast.errors import InvalidInput
from holdfast.port import formats, texts
from holdfast.types import Message
from holdfast_cli.formats.files import File, lines
from holdfast_cli.formats.import_items import ImportedChat, Item, Skip, item_of
from holdfast_cli.formats.json_values import dict_of, list_of, stable_id, text_of

_AGENT_FILE = "agent-"  # the prefix of the file names of subagents
# How earlier versions wrote what a hook adds to a prompt: as a user's line, or as a part of one.
_ADDED = re.compile(
    r"\s*+<(system-reminder|user-prompt-submit-hook|session-start-hook)>(?:(?!</\1>).)*+</\1>\s*+", re.DOTALL
)
_BY_HOOK = re.compile(r"hook (?:additional context|success)|-hook>|<(?:recalled|known|memory)>")
_LEFT = "on a branch that was left: its prompt was rewound and asked anew"
_BY_PROGRAM = "<synthetic>"  # the model of what no model said
_WAITS = "a result whose call is not in the file yet: import it again when the session has gone on"
_NOT_THERE = "the rest of an output: its file is not beside the session"
_GROWN = "an earlier state of a message, which another line has whole"
_SIGNATURE = re.compile(r',? "signature": "[^"\\]*"')
_BRACKETS = '"}]'
_STATES = 16  # messages that may grow at the same time
# What stands in place of an output that is too long: where it is, by session and name, and its beginning.
_SAVED = re.compile(
    r"\s*+(?:<persisted-output>|Error: result \()[^\0]{0,400}?saved to:? [^\n]{0,1000}?([\w-]{1,100})[/\\]"
    r"tool-results[/\\](\w(?:[\w.-]{0,200}\w)?)"
)


def is_line(value: Mapping[str, object]) -> bool:
    """Return whether an object is a line of a session log."""
    marks = ("sessionId", "leafUuid", "snapshot")
    return isinstance(value.get("type"), str) and any(mark in value for mark in marks) and "role" not in value


@dataclass(frozen=True, slots=True)
class LogNode:
    """The links of a line: `spoken` for conversation, `prompt` for one of the user, `side` for a subagent.

    `calls` are those that it makes, `answers` those whose results it has.
    """

    line: int
    uuid: str
    parent: str
    session: str
    agent: str
    side: bool
    spoken: bool
    prompt: bool
    calls: Sequence[str] = ()
    answers: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class LogStart:
    """The beginning of a session log, as far as it decides on what follows: its lines, and its titles.

    The `nodes` are in the order of the conversation, each part of the log for itself.
    """

    nodes: tuple[LogNode, ...] = ()
    lines: int = 0
    custom_title: str = ""
    title: str = ""


def read(file: File) -> Iterator[Item]:
    """Yield the messages of a session log: its user and assistant lines, and what was typed meanwhile.

    They come in the order of the file, unless it has a line before the one that it follows, a result before
    its call, or what was said later first: then by time, and none before these. A result at the end whose
    call is not there yet is left to the next import.
    Of a message that was written again as it grew, the last state is taken. Of an output that is beside the
    session, the message has all, and the line as it came its beginning.

    The lines form trees: each names the line that it follows. A user who rewinds sends another prompt after
    the same line, and the thread continues from the newest; what follows the other prompts is left out and
    counted. Other forks, made by parallel tool calls and progress lines, belong to the same thread. So does a
    compaction, which starts a new tree: its summary is left out, as the lines before it are its originals.
    Subagents become chats of their own, `<session>/agent-<id>`, whether they are in this file or in another.
    """
    start = LogStart()
    yield from read_after(file, start, scan_after(file, start))


def scan_after(file: File, start: LogStart) -> LogStart:
    """Return the beginning of a session log up to the end of a file, which follows the beginning `start`."""
    is_side = file.name.rsplit("/", 1)[-1].startswith(_AGENT_FILE)
    nodes, length = list(start.nodes), start.lines
    custom, title = start.custom_title, start.title
    summaries: dict[str, str] = {}
    states: dict[str, tuple[int, str]] = {}
    times: dict[int, datetime] = {}
    at = datetime.min.replace(tzinfo=UTC)
    for item in lines(file):
        if isinstance(item, Skip):
            length = start.lines + item.line
            continue
        length, entry = start.lines + item[0], item[1]
        node = _node(length, entry, side=is_side, spoken=not _why_not_spoken(entry))
        nodes.append(_without_states(nodes, node, entry, states))
        with suppress(InvalidInput):
            at = formats.read_time(entry.get("timestamp")) or at
        times[length] = at
        custom, title = text_of(entry.get("customTitle")) or custom, text_of(entry.get("aiTitle")) or title
        summaries[text_of(entry.get("leafUuid"))] = text_of(entry.get("summary"))
    # Of what other sessions were about, a log tells as well.
    own = [summaries[node.uuid] for node in nodes if summaries.get(node.uuid)]
    new = _in_order(nodes[len(start.nodes) :], times)
    return LogStart((*start.nodes, *new), length, custom, [title, *own][-1])


def _without_states(
    nodes: list[LogNode], node: LogNode, entry: Mapping[str, object], states: dict[str, tuple[int, str]]
) -> LogNode:
    """Return a node, not spoken if its message is known already; mark earlier states of the message."""
    inner = dict_of(entry.get("message"))
    if not (node.spoken and (identity := text_of(inner.get("id"))) and entry["type"] == "assistant"):
        return node
    # What is said between the brackets of JSON grows at its end, but for signatures.
    state = _SIGNATURE.sub("", json.dumps(inner.get("content")))
    place, before = states.pop(identity, (0, ""))
    if before.startswith(state.rstrip(_BRACKETS)):
        states[identity] = place, before
        return replace(node, spoken=False)
    if before and state.startswith(before.rstrip(_BRACKETS)):
        nodes[place] = replace(nodes[place], spoken=False)
    states[identity] = len(nodes), state
    if len(states) > _STATES:
        del states[next(iter(states))]
    return node


def read_after(file: File, start: LogStart, end: LogStart) -> Iterator[Item]:
    """Yield the items of a file that follows the beginning `start` of a session log, up to `end`."""
    order = iter([node.line for node in end.nodes[len(start.nodes) :]])
    pending: dict[int, Sequence[Item]] = {}
    line = next(order, 0)
    for first, *more in _items_after(file, start, end):
        is_said = not isinstance(first, Skip)
        pending[first.line] = [first, *more] if is_said else ()
        if not is_said:
            yield first
        while line in pending:
            yield from pending.pop(line)
            line = next(order, 0)
    # Of a file that was replaced between the two reads.
    yield from chain.from_iterable(pending.values())


def _items_after(file: File, start: LogStart, end: LogStart) -> Iterator[list[Item]]:
    """Yield the items of each line."""
    places = _places(end, file.name.rsplit("/", 1)[-1])
    for item in lines(file):
        line = start.lines + (item.line if isinstance(item, Skip) else item[0])
        if line > end.lines:
            # The session continued between the two reads.
            return
        if isinstance(item, Skip):
            yield [replace(item, line=line)]
        elif reason := _why_not_spoken(item[1]):
            yield [Skip(line, reason)]
        elif isinstance(place := places.get(line, Skip(line, _GROWN)), Skip):
            yield [place]
        else:
            result = item_of(place, line, _message, item[1], line, file)
            message = getattr(result, "message", None)
            is_cut = message and _SAVED.match(message.content)
            yield [result, Skip(line, _NOT_THERE)] if is_cut else [result]


def _in_order(nodes: Sequence[LogNode], times: Mapping[int, datetime]) -> Sequence[LogNode]:
    """Return lines in the order of the conversation, which is that of the file wherever it can be.

    `times` has when each line was written, or the one before it that says so.
    """
    by_time = sorted(nodes, key=lambda node: times[node.line])
    lines = {node.uuid: node.line for node in reversed(by_time)}
    calls = {call: node.line for node in reversed(by_time) if node.spoken for call in node.calls}
    above = {
        node.line: {lines.get(node.parent, 0), *(calls.get(call, 0) for call in node.answers)}
        - {0, node.line}
        for node in nodes
    }
    # Calls at the same time have their results when all are done.
    turns = [times[node.line] for node in nodes if node.spoken and not node.answers]
    if turns == sorted(turns) and all(line > max(firsts, default=0) for line, firsts in above.items()):
        return nodes
    sorter, ready, place = TopologicalSorter(above), list[tuple[datetime, int]](), dict[int, int]()
    with suppress(CycleError):
        sorter.prepare()
    while sorter.is_active():
        for line in sorter.get_ready():
            heappush(ready, (times[line], line))
        line = heappop(ready)[1]
        place[line] = len(place)
        sorter.done(line)
    # Lines that follow each other in a circle come last.
    return sorted(by_time, key=lambda node: place.get(node.line, len(place)))


def message_of(entry: Mapping[str, object]) -> object:
    """Return the message of a line; what was typed while a tool ran stands in an attachment."""
    if entry.get("type") == "attachment":
        return {"role": "user", "content": dict_of(entry.get("attachment")).get("prompt")}
    return entry.get("message")


def _message(entry: dict[str, object], line: int, file: File) -> Message:
    inner = message_of(entry)
    if not isinstance(inner, dict):
        raise InvalidInput("The line has no message.", "Skip it.")
    message = formats.parse(inner)
    if message.answers:
        output = formats.each_text(inner["content"], lambda text: _output(text, file))
        message = formats.parse({**inner, "content": output})
    return replace(
        message,
        id=texts.clean(text_of(entry.get("uuid"))) or stable_id(line, entry),
        at=formats.read_time(entry.get("timestamp")),
        raw=entry,
    )


def _output(text: str, log: File) -> str:
    """Return the output file that a text refers to, or the text if the file is missing."""
    match = _SAVED.match(text)
    output = log.beside(f"{match[1]}/tool-results/{match[2]}") if match else None
    return text if output is None else output.decode(errors="replace")


def waiting(start: LogStart, end: LogStart) -> set[int]:
    """Return the lines with results whose calls are not there yet, since `start` and since anything was said.

    The line of a call may be written after that of its result.
    """
    calls = {call for node in end.nodes for call in node.calls}
    places = [place for place, node in enumerate(end.nodes, 1) if node.spoken and not node.answers]
    since = max([len(start.nodes), *places])
    return {node.line for node in end.nodes[since:] if not calls.issuperset(node.answers)}


def revives(start: LogStart, end: LogStart) -> bool:
    """Return whether a branch abandoned in the beginning `start` of a log has been continued since."""
    before, now = _rewound_lines(start.nodes), _rewound_lines(end.nodes)
    return any(node.spoken and node.uuid in before and node.uuid not in now for node in start.nodes)


def _places(log: LogStart, stem: str) -> dict[int, ImportedChat | Skip]:
    """Return the chat of each line of conversation, or why it is left out."""
    behind = _rewound_lines(log.nodes)
    chats = _chats(log.nodes, stem, log.custom_title or log.title)
    places: dict[int, ImportedChat | Skip] = {
        node.line: Skip(node.line, _LEFT) if node.uuid in behind else chats[node.uuid]
        for node in log.nodes
        if node.spoken
    }
    # A file that has nothing but results is the rest of another one; whoever follows it waits nevertheless.
    is_rest = all(node.answers for node in log.nodes if node.spoken)
    return places | {line: Skip(line, _WAITS) for line in waiting(LogStart(), log) if not is_rest}


def _why_not_spoken(entry: Mapping[str, object]) -> str:
    kind, prompt = text_of(entry.get("type")), dict_of(entry.get("attachment"))
    is_typed = prompt.get("type") == "queued_command" and prompt.get("commandMode", "prompt") == "prompt"
    if kind not in {"user", "assistant"} and not (kind == "attachment" and is_typed):
        return f"not conversation: {texts.clean(kind)[:40] or 'no type'}"
    if entry.get("isMeta") is True or prompt.get("isMeta") is True:
        return "not conversation: written by the program (isMeta)"
    if entry.get("isCompactSummary") is True:
        return "a summary of messages that come before it (isCompactSummary)"
    inner = dict_of(entry.get("message"))
    if entry.get("isApiErrorMessage") is True or inner.get("model") == _BY_PROGRAM:
        return "not conversation: an error of the API, or a notice in place of an answer"
    if kind == "user" and _is_added(inner.get("content")):
        return "not conversation: context that a hook added"
    return ""


def _is_added(content: object) -> bool:
    """Return whether a user's line has nothing but the context that a hook added."""
    parts = [content] if isinstance(content, str) else [dict_of(raw).get("text") for raw in list_of(content)]
    text = "".join(part for part in parts if isinstance(part, str))
    is_text = bool(parts) and all(isinstance(part, str) for part in parts)
    return is_text and _BY_HOOK.search(text) is not None and not _ADDED.sub("", text).strip()


def _node(line: int, entry: Mapping[str, object], *, side: bool, spoken: bool) -> LogNode:
    parts = [dict_of(part) for part in list_of(dict_of(entry.get("message")).get("content"))]
    answers = _ids(parts, "tool_result", "tool_use_id")
    return LogNode(
        line,
        text_of(entry.get("uuid")) or f"line {line}",
        text_of(entry.get("parentUuid")),
        text_of(entry.get("sessionId")),
        text_of(entry.get("agentId")),
        side or entry.get("isSidechain") is True,
        spoken,
        spoken and entry.get("type") == "user" and not answers,
        _ids(parts, "tool_use", "id"),
        answers,
    )


def _ids(parts: Iterable[Mapping[str, object]], kind: str, key: str) -> list[str]:
    return [text_of(part.get(key)) for part in parts if part.get("type") == kind]


def _rewound_lines(nodes: Sequence[LogNode]) -> Container[str]:
    """Return the ids of the lines under prompts that a later prompt replaced."""
    spoken = {node.uuid: node.side for node in nodes if node.spoken}
    anchors = _nearest(nodes, spoken)
    prompts: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        anchor = anchors.get(node.parent)
        if node.prompt and anchor is not None and spoken[anchor] == node.side:
            prompts[anchor].append(node.uuid)
    newest: dict[str, int] = {}  # the place of the last line at or under each
    for place, node in reversed(list(enumerate(nodes))):
        last = newest.setdefault(node.uuid, place)
        newest[node.parent] = max(last, newest.get(node.parent, 0))
    losers: set[str] = set()
    for rivals in prompts.values():
        losers.update(set(rivals) - {max(rivals, key=newest.__getitem__)})
    return {uuid for uuid, prompt in _nearest(nodes, losers).items() if prompt is not None}


def _nearest(nodes: Iterable[LogNode], marks: Container[str]) -> dict[str, str | None]:
    """Return the nearest line among `marks` at or above each line."""
    nearest: dict[str, str | None] = {}
    for node in nodes:
        nearest.setdefault(node.uuid, node.uuid if node.uuid in marks else nearest.get(node.parent))
    return nearest


def _chats(nodes: Sequence[LogNode], stem: str, title: str) -> dict[str, ImportedChat]:
    """Return the chat of each line: that of the file, or of a subagent.

    The id is the name of the file if a line has it as session. So a session that was resumed from another,
    and begins with lines of that one, is a chat of its own.
    """
    ids = [node.session for node in nodes if node.session]
    main = stem if stem in ids or not ids else ids[0]
    side = {node.uuid: node for node in reversed(nodes) if node.side}
    roots = _nearest(nodes, {uuid for uuid, node in side.items() if node.parent not in side})
    file_agent = stem.removeprefix(_AGENT_FILE) if stem.startswith(_AGENT_FILE) else ""
    by_id = {main: ImportedChat(main, title)}
    chats = {}
    for node in nodes:
        agent = node.agent or file_agent or roots.get(node.uuid) or node.uuid
        identity = f"{main}/agent-{agent}" if node.side else main
        chats[node.uuid] = by_id.setdefault(identity, ImportedChat(identity))
    return chats
