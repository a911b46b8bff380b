"""What is erased while an index is built does not come back with it."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

import pytest

from holdfast import Memory, Message
from holdfast.search import index
from holdfast.search import segment as segments
from holdfast.search.segment import Segment
from holdfast.text import analyze
from holdfast.types import Source
from recall_corpora import start_python

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "zqerasedqz"


def terms_of(word: str) -> set[int]:
    """Give the hashed terms of a word in lower case."""
    return set(analyze.analyze(word).terms)


def terms_of_stored_segments(memory: Memory) -> set[int]:
    """Collect the hashed terms of all stored segments of a space, of whichever source and version."""
    with memory._runtime.database.reading() as connection:
        rows = connection.all("SELECT body FROM segments WHERE space = :space", space=memory.scope.space)
    return {int(term) for (body,) in rows for term in Segment.decode(body).terms}


@contextmanager
def on_call(function: str, file: str, act: Callable[[], object]) -> Iterator[list[str]]:
    """Act once, when this thread is about to run a function of ours, and note that it did."""
    acted: list[str] = []

    def notice(frame: FrameType, event: str, argument: object) -> None:
        if frame.f_code.co_name == function and frame.f_code.co_filename.endswith(file) and not acted:
            acted.append(function)
            sys.settrace(None)
            act()

    before = sys.gettrace()
    sys.settrace(notice)
    try:
        yield acted
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("moment", ["build", "encode", "replace"])
@pytest.mark.parametrize("source", ["message", "summary", "record"])
def test_what_is_erased_between_reading_and_storing_is_not_in_the_stored_index(
    reopen: Callable[[], Memory], monkeypatch: pytest.MonkeyPatch, source: Source, moment: str
) -> None:
    monkeypatch.setattr(index, "FREEZE", 1)
    monkeypatch.setattr(index, "WORTH_STORING", 1)
    one, two = reopen(), reopen()
    for name, word in (("secret", SECRET), ("other", "marathon")):
        chat = one.chat(name)
        chat.append(
            [Message("user", f"{word} number {n} of a longer talk about it. " * 9) for n in range(12)]
        )
        chat.compact(budget=400)
        chat.remember(f"The user likes {word}", "finding", messages=2)
    file = "store/segments.py" if moment == "replace" else "search/segment.py"
    with on_call(moment, file, lambda: two.erase(chat="secret")) as erased:
        one.recall(SECRET, sources=[source])
    assert erased, "the index was stored without coming past the place of the erasure"
    assert one.recall(SECRET) == two.recall(SECRET) == []
    assert terms_of_stored_segments(one).isdisjoint(terms_of(SECRET))
    assert one.verify().problems == ()
    assert {hit.source for hit in one.recall("marathon", limit=50)} == {"message", "summary", "record"}
    assert terms_of_stored_segments(one).issuperset(terms_of("marathon"))


def test_an_erasure_deletes_the_segments_of_every_version(
    reopen: Callable[[], Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "FREEZE", 1)
    monkeypatch.setattr(index, "WORTH_STORING", 1)
    memory = reopen()
    memory.chat("secret").append(role="user", content=SECRET)
    memory.chat("other").append(role="user", content="marathon")
    for version in (segments.VERSION, segments.VERSION + 1):
        monkeypatch.setattr(segments, "VERSION", version)
        reopen().recall(SECRET)
    assert not terms_of_stored_segments(memory).isdisjoint(terms_of(SECRET))
    memory.erase(chat="secret")
    assert terms_of_stored_segments(memory) == set()


WORK = """
import random, sys
from holdfast import Memory
from holdfast.search import index
index.FREEZE = index.WORTH_STORING = 4
index.LARGEST = 64
location, name, seed = sys.argv[1:]
draw = random.Random(seed)
memory = Memory(location, user="ada")
for n in range(10_000):
    chat = memory.chat(f"{name}{n}")
    word = f"zq{name}{n}qz"
    said = {"role": "user", "content": f"{word} berlin {word} marathon " * 5}
    chat.append([said for _ in range(draw.randint(1, 6))])
    chat.remember(f"the user likes {word}", "finding", messages=1)
    chat.compact(budget=60)
    for _ in range(3):
        memory.recall(draw.choice(["berlin marathon", word]))
    print(f"{word} going", flush=True)
    try:
        memory.erase(chat=chat.id)
    except memory_errors:
        pass  # the files are another matter
    print(f"{word} erased", flush=True)
""".replace("memory_errors", "__import__('holdfast').Unavailable")
ASK = """
import sys
from holdfast import Memory
from holdfast.search import index
index.FREEZE = index.WORTH_STORING = 4
index.LARGEST = 64
memory = Memory(sys.argv[1], user="ada")
print("ready", flush=True)
while True:
    Memory.recall(memory, "berlin marathon user", limit=5)
    memory._runtime.search()._indexes.clear()  # as a process that has just begun
"""


@pytest.mark.slow
def test_no_erased_word_is_in_the_index_after_erasures_beside_recalls_and_kills(
    shared_location: str,
) -> None:
    draw, erased, going = random.Random(7), set[str](), set[str]()
    for round_number in range(3):
        names = [f"r{round_number}{name}" for name in "ab"]
        workers = [start_python(WORK, shared_location, name, str(draw.random())) for name in names]
        with start_python(ASK, shared_location) as asking:
            assert asking.stdout is not None
            asking.stdout.readline()
            lines: list[str] = []
            for worker in workers:
                assert worker.stdout is not None
                lines += [worker.stdout.readline() for _ in range(draw.randint(4, 20))]
            for process in (*draw.sample(workers, 2), asking):
                process.kill()
            for worker in workers:
                lines += worker.communicate()[0].splitlines()
        for line in lines:
            word, _, what = line.strip().partition(" ")
            (erased if what == "erased" else going).add(word)
    with Memory(shared_location, user="ada") as memory:
        memory.chat("last").append(role="user", content="berlin")
        memory.erase(chat="last")
        left = {info.id for info in memory.chats()}
        erased |= {word for word in going if word[2:-2] not in left}
        assert erased
        memory.recall("berlin marathon user")
        stored = terms_of_stored_segments(memory)
        assert [word for word in erased if not stored.isdisjoint(terms_of(word))] == []
        assert [word for word in erased if memory.recall(word)] == []
        assert memory.verify().problems == ()
