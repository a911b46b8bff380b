"""Jobs of each kind that are ready to be done, what came of them, and models that answer, fail, or wait."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from types import FrameType

from benchmarks.scripted import Scripted
from holdfast import Learning, Memory, Record
from learning_scripts import SESSION, Clock, Model, framed, hold

PART = 120  # tokens: a third of the session
CONSTRAINT, SOUL = "Never deploy on Fridays.", "You are the assistant of Ada."
TEXT = "\n\n".join(SESSION)
PAIRS = (
    ("Ada works at night", "Ada prefers working at night"),
    ("Ada likes tea", "Ada is fond of tea"),
)
JOINED = ("Ada drinks tea.", "Ada drinks tea. She takes it without sugar.")
ELSEWHERE = ("The shop runs on port 8080.", "The shop runs on port 8080. It is restarted every night.")
SAME = {
    "changes": [
        {"entries": [number, number + 1], "change": "same", "text": "", "why": "They say the same."}
        for number in (1, 3)
    ]
}
# Of the metadata: numbers of records, and the name of a test's own function.
_VARYING = ("of", "into", "model")
# Of a record, what depends neither on its number nor on the time.
_TOLD = (
    *("kind", "text", "target", "agent", "source", "sources", "evidence", "by", "chat", "messages", "trust"),
    *("flags", "retracted", "action", "why"),
)


def only(kind: str, **policy: object) -> Learning:
    """Learn by jobs of one kind alone."""
    return Learning(kinds=(kind,), **policy)  # type: ignore[arg-type]  # as the caller names them


def policy(kind: str) -> Learning:
    """Learn by jobs of one kind, from several parts where it can be.

    "text" is an extraction from a text, "session" all that one question is asked about, "pairs" what a merge
    was unsure about.
    """
    if kind == "session":
        return Learning(kinds=("observe", "episode", "reflect"))
    if kind == "pairs":
        return only("tidy")
    return only("observe", tokens=PART) if kind in ("observe", "text") else only(kind)


def good() -> Model:
    """Make a model that answers every question so that something is learned."""
    return Model(answers={"tidy": _tidied})


def _tidied(prompt: str) -> object:
    return SAME if framed(prompt, "groups").startswith("Two ") else Scripted()(prompt)


def protect(memory: Memory) -> None:
    """Store what no model may touch."""
    memory.remember(CONSTRAINT, "constraint", by="user")
    memory.remember(SOUL, "soul", by="user")


def protected(memory: Memory) -> list[tuple[str, str]]:
    """Give the text and the last action of what no model may touch."""
    return [(one.text, one.action) for kind in ("constraint", "soul") for one in memory.records(kind=kind)]


def prepare(memory: Memory, kind: str) -> None:
    """Store what gives one job of a kind something to do; for some kinds it takes two units."""
    protect(memory)
    _PREPARE[kind](memory)


def _ended(memory: Memory) -> None:
    hold(memory).end()


def _pairs(memory: Memory) -> None:
    for text in (text for pair in PAIRS for text in pair):
        memory.remember(text)


def _facts(memory: Memory) -> None:
    for target, texts in (("user", JOINED), ("env", ELSEWHERE)):
        for text in texts:
            memory.remember(text, target=target, merge=False)


def _sessions(memory: Memory) -> None:
    hold(memory)
    hold(
        memory, "garden", ("The tulips of Ada bloom in April, and they need much water.", "I noted it down.")
    )


_PREPARE: Mapping[str, Callable[[Memory], None]] = {
    "observe": _ended,
    "session": _ended,
    "episode": _ended,
    "pairs": _pairs,
    "tidy": _facts,
    "reflect": _sessions,
    "text": lambda _: None,
}


def told(record: Record) -> dict[str, object]:
    """Give what a record says and where it comes from, without its number and the time."""
    given = asdict(record)
    meta = {name: value for name, value in record.meta.items() if name not in _VARYING}
    return {name: given[name] for name in _TOLD} | {"meta": meta}


def state(memory: Memory) -> tuple[list[str], list[str]]:
    """Give all that is known, with what is in quarantine, and every change that led there, sorted."""
    known = [*memory.records(), *list(memory.quarantine)]
    changes = [
        f"{one.action} {one.kind} {one.before!r} → {one.after!r}, {one.by}" for one in memory.changes()
    ]
    return sorted(json.dumps(told(one), sort_keys=True) for one in known), sorted(changes)


def until_done(memory: Memory, model: Model, past: Callable[[timedelta], object]) -> None:
    """Work, and let time pass, until nothing is left to do."""
    for _ in range(20):
        if memory.learning.work(llm=model).noop:
            return
        past(timedelta(hours=1))
    raise AssertionError(f"there are jobs left: {memory.learning.jobs()}")


# Killed


def do(memory: Memory, kind: str, model: Callable[[str], str]) -> None:
    """Do the job of a kind that is prepared; an extraction from a text leaves it as well."""
    if kind == "text":
        memory.learning.extract(TEXT, step="migrate", type="GOAL", llm=model)
    else:
        memory.learning.work(llm=model)


def die_after(steps: int) -> None:
    """Let this process be killed after so many steps: statements, and begins and ends of answers."""
    left = steps

    def watch(frame: FrameType, event: str, _: object) -> None:
        nonlocal left
        # Most calls are told apart by their name, which takes a tenth of the time of reading a path.
        code = frame.f_code
        if code.co_name not in _NAMES:
            return
        if event in _STEPS.get((Path(code.co_filename).name, code.co_name), ()):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(watch)


_STEPS = {
    **{(file, name): ("return",) for file in ("sqlite.py", "postgres.py") for name in ("all", "many")},
    ("learning_scripts.py", "__call__"): ("call", "return"),
}
_NAMES = {name for _, name in _STEPS}


def _die(location: str, kind: str, step: int) -> None:
    with Memory(location, user=f"{kind} {step}", clock=Clock(), learning=policy(kind)) as memory:
        prepare(memory, kind)
        die_after(step)
        do(memory, kind, good())
        sys.setprofile(None)


def _is_killed(run: Callable[[], None]) -> bool:
    """Run something in a process of its own, and say whether that was killed; it must end well otherwise."""
    child = os.fork()
    if not child:
        try:
            run()
        except BaseException:  # noqa: BLE001 - it must not go on as its parent would; what is printed is read there
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or status == 0, "a process failed by itself"
    return os.WIFSIGNALED(status)


def die_at_each_step(location: str, kind: str, first: int, stride: int) -> int:
    """Do the job of a kind for a user of its own for each step, in a process that is killed after it.

    The last user is one whose process was not killed, and is returned; all are from `first` on, `stride`
    apart. This process must have no other threads: it is forked for each.
    """
    step = first
    while _is_killed(lambda user=step: _die(location, kind, user)):  # type: ignore[misc]  # the step is bound now
        step += stride
    return step
