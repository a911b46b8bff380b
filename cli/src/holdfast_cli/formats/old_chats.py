"""Old chats: written to files with a checksum, read back, and then erased with a receipt."""

import hashlib
import os
import re
from dataclasses import dataclass, replace
from datetime import datetime
from io import StringIO
from itertools import count
from pathlib import Path

from holdfast import Memory
from holdfast.errors import Unavailable
from holdfast.types import ChatInfo, Erasure
from holdfast_cli.formats.export import export_chats
from holdfast_cli.formats.importing import import_paths
from holdfast_cli.formats.new_files import writing_whole

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST = 120  # characters of the name of a file or folder


@dataclass(frozen=True, slots=True)
class OldChat:
    """A chat that is old: its file and the receipt of its erasure, or why it stays."""

    chat: ChatInfo
    why: str = ""
    file: str = ""
    receipt: Erasure | None = None


def find_old_chats(
    memory: Memory, before: datetime, *, archived: bool = False, everyone: bool = False
) -> list[OldChat]:
    """Return the chats that `move_old_chat` erases, and those that stay, each with the reason.

    What was learned from a chat goes with it, so one with a constraint or a pinned record stays. So does one
    with several branches, of which a file has but the current one.

    Args:
        memory: the memory, of all agents.
        before: only chats whose newest message is older.
        archived: only chats that are archived.
        everyone: those of all users of the tenant, as in `Memory.chats`.

    Raises:
        Denied: `everyone` from a handle of one user.

    """
    every = memory.chats(archived=archived or None, everyone=everyone)
    old = [chat for chat in every if chat.messages and chat.newest < before]
    return [OldChat(chat, _why_it_stays(_handle(memory, chat), chat.id)) for chat in old]


def move_old_chat(memory: Memory, old: OldChat, folder: Path, *, rewrite: bool | None = False) -> OldChat:
    """Write a chat to a file of a folder, erase it, and return it with both, or with the reason why it stays.

    The file is JSONL as `export_chats` writes it, in a folder for each space, beside one with its SHA-256.
    Nothing is erased before both are on the disk and an import of the file gives the same chat again. Of the
    chat its id is left, archived. After an interruption call it again: a file that is there is not written
    twice, and none is overwritten.

    Args:
        memory: the memory, of all agents.
        old: one that `find_old_chats` has returned.
        folder: where the files go; it is made where it is missing.
        rewrite: as for `Memory.erase`.

    Raises:
        Unavailable: a file cannot be written.

    """
    own, chat = _handle(memory, old.chat), old.chat
    if old.why or (why := _why_it_stays(own, chat.id)):
        return replace(old, why=old.why or why)
    last = own.chat(chat.id).history(1)[-1].seq
    text = _exported(own, chat.id)
    try:
        path = _write(folder / _name(chat.space or "user"), _name(chat.id), text)
    except OSError as error:
        raise Unavailable(f"{chat.id} cannot be written: {error}.", "Name another folder.") from error
    with Memory(":memory:") as restored:
        import_paths(restored, path)
        if _exported(restored, chat.id) != text:
            return replace(old, file=str(path), why="its file does not give the same chat again")
    # What is said from now on stays.
    receipt = own.erase(chat=chat.id, messages=(1, last), rewrite=rewrite)
    own.chat(chat.id).archive()
    return replace(old, file=str(path), receipt=receipt)


def _handle(memory: Memory, chat: ChatInfo) -> Memory:
    """Return a handle of all agents on the space of a chat."""
    scope = memory.scope.named(chat.space) if chat.space else memory.scope
    return memory.scoped(user=scope.user, project=scope.project, team=scope.team, agent="")


def _why_it_stays(own: Memory, chat: str) -> str:
    for record in own.records(chat=chat):
        if record.pinned or record.kind == "constraint":
            return f"what was learned from it is {'pinned' if record.pinned else 'a constraint'}: {record.id}"
    return "it has several branches" if len(own.chat(chat).branches()) > 1 else ""


def _exported(memory: Memory, chat: str) -> str:
    stream = StringIO()
    export_chats(memory, stream, [chat])
    return stream.getvalue()


def _name(name: str) -> str:
    """Return a name of a file for any name, different ones for different names."""
    safe = _UNSAFE.sub(lambda unsafe: f"%{unsafe[0].encode().hex('%')}", name)
    if len(safe) > _LONGEST:
        return f"{safe[:_LONGEST]}-{hashlib.sha256(safe.encode()).hexdigest()[:16]}"
    return safe


def _write(folder: Path, name: str, text: str) -> Path:
    """Write a file and its checksum, or find them; return the path of the file."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    paths = (folder / f"{name}{f'.{number}' if number > 1 else ''}.jsonl" for number in count(1))
    body = text.encode()
    path = next(path for path in paths if not path.exists() or path.read_bytes() == body)
    checksum = f"{hashlib.sha256(body).hexdigest()}  {path.name}\n"
    for target, content in ((path, text), (path.with_suffix(".sha256"), checksum)):
        with writing_whole(target, private=True) as stream:
            stream.write(content)
    entries = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(entries)
    finally:
        os.close(entries)
    return path
