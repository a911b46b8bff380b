"""Messages in the format of OpenAI."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from holdfast.messages import media
from holdfast.messages.anthropic import ANSWERED, next_result, results_of, unused
from holdfast.messages.formats import REASONING, blocks_of, read_parts, texts_of
from holdfast.text.clean import clean
from holdfast.types import Message, ToolCall


def to_openai(message: Message, *, images: bool = True) -> list[dict[str, object]]:
    """Return a message in the OpenAI chat format; one that answers several calls becomes one dict per call.

    A message of reasoning alone, or without a word, becomes none. The images, files and sound of a user stay
    where they were; those in the result of a call, which must be text, follow it in a user message. What
    OpenAI does not take there stays a placeholder; with `images=False` that is all of them.
    """
    shown = _shown_parts(message) if images else []
    if message.role == "tool" and message.answers:
        results, beside = _results(message)
        items: list[dict[str, object]] = [
            {"role": "tool", "tool_call_id": call, "content": text} for call, text in results
        ]
        if shown:
            text = beside or f"[sent along with the result of {message.name or 'a tool'}]"
            return [*items, {"role": "user", "content": [_text(text), *shown]}]
        return [*items, {"role": "user", "content": beside}] if beside else items
    if message.content.strip() in ("", REASONING) and not message.calls and message.role != "tool":
        return []
    # Without the id of a call, models accept a result only as text of the user.
    if message.role == "tool":
        said = f"[result of {message.name or 'a tool'}]\n{message.content}"
        return [{"role": "user", "content": [_text(said), *shown] if shown else said}]
    fields: dict[str, object] = {"role": message.role, "content": shown or message.content}
    if message.name:
        fields["name"] = message.name
    if message.calls:
        fields["tool_calls"] = [_call(call) for call in message.calls]
    return [fields]


def paired(items: Iterable[Mapping[str, object]]) -> tuple[dict[str, object], ...]:
    """Return messages that the API accepts, from messages with each result right behind its call.

    Each call of a message has an id of its own and one result: those of calls with one id go to them in their
    order, and further ones join the last.
    """
    sent: list[dict[str, object]] = []
    names: dict[object, list[str]] = {}
    given: dict[object, list[dict[str, object]]] = {}
    for item in items:
        call = item.get("tool_call_id")
        if call in names:
            given[call] = [{**item, "tool_call_id": name, "content": ANSWERED} for name in names.pop(call)]
            sent += given[call]
        if call in given:
            result, said = next_result(given[call]), item["content"]
            result["content"] = said if result["content"] == ANSWERED else f"{result['content']}\n{said}"
        else:
            names, given = {}, {}
            sent.append(_with_own_ids(item, names))
    return tuple(sent)


def _with_own_ids(item: Mapping[str, object], names: dict[object, list[str]]) -> dict[str, object]:
    """Return a message with a unique id for each of its calls; `names` gets those of each id."""
    taken: set[str] = set()
    calls = []
    for call in blocks_of(item.get("tool_calls")):
        names.setdefault(call["id"], []).append(name := unused(str(call["id"]), taken))
        calls.append({**call, "id": name})
    return {**item, "tool_calls": calls} if calls else {**item}


def _call(call: ToolCall) -> dict[str, object]:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _shown_parts(message: Message) -> list[dict[str, object]]:
    """Return the parts of a message that has more than text: of a user all of them, of a tool the media.

    None where the payload differs from the message, as in one made by hand.
    """
    if message.role not in ("user", "tool") or not media.has_media(message.raw):
        return []
    content = media.content_of(message.raw)
    sent = [written for part in media.media(content) if (written := media.to_openai(part))]
    if not sent or texts_of(content) != message.content:
        return []
    if message.role == "tool":
        return sent
    parts = []
    for part in content:
        written = media.to_openai(part) if isinstance(part, Mapping) and any(media.media([part])) else None
        parts += [written] if written else [_text(clean(text)) for text in read_parts([part])[0]]
    return parts


def _text(text: str) -> dict[str, object]:
    return {"type": "text", "text": text}


def _results(message: Message) -> tuple[list[tuple[str, str]], str]:
    """Return the result of each call that a message answers, and the text of the user beside several.

    Only an Anthropic payload answers several.
    """
    if len(message.answers) == 1 or message.raw is None:
        return [(call, message.content) for call in message.answers], ""
    results = results_of(media.content_of(message.raw), message.answers)
    beside = (part for part in blocks_of(message.raw.get("content")) if part.get("type") != "tool_result")
    texts = [(call, texts_of(part.get("content")) if part else "") for call, part in results]
    return texts, texts_of(list(beside))
