"""Conversations whose messages name the one before: the thread that is shown, and what was left."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from holdfast_cli.formats.import_items import Item, Skip
from holdfast_cli.formats.json_values import Json, repeat_id, text_of, time_of

LEFT = "on a branch that was left: the prompt was edited or the answer made anew"


def thread(current: object, parents: Mapping[str, str], times: Mapping[str, float]) -> list[str]:
    """Return the messages from the first to the current one, or to the newest end if there is none.

    Args:
        current: the id of the current message, if the file names it.
        parents: each message with the one before, "" for none; in the order of the file.
        times: when messages were written, in seconds.

    """
    inner = set(parents.values())
    ends = [key for key in parents if key not in inner]
    newest = max(reversed(ends), key=lambda key: times.get(key, 0.0), default="")
    leaf = current if isinstance(current, str) and current in parents else newest
    shown: dict[str, None] = {}
    while leaf in parents and leaf not in shown:
        shown[leaf] = None
        leaf = parents[leaf]
    return list(reversed(shown))


def seconds(value: object) -> float:
    """Return a time in seconds since the epoch, 0 if it is none."""
    at = time_of(value)
    return at.timestamp() if at else 0.0


def read_thread(
    line: int,
    entries: Iterable[Json],
    read: Callable[[str, Json], Iterable[Item]],
    fields: tuple[str, str, str],
    current: object = None,
) -> Iterator[Item]:
    """Yield the items that `read` finds in the entries of the thread that is shown, and count the others.

    Args:
        line: where the conversation stands in the file.
        entries: the messages. One that does not say what is before it follows the one before in the file.
        read: returns the items of an entry, by its id.
        fields: the names of its id, of the id of the message before it, and of its time.
        current: the id of the last message that is shown, if the file names it.

    """
    nodes, parents, counts, before = dict[str, Json](), dict[str, str](), Counter[str](), ""
    for entry in entries:
        identity = text_of(entry.get(fields[0])) or repeat_id(counts, entry)
        if identity in nodes:
            yield Skip(line, "another message of its chat has the same id", problem=True)
            continue
        nodes[identity], parents[identity] = entry, text_of(entry.get(fields[1], before))
        before = identity
    shown = thread(current, parents, {key: seconds(entry.get(fields[2])) for key, entry in nodes.items()})
    for key in shown:
        yield from read(key, nodes[key])
    yield from (Skip(line, LEFT) for _ in nodes.keys() - set(shown))
