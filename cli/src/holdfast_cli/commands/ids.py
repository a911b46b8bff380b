"""Ids by their beginnings: what commands take for the ids of chats, records, summaries and jobs."""

import re
import sys
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import islice

from holdfast import Memory
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.port.handles import ids_beginning
from holdfast.types.references import Reference, read_reference, write_reference
from holdfast_cli.commands.lookup import in_its_space
from holdfast_cli.commands.options import Options
from holdfast_cli.commands.render.screen import Screen, first_of

# What the metavar of a parameter names, beside which it may take a part of a text or the name of a kind.
_SORTS = {"CHAT": "chat", "RECORD": "record", "SUMMARY": "summary", "JOB": "job"}
_OTHERS = {"TEXT", "KIND"}
_OURS = "rec_"  # begins our ids of records
_SHORT, _READABLE = 8, 20  # characters of a short id at least, and of one that is not cut


def complete_ids(
    options: Options, values: Mapping[str, object], metavars: Mapping[str, str | None]
) -> dict[str, object]:
    """Return the arguments of a command with whole ids for unique beginnings; they are named on stderr.

    An id that is there, or of which nothing is, stays as it is: the command says so.

    Raises:
        InvalidInput: a beginning is that of several ids; the error names them.

    """
    words_of = {name: re.findall("[A-Z]+", metavars.get(name) or "") for name in values if values[name]}
    wanted = {name: words for name, words in words_of.items() if _SORTS.keys() & words}
    if not wanted:
        return dict(values)
    try:
        memory = options.open()
    except HoldfastError:
        # The command reports it.
        return dict(values)
    with memory:
        whole = {name: _complete(memory, values[name], words) for name, words in wanted.items()}
    screen = Screen(sys.stderr, quiet=options.json)
    for name, value in whole.items():
        if value != values[name]:
            screen.say((f"{_shown(values[name])} is taken for {_shown(value)}.", "dim"))
    return {**values, **whole}


def _shown(value: object) -> str:
    if isinstance(value, Reference):
        return write_reference(*value)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _complete(memory: Memory, value: object, words: Sequence[str]) -> object:
    if isinstance(value, Reference):
        return value._replace(chat=_whole(memory, value.chat, ["chat"])) if value.chat else value
    if isinstance(value, list):
        is_prose = _OTHERS.intersection(words) and len(value) > 1
        return value if is_prose else [_complete(memory, item, words) for item in value]
    text = str(value)
    if _OTHERS.intersection(words) and not text.startswith(_OURS):
        return value
    there, name = in_its_space(memory, text)
    sorts = [sort for word, sort in _SORTS.items() if word in words]
    return text.removesuffix(name) + _whole(there, name, sorts)


def _whole(memory: Memory, name: str, sorts: Sequence[str]) -> str:
    """Return the id that a name begins, with the numbers of messages behind it; else the name."""
    reference = read_reference(name) if "chat" in sorts else None
    ids = _ids(memory, name, sorts)
    if not ids and reference and reference.chat:
        return write_reference(_whole(memory, reference.chat, ["chat"]), reference.first, reference.last)
    if not ids or name in ids:
        return name
    first = min(ids, key=len)
    # The chats of subagents stand below that of their session.
    if not all(other == first or other.startswith(f"{first}/") for other in ids):
        what = f"{name!r} begins the ids of {len(ids):,}: {first_of(ids)}."
        raise InvalidInput(what, "Write more of the one that you mean.")
    return first


def _ids(memory: Memory, name: str, sorts: Sequence[str]) -> list[str]:
    """Return the ids that begin with a name; `a/b` also begins the chat `b…` below a chat `a…`."""
    ids = [id for sort in sorts for id in ids_beginning(memory, sort, name)]
    above, _, below = name.rpartition("/")
    if ids or not above or "chat" not in sorts:
        return ids
    return [
        id
        for parent in _ids(memory, above, ["chat"])
        for id in ids_beginning(memory, "chat", f"{parent}/{below}")
    ]


def short_ids(memory: Memory, chats: Sequence[str]) -> dict[str, str]:
    """Return the ids of chats, the long ones cut to beginnings that no other chat has."""
    every = sorted({*ids_beginning(memory, "chat"), *chats})

    def short(chat: str) -> str:
        above, _, own = chat.rpartition("/")
        place = bisect_left(every, chat)
        if above and every[bisect_left(every, above)] == above:
            return f"{short(above)}/{own}"
        not_below = (id for id in islice(every, place + 1, None) if not id.startswith(f"{chat}/"))
        others = (*every[max(0, place - 1) : place], *islice(not_below, 1))
        lengths = range(_SHORT, len(chat)) if len(chat) > _READABLE else ()
        return chat[: next((n for n in lengths if not any(o.startswith(chat[:n]) for o in others)), None)]

    return {chat: short(chat) for chat in chats}
