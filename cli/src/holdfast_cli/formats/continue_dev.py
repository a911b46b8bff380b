"""Continue: the sessions under `~/.continue/sessions`."""

from collections import Counter
from collections.abc import Iterator

from holdfast_cli.formats import turns
from holdfast_cli.formats.files import File
from holdfast_cli.formats.import_items import ImportedChat, Item, Skip
from holdfast_cli.formats.json_values import Json, dict_of, list_of, path_of, repeat_id, text_of

_ROLES = {"thinking": "assistant", **{role: role for role in ("user", "assistant", "tool", "system")}}


def is_session(value: Json) -> bool:
    """Return whether an object is a session."""
    history = value.get("history")
    are_items = isinstance(history, list) and all(
        isinstance(dict_of(it).get("message"), dict) for it in history
    )
    return isinstance(value.get("sessionId"), str) and are_items


def read(_: File, number: int, value: Json) -> Iterator[Item]:
    """Yield the messages of a session, which has no times, with calls and their results.

    Of what was attached as context, such as files of the editor, the names are taken.
    """
    folder = text_of(value.get("workspaceDirectory"))
    title, folder = text_of(value.get("title")), path_of(folder) or folder
    chat, counts = ImportedChat(text_of(value["sessionId"]), title, folder=folder), Counter[str]()
    history = list(map(dict_of, list_of(value["history"])))
    answered = {text_of(dict_of(entry["message"]).get("toolCallId")) for entry in history}
    for place, entry in enumerate(history, 1):
        message = dict_of(entry["message"])
        role = _ROLES.get(text_of(message.get("role")), "")
        if entry.get("conversationSummary"):
            yield Skip(number or place, turns.SUMMARY)
        if role:
            # Calls get their results later.
            identity = text_of(message.get("id")) or repeat_id(counts, [role, message.get("content")])
            speaker, raw = turns.Speaker(role, identity), turns.without(message, "content", "toolCalls")
            blocks = _blocks(entry, message, role, answered)
            yield from turns.messages_of(chat, number or place, speaker, blocks, raw)
        else:
            yield Skip(number or place, "no message", problem=True)


def _blocks(entry: Json, message: Json, role: str, answered: set[str]) -> Iterator[Json]:
    content, parts = message.get("content"), list(map(_part, turns.parts_of(message.get("content"))))
    if role == "tool":
        yield turns.result(message.get("toolCallId"), parts)
        return
    thoughts = content if message.get("role") == "thinking" else dict_of(entry.get("reasoning")).get("text")
    yield from [turns.thought(thoughts)] if thoughts else []
    yield from parts if message.get("role") != "thinking" else []
    yield from (turns.attachment(it.get("name")) for it in map(dict_of, list_of(entry.get("contextItems"))))
    states = {text_of(it.get("toolCallId")): it for it in map(dict_of, list_of(entry.get("toolCallStates")))}
    for call in map(dict_of, list_of(message.get("toolCalls"))):
        function, identity = dict_of(call.get("function")), text_of(call.get("id"))
        output = turns.texts_in(dict_of(states.get(identity)).get("output"))
        results = [output] if output and identity not in answered else []
        yield from turns.call(identity, function.get("name"), function.get("arguments"), *results)


def _part(part: Json) -> Json:
    url = dict_of(part.get("imageUrl")).get("url")
    return turns.attachment("", url, "image") if part.get("type") == "imageUrl" else part
