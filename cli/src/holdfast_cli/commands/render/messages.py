"""Messages on a screen: who said what when, with the tools that were used."""

import json
from collections.abc import Iterable

from holdfast.types import Message
from holdfast.types.references import write_reference
from holdfast_cli.commands.render.screen import Screen, count, when

_TOOL_RESULT = (12, 1_000)  # lines and characters that are shown of one
SPOKEN = (200, 20_000)
_ARGUMENTS = 300  # characters
_STYLES = {"user": "bold cyan", "assistant": "bold green", "tool": "bold magenta"}


def show_messages(screen: Screen, chat: str, messages: Iterable[Message], *, full: bool) -> None:
    """Print messages of a chat; without `full`, long texts are cut, with a note."""
    tools: dict[str, str] = {}
    for message in messages:
        tools.update((call.id, call.name) for call in message.calls)
        names = [tools[call] for call in message.answers if call in tools]
        is_named = message.name in names
        screen.say(
            (f"{write_reference(chat, message.seq)}  {when(message.at)}  ", "dim"),
            (message.actor, _STYLES.get(message.role, "bold")),
            f"  result of {', '.join(names)}" if names and not is_named else "",
        )
        say_cut(screen, message.content, _TOOL_RESULT if message.role == "tool" else SPOKEN, full=full)
        for call in message.calls:
            arguments = call.arguments
            if not isinstance(arguments, str):
                arguments = json.dumps(arguments, ensure_ascii=False)
            excerpt = arguments if full or len(arguments) <= _ARGUMENTS else f"{arguments[:_ARGUMENTS]}…"
            screen.say("→ ", (call.name, "bold"), f" {excerpt}", indent=4)
        screen.say("")


def say_cut(screen: Screen, text: str, size: tuple[int, int], *, full: bool) -> None:
    """Print a text, cut to a number of lines and characters unless `full`."""
    excerpt, rest = (text, "") if full else cut(text, *size)
    if excerpt:
        screen.say(excerpt, indent=4)
    if rest:
        screen.say((f"… {rest} more: --full shows all", "dim"), indent=4)


def cut(text: str, lines: int, characters: int) -> tuple[str, str]:
    """Cut a text to a number of lines and characters; return the amount left out as well, or ""."""
    kept = "\n".join(text[:characters].split("\n")[:lines])
    rest = text[len(kept) :]
    if (more := rest.count("\n")) > 1:
        return kept, count(more, "line")
    return kept, count(len(rest), "character") if rest else ""
