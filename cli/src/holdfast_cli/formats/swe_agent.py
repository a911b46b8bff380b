"""SWE-agent: the trajectories of its runs, `.traj`."""

from collections import Counter
from collections.abc import Iterator

from holdfast.port import formats
from holdfast_cli.formats.files import File
from holdfast_cli.formats.import_items import ImportedChat, Item, Skip, item_of
from holdfast_cli.formats.json_values import Json, dict_of, list_of, repeat_id, text_of


def is_trajectory(value: Json) -> bool:
    """Return whether an object is a trajectory."""
    first = dict_of(next(iter(list_of(value.get("history"))), None))
    return isinstance(first.get("role"), str) and isinstance(first.get("agent"), str)


def read(file: File, number: int, value: Json) -> Iterator[Item]:
    """Yield the messages of a run, which has no times: a chat that is called after its file.

    What the environment answers is the result of a call, or, where calls are written as words, of none.
    Demonstrations, which are of other runs, are left out and counted.
    """
    chat = ImportedChat(f"{file.name}:{number}" if number else file.name, by_file=True)
    has_acted, counts = False, Counter[str]()
    for place, entry in enumerate(map(dict_of, list_of(value["history"])), 1):
        role, is_demo = text_of(entry.get("role")), entry.get("is_demo") is True
        has_acted |= role == "assistant" and not is_demo
        if is_demo or not role:
            reason = "a demonstration, of another run" if is_demo else "no message"
            yield Skip(number or place, reason, problem=not is_demo)
        else:
            call = next(iter(list_of(entry.get("tool_call_ids"))), None)
            role = "tool" if role == "user" and has_acted else role
            item = {**entry, "role": role, "raw": entry, "tool_call_id": call}
            item["id"] = repeat_id(counts, [place, entry])
            yield item_of(chat, number or place, formats.parse, item)
