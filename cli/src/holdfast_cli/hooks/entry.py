"""`holdfast hook EVENT --client NAME`: one event of a coding agent, answered within its time.

It exits with 0 whatever happens, writes nothing but its answer, and leaves what went wrong in the journal.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, NoReturn, cast

from holdfast_cli.hooks import journal
from holdfast_cli.hooks.clients import Client, client_of
from holdfast_cli.hooks.hook_call import EVENTS, Event, HookCall, HookOptions
from holdfast_cli.hooks.hook_limit import DETACHED, HookLimit
from holdfast_cli.hooks.journal import HookRun

if TYPE_CHECKING:
    from holdfast_cli.hooks.events import HookEvents

# What has no answer is all done detached: a machine that is busy must not cost what is imported then.
_UNANSWERED = ("stop", "session-end")
_MOST = 16 << 20  # bytes of stdin
_USAGE = (
    "Usage: holdfast hook EVENT --client NAME [--db PATH|URL] [--tenant NAME] [--user NAME] [--wait]\n"
    f"Events: {', '.join(EVENTS)}. Reads the client's JSON from stdin; see docs/coding-agents.md.\n"
)


def main(arguments: Sequence[str]) -> NoReturn:
    """Answer an event, and end the process with exit code 0."""
    if not arguments or "--help" in arguments or "-h" in arguments:
        sys.stderr.write(_USAGE)
        os._exit(0)
    # What others computed while this process was loaded is left out.
    began = time.time() - time.process_time()
    answer = _Answer(_options(arguments), began)
    try:
        answer.run()
    # The edge of the program: whatever it is, the client must not see it, and the journal shows it.
    except BaseException as error:  # noqa: BLE001
        answer.fail(error)
    os._exit(0)


def _options(arguments: Sequence[str]) -> HookOptions:
    """Read the command line; what is not known is left out, as a later version may write it."""
    options: dict[str, str | bool] = {}
    words = iter(arguments)
    for word in words:
        name, equal, value = word.partition("=")
        if name == "--wait":
            options["wait"] = True
        elif name in ("--client", "--db", "--tenant", "--user"):
            options[name[2:]] = value if equal else next(words, "")
        elif not word.startswith("-"):
            options.setdefault("event", word)
    return HookOptions(**options)  # type: ignore[arg-type]  # by their names


class _Answer:
    """The answer to one event, written once: with its outcome, or when the time is over."""

    def __init__(self, options: HookOptions, began: float) -> None:
        self._options, self._began = options, began
        self._once = threading.Lock()
        self._client: Client | None = None
        self._run = HookRun(began, options.client, options.event)
        self._event = cast("Event", options.event)
        self._watcher: threading.Thread | None = None
        self._in_time = threading.Event()

    def run(self) -> None:
        """Answer the event.

        Raises:
            ValueError: the event or the client is not known, or stdin has no JSON object.

        """
        if self._options.event not in EVENTS:
            raise ValueError(f"There is no event {self._options.event!r}.")
        self._client = client_of(self._options.client)
        limit = HookLimit.of(self._event, self._began)
        self._watch(limit)
        call = self._client.parse(self._event, _payload())
        self._run = self._run._replace(session=call.session)
        if self._event not in _UNANSWERED:
            self._answer(call, limit)
            return
        self._send("", log=False)
        self._run = self._run._replace(ms=self._elapsed_ms())
        if self._detach():
            from holdfast_cli.hooks.events import HookEvents

            self._go_on(HookEvents(call, self._options, limit))

    def _answer(self, call: HookCall, limit: HookLimit) -> None:
        from holdfast_cli.hooks.events import HookEvents

        if self._event in ("session-start", "prompt"):
            error = journal.untold_error(journal.tail(), call.client, call.session)
            self._run = self._run._replace(told=error)
        events = HookEvents(call, self._options, limit)
        outcome = events.answer()
        self._run = self._run._replace(
            project=outcome.project, shown=outcome.shown, tokens=outcome.tokens, note=outcome.note
        )
        self._send(outcome.text, outcome.message)
        if outcome.goes_on and self._detach():
            self._go_on(events)

    def _go_on(self, events: HookEvents) -> None:
        """Do the work that the client does not wait for; log it for an event without an answer."""
        gc.enable()
        # What was shown is in the journal already.
        self._run = self._run._replace(shown=(), tokens=0, note="", told="")
        note = error = ""
        try:
            note = events.after()
        # The edge of the program, as above.
        except BaseException as failure:  # noqa: BLE001
            error = _error_line(failure)
        if error or self._event in _UNANSWERED:
            self._log(self._run._replace(project=events.project, note=note, error=error))

    def _watch(self, limit: HookLimit) -> None:
        """End the process when the time is over, wherever it is stuck: at a lock, or at a slow disk."""
        self._in_time = threading.Event()
        self._watcher = threading.Thread(target=self._wait, args=(limit, self._in_time))
        self._watcher.daemon = True
        self._watcher.start()

    def _wait(self, limit: HookLimit, in_time: threading.Event) -> None:
        if over := limit.wait(in_time):
            last = threading.Thread(target=self._send_error, args=(f"It took more than {over}.",))
            last.daemon = True
            last.start()
            # The journal may be on the disk that is slow.
            last.join(0.1)
            os._exit(0)

    def _detach(self) -> bool:
        """Go on in a process of its own, which the client does not wait for; return whether this is it.

        It ends when it is done, at the latest after `DETACHED`. With `--wait`, and where there is no `fork`,
        this one goes on. The memory is closed by then, and the watcher is the only other thread: a lock that
        one held would stay locked in the copy.
        """
        if self._watcher is not None:
            self._in_time.set()
            self._watcher.join()
        if hasattr(os, "fork") and not self._options.wait:
            if os.fork():
                return False
            os.setsid()
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nowhere, stream)
            self._began = time.time()
        # What goes wrong from here on is for the journal only.
        self._once, self._client = threading.Lock(), None
        self._watch(HookLimit(inf, DETACHED, self._began, inf))
        return True

    def fail(self, error: BaseException) -> None:
        """Answer with nothing, unless an answer is written, and leave the error in the journal."""
        # Where the journal fails as well, there is nowhere left to say it.
        with suppress(BaseException):
            if not self._send_error(_error_line(error)):
                self._log(self._run._replace(shown=(), tokens=0, note="", told=""))

    def _send_error(self, error: str) -> bool:
        self._run = self._run._replace(error=error)
        return self._send("")

    def _send(self, text: str, message: str = "", *, log: bool = True) -> bool:
        """Write the answer and the line of the journal; return False if an answer was written already."""
        if not self._once.acquire(blocking=False):
            return False
        if self._client is not None:
            if report := self._run.told:
                report = f"Holdfast failed at an earlier event: {report} `holdfast doctor` shows why."
            output = self._client.answer(self._event, text, "\n".join(filter(None, (report, message))))
            _write(output.encode("utf-8", "backslashreplace"))
        if log:
            self._log(self._run)
        return True

    def _log(self, run: HookRun) -> None:
        journal.write(run._replace(ms=run.ms or self._elapsed_ms()))

    def _elapsed_ms(self) -> float:
        return round((time.time() - self._began) * 1000, 1)


def _write(output: bytes) -> None:
    """Write to stdout at once; who closed it wants no answer."""
    try:
        while output:
            output = output[os.write(1, output) :]
    except OSError:
        return


def _payload() -> dict[str, object]:
    """Read the JSON object on stdin.

    Raises:
        ValueError: there is none.

    """
    parts: list[bytes] = []
    size = 0
    try:
        while part := os.read(0, 1 << 16):
            size += len(part)
            if size <= _MOST:
                parts.append(part)
    except OSError as error:
        raise ValueError(f"stdin cannot be read: {error.strerror}.") from error
    if size > _MOST:
        raise ValueError(f"stdin has more than {_MOST >> 20} MiB.")
    try:
        payload = json.loads(b"".join(parts))
    except (ValueError, RecursionError):
        raise ValueError("stdin is no JSON.") from None
    if not isinstance(payload, dict):
        raise ValueError("The JSON on stdin is no object.")  # noqa: TRY004 - one error for all that is no JSON object
    return payload


def _error_line(error: BaseException) -> str:
    """Return an error on one line, without words of the person: only errors of ours have chosen words."""
    from holdfast.errors import HoldfastError

    if isinstance(error, HoldfastError | ValueError):
        return " ".join(str(error).split())
    if isinstance(error, OSError):
        return f"{type(error).__name__}: {error.strerror or 'no reason given'}"
    return type(error).__name__
