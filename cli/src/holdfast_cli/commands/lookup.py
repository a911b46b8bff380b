"""Chats and messages by the ids and references that commands take."""

from collections.abc import Iterable
from dataclasses import replace

from holdfast import Memory
from holdfast.errors import InvalidInput
from holdfast.port.handles import further_memories
from holdfast.port.safety import mask, mask_name
from holdfast.types import ChatInfo, Hit
from holdfast.types.references import IN_SPACE, Reference, read_reference, split_space
from holdfast_cli.commands.options import Options
from holdfast_cli.commands.render.screen import Screen, count, when


def find_chat(memory: Memory, chat: str) -> ChatInfo | None:
    """Describe a chat of the user, of any agent; None if there is none or the id is invalid."""
    try:
        info = memory.chat(chat).stats().info
    except InvalidInput:  # no id that a chat can have
        return None
    return mask_info(info) if info else None


def the_chat(options: Options, memory: Memory, chat: str) -> ChatInfo:
    """Describe a chat that must exist.

    Raises:
        InvalidInput: there is none; the error names similar ones.

    """
    if exact := find_chat(memory, chat):
        return exact
    memory.chat(chat)  # raises for an invalid id
    if (prefix := chat.rpartition("#")[0]) and find_chat(memory, prefix):
        todo = "Count them from 1, the lower number first, such as '#3' or '#3-7' after the id."
        raise InvalidInput(f"{chat!r} names no messages of the chat {prefix!r}.", todo)
    infos = map(mask_info, memory.chats(agent="", archived=None))
    similar = [info.id for info in infos if chat.lower() in f"{info.id} {info.title}".lower()]
    hint = f"Did you mean {', '.join(similar[:3])}?" if similar else ""
    todo = hint or options.others() or "`holdfast chats` lists those there are."
    raise InvalidInput(f"There is no chat {chat!r}{options.whose()} here.", todo)


def mask_info(info: ChatInfo) -> ChatInfo:
    """Mask credentials in the title and the metadata of a chat."""
    return replace(info, title=mask_name(info.title), meta=mask(dict(info.meta)))


def titles_of(memory: Memory, chats: Iterable[str]) -> dict[str, str]:
    """Find the titles of chats by their ids; an id in another space begins with that space."""
    infos = {chat: find_chat(*in_its_space(memory, chat)) for chat in chats if chat}
    return {chat: info.title for chat, info in infos.items() if info}


def in_its_space(memory: Memory, name: str) -> tuple[Memory, str]:
    """Split the space off a name: return its memory and the rest, or both arguments as they are."""
    rest, space = split_space(name, memory.scope)
    others = further_memories(memory) if space else {}
    return others.get(name.partition(IN_SPACE)[0], memory), rest


def with_space(hit: Hit, own: str) -> Hit:
    """Put the space of a hit before its chat, unless it is the own one."""
    is_other = own and hit.chat and hit.space != own
    return replace(hit, chat=f"{hit.space}{IN_SPACE}{hit.chat}") if is_other else hit


def message_range(memory: Memory, text: str) -> Reference | None:
    """Read a reference to messages; None if the text is the id of a chat, which may look alike."""
    reference = read_reference(text)
    return reference if reference and reference.chat and find_chat(memory, text) is None else None


def head(screen: Screen, info: ChatInfo) -> None:
    """Print the title, size and period of a chat."""
    screen.say((info.title or info.id, "bold"), f"  ({info.id})")
    agent = f", agent {info.agent}" if info.agent else ""
    agent += f", channel {info.channel}" if info.channel else ""
    totals = f"{count(info.messages, 'message')}, {count(info.tokens, 'token')}"
    screen.say((f"{totals}, {when(info.oldest)} to {when(info.newest)}{agent}\n", "dim"))
