"""Claude Code: the session logs under `~/.claude/projects`, with their branches and subagents."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.errors import InvalidInput
from holdfast.io.files import File, lines
from holdfast.io.found import Found, Session, Skip, found, stable_id, text_of
from holdfast.messages import formats
from holdfast.text.clean import clean

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from holdfast.types import Message

_AGENT_FILE = "agent-"  # how the log of a subagent is named
_LEFT = "on a branch that was left: its prompt was rewound and asked anew"


def is_line(value: Mapping[str, object]) -> bool:
    """Tell a line of a session log from other JSON objects."""
    marks = ("sessionId", "leafUuid", "snapshot")
    return isinstance(value.get("type"), str) and any(mark in value for mark in marks) and "role" not in value


def read(file: File) -> Iterator[Found | Skip]:
    """Read a session log: every user and assistant line is a message, in the order of the file.

    The lines of a log form trees, because each names the line that it follows. A user who rewinds asks another prompt
    at the same line, and the thread goes on from the newest; what followed the other prompts is left out and counted.
    All other forks belong to one thread: parallel tool calls make them, and so do progress lines. So does a compaction,
    which starts a new tree: the lines before it are the originals of its summary, and are kept in the summary's place.
    Subagents become sessions of their own, `<session>/agent-<id>`, whether they are logged in the file or in another.
    """
    plan = _plan(file)
    for item in lines(file):
        line, entry = (item.line, None) if isinstance(item, Skip) else item
        if line > plan.length:
            return  # the session is going on while it is read
        if isinstance(item, Skip):
            yield item
        elif entry is not None and (fate := plan.fates.get(line)) is not None:
            yield fate if isinstance(fate, Skip) else found(fate, line, _message, entry, line)


def _message(entry: dict[str, object], line: int) -> Message:
    inner = entry.get("message")
    if not isinstance(inner, dict):
        raise InvalidInput("The line has no message.", "Skip it.")
    return replace(
        formats.parse(inner),
        id=clean(text_of(entry.get("uuid"))) or stable_id(line, entry),
        at=formats.read_time(entry.get("timestamp")),
        raw=entry,
    )


@dataclass(frozen=True, slots=True)
class _Node:
    """What of a line decides where it belongs; `spoken` when it is conversation, `prompt` when a person asks."""

    line: int
    uuid: str
    parent: str
    session: str
    agent: str
    side: bool
    spoken: bool
    prompt: bool


@dataclass(frozen=True, slots=True)
class _Plan:
    """Say of each line which session it belongs to or why it is left out, for the file as long as it was."""

    fates: dict[int, Session | Skip]
    length: int


def _plan(file: File) -> _Plan:
    """Pass over the file once, keeping only how its lines hang together."""
    stem = file.name.rsplit("/", 1)[-1]
    nodes: list[_Node] = []
    fates: dict[int, Session | Skip] = {}
    length, titles = 0, {"customTitle": "", "aiTitle": ""}
    for item in lines(file):
        if isinstance(item, Skip):
            length = item.line
            continue
        length, entry = item
        reason = _why_not_spoken(entry)
        if reason:
            fates[length] = Skip(length, reason)
        nodes.append(_node(length, entry, side=stem.startswith(_AGENT_FILE), spoken=not reason))
        titles.update({key: text_of(entry[key]) for key in titles if text_of(entry.get(key))})
    left = _left_behind(nodes)
    sessions = _sessions(nodes, stem, titles["customTitle"] or titles["aiTitle"])
    for node in nodes:
        if node.spoken:
            fates[node.line] = Skip(node.line, _LEFT) if node.uuid in left else sessions[node.uuid]
    return _Plan(fates, length)


def _why_not_spoken(entry: Mapping[str, object]) -> str:
    kind = text_of(entry.get("type"))
    if kind not in {"user", "assistant"}:
        return f"not conversation: {clean(kind)[:40] or 'no type'}"
    if entry.get("isMeta") is True:
        return "not conversation: written by the program (isMeta)"
    if entry.get("isCompactSummary") is True:
        return "a summary of messages that come before it (isCompactSummary)"
    return ""


def _node(line: int, entry: Mapping[str, object], *, side: bool, spoken: bool) -> _Node:
    return _Node(
        line,
        text_of(entry.get("uuid")) or f"line {line}",
        text_of(entry.get("parentUuid")),
        text_of(entry.get("sessionId")),
        text_of(entry.get("agentId")),
        side or entry.get("isSidechain") is True,
        spoken,
        spoken and entry.get("type") == "user" and not _has_result(entry.get("message")),
    )


def _has_result(message: object) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    parts = content if isinstance(content, list) else []
    return any(isinstance(part, dict) and part.get("type") == "tool_result" for part in parts)


def _left_behind(nodes: list[_Node]) -> Container[str]:
    """Find the lines under prompts in whose place another prompt went on."""
    parents = {node.uuid: node.parent for node in reversed(nodes)}
    spoken = {node.uuid: node.side for node in nodes if node.spoken}
    anchors = _nearest(parents, spoken)
    prompts: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        anchor = anchors.get(node.parent)
        if node.prompt and anchor is not None and spoken[anchor] == node.side:
            prompts[anchor].append(node.uuid)
    newest = _newest(nodes, parents)
    replaced: set[str] = set()
    for rivals in prompts.values():
        kept = max(rivals, key=newest.__getitem__)
        replaced.update(rival for rival in rivals if rival != kept)
    return {uuid for uuid, prompt in _nearest(parents, replaced).items() if prompt is not None}


def _nearest(parents: Mapping[str, str], marked: Container[str]) -> dict[str, str | None]:
    """Find for every line the nearest marked one at or above it; linear, and safe against circles."""
    nearest: dict[str, str | None] = {}
    for start in parents:
        path, node = [], start
        while node in parents and node not in nearest:
            nearest[node] = node if node in marked else None
            path.append(node)
            if node in marked:
                break
            node = parents[node]
        for passed in path:
            nearest[passed] = nearest.get(node)
    return nearest


def _newest(nodes: list[_Node], parents: Mapping[str, str]) -> dict[str, int]:
    """Find for every line the last line of the file that is at or under it; linear, as a line is set only once."""
    newest: dict[str, int] = {}
    for node in reversed(nodes):
        above = node.uuid
        while above in parents and above not in newest:
            newest[above] = node.line
            above = parents[above]
    return newest


def _sessions(nodes: list[_Node], stem: str, title: str) -> dict[str, Session]:
    """Name the session of every line: the file's, or that of a subagent.

    The file's is called after the file where its lines agree, so that a session that was resumed from another, and
    begins with lines of it, is itself.
    """
    ids = [node.session for node in nodes if node.session]
    main = stem if stem in ids or not ids else ids[0]
    side = {node.uuid: node.parent for node in reversed(nodes) if node.side}
    roots = _nearest(side, {uuid for uuid, parent in side.items() if parent not in side})
    shared = stem.removeprefix(_AGENT_FILE) if stem.startswith(_AGENT_FILE) else ""
    made = {main: Session(main, title)}
    sessions = {}
    for node in nodes:
        agent = node.agent or shared or roots.get(node.uuid) or node.uuid
        identity = f"{main}/agent-{agent}" if node.side else main
        sessions[node.uuid] = made.setdefault(identity, Session(identity))
    return sessions
