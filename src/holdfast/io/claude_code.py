"""Claude Code: the session logs under `~/.claude/projects`, with their branches and subagents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace

from holdfast.errors import InvalidInput
from holdfast.io.files import File, lines
from holdfast.io.import_items import ImportedChat, Item, Skip, dict_of, list_of, parsed, stable_id, text_of
from holdfast.messages import formats
from holdfast.text.clean import clean
from holdfast.types import Message

_AGENT_FILE = "agent-"  # the prefix of the file names of subagents
_LEFT = "on a branch that was left: its prompt was rewound and asked anew"


def is_line(value: Mapping[str, object]) -> bool:
    """Return whether an object is a line of a session log."""
    marks = ("sessionId", "leafUuid", "snapshot")
    return isinstance(value.get("type"), str) and any(mark in value for mark in marks) and "role" not in value


def read(file: File) -> Iterator[Item]:
    """Yield the messages of a session log: its user and assistant lines, in the order of the file.

    The lines form trees: each names the line that it follows. A user who rewinds sends another prompt after
    the same line, and the thread continues from the newest; what follows the other prompts is left out and
    counted. Other forks, made by parallel tool calls and progress lines, belong to the same thread. So does a
    compaction, which starts a new tree: its summary is left out, as the lines before it are its originals.
    Subagents become chats of their own, `<session>/agent-<id>`, whether they are in this file or in another.
    """
    placed, length = _placed_lines(file)
    for item in lines(file):
        line, entry = (item.line, None) if isinstance(item, Skip) else item
        if line > length:
            # The session continued between the two reads.
            return
        if isinstance(item, Skip):
            yield item
        elif entry is not None and (place := placed.get(line)) is not None:
            yield place if isinstance(place, Skip) else parsed(place, line, _message, entry, line)


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
    """The links of a line: `spoken` for conversation, `prompt` for one of the user, `side` for a subagent."""

    line: int
    uuid: str
    parent: str
    session: str
    agent: str
    side: bool
    spoken: bool
    prompt: bool


def _placed_lines(file: File) -> tuple[dict[int, ImportedChat | Skip], int]:
    """Return the chat of each line, or why it is left out, and the number of lines."""
    stem = file.name.rsplit("/", 1)[-1]
    nodes: list[_Node] = []
    placed: dict[int, ImportedChat | Skip] = {}
    length, titles = 0, {"customTitle": "", "aiTitle": ""}
    for item in lines(file):
        if isinstance(item, Skip):
            length = item.line
            continue
        length, entry = item
        if reason := _why_not_spoken(entry):
            placed[length] = Skip(length, reason)
        nodes.append(_node(length, entry, side=stem.startswith(_AGENT_FILE), spoken=not reason))
        titles.update({key: text_of(entry[key]) for key in titles if text_of(entry.get(key))})
    left = _left_behind(nodes)
    chats = _chats(nodes, stem, titles["customTitle"] or titles["aiTitle"])
    for node in nodes:
        if node.spoken:
            placed[node.line] = Skip(node.line, _LEFT) if node.uuid in left else chats[node.uuid]
    return placed, length


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
    parts = list_of(dict_of(message).get("content"))
    return any(dict_of(part).get("type") == "tool_result" for part in parts)


def _left_behind(nodes: list[_Node]) -> Container[str]:
    """Return the ids of the lines under prompts that a later prompt replaced."""
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
        replaced.update(set(rivals) - {max(rivals, key=newest.__getitem__)})
    return {uuid for uuid, prompt in _nearest(parents, replaced).items() if prompt is not None}


def _nearest(parents: Mapping[str, str], marked: Container[str]) -> dict[str, str | None]:
    """Return for each line the nearest marked one at or above it, in linear time and for cycles too."""
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
    """Return for each line the last one of the file at or under it, in linear time."""
    newest: dict[str, int] = {}
    for node in reversed(nodes):
        above = node.uuid
        while above in parents and above not in newest:
            newest[above] = node.line
            above = parents[above]
    return newest


def _chats(nodes: list[_Node], stem: str, title: str) -> dict[str, ImportedChat]:
    """Return the chat of each line: that of the file, or of a subagent.

    The id is the name of the file if a line has it as session. So a session that was resumed from another,
    and begins with lines of that one, is a chat of its own.
    """
    ids = [node.session for node in nodes if node.session]
    main = stem if stem in ids or not ids else ids[0]
    side = {node.uuid: node.parent for node in reversed(nodes) if node.side}
    roots = _nearest(side, {uuid for uuid, parent in side.items() if parent not in side})
    shared = stem.removeprefix(_AGENT_FILE) if stem.startswith(_AGENT_FILE) else ""
    made = {main: ImportedChat(main, title)}
    chats = {}
    for node in nodes:
        agent = node.agent or shared or roots.get(node.uuid) or node.uuid
        identity = f"{main}/agent-{agent}" if node.side else main
        chats[node.uuid] = made.setdefault(identity, ImportedChat(identity))
    return chats
