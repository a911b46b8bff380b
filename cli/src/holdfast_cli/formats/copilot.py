"""GitHub Copilot: the chat sessions of VS Code, and the events of its command line."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any

from holdfast.port.texts import clean
from holdfast_cli.formats import turns
from holdfast_cli.formats.branches import LEFT
from holdfast_cli.formats.files import MAX_LINE, File, lines, object_in
from holdfast_cli.formats.import_items import ImportedChat, Item, Skip
from holdfast_cli.formats.json_values import Json, dict_of, list_of, path_of, text_of, time_of

_UNFINISHED = (0, 4)  # the states of an answer that goes on, or waits for the user
_FILES = ("file", "directory", "image", "paste")  # kinds of what a user attaches
_WORDS, _TOOL = (None, "markdownContent", "inlineReference"), "toolInvocationSerialized"  # and of an answer
_HIDDEN = ("isHidden", "hiddenFromTranscript", "shouldBeRemovedOnSend")
_CHANGES, _PUSH = (1, 2, 3), 2  # the kinds of changes in a log
_REQUEST, _CALL = ("toolCallId", "name", "arguments"), ("id", "name", "arguments")
_INJECTED = ("skill-", "system", "jit-")  # how the origin of what the program says for the user begins


# The sessions of VS Code


def is_session(value: Json) -> bool:
    """Return whether an object is a session of VS Code, or an export of one."""
    is_named = isinstance(value.get("sessionId"), str) and isinstance(value.get("version"), int)
    is_exported = isinstance(value.get("responderUsername"), str)
    return isinstance(value.get("requests"), list) and (is_named or is_exported)


def is_log(value: Json) -> bool:
    """Return whether an object is the first line of a session that is written as a log of its changes."""
    return value.get("kind") == 0 and is_session(dict_of(value.get("v")))


def read(file: File, number: int, value: Json) -> Iterator[Item]:
    """Yield the messages of a session: each request and its answer, with calls and results.

    Left out and counted are what the user took back, what the editor adds to a request or shows in an answer
    beside its words, and an answer that is still being written.
    """
    identity, workspace = text_of(value.get("sessionId")), object_in(file.beside("workspace.json"))
    name, title, by_file = identity or file.name, text_of(value.get("customTitle")), not identity
    folder, since = path_of(dict_of(workspace).get("folder")), time_of(value.get("creationDate"))
    chat = ImportedChat(name, title, folder=folder, since=since, by_file=by_file)
    for place, request in enumerate(map(dict_of, list_of(value.get("requests"))), 1):
        if any(request.get(key) for key in _HIDDEN):
            yield Skip(number or place, LEFT)
        else:
            yield from _request(chat, number or place, request, f"request {place}")


def read_log(file: File) -> Iterator[Item]:
    """Yield the messages of a session whose file is a log of changes, as it is after the last one."""
    session: object = None
    for item in lines(file, MAX_LINE):
        if isinstance(item, Skip):
            yield item
        elif item[1].get("kind") == 0:
            session = item[1].get("v")
        elif item[1].get("kind") not in _CHANGES or not _change(session, item[1]):
            yield Skip(item[0], "a change of something that is not there", problem=True)
    yield from read(file, 0, dict_of(session))


# Any: what an entry says to be at a place may be there or not.
def _change(session: Any, entry: Any) -> bool:
    """Make a change of a log; return False if it fits nothing."""
    path, value = list_of(entry.get("k")), entry.get("v")
    try:
        place, key = session, path.pop()
        for step in path:
            place = place[step]
        if entry["kind"] == _PUSH:
            value = [*list_of(place.get(key))[: entry.get("i")], *list_of(value)]
        place[key] = value
    except (LookupError, TypeError, ValueError, AttributeError):
        return False
    return True


def _request(chat: ImportedChat, place: int, request: Json, name: str) -> Iterator[Item]:
    identity, at = text_of(request.get("requestId")) or name, request.get("timestamp")
    variables = list(map(dict_of, list_of(dict_of(request.get("variableData")).get("variables"))))
    files = [item for item in variables if item.get("kind") in _FILES]
    if request.get("isSystemInitiated") is True:
        yield Skip(place, turns.BY_PROGRAM)
    else:
        message = request.get("message")
        text = message if isinstance(message, str) else dict_of(message).get("text")
        blocks = [turns.words(text), *(turns.attachment(it.get("name"), kind=it.get("kind")) for it in files)]
        yield from turns.messages_of(chat, place, turns.Speaker("user", identity, at), blocks, {})
    yield from [Skip(place, turns.BY_PROGRAM)] if len(files) < len(variables) else []
    if dict_of(request.get("modelState")).get("value") in _UNFINISHED:
        yield Skip(place, turns.GROWS)
        return
    blocks = list(_rounds(dict_of(dict_of(request.get("result")).get("metadata"))))
    if not blocks:
        shown = [
            {"value": it} if isinstance(it, str) else dict_of(it) for it in list_of(request.get("response"))
        ]
        blocks = list(_answer(part for part in shown if part.get("kind") in (*_WORDS, _TOOL)))
        others = [text_of(part["kind"]) for part in shown if part.get("kind") not in (*_WORDS, _TOOL)]
        yield from (Skip(place, f"not conversation: {clean(kind)[:40]}") for kind in others)
    raw = turns.without(request, "message", "response", "result", "variableData")
    speaker = turns.Speaker("assistant", text_of(request.get("responseId")) or f"{identity}/answer", at)
    yield from turns.messages_of(chat, place, speaker, blocks, raw)


def _rounds(metadata: Json) -> Iterator[Json]:
    """Yield what the model said and called in an answer, with the results, where Copilot has noted that."""
    results = dict_of(metadata.get("toolCallResults"))
    for entry in map(dict_of, list_of(metadata.get("toolCallRounds"))):
        yield turns.words(entry.get("response"))
        calls = list(map(dict_of, list_of(entry.get("toolCalls"))))
        yield from (block for call in calls for block in turns.call(*map(call.get, _CALL)))
        for identity in (text_of(call.get("id")) for call in calls):
            if identity in results:
                yield turns.result(identity, turns.texts_in(dict_of(results[identity]).get("content")))


def _answer(parts: Iterable[Json]) -> Iterator[Json]:
    """Yield an answer as it was shown: words, and uses of tools by what they are for and how they ended."""
    for is_text, run in groupby(parts, lambda part: part.get("kind") in _WORDS):
        if is_text:
            yield turns.words("".join(map(_text, run)))
            continue
        for part in run:
            output = turns.texts_in(dict_of(part.get("resultDetails")).get("output"))
            results = filter(None, [output or turns.texts_in(part.get("pastTenseMessage"))])
            given = part.get("toolSpecificData") or {"message": turns.texts_in(part.get("invocationMessage"))}
            yield from turns.call(part.get("toolCallId"), part.get("toolId"), given, *results)


def _text(part: Json) -> str:
    if part.get("kind") != "inlineReference":
        return text_of(dict_of(part.get("content", part)).get("value"))
    name = text_of(part.get("name") or dict_of(part.get("inlineReference")).get("path"))
    return f"`{name.rpartition('/')[2]}`"


# The events of the command line


def is_event(value: Json) -> bool:
    """Return whether an object is the first event of a session of the command line, or of VS Code's agent."""
    is_start = value.get("type") == "session.start"
    return is_start and isinstance(dict_of(value.get("data")).get("sessionId"), str)


def read_events(file: File) -> Iterator[Item]:
    """Yield the messages of a session; what a sub-agent says is a chat of its own, `<session>/agent-<call>`.

    Left out and counted are events that are no messages. What the user went back behind is not in the file.
    """
    chat = ImportedChat(file.name.rpartition("/")[2], by_file=True)
    called: set[str] = set()
    for item in lines(file, MAX_LINE):
        if isinstance(item, Skip):
            yield item
            continue
        number, event = item
        data, kind = dict_of(event.get("data")), text_of(event.get("type"))
        if is_event(event):
            folder = text_of(dict_of(data.get("context")).get("cwd"))
            chat = replace(chat, id=text_of(data["sessionId"]), folder=folder, by_file=False)
        blocks = _event(kind, data, called)
        if not blocks:
            yield Skip(number, f"not conversation: {clean(kind)[:40] or 'no type'}")
        elif kind == "user.message" and text_of(data.get("source")).startswith(_INJECTED):
            yield Skip(number, turns.BY_PROGRAM)
        else:
            agent = text_of(data.get("parentToolCallId")) or text_of(event.get("agentId"))
            its = replace(chat, id=f"{chat.id}/agent-{agent}") if agent else chat
            role, identity = "user" if kind == "user.message" else "assistant", text_of(event.get("id"))
            speaker = turns.Speaker(role, identity or f"line {number}", event.get("timestamp"))
            raw = turns.without(data, "content", "toolRequests", "attachments", "result")
            yield from turns.messages_of(its, number, speaker, blocks, raw)


def _event(kind: str, data: Json, called: set[str]) -> list[Json]:
    """Return an event as blocks, none if it is no message."""
    call = text_of(data.get("toolCallId"))
    match kind:
        case "user.message":
            return [turns.words(data.get("content")), *map(_attached, list_of(data.get("attachments")))]
        case "assistant.message":
            thoughts = [turns.thought(data["reasoningText"])] if data.get("reasoningText") else []
            requests = list(map(dict_of, list_of(data.get("toolRequests"))))
            called.update(text_of(request.get("toolCallId")) for request in requests)
            calls = [block for request in requests for block in turns.call(*map(request.get, _REQUEST))]
            return [*thoughts, turns.words(data.get("content")), *calls]
        case "tool.execution_start" if call not in called:
            # The user has called it: it stands in no message.
            called.add(call)
            return turns.call(call, data.get("toolName"), data.get("arguments"))
        case "tool.execution_complete":
            output = dict_of(data.get("result")).get("content", data.get("result"))
            error = text_of(dict_of(data.get("error")).get("message"))
            return [turns.result(call, turns.texts_in(output) or error)]
    return []


def _attached(value: object) -> Json:
    item = dict_of(value)
    kind, data = text_of(item.get("mimeType")), text_of(item.get("data"))
    name = item.get("displayName") or item.get("path")
    return turns.attachment(name, f"data:{kind};base64,{data}" if data else "", kind)
