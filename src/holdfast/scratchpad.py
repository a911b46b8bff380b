"""Scratchpads, which read and write like a dict, at the level of a user, a chat, or a run."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING

from holdfast.errors import Denied, InvalidInput
from holdfast.kinds import LONGEST
from holdfast.prompt.system_text import fill
from holdfast.safety import guard
from holdfast.store import grants, pads, runs
from holdfast.store.pads import TEMPORARY, ScratchpadKey
from holdfast.text.clean import clean
from holdfast.types import check_name
from holdfast.types.handles import Handle

if TYPE_CHECKING:
    from holdfast.runtime import Runtime
    from holdfast.types import Scope
    from holdfast.types.grants import Rights


class Scratchpad(Handle, MutableMapping[str, str]):
    """Texts by name, durable when the assignment returns. `scratchpad` of a memory, a chat, or a run.

    Names that begin with "temp:" are kept in this process only, for as long as the memory is open, or the run
    lasts: the place for credentials, which no other name takes. Iteration is in the order of the names.
    """

    def __init__(self, runtime: Runtime, place: ScratchpadKey, scope: Scope) -> None:
        self._runtime = runtime
        self._scope = scope
        self._database = runtime.database_of(scope)
        self._place = place

    def __getitem__(self, name: str) -> str:
        check_name(name, "A name on a scratchpad")
        is_temporary = name.startswith(TEMPORARY)
        value = self._temporary().get(name) if is_temporary else pads.read(self._database, self._place, name)
        if value is None:
            raise KeyError(name)
        return value

    def __setitem__(self, name: str, value: str) -> None:
        check_name(name, "A name on a scratchpad")
        if not isinstance(value, str):
            raise InvalidInput(
                f"A scratchpad keeps text, not {type(value).__name__}.", "Pass a string, such as JSON."
            )
        if name.startswith(TEMPORARY):
            self._check_right("write")
            with self._database.reading() as connection:
                runs.check_run(connection, self._place.space, self._place.run)
            with self._runtime.lock:
                self._runtime.temporary.setdefault(self._place, {})[name] = value
            return
        pads.write(self._database, self._place, name, check_entry(name, value), self._runtime.now())

    def __delitem__(self, name: str) -> None:
        check_name(name, "A name on a scratchpad")
        if name.startswith(TEMPORARY):
            self._check_right("write")
            with self._runtime.lock:
                gone = self._runtime.temporary.get(self._place, {}).pop(name, None) is not None
        else:
            gone = pads.remove(self._database, self._place, name)
        if not gone:
            raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and self[name] is not None
        except (KeyError, InvalidInput):
            return False

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return f"Scratchpad({self._all()!r})"

    def clear(self) -> None:
        """Remove all names."""
        pads.remove(self._database, self._place)
        with self._runtime.lock:
            self._runtime.temporary.pop(self._place, None)

    def list(self, prefix: str = "") -> builtins.list[str]:
        """List the names that begin with a prefix, sorted.

        Args:
            prefix: the beginning; "" for all.

        """
        return [name for name in self._all() if name.startswith(prefix)]

    def search(self, text: str) -> dict[str, str]:
        """Find the names that have a text in them or in their value, whatever its case.

        Args:
            text: what is looked for.

        Raises:
            InvalidInput: it is not text.

        """
        if not isinstance(text, str):
            raise InvalidInput(f"The text to look for is {type(text).__name__}.", "Pass a string.")
        part = text.casefold()
        return {
            name: value
            for name, value in self._all().items()
            if part in name.casefold() or part in value.casefold()
        }

    def stored(self) -> dict[str, str]:
        """Return what is stored, without the names that begin with "temp:"."""
        return pads.read_all(self._database, self._place)

    def _all(self) -> dict[str, str]:
        return dict(sorted({**self.stored(), **self._temporary()}.items()))

    def _temporary(self) -> dict[str, str]:
        self._check_right("read")
        with self._runtime.lock:
            return dict(self._runtime.temporary.get(self._place, {}))

    def _check_right(self, needed: Rights) -> None:
        """Raise Denied as the database would, which has no temporary names."""
        grants.check(self._database, self._scope, self._place.space, needed)


def check_entry(name: str, value: str) -> str:
    """Return a value as a scratchpad stores it under a name.

    Raises:
        InvalidInput: it is too long, or the name is none or only for what is temporary.
        Denied: it looks like a credential.

    """
    if check_name(name, "A name on a scratchpad").startswith(TEMPORARY):
        raise InvalidInput(f"{name!r} names what is not stored.", f"Use a name without {TEMPORARY!r}.")
    if len(value) > LONGEST:
        raise InvalidInput(
            f"The value has {len(value):,} characters; a scratchpad takes {LONGEST:,} under a name.",
            "Shorten or split it.",
        )
    grave = {finding.kind for finding in guard.scan(f"{name}: {value}")}
    if "secret" in grave:
        raise Denied(
            f"The value of {name!r} looks like a credential, and those are not stored.",
            f"Keep it under {TEMPORARY + name!r}, which stays in memory.",
        )
    return clean(value)


def fill_system_text(
    runtime: Runtime, scope: Scope, system: str, of_chat: Scratchpad, of_run: Scratchpad | None
) -> str:
    """Return the system text of a prompt with its placeholders filled from scratchpads.

    Raises:
        InvalidInput: one that has no "?" has no value.

    """

    def pad(scope: Scope) -> Scratchpad:
        return Scratchpad(runtime, ScratchpadKey(scope.space), scope)

    def look_up(prefix: str, name: str) -> str | None:
        if not prefix:
            return of_chat.get(name)
        if prefix == TEMPORARY:
            levels = [level for level in (of_run, of_chat, pad(scope)) if level is not None]
            return next((level[prefix + name] for level in levels if prefix + name in level), None)
        return pad(scope.owner if prefix == "user:" else scope.shared).get(name)

    return fill(system, look_up)
