"""The checks of `holdfast doctor`: whether the hooks run, answer in time, and reach the model."""

import platform
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal

from holdfast.errors import HoldfastError
from holdfast.port.safekeeping import NEWEST, FileState, check_number
from holdfast.port.safety import mask
from holdfast_cli.hooks.clients import NAMES, client_of
from holdfast_cli.hooks.hook_call import EVENTS
from holdfast_cli.hooks.hook_limit import LIMITS
from holdfast_cli.hooks.installations import Installation
from holdfast_cli.hooks.journal import HookRun
from holdfast_cli.hooks.pause import Pauses
from holdfast_cli.hooks.transcript_proof import Delivery

_DAYS = 7  # that are looked at
_DAY = 86_400.0
_ERRORS = 5  # that are listed
_ENOUGH = 5  # answers, before they tell how long one takes
# What a session cannot do without: the other events may not have had an occasion.
_EACH_SESSION = {"session-start", "prompt", "stop"}

_PASSWORD = re.compile(r"(://[^:/@\s]{0,200}:)[^@/\s]{1,500}@")

State = Literal["ok", "note", "action"]


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """The result of a check: "ok", a "note", or an "action" to take, which `todo` names."""

    state: State
    subject: str
    what: str
    todo: str = ""


_ok, _note = partial(HealthCheck, "ok"), partial(HealthCheck, "note")
_action = partial(HealthCheck, "action")


@dataclass(frozen=True, slots=True)
class EventTiming:
    """The times of the answers to an event, and after how long it gives up, in milliseconds."""

    client: str
    event: str
    runs: int
    failures: int
    p50: float
    p95: float
    limit: float


@dataclass(frozen=True, slots=True)
class HealthReport:
    """The results of all checks, for the last seven days."""

    checks: tuple[HealthCheck, ...]
    timings: tuple[EventTiming, ...]
    deliveries: Mapping[str, int]
    tokens: Mapping[str, int]
    projects: Mapping[str, int]
    versions: Mapping[str, str]

    @property
    def needs_action(self) -> bool:
        """Whether anything needs to be done."""
        return any(check.state == "action" for check in self.checks)


@dataclass(frozen=True, slots=True)
class Evidences:
    """The evidence of the checks, read before them, so that they do no I/O.

    `database` is the state of the file, or a sentence on why the database cannot be used, "" if it can.
    `unwritable` is the folder of the journal if it cannot be written, else "". `switched_off` is the file by
    which Claude Code runs no hooks at all, None if it does.
    """

    runs: Sequence[HookRun]
    installed: Sequence[Installation]
    deliveries: Sequence[Delivery]
    database: FileState | str
    versions: Mapping[str, str]
    pauses: Pauses = field(default_factory=Pauses)
    unwritable: str = ""
    switched_off: Path | None = None


def examine(evidences: Evidences, now: float) -> HealthReport:
    """Return the health at `now`, from the calls of the seven days before."""
    # A clock that was set, or a damaged line: neither is a time.
    runs = [run for run in evidences.runs if 0 < run.at <= now + _DAY and 0 <= run.ms < float("inf")]
    recent = [run for run in runs if now - _DAYS * _DAY <= run.at]
    timings = tuple(_timings(recent))
    checks = (
        *_check_hooks(evidences, runs),
        *_check_deliveries(evidences.deliveries),
        *_check_database(evidences.database),
        *_check_journal(evidences.unwritable),
        *_check_failures(recent),
        *_check_timings(timings),
        *_check_pauses(evidences.pauses, now),
    )
    return HealthReport(
        checks,
        timings,
        dict(Counter(delivery.evidence for delivery in evidences.deliveries)),
        _by_day(recent),
        dict(Counter(run.project for run in recent if run.project).most_common()),
        {**evidences.versions, "python": platform.python_version()},
    )


def _check_hooks(evidences: Evidences, runs: Sequence[HookRun]) -> Iterator[HealthCheck]:
    installations, switched_off = evidences.installed, evidences.switched_off
    ran = Counter(run.client for run in runs)
    clients = {place.client for place in installations if place.commands}
    if not clients and not ran:
        todo = "Run `holdfast install claude-code`, or codex, cursor or gemini; --help shows more."
        yield _action("hooks", "No coding agent calls Holdfast.", todo)
    off = "claude-code" if switched_off and "claude-code" in ran.keys() | clients else ""
    if off:
        todo = "Set it to false there, or remove it."
        yield _action("hooks", f"{_title(off)} runs no hooks: {switched_off} has `disableAllHooks`.", todo)
    for client in ran.keys() - clients:
        what = f"{_title(client)} called hooks, yet its files list none: a plugin has them, or they are gone."
        yield _note("hooks", what)
    for place in installations:
        again = f"Run `holdfast install {place.client}`."
        if place.problem:
            yield _action("hooks", f"{place.path}: {place.problem}", "Mend the file.")
            continue
        for program in place.missing_programs():
            yield _action("hooks", f"{place.path} calls {program}, which is gone.", again)
        events = {hook.event for hook in client_of(place.client).hooks}
        if absent := [event for event in EVENTS if event in events - place.commands.keys()]:
            yield _action("hooks", f"{place.path} lacks {', '.join(absent)}.", again)
        if place.client != off:
            yield from _check_place(place, runs)
    for client, count in Counter(place.client for place in installations if place.commands).items():
        if count > 1:
            what = f"{_title(client)} has hooks for the user and for this project: each runs twice here."
            yield _action("hooks", what, f"Run `holdfast uninstall {client} --project`.")


def _check_place(place: Installation, runs: Sequence[HookRun]) -> Iterator[HealthCheck]:
    """Yield the hooks of an installation that never ran, or that all of them do."""
    own = [run for run in runs if run.client == place.client]
    title = _title(place.client)
    last = max((run.at for run in own), default=0.0)
    if last <= place.since:
        what = f"No hook of {title} ran since {place.path} was changed."
        what = what if own else f"The hooks in {place.path} never ran."
        # Other clients run changed hooks, and keep other settings in the same file.
        state: State = "note" if own and place.client != "codex" and not place.needs_path else "action"
        yield HealthCheck(state, "hooks", what, _way_to_run(place))
        return
    ran = {run.event for run in own}
    never = [event for event in EVENTS if event in place.commands.keys() - ran]
    # A client that prints one answer and ends kills what it does not wait for: the end imports instead.
    essential = _EACH_SESSION - {"stop"} if "session-end" in ran else _EACH_SESSION
    missing = [event for event in never if event in essential]
    if missing:
        what = f"{title} never called {', '.join(missing)}, though it called other hooks."
        todo = "Submit a prompt, wait for the answer, and run this again."
        yield _action("hooks", what, todo)
    if waiting := [event for event in never if event not in essential]:
        yield _note("hooks", f"{title} did not call {', '.join(waiting)} yet.")
    if not missing:
        yield _ok("hooks", f"{title} calls the hooks in {place.path}, last at {_utc(last)}.")


def _way_to_run(place: Installation) -> str:
    """Return what to do so that the hooks of an installation run."""
    todo = "Start a session, submit a prompt, and run this again."
    if place.client == "codex":
        todo = "Type /hooks in Codex and trust them: before, Codex leaves them out and says nothing."
    if place.needs_path:
        what = f"`holdfast` is not on the PATH, and without it they do nothing: {_title(place.client)} must"
        todo = f"{what} be started with its folder there. {todo}"
    return todo


def _check_deliveries(deliveries: Sequence[Delivery]) -> Iterator[HealthCheck]:
    known = [text for text in deliveries if text.evidence != "unknown"]
    if not known:
        reason = "No transcript tells" if deliveries else "No text was injected yet, so nothing tells"
        yield _note("model", f"{reason} whether injected text reaches the model.")
        return
    states = Counter(text.evidence for text in known)
    arrivals = states["sent"] + states["answered"]
    summary = f"{arrivals} of {len(known)} injected texts reached the model"
    if arrivals:
        how = [f"{states['sent']} stand in a request"] if states["sent"] else []
        how += [f"{states['answered']} before an answer"] if states["answered"] else []
        yield _ok("model", f"{summary}: in the transcripts {', '.join(how)}.")
    if states["stored"]:
        yield _note("model", f"{states['stored']} wait in the transcripts for the next answer.")
    if states["cut"]:
        what = f"The client replaced {states['cut']} by a shorter text, as they were too long."
        yield _action("model", what, "Report it: no answer may be as long.")
    if states["missing"]:
        last = max((text for text in known if text.evidence == "missing"), key=lambda text: text.at)
        what = f"{states['missing']} of {len(known)} injected texts are not in the transcript, "
        what += f"the last of session {last.session} at {last.event}."
        todo = "Compare the version of the client with docs/coding-agents.md; it may drop what hooks answer."
        yield _action("model", what, todo)


def _check_database(state: FileState | str) -> Iterator[HealthCheck]:
    if isinstance(state, str):
        failure = _action("database", _mask(state), "Check its address and its server.")
        yield failure if state else _ok("database", "It can be opened.")
        return
    if not state.exists:
        yield _note("database", "There is none yet: the first hook that stores makes it.")
    elif state.problem:
        yield _action("database", f"It cannot be read: {state.problem}.", state.todo)
    elif not state.writable:
        todo = "Check your rights to the file and its folder."
        yield _action("database", "It cannot be written.", todo)
    elif state.locked:
        todo = "Run this again; if it stays, end the program that holds the lock."
        yield _action("database", "Another program has it locked at this moment.", todo)
    else:
        yield _check_schema(state.schema)


def _check_schema(number: int) -> HealthCheck:
    try:
        check_number("It", number or NEWEST)
    except HoldfastError as error:
        return _action("database", error.what, error.todo)
    note = "" if number == NEWEST else f", migrated to {NEWEST} when it is next opened"
    return _ok("database", f"It can be written, with schema {number}{note}.")


def _check_journal(unwritable: str) -> Iterator[HealthCheck]:
    if unwritable:
        what = f"{unwritable} cannot be written: neither what fails nor what was shown is remembered."
        todo = "Let your user write there, or name another folder in HOLDFAST_STATE."
        yield _action("hooks", what, todo)


def _check_failures(runs: Sequence[HookRun]) -> Iterator[HealthCheck]:
    """Yield the errors of hooks; those of a hook that works again are notes."""
    newest = {(run.client, run.event): run for run in runs}
    errors: dict[tuple[str, str, str], list[HookRun]] = defaultdict(list)
    for run in runs:
        if run.error:
            errors[run.client, run.event, run.error].append(run)
    latest = sorted(errors.values(), key=lambda own: own[-1].at, reverse=True)
    for own in latest[:_ERRORS]:
        last = own[-1]
        what = f"{_title(last.client)}, {last.event}: {_mask(last.error)} "
        what += f"({len(own)} ×, last {_utc(last.at)})"
        stays = newest[last.client, last.event] is last
        todo = "Mend what it names; the next call of the hook tells whether that helped."
        yield HealthCheck("action" if stays else "note", "failures", what, todo if stays else "")
    if len(latest) > _ERRORS:
        yield _note("failures", f"And {len(latest) - _ERRORS} other errors, in the journal.")


def _timings(runs: Iterable[HookRun]) -> Iterator[EventTiming]:
    by_event: dict[tuple[str, str], list[HookRun]] = defaultdict(list)
    for run in runs:
        if run.event in EVENTS:
            by_event[run.client, run.event].append(run)
    for client, event in sorted(by_event, key=lambda key: (key[0], EVENTS.index(key[1]))):
        own = by_event[client, event]
        times = sorted(run.ms for run in own)
        failures = sum(bool(run.error) for run in own)
        p50, p95 = _quantile(times, 0.5), _quantile(times, 0.95)
        yield EventTiming(client, event, len(own), failures, p50, p95, LIMITS[event][1] * 1000)


def _quantile(times: Sequence[float], share: float) -> float:
    """Return the nearest rank of a sorted sequence."""
    return times[max(0, -int(-share * len(times) // 1) - 1)]


def _check_timings(timings: Sequence[EventTiming]) -> Iterator[HealthCheck]:
    for timing in timings:
        if timing.p95 > timing.limit:
            what = f"{_title(timing.client)}, {timing.event}: 95 in 100 answers within {timing.p95:,.0f} ms; "
            what += f"the limit is {timing.limit:,.0f}."
            # A machine that is busy for a while is no fault: one in two beyond it is.
            # Of a few calls, the first of which makes the database, it is no fault either.
            state: State = "action" if timing.p50 > timing.limit and timing.runs >= _ENOUGH else "note"
            todo = "See docs/coding-agents.md, “When it is slow”." if state == "action" else ""
            yield HealthCheck(state, "timings", what, todo)


def _check_pauses(pauses: Pauses, now: float) -> Iterator[HealthCheck]:
    if pauses.is_damaged:
        what = "The list of pauses is damaged, so everything is taken as paused."
        yield _action("pauses", what, "Repair its lines, or delete it.")
    at = datetime.fromtimestamp(now, UTC)
    for pause in pauses.pauses:
        if pause.is_open and (pause.until is None or at < pause.until):
            end = f" until {pause.until:%Y-%m-%d %H:%M} UTC" if pause.until else ""
            name = pause.project or pause.root or "Everything"
            yield _note("pauses", f"{name} is paused{end}: nothing is stored or injected.")


def _by_day(runs: Iterable[HookRun]) -> dict[str, int]:
    days: Counter[str] = Counter()
    for run in runs:
        days[_utc(run.at)[:10]] += run.tokens
    return dict(sorted(days.items()))


def _utc(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"


def _title(client: str) -> str:
    return client_of(client).title if client in NAMES else f"{client[:40]!r}"


def _mask(text: str) -> str:
    """Return an error without possible credentials: others may be shown the report."""
    return mask(_PASSWORD.sub(r"\1***@", text))
