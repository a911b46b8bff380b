"""What a process keeps in memory of its last prompts: what they show, and receipts not stored yet."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from itertools import takewhile
from typing import TYPE_CHECKING, TypeVar

from holdfast.store.prompt_receipts import LastPrompt

if TYPE_CHECKING:
    from holdfast.prompt.knowledge_block import KnowledgeBlock
    from holdfast.store.snapshots import Snapshot
    from holdfast.types import Receipt, Scope, Window

# Chats of which the newest prompt is kept, and knowledge blocks: a few megabytes each.
NEWEST = 256

Fingerprint = tuple[tuple[int, int], ...]
"""The hash and the tokens of each part of a prompt, in order: the system text, then the messages."""

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")


class PromptCache:
    """Keep what the newest prompts of chats were made of; of each sort the entries of the newest 256 chats.

    `worker` names this process among those whose prompts wait for an answer; it is "" for one that only
    looks.
    """

    def __init__(self, worker: str) -> None:
        self.worker = worker
        self._lock = threading.Lock()
        self._frozen: dict[tuple[Scope, Snapshot], KnowledgeBlock] = {}
        self._fingerprints: dict[tuple[Scope, str], Fingerprint] = {}
        self._shown: dict[tuple[str, str], tuple[str, ...]] = {}
        # What the last prompts had of their chats.
        self.seen: dict[tuple[str, str], frozenset[int | str]] = {}
        # Chats of which the versions that they show were taken.
        self.taken: dict[tuple[str, str], Snapshot] = {}
        # Of chats that do not exist yet.
        self._unstored: dict[tuple[str, str], Receipt] = {}

    def frozen(self, key: tuple[Scope, Snapshot], make: Callable[[], KnowledgeBlock]) -> KnowledgeBlock:
        """Return the knowledge block of a snapshot, made once for all its prompts."""
        known = self._frozen.get(key)
        if known is None:
            known = make()
            self._put(self._frozen, key, known)
        return known

    def unchanged(self, key: tuple[Scope, str], prompt: Fingerprint) -> int:
        """Return the tokens of the beginning shared with the last prompt of the chat, and keep this one."""
        before = self._fingerprints.get(key, ())
        self._put(self._fingerprints, key, prompt)
        same = takewhile(lambda pair: pair[0] == pair[1], zip(before, prompt, strict=False))
        return sum(part[1] for part, _ in same)

    def show(self, space: str, chat: str, names: tuple[str, ...]) -> None:
        """Keep the names of what was recalled for the last prompt of a chat."""
        self._put(self._shown, (space, chat), names or None)

    def see(self, space: str, chat: str, window: Window) -> None:
        """Keep what the last prompt of a chat had of it."""
        self._put(self.seen, (space, chat), seen_of(window))

    def take(self, space: str, chat: str, snapshot: Snapshot | None) -> None:
        """Keep that the snapshot of a chat was taken; None drops it."""
        self._put(self.taken, (space, chat), snapshot)

    def hold(self, space: str, chat: str, receipt: Receipt | None) -> None:
        """Keep the receipt of a prompt until the chat exists; None drops it."""
        self._put(self._unstored, (space, chat), receipt)

    def last_prompt(self, space: str, chat: str) -> LastPrompt:
        """Return what only this process knows of the prompts of a chat."""
        return LastPrompt(self.worker, self._shown.get((space, chat), ()), self._unstored.get((space, chat)))

    def forget(self, space: str, chat: str | None = None) -> None:
        """Drop what is kept of a chat, or of a whole space."""
        with self._lock:
            for scope, id in list(self._fingerprints):
                if scope.space == space and chat in (None, id):
                    del self._fingerprints[scope, id]
            for kept in (self._shown, self.seen, self._unstored, self.taken):
                for key in [key for key in kept if key[0] == space and chat in (None, key[1])]:
                    del kept[key]

    def _put(self, entries: dict[K, V], key: K, value: V | None) -> None:
        """Put an entry as the newest one; of too many the oldest goes. None drops it."""
        with self._lock:
            entries.pop(key, None)
            if value is not None:
                entries[key] = value
            if len(entries) > NEWEST:
                entries.pop(next(iter(entries)))


def seen_of(window: Window) -> frozenset[int | str]:
    """Return what a window shows whole: the numbers of its messages, and the ids of its summaries."""
    whole = {message.seq for message in window.messages} - {short.seq for short in window.shortened}
    return frozenset(whole | {summary.id for summary in window.summaries})
