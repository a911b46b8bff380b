# ruff: noqa: INP001, T201 - a script that prints, not a package
"""Prepare the labelling of what is worth keeping, and join the labels of two readers.

    PYTHONPATH=src:. python scripts/label_worth.py chunks DATA WORK
    PYTHONPATH=src:. python scripts/label_worth.py join WORK

`chunks` writes what to read into `WORK/chunk_NN.txt`, the places of the statements into `WORK/ids.json`, and
the sessions with their halves into `tests/data/worth/sessions.jsonl`. Two readers write `WORK/A/chunk_NN.tsv`
and `WORK/B/chunk_NN.tsv` by `tests/data/worth/GUIDE.md`: id, kind and needed ids, with tabs between them.
`join` says how far they agree, lists in `WORK/disputes_NN.txt` what is to be decided, takes what is decided
from `WORK/decided/chunk_NN.tsv` (kind `none`: not worth keeping), and writes `labels.jsonl` when both have
read everything. Both can be run again.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.worth import (
    LABELS,
    Label,
    Labelled,
    Said,
    Session,
    half_of,
    hash_of,
    hash_of_session,
    read_sessions,
)

KINDS = "decision instruction preference correction cause outcome environment personal".split()
# How many sessions of each project or pair are read; all of those that stand alone.
PER_GROUP = {"agent": 1, "tau": 20, "locomo": 7, "realmem": 2}
# A dialogue that is longer repeats pages of notes in each answer; only the coding sessions are taken whole.
LONGEST = 40_000  # characters
CHUNK = 78_000  # characters, some 20,000 tokens
OVERLAP = 3  # messages of a session that a chunk repeats from the one before


class Place(NamedTuple):
    """Where the statement of an id is: its reference, and the chunk in which it is judged."""

    source: str
    session: str
    message: int
    start: int
    end: int
    hash: str
    chunk: str


class Verdict(NamedTuple):
    """What a reader says of a statement that is worth keeping."""

    kinds: tuple[str, ...]
    repeat: bool
    needs: tuple[str, ...]


# Chunks


def sampled(sessions: Iterable[Session]) -> list[Session]:
    """Return the sessions to be read, in their order; chosen by a hash of their names."""
    groups = defaultdict(list)
    for session in sessions:
        if session.source == "agent" or sum(len(one.text) for one in session.messages) <= LONGEST:
            groups[session.source, session.group].append(session)
    chosen = {
        id(session)
        for (source, _), group in groups.items()
        for session in sorted(group, key=lambda one: hash_of(f"sample 0 {one.id}"))[: PER_GROUP[source]]
    }
    return [session for group in groups.values() for session in group if id(session) in chosen]


def shown(name: str, message: Said, mark: str = "") -> str:
    """Return a message as a reader sees it; `mark` begins the lines of what is context only."""
    head = " | ".join(filter(None, (message.role, message.speaker, message.date)))
    lines = (f"{mark}[{name}.{number}] {one.text}" for number, one in enumerate(message.statements(), 1))
    return "\n".join((f"{mark}-- {head}", *lines, ""))


def chunked(sessions: list[Session]) -> Iterator[tuple[str, dict[str, tuple[Session, Said]]]]:
    """Yield chunks: what stands in one, and the messages that are judged in it by name."""
    text, judged, counts = "", dict[str, tuple[Session, Said]](), Counter[str]()
    for session in sessions:
        said = [message for message in session.messages if message.statements()]
        if judged and len(text) + sum(len(shown("a9999", message)) for message in said) > CHUNK:
            yield text, judged
            text, judged = "", {}
        text += f"\n==== {session.source}, session {session.id}\n"
        before: list[tuple[str, Said]] = []
        for message in said:
            counts[session.source] += 1
            name = f"{session.source[0]}{counts[session.source]}"
            if judged and len(text) + len(shown(name, message)) > CHUNK:
                yield text, judged
                text, judged = f"\n==== {session.source}, session {session.id}, continued\n", {}
                text += "".join(shown(*one, mark="~ ") for one in before[-OVERLAP:])
            text += shown(name, message)
            judged[name] = session, message
            before.append((name, message))
    yield text, judged


def write_chunks(data: Path, work: Path) -> None:
    """Write the chunks, the places of their statements, and the sessions that they are of."""
    sessions = sampled(read_sessions(data))
    places: dict[str, Place] = {}
    for number, (text, judged) in enumerate(chunked(sessions), 1):
        chunk = f"chunk_{number:02}"
        (work / f"{chunk}.txt").write_text(text, "utf-8")
        for name, (session, message) in judged.items():
            for count, one in enumerate(message.statements(), 1):
                where = session.source, session.id, message.position, one.start, one.end
                places[f"{name}.{count}"] = Place(*where, hash_of(one.text), chunk)
    (work / "ids.json").write_text(json.dumps(places, indent=0), "utf-8")
    with (LABELS / "sessions.jsonl").open("w", encoding="utf-8") as file:
        for session in sessions:
            file.write(json.dumps(judged_in(session)._asdict()) + "\n")
    roles = Counter(
        (session.source, message.role, half_of(session.source, session.id))
        for session in sessions
        for message in session.messages
        for _ in message.statements()
    )
    for (source, role, half), count in sorted(roles.items()):
        print(f"{source:8} {role:9} {half:8} {count:6}")
    for source, count in sorted(Counter(session.source for session in sessions).items()):
        print(f"{source:8} {count} sessions")
    print(f"{len(places)} statements in {len({one.chunk for one in places.values()})} chunks")


def judged_in(session: Session) -> Labelled:
    """Return a session as one of which all statements are judged."""
    places = tuple(
        (message.position, one.start, one.end) for message in session.messages for one in message.statements()
    )
    half = half_of(session.source, session.id)
    return Labelled(session.source, session.id, half, places, hash_of_session(session, places))


# Labels


def verdicts(path: Path, places: dict[str, Place]) -> dict[str, Verdict | None]:
    """Read the labels of a chunk; None for what is said to be not worth keeping.

    Raises:
        SystemExit: a line is no label; the message says which.

    """
    found: dict[str, Verdict | None] = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        id, kind, needs, *rest = (*line.rstrip().split("\t"), "-", "-")[:4]
        needed = () if needs in ("-", "") else tuple(needs.replace(",", " ").split())
        kinds = tuple(kind.removesuffix("-repeat").split("+"))
        known = kind == "none" or set(kinds) <= set(KINDS)
        if not known or rest not in (["-"], []) or id in found or not {id, *needed} <= places.keys():
            raise SystemExit(f"{path}:{number}: {line!r} is no label. Write id, kind, needed ids or -.")
        if places[id].chunk != path.stem:
            raise SystemExit(f"{path}:{number}: {id} is context here. Label it in {places[id].chunk}.")
        found[id] = None if kind == "none" else Verdict(kinds, kind.endswith("-repeat"), needed)
    return found


def dispute(one: Verdict | None, other: Verdict | None) -> str:
    """Return in what two verdicts differ: keep, kind, repeat; "" if they agree."""
    if one is None or other is None:
        return "" if one is other else "keep"
    if not set(one.kinds) & set(other.kinds):
        return "kind"
    return "" if one.repeat == other.repeat else "repeat"


def agreed(one: Verdict, other: Verdict) -> Verdict:
    """Return what two that agree say together: the kinds of both, in the order of the first."""
    needs = tuple(dict.fromkeys(one.needs + other.needs))
    return Verdict(tuple(kind for kind in one.kinds if kind in other.kinds), one.repeat, needs)


def kappa(pairs: list[tuple[bool, bool]]) -> float:
    """Return Cohen's kappa of two readers' yes and no; nan where chance alone explains everything."""
    count = len(pairs)
    same = sum(one == other for one, other in pairs) / count
    first, second = sum(one for one, _ in pairs) / count, sum(other for _, other in pairs) / count
    chance = first * second + (1 - first) * (1 - second)
    return (same - chance) / (1 - chance) if chance < 1 else float("nan")


Pairs = dict[str, tuple[Verdict | None, Verdict | None]]


def print_agreement(pairs: Pairs, places: dict[str, Place]) -> None:
    """Print how far two readers agree, over all and by source."""
    for source in ("all", *PER_GROUP):
        part = [pair for id, pair in pairs.items() if source in ("all", places[id].source)]
        if not part:
            continue
        keep = kappa([(one is not None, other is not None) for one, other in part])
        first = kappa(
            [(bool(one and not one.repeat), bool(other and not other.repeat)) for one, other in part]
        )
        both = [(one, other) for one, other in part if one and other]
        kinds = sum(dispute(*pair) != "kind" for pair in both) / max(len(both), 1)
        print(
            f"{source:8} {len(part):6} read, kept by A {sum(one is not None for one, _ in part)}, by B "
            f"{sum(other is not None for _, other in part)}, by both {len(both)}; kappa {keep:.3f}, "
            f"without repeats {first:.3f}; of those kept by both {kinds:.1%} of one kind"
        )


def write_disputes(work: Path, chunk: str, pairs: Pairs, decided: dict[str, Verdict | None]) -> int:
    """Write what is to be decided in a chunk, with the lines around; return how many there are."""
    text = (work / f"{chunk}.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("==== ")]
    at = {line[1:].split("]")[0]: number for number, line in enumerate(lines) if line.startswith("[")}
    parts = []
    for id, (one, other) in pairs.items():
        if id in decided or not (why := dispute(one, other)):
            continue
        around = "\n".join(
            ("> " if number == at[id] else "  ") + lines[number]
            for number in range(max(at[id] - 2, 0), min(at[id] + 3, len(lines)))
        )
        parts.append(f"#### {id} {why}\nA: {written(one)}\nB: {written(other)}\n{around}\n")
    (work / f"disputes_{chunk[-2:]}.txt").write_text("\n".join(parts), "utf-8")
    return len(parts)


def written(one: Verdict | None) -> str:
    """Return a verdict as it stands in a file of labels."""
    if one is None:
        return "none"
    return "+".join(one.kinds) + "-repeat" * one.repeat + " " + (",".join(one.needs) or "-")


def label(place: Place, one: Verdict, places: dict[str, Place], *, settled: bool) -> Label:
    """Return a verdict as a label that stands in no need of ids."""
    needs = tuple(
        (places[id].message, places[id].start, places[id].end)
        for id in one.needs
        if places[id].session == place.session and places[id] != place
    )
    half = half_of(place.source, place.session)
    return Label(*place[:6], one.kinds, one.repeat, needs, half, settled)


def join(work: Path) -> None:
    """Print how far the readers agree, write what is to be decided, and the labels when all is read."""
    places = {id: Place(*place) for id, place in json.loads((work / "ids.json").read_text("utf-8")).items()}
    pairs: Pairs = {}
    decided: dict[str, Verdict | None] = {}
    missing = []
    for chunk in sorted({place.chunk for place in places.values()}):
        files = [work / folder / f"{chunk}.tsv" for folder in "AB"]
        if not all(file.exists() for file in files):
            missing.append(chunk)
            continue
        one, other = (verdicts(file, places) for file in files)
        ids = [id for id, place in places.items() if place.chunk == chunk]
        read = {id: (one.get(id), other.get(id)) for id in ids}
        by_hand = work / "decided" / f"{chunk}.tsv"
        decided |= verdicts(by_hand, places) if by_hand.exists() else {}
        print(f"{chunk}: {write_disputes(work, chunk, read, decided)} to decide")
        pairs |= read
    if pairs:
        print_agreement(pairs, places)
    if missing:
        print(f"not read by both: {' '.join(missing)}; no labels written")
        return
    write_labels(pairs, decided, places)


def write_labels(pairs: Pairs, decided: dict[str, Verdict | None], places: dict[str, Place]) -> None:
    """Write what is worth keeping, and what nobody has decided; print how many there are of each kind."""
    labels = []
    for id, (one, other) in pairs.items():
        settled = id in decided or not dispute(one, other)
        kept = (
            decided[id]
            if id in decided
            else agreed(one, other)
            if one and other and settled
            else one or other
        )
        if kept:
            labels.append(label(places[id], kept, places, settled=settled))
    with (LABELS / "labels.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(one._asdict()) + "\n" for one in labels)
    counts = Counter((one.half, one.source, one.kinds[0]) for one in labels if one.settled and not one.repeat)
    print(f"{'':20}", *(f"{kind:>11}" for kind in KINDS))
    for half in ("tune", "held_out"):
        for source in PER_GROUP:
            print(f"{half:11} {source:8}", *(f"{counts[half, source, kind]:11}" for kind in KINDS))
    settled = [one for one in labels if one.settled]
    repeats, unsettled = sum(one.repeat for one in settled), len(labels) - len(settled)
    print(
        f"{len(pairs)} read: {len(settled) - repeats} worth keeping, {repeats} repeat one, "
        f"{unsettled} not settled, {len(pairs) - len(labels)} not worth keeping"
    )


def main() -> None:
    """Read the command line and do what it says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    chunks = commands.add_parser("chunks", help="write what the readers read")
    chunks.add_argument("data", type=Path)
    chunks.add_argument("work", type=Path)
    joining = commands.add_parser("join", help="compare the labels of both, and write the agreed ones")
    joining.add_argument("work", type=Path)
    given = parser.parse_args()
    if given.command == "join":
        join(given.work)
    else:
        given.work.mkdir(parents=True, exist_ok=True)
        write_chunks(given.data, given.work)


if __name__ == "__main__":
    main()
