"""LangGraph: the SQLite file of its checkpoints, without running what its serializer would construct."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, cast

from holdfast_cli.formats.files import File, object_in
from holdfast_cli.formats.foreign_sqlite import ForeignSQLite, open_database
from holdfast_cli.formats.import_items import ImportedChat, Item, Skip, item_of
from holdfast_cli.formats.json_values import dict_of, list_of, stable_id, text_of
from holdfast_cli.formats.langchain_messages import Extension, read_langchain, readable

_TABLE = "checkpoints"
_KEYS = ("thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id")
_STATE = ("type", "checkpoint")
MARK = (_TABLE, *_KEYS, *_STATE)
_CHANNEL = "messages"
_OBJECT, _SNAPSHOT = (4, 5), 7  # the codes of a pydantic model, and of a channel that is stored as deltas
_MISSING = "a state that is packed as LangGraph does: `pip install 'holdfast[langgraph]'` reads it"
_EARLIER = "an earlier state of a thread"
_SUBGRAPH = "a state of a subgraph"
_NO_MESSAGES = "a state without messages"
_DELTAS = "its messages are stored as changes (DeltaChannel), which are not read: export the thread as JSON"


class _State(NamedTuple):
    """The newest state of a thread, or the last one before it went on from elsewhere."""

    thread: str
    checkpoint: str
    place: int


def read(file: File) -> Iterator[Item]:
    """Yield the messages of each thread as they are in its newest state.

    What only a fork has, an end that the thread went on beside, is a chat of its own:
    `<thread>/<checkpoint>`. Earlier states and those of subgraphs are counted. Messages have the time of
    their state. What is pickled is not read.
    """
    with open_database(file) as database:
        ends: dict[str, list[_State]] = {}
        for item in _ends(database):
            if isinstance(item, Skip):
                yield item
            else:
                ends.setdefault(item.thread, []).append(item)
        for thread, states in ends.items():
            newest, *forks = sorted(states, key=lambda state: state.checkpoint, reverse=True)
            known: set[str] = set()
            yield from _messages(database, newest, ImportedChat(thread), known)
            for fork in forks:
                yield from _messages(database, fork, ImportedChat(f"{thread}/{fork.checkpoint}"), known)


def _ends(database: ForeignSQLite) -> Iterator[_State | Skip]:
    """Yield the states that no other one follows."""
    parents = {(row[0], row[3]) for row in database.rows(_TABLE, _KEYS)}
    for place, (thread, namespace, checkpoint, _) in enumerate(database.rows(_TABLE, _KEYS), 1):
        if not isinstance(thread, str) or not isinstance(checkpoint, str):
            yield Skip(place, "a checkpoint without ids", problem=True)
        elif namespace:
            yield Skip(place, _SUBGRAPH)
        elif (thread, checkpoint) in parents:
            yield Skip(place, _EARLIER)
        else:
            yield _State(thread, checkpoint, place)


def _messages(database: ForeignSQLite, state: _State, chat: ImportedChat, known: set[str]) -> Iterator[Item]:
    """Yield the messages of a state that are not known yet."""
    where = {"thread_id": state.thread, "checkpoint_ns": "", "checkpoint_id": state.checkpoint}
    for kind, data in database.rows(_TABLE, _STATE, where=where):
        try:
            checkpoint = _decode_state(kind, data)
        except ValueError as error:
            yield Skip(state.place, str(error).rstrip("."), problem=True)
            continue
        channels = dict_of(checkpoint.get("channel_values"))
        messages = channels.get(_CHANNEL)
        if isinstance(messages, Extension) and messages.code == _SNAPSHOT:
            messages = _unpack_or_none(messages.data)
        if not isinstance(messages, list):
            is_delta = _CHANNEL in dict_of(checkpoint.get("channel_versions"))
            yield Skip(state.place, _DELTAS if is_delta else _NO_MESSAGES, problem=is_delta)
            continue
        for place, message in enumerate(messages, 1):
            fields = _fields(message)
            identity = text_of(fields.get("id")) or stable_id(place, readable(fields))
            if identity not in known:
                known.add(identity)
                yield item_of(chat, place, read_langchain, fields, identity, checkpoint.get("ts"))


def _decode_state(kind: object, data: object) -> Mapping[str, object]:
    if kind == "msgpack" and isinstance(data, bytes):
        return dict_of(_unpack(data))
    if kind == "json":
        value = object_in(data)
        if isinstance(value, str):
            raise ValueError(value)
        return value
    raise ValueError(f"a state that is stored as {text_of(kind)[:40] or 'nothing'}, and nothing is unpickled")


def _unpack(data: bytes) -> object:
    """Decode MessagePack without constructing objects, as LangGraph's own decoder would.

    Raises:
        ValueError: it is no MessagePack, or there is nothing to read it with.

    """
    try:
        import ormsgpack
    except ImportError:
        raise ValueError(_MISSING) from None
    return cast("object", ormsgpack.unpackb(data, ext_hook=Extension, option=ormsgpack.OPT_NON_STR_KEYS))


def _unpack_or_none(data: bytes) -> object:
    try:
        return _unpack(data)
    except ValueError:
        return None


def _fields(message: object) -> Mapping[str, object]:
    """Return the fields of a message: a model of LangChain in either encoding, or a plain dict."""
    if isinstance(message, Extension) and message.code in _OBJECT:
        return dict_of((list_of(_unpack_or_none(message.data)) + [None] * 3)[2])
    value = dict_of(message)
    if value.get("type") == "constructor" and "kwargs" in value:
        name = text_of((list_of(value.get("id")) or [""])[-1])
        kind = name.removesuffix("Chunk").removesuffix("Message").lower()
        return {"type": kind, **dict_of(value.get("kwargs"))}
    return value
