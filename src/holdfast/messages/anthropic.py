"""Messages in the format of Anthropic, as turns that its API accepts; `formats.py` reads that format.

The rules are those of https://platform.claude.com/docs/en/api/messages: the user begins, roles alternate, no
text is blank, the results of all calls of a turn begin the next one, and no two calls of a request have the
same id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from holdfast.errors import InvalidInput
from holdfast.messages import media
from holdfast.messages.formats import REASONING, texts_of
from holdfast.text.clean import clean, each_text
from holdfast.types import Message

Block = dict[str, object]
Turn = tuple[str, list[Block]]

# The roles whose messages are part of the system text.
INSTRUCTIONS = ("system", "developer")
# A placeholder for the messages before a window that begins with the assistant.
START = "[…]"
# A placeholder for the result of a call that shares its id and its only result with another call.
ANSWERED = "[answered above]"
# Of the four cache breakpoints of a request; the others are left to the system text and the tools.
BREAKPOINTS = 2
_THOUGHTS = {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}
# Parts that are not shown as text or media.
_APART = {"tool_use", "tool_result", "reasoning", *_THOUGHTS}


def to_anthropic(message: Message, *, images: bool = True, thinking: bool = False) -> list[dict[str, object]]:
    """Return a message in the format of Anthropic; one that answers several calls becomes one dict per call.

    Blocks stay as they came in where the API accepts them, with their `cache_control`. Images and documents
    stay in messages of the user and in results, converted from OpenAI's format; other media stay
    placeholders, with `images=False` all of them. Reasoning is left out, but for signed blocks with
    `thinking`. The format has no names, and instructions only in the system text.
    """
    content = sent_parts(message)
    if message.role == "tool" and message.answers:
        given = _of_type(content, "tool_result")
        whole = content if content and not given else message.content
        parts = results_of(content, message.answers)
        results = [[_result(call, part, whole, images=images)] for call, part in parts]
        beside = _blocks(content, images=images) if given else []
        return [item for blocks in (*results, beside) for item in _item("user", blocks)]
    is_model = message.role == "assistant"
    if content:
        blocks = _blocks(content, images=not is_model and images, thinking=is_model and thinking)
    else:
        blocks = _texts("" if message.content == REASONING else message.content)
    # Without the id of a call, a result is accepted only as text of the user.
    if message.role == "tool":
        blocks = [*_texts(f"[result of {message.name or 'a tool'}]"), *blocks]
    return _item("assistant" if is_model else "user", [*blocks, *_calls(message, content)])


def alternate(items: Iterable[Mapping[str, object]]) -> tuple[dict[str, object], ...]:
    """Return turns that the API accepts, from messages with each result right behind its call.

    Neighbours of one role are joined, results first and calls last. Ids and names of calls get only letters
    that the API takes, and each id is unique. Of the cache breakpoints the newest two stay.
    """
    turns = _join(_order(*turn) for turn in _join(_with_unique_ids(items)))
    if turns and turns[0][0] == "assistant":
        turns.insert(0, ("user", _texts(START)))
    marked = [block for _, blocks in turns for block in blocks if "cache_control" in block]
    for block in marked[:-BREAKPOINTS]:
        del block["cache_control"]
    if turns and turns[-1][0] == "assistant" and isinstance(text := turns[-1][1][-1].get("text"), str):
        # An answer to be continued must not end with white space.
        turns[-1][1][-1]["text"] = text.rstrip()
    return tuple({"role": role, "content": blocks} for role, blocks in turns)


# One message


def sent_parts(message: Message) -> Sequence[object]:
    """Return the parts of the payload of a message; none where they differ from the message."""
    content = media.content_of(message.raw)
    try:
        is_same = bool(content) and texts_of(content) == message.content
    except (InvalidInput, RecursionError):
        # The payload of a message made by hand can be anything.
        return ()
    given = {clean(str(part.get("tool_use_id"))) for part in _of_type(content, "tool_result")}
    return content if is_same and given <= set(message.answers) else ()


def results_of(content: object, answers: Sequence[str]) -> list[tuple[str, Mapping[str, object] | None]]:
    """Return each call that a message answers with its part of the content, None if it has none."""
    parts = _of_type(content, "tool_result") if isinstance(content, Sequence) else []
    results = [(clean(str(part.get("tool_use_id"))), part) for part in parts]
    there = {call for call, _ in results}
    return [
        *((call, part) for call, part in results if call in answers),
        *((call, None) for call in answers if call not in there),
    ]


def _of_type(content: Sequence[object], kind: str) -> list[Mapping[str, object]]:
    return [part for part in content if isinstance(part, Mapping) and part.get("type") == kind]


def _item(role: str, blocks: list[Block]) -> list[dict[str, object]]:
    return [{"role": role, "content": blocks}] if blocks else []


def _texts(text: str) -> list[Block]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _blocks(content: Sequence[object], *, images: bool, thinking: bool = False) -> list[Block]:
    """Return the parts of a message as blocks, without calls and results."""
    blocks: list[Block] = []
    for part in content:
        kind = str(part.get("type")) if isinstance(part, Mapping) else "text"
        if thinking and isinstance(part, Mapping) and kind in _THOUGHTS:
            thought = {key: part.get(key) for key in ("type", *_THOUGHTS[kind])}
            blocks += [thought] if all(isinstance(value, str) for value in thought.values()) else []
        elif kind not in _APART:
            blocks += _text_or_media(each_text(part, clean), images=images)
    return blocks


def _text_or_media(part: object, *, images: bool) -> list[Block]:
    is_media = isinstance(part, Mapping) and any(media.media([part]))
    written = media.to_anthropic(part) if images and is_media and isinstance(part, Mapping) else None
    return [_mark(block, part) for block in ([written] if written else _texts(texts_of([part])))]


def _mark(block: Block, part: object) -> Block:
    mark = part.get("cache_control") if isinstance(part, Mapping) else None
    return {**block, "cache_control": dict(mark)} if isinstance(mark, Mapping) else block


def _calls(message: Message, content: Sequence[object]) -> list[Block]:
    given = {clean(str(part.get("id"))): part for part in _of_type(content, "tool_use")}
    blocks: list[Block] = []
    for call in message.calls:
        # Arguments that are not JSON are kept as text.
        given_as = {"arguments": call.arguments} if isinstance(call.arguments, str) else dict(call.arguments)
        block: Block = {"type": "tool_use", "id": call.id, "name": call.name, "input": given_as}
        blocks.append(_mark(block, given.get(call.id)))
    return blocks


def _result(
    call: str, part: Mapping[str, object] | None, whole: str | Sequence[object], *, images: bool
) -> Block:
    """Return the block of a result, as its `part` in the format of Anthropic, or else the `whole` message."""
    content = whole if part is None else part.get("content")
    failed = part is not None and part.get("is_error") is True
    block: Block = {"type": "tool_result", "tool_use_id": call}
    if isinstance(content, str):
        block |= {"content": clean(content)} if content.strip() else {}
    elif isinstance(content, Sequence):
        # Of an error, the API takes text only.
        inner = _blocks(content, images=images and not failed)
        block["content"] = [{key: sent[key] for key in sent if key != "cache_control"} for sent in inner]
    return _mark({**block, "is_error": True} if failed else block, part)


# All of them


def _with_unique_ids(items: Iterable[Mapping[str, object]]) -> Iterable[Turn]:
    """Yield the turns with a unique id for every call and its result; results of one call are joined.

    Those of calls with one id go to them in their order.
    """
    taken: set[str] = set()
    names: dict[object, list[str]] = {}
    results: dict[object, list[Block]] = {}
    for item in items:
        content, blocks = item["content"], list[Block]()
        called: dict[object, list[str]] = {}
        for block in content if isinstance(content, list) else _texts(str(content)):
            if block["type"] == "tool_use":
                identity = unused(_word(block["id"]), taken)
                called.setdefault(block["id"], []).append(identity)
                blocks.append({**block, "id": identity, "name": _word(block["name"])[:128]})
            elif block["type"] == "tool_result":
                call = block["tool_use_id"]
                if call in names or call not in results:
                    own = names.pop(call, None) or [_word(call)]
                    results[call] = [
                        {"type": "tool_result", "tool_use_id": name, "content": ANSWERED} for name in own
                    ]
                    blocks += results[call]
                _give(next_result(results[call]), block)
            else:
                blocks.append(block)
        names |= called
        yield str(item["role"]), blocks


def _word(text: object) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", str(text)) or "_"


def unused(name: str, taken: set[str]) -> str:
    """Return a name, with a number if it is taken, and note it as taken."""
    number, unique = 1, name
    while unique in taken:
        number, unique = number + 1, f"{name}_{number + 1}"
    taken.add(unique)
    return unique


def next_result(results: list[Block]) -> Block:
    """Return the result of the first call that has none yet, or else that of the last."""
    return results.pop(0) if len(results) > 1 else results[0]


def _give(result: Block, block: Block) -> None:
    """Add the words of a block to a result, which is an error only if all its blocks are."""
    if result.get("content") == ANSWERED:
        del result["content"]
        result.update({**block, "tool_use_id": result["tool_use_id"]})
        return
    contents = [given.get("content", []) for given in (result, block)]
    lists = [content if isinstance(content, list) else _texts(str(content)) for content in contents]
    result["content"] = [*lists[0], *lists[1]]
    if not block.get("is_error"):
        result.pop("is_error", None)


def _join(turns: Iterable[Turn]) -> list[Turn]:
    joined: list[Turn] = []
    for role, blocks in turns:
        if blocks and joined and joined[-1][0] == role:
            joined[-1][1].extend(blocks)
        elif blocks:
            joined.append((role, [*blocks]))
    return joined


def _order(role: str, blocks: list[Block]) -> Turn:
    """Return a turn with results first and calls last; reasoning stays only at an unchanged beginning."""
    if role == "user":
        return role, sorted(blocks, key=lambda block: block["type"] != "tool_result")
    ordered = sorted(blocks, key=lambda block: block["type"] == "tool_use")
    is_thought = [block["type"] in _THOUGHTS for block in ordered]
    if ordered == blocks and is_thought[0] and not is_thought[-1]:
        return role, ordered
    return role, [block for block in ordered if block["type"] not in _THOUGHTS]
