"""Messages without what a user keeps private: a step between the reader of a transcript and the store."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from glob import has_magic
from itertools import chain
from typing import Protocol, cast

from holdfast.port import formats
from holdfast.types import Message, ToolCall
from holdfast_cli.formats import private_tags
from holdfast_cli.formats.import_items import TOO_DEEP, ImportedMessage, ImportedRecord, Skip
from holdfast_cli.formats.json_values import dict_of, list_of, text_of
from holdfast_cli.formats.left_out import LeftOut
from holdfast_cli.formats.named_paths import is_about_one_file, is_path_key, paths_in_call, paths_in_output

IGNORED = "[left out: covered by .holdfastignore]"
"""The placeholder for the content of files that the user excluded."""

# What the payload of a covered message keeps: who says it, when and where.
_ENVELOPE = frozenset(
    "type uuid parentUuid sessionId timestamp cwd version gitBranch userType isSidechain agentId requestId "
    "role id name tool_call_id call_id tool_use_id is_error chat at created_at".split()
)
_LONGEST_FIELD = 1024
_PATTERNS = 200  # in a call, for which files are looked up
# How clients write files that a prompt names into it.
_REMINDER = re.compile(r"<system-reminder>(?:(?!</system-reminder>).)*+(?:</system-reminder>)?", re.DOTALL)
_CALLED = re.compile(r"Called the \w{1,40} tool with the following input: (\{[^\n]{0,4000}\})")
_BEFORE_FILE = (
    r"(?:Content from @|={3,10} |-{3,10} File: |"
    r"(?:<ide_selection>)?The user selected the lines \d{1,9} to \d{1,9} from )"
)
_INLINED = re.compile(
    rf"^{_BEFORE_FILE}((?:[A-Za-z]:(?=[\\/]))?[^\n:]{{1,1024}})(?::|\s={{3,10}}|\s-{{3,10}})?[ \t]*$",
    re.MULTILINE,
)
_INLINED_END = re.compile(r"^--- End of content ---|</ide_selection>", re.MULTILINE)
_ELEMENT = re.compile(
    r"<(?P<name>[A-Za-z_][\w.-]{0,40})\s(?:[^<>]{0,400}\s)?(?:path|file|filename|file_path|source|uri)="
    r"(?:\"(?P<one>[^\"<>\n]{1,1024})\"|'(?P<two>[^'<>\n]{1,1024})')[^<>]{0,400}>"
)


class Rules(Protocol):
    """The rules of a user on content that is kept out of the memory."""

    def leaves_out(self, cwd: str, at: datetime | None) -> str:
        """Return why nothing of this folder and time is stored; "" if it is."""
        ...

    def covers(self, path: str, cwd: str, *, follow: bool) -> bool:
        """Return whether a path is covered, read from a folder; `follow` symbolic links."""
        ...


class Redactor:
    """The redaction of the messages of one transcript, in their order.

    `cwd` is the folder of a session whose messages do not name theirs, and `earlier` returns a call that was
    made before the part of the transcript that is read.
    """

    def __init__(
        self,
        rules: Rules | None = None,
        *,
        private: Iterable[str] = (),
        cwd: str = "",
        earlier: Callable[[str, str], ToolCall | None] | None = None,
    ) -> None:
        self._rules = rules
        self._earlier = earlier
        self._cwd = self._began = cwd
        self._left_out = LeftOut()
        self._calls: dict[str, ToolCall] = {}
        self._covered: set[str] = set()
        self._skipped: dict[str, str] = {}
        self._untitled: set[str] = set()
        for words in private:
            self._left_out.add_private(words, private_tags.PRIVATE)

    def redact(self, item: ImportedMessage) -> ImportedMessage | Skip:
        """Return an item without what is private, or the reason why nothing of it is stored.

        Its message is the same object if there is nothing to leave out.
        """
        try:
            return self._redact(item)
        except RecursionError:
            return Skip(item.line, TOO_DEEP, problem=True)

    def redact_record(self, item: ImportedRecord) -> ImportedRecord:
        """Return a record without what is private; the same object if there is nothing to leave out."""
        text = item.record["text"]
        for words in private_tags.private_words(text):
            self._left_out.add_private(words, private_tags.PRIVATE)
        rest = self._left_out.without(private_tags.without_private(text))
        return item if rest == text else replace(item, record={**item.record, "text": rest})

    def _redact(self, item: ImportedMessage) -> ImportedMessage | Skip:
        message = item.message
        self._cwd = text_of(dict_of(message.raw).get("cwd")) or item.chat.folder or self._cwd
        self._began = self._began or self._cwd
        if reason := self._reason(message):
            self._skipped.update((call.id, reason) for call in message.calls)
            # A title has no time: it may be of what is left out.
            self._untitled.add(item.chat.id)
            return Skip(item.line, reason)
        if self._rules:
            message = self._without_covered(item.chat.id, message)
        message = _without_tags(message, self._left_out)
        message = _change_texts(message, self._left_out.without) if self._left_out else message
        title = "" if item.chat.id in self._untitled else item.chat.title
        title = title and self._left_out.without(private_tags.without_private(title))
        chat = replace(item.chat, title=title) if title != item.chat.title else item.chat
        # Of a covered call, there may be nothing but its path.
        before = None if message is item.message or message == item.message else item.message
        if before is None and chat is item.chat:
            return item
        return replace(item, chat=chat, message=message, before=before)

    def _reason(self, message: Message) -> str:
        # A session belongs to the project that it began in as well, wherever it goes.
        rules, folders = self._rules, dict.fromkeys((self._began, self._cwd))
        reasons = (rules.leaves_out(folder, message.at) for folder in folders) if rules else ()
        skipped = (self._skipped.get(call, "") for call in _answers(message))
        return next(filter(None, chain(reasons, skipped)), "")

    def _without_covered(self, chat: str, message: Message) -> Message:
        self._calls.update((call.id, call) for call in message.calls)
        if message.role == "tool":
            return self._cover_result(message) if self._is_result_covered(chat, message) else message
        calls = [call for call in message.calls if self._is_call_covered(call)]
        if calls:
            self._covered.update(call.id for call in calls)
            message = self._without_arguments(message, calls)
        return self._without_inlined(message) if message.role == "user" else message

    def _covers(self, paths: Iterable[str], *, follow: bool) -> bool:
        rules, cwd = self._rules, self._cwd
        return rules is not None and any(rules.covers(path, cwd, follow=follow) for path in paths)

    def _is_call_covered(self, call: ToolCall) -> bool:
        if IGNORED in json.dumps(call.arguments, default=str):
            return True
        # The slash says that it is a folder.
        paths = {*paths_in_call(call.arguments), self._cwd and f"{self._cwd}/"}
        # Patterns of a shell are looked up on the disk: of very many, those that look most like paths.
        late = sorted(filter(has_magic, paths), key=lambda path: ("/" not in path, path))[_PATTERNS:]
        return self._covers(paths.difference(late), follow=True) or self._covers(late, follow=False)

    def _is_result_covered(self, chat: str, message: Message) -> bool:
        """Return whether a result is about a covered file, by its call, its details, or what it names."""
        ids = _answers(message)
        calls = [call for key in ids if (call := self._call(chat, key))]
        if any(call.id in self._covered or self._is_call_covered(call) for call in calls):
            return True
        details = dict_of(dict_of(message.raw).get("toolUseResult"))
        items = chain(details.items(), dict_of(details.get("file")).items())
        values = (value if isinstance(value, list) else [value] for key, value in items if is_path_key(key))
        paths = {path for path in chain.from_iterable(values) if isinstance(path, str)}
        if self._covers(paths, follow=True):
            return True
        if calls and all(is_about_one_file(call.arguments) for call in calls):
            return False
        return self._covers(paths_in_output(message.content), follow=False)

    def _call(self, chat: str, call: str) -> ToolCall | None:
        if call not in self._calls and self._earlier and (earlier := self._earlier(chat, call)):
            self._calls[call] = earlier
        return self._calls.get(call)

    def _cover_result(self, message: Message) -> Message:
        self._left_out.add_lines(message.content, IGNORED)
        formats.each_text(dict_of(message.raw).get("toolUseResult"), self._note)
        raw = None if message.raw is None else _envelope(message.raw)
        return replace(message, content=IGNORED, raw=raw, meta={})

    def _note(self, text: str) -> str:
        self._left_out.add_command(text, IGNORED)
        return text

    def _without_arguments(self, message: Message, covered: list[ToolCall]) -> Message:
        for call in covered:
            formats.each_text(call.arguments, self._note)
        ids = {call.id for call in covered}
        calls = tuple(
            replace(call, arguments=_paths_only(call.arguments)) if call.id in ids else call
            for call in message.calls
        )
        raw = cast("Mapping[str, object] | None", _without_inputs(message.raw, ids))
        return replace(message, calls=calls, raw=raw)

    def _without_inlined(self, message: Message) -> Message:
        """Return a prompt without the files that its client wrote into it, where they are covered."""

        def change(text: str) -> str:
            ranges = _covered_files(text, lambda path: self._covers([path], follow=True))
            for start, end in ranges:
                self._left_out.add_lines(text[start:end], IGNORED)
            return private_tags.without_ranges(text, ranges, IGNORED)

        return _change_texts(message, change)


def words_marked(message: Message) -> list[str]:
    """Return the words that a prompt marks as private."""
    if message.role != "user":
        return []
    prompts = (message.content, "".join(_texts(_parts(message.raw))))
    return [words for text in prompts for words in private_tags.private_words(text)]


def _without_tags(message: Message, left_out: LeftOut) -> Message:
    """Return a message without what is between tags, in its payload too, and note that."""
    parts = _texts(_parts(message.raw))
    arguments = [call.arguments for call in message.calls]
    if not (
        any(_has_tag(value) for value in (message.content, message.raw, message.meta, arguments))
        or private_tags.has_tag("".join(parts))
    ):
        return message
    is_prompt = message.role == "user"
    for words in words_marked(message):
        left_out.add_private(words, private_tags.PRIVATE)
    if is_prompt and parts:
        message = replace(message, raw=_with_parts(message.raw, private_tags.without_private_parts(parts)))
    return _change_texts(message, lambda text: private_tags.without_private(text, to_end=is_prompt))


def _has_tag(value: object) -> bool:
    if isinstance(value, str):
        return private_tags.has_tag(value)
    if isinstance(value, Mapping):
        return any(_has_tag(part) for pair in value.items() for part in pair)
    return isinstance(value, list) and any(map(_has_tag, value))


def _parts(raw: object) -> list[object]:
    """Return the parts of a payload's content; none where that is a text."""
    payload = dict_of(raw)
    return list_of(dict_of(payload.get("message")).get("content", payload.get("content")))


def _texts(parts: Iterable[object]) -> list[str]:
    return [text_of(dict_of(part).get("text")) for part in parts]


def _with_parts(raw: Mapping[str, object] | None, texts: Iterable[str]) -> Mapping[str, object]:
    """Return a payload with other texts in the parts of its content."""
    content = [
        {**part, "text": text} if isinstance(part, Mapping) and isinstance(part.get("text"), str) else part
        for part, text in zip(_parts(raw), texts, strict=True)
    ]
    inner = dict_of(dict_of(raw).get("message"))
    if "content" in inner:
        return {**dict_of(raw), "message": {**inner, "content": content}}
    return {**dict_of(raw), "content": content}


def _change_texts(message: Message, change: Callable[[str], str]) -> Message:
    """Return a message with all its texts changed, the same object if none differs."""
    before = [message.raw, message.content, message.meta, *(call.arguments for call in message.calls)]
    after = [formats.each_text(value, change) for value in before]
    if after == before:
        return message
    raw, content, meta, *arguments = after
    calls = tuple(
        replace(call, arguments=cast("Mapping[str, object] | str", new))
        for call, new in zip(message.calls, arguments, strict=True)
    )
    return replace(
        message,
        content=cast("str", content),
        calls=calls,
        raw=cast("Mapping[str, object] | None", raw),
        meta=cast("Mapping[str, object]", meta),
    )


def _answers(message: Message) -> tuple[str, ...]:
    return message.answers or ((message.call_id,) if message.call_id else ())


def _envelope(raw: Mapping[str, object]) -> dict[str, object]:
    """Return the payload of a result with a placeholder for everything but who says it, when and where."""
    envelope: dict[str, object] = {}
    for key, value in raw.items():
        if key == "message" and isinstance(value, Mapping):
            envelope[key] = _envelope(value)
        elif key == "content" and isinstance(value, list):
            envelope[key] = [_envelope(part) if isinstance(part, Mapping) else IGNORED for part in value]
        elif key in _ENVELOPE and not isinstance(value, Mapping | list) and len(str(value)) <= _LONGEST_FIELD:
            envelope[key] = value
        else:
            envelope[key] = IGNORED
    return envelope


def _paths_only(arguments: Mapping[str, object] | str) -> Mapping[str, object] | str:
    """Return the arguments of a call with a placeholder for all but its paths."""
    if isinstance(arguments, str):
        return IGNORED
    return {
        key: value
        if is_path_key(key) and isinstance(value, str) and len(value) <= _LONGEST_FIELD
        else IGNORED
        for key, value in arguments.items()
    }


def _without_inputs(value: object, ids: set[str]) -> object:
    """Return a payload with placeholders in the arguments of these calls."""
    if isinstance(value, list):
        return [_without_inputs(part, ids) for part in value]
    if not isinstance(value, Mapping):
        return value
    if not {text_of(value.get(key)) for key in ("id", "call_id")} & ids:
        return {key: _without_inputs(part, ids) for key, part in value.items()}
    return {key: _without_input(key, part) for key, part in value.items()}


def _without_input(key: str, value: object) -> object:
    if key == "function" and isinstance(value, Mapping):
        return {name: part if name == "name" else IGNORED for name, part in value.items()}
    if isinstance(value, Mapping):
        return _paths_only(value)
    return value if key in _ENVELOPE else IGNORED


def _covered_files(text: str, is_covered: Callable[[str], bool]) -> list[tuple[int, int]]:
    """Return the ranges of covered files that a client wrote into a prompt, in order and apart."""
    ranges = []
    headers = list(_INLINED.finditer(text))
    for index, header in enumerate(headers):
        if is_covered(header[1].strip().removeprefix("@")):
            stop = headers[index + 1].start() if index + 1 < len(headers) else len(text)
            close = _INLINED_END.search(text, header.end(), stop)
            stop = close.start() if close else stop
            ranges.append((min(header.end() + 1, stop), stop))
    done = 0
    for element in _ELEMENT.finditer(text):
        if element.start() >= done and is_covered(element["one"] or element["two"]):
            end = text.find(f"</{element['name']}", element.end())
            done = len(text) if end < 0 else end
            ranges.append((element.end(), done))
    paths = [path for match in _CALLED.finditer(text) for path in paths_in_call(match[1])]
    if any(map(is_covered, paths)):
        ranges += [reminder.span() for reminder in _REMINDER.finditer(text)] or [(0, len(text))]
    return private_tags.apart(ranges)
