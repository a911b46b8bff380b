"""The entries by which a client calls our hooks: to add to its configuration, to find, and to remove."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from holdfast_cli.hooks.clients import Client
from holdfast_cli.hooks.hook_call import EVENTS
from holdfast_cli.hooks.json_text import JsonText, Step, Value, pretty

# The form of our commands, whatever Python or options they name, and whatever the user put around them.
_OURS = re.compile(rf"""\bholdfast(?:\.exe)?["']?\s+hook\s+({"|".join(EVENTS)})\s.*--client[ =]""")


def event_of(command: object) -> str:
    """Return the event at which a command calls a hook of ours, "" for another command.

    >>> event_of("/usr/bin/python3 -P -m holdfast hook prompt --client codex"), event_of("holdfast verify")
    ('prompt', '')
    """
    match = _OURS.search(command) if isinstance(command, str) else None
    return match[1] if match else ""


@dataclass(frozen=True, slots=True)
class HookEntries:
    """Our hooks in a configuration of a client: one entry for each of its events, by the event's name."""

    client: Client

    def entries_for(self, commands: Mapping[str, str]) -> dict[str, object]:
        """Return the entries that call the commands of our events."""
        kind = {"type": "command"} if self.client.grouped else {}
        return {
            hook.native: {
                **kind,
                "command": commands[hook.event],
                "timeout": hook.timeout,
                **dict(hook.members),
            }
            for hook in self.client.hooks
        }

    def snippet(self, content: Mapping[str, object]) -> str:
        """Return a configuration with our hooks alone."""
        hooks = {native: [self._in_group(entry)] for native, entry in content.items()}
        return f"{pretty({**dict(self.client.version), 'hooks': hooks})}\n"

    def find(self, text: str) -> dict[str, object]:
        """Return our entries in a configuration.

        Raises:
            Conflict: it is no JSON.

        """
        if not text.strip():
            return {}
        document = JsonText(text)
        places = [(place.event, document.find(place.path)) for place in _ours(document)]
        return {event: value.plain for event, value in places if value is not None}

    def add(self, text: str, content: Mapping[str, object]) -> str:
        """Return a configuration with our hooks, in place of earlier ones; "" stands for no configuration.

        Raises:
            Conflict: it is no JSON, or not of the form of this client's.

        """
        if not text.strip():
            return self.snippet(content)
        document = JsonText(text)
        for name, value in self.client.version:
            if document.find([name]) is None:
                document = document.put([name], value)
        missing = dict(content)
        for place in reversed(list(_ours(document))):
            first = next(_ours(document, place.event))
            if place.event in missing and place.path == first.path:
                document = document.put(place.path, missing.pop(place.event))
            else:
                document = _without(document, place.path)
        for native, entry in content.items():
            if native in missing:
                document = document.append(["hooks", native], self._in_group(entry))
        return document.text

    def remove(self, text: str) -> str:
        """Return a configuration without our hooks, and without the groups that had nothing else.

        Raises:
            Conflict: it is no JSON.

        """
        if not text.strip():
            return text
        document = JsonText(text)
        for place in reversed(list(_ours(document))):
            document = _without(document, place.path)
        return document.text

    def _in_group(self, entry: object) -> object:
        return {"hooks": [entry]} if self.client.grouped else entry


class _Place(NamedTuple):
    event: str
    path: tuple[Step, ...]


def _ours(document: JsonText, event: str | None = None) -> Iterator[_Place]:
    """Yield the places of our hooks, in the order of the text, in groups or not."""
    hooks = document.find(["hooks"]) if isinstance(document.root.plain, dict) else None
    for part in hooks.parts if hooks is not None and isinstance(hooks.plain, dict) else ():
        if event not in (None, part.name) or document.find(["hooks", part.name]) is not part.value:
            # Of several members of a name the last one counts.
            continue
        for number, item in enumerate(_items(part.value)):
            path: tuple[Step, ...] = ("hooks", part.name, number)
            if _calls_us(item):
                yield _Place(part.name, path)
            inner = document.find([*path, "hooks"]) if isinstance(item.plain, dict) else None
            for place, hook in enumerate(_items(inner)):
                if _calls_us(hook):
                    yield _Place(part.name, (*path, "hooks", place))


def _items(value: Value | None) -> Sequence[Value]:
    return [part.value for part in value.parts] if value and isinstance(value.plain, list) else []


def _calls_us(value: Value) -> bool:
    return isinstance(value.plain, dict) and event_of(value.plain.get("command")) != ""


def _without(document: JsonText, path: Sequence[Step]) -> JsonText:
    """Return a text without a hook, and without the group, the event and the hooks left empty by that."""
    document = document.without(path)
    while path := path[:-1]:
        value = document.find(path)
        if value is None or (value.parts and not _is_matcher(value, path)):
            break
        document = document.without(path)
    return document


def _is_matcher(value: Value, path: Sequence[Step]) -> bool:
    """Return whether nothing but a matcher is left of a group."""
    return (
        isinstance(path[-1], int)
        and isinstance(value.plain, dict)
        and [part.name for part in value.parts] == ["matcher"]
    )
