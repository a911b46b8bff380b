"""How fast messages are stored, beside the same rows in bare SQLite and beside what others keep them in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Barrier

from benchmarks.clock import Cost, cost_of, middle, timed
from benchmarks.measurement import Bar, Measurement, SpeedLab, at_least, at_most, measured
from benchmarks.peers import COLUMNS, PEERS, Durability, Ours, Peer, Threaded, is_there, row
from holdfast.store.checksums import sealer
from holdfast.store.schema import tables

_OURS = "Holdfast"
_BARE = "bare INSERT"
_LIMITS: dict[Durability, float] = {"full": 0.7, "normal": 0.35}  # of the rate of a bare insert
_SEALING = 0.03  # of an append
_BATCH = 25  # µs a message
_SQLITE = (_BARE, "INSERT + FTS5")  # whose durability is set; the others have their own


def measure(lab: SpeedLab) -> Iterator[Measurement]:
    """Append one message per transaction at both durabilities, in turns, a block each.

    What is measured is a database in use. While the write-ahead log of a new one grows to its full size, each
    commit at full durability also writes the file's metadata, which costs each contender the same and hides
    what they differ in.
    """
    rounds = lab.plan.settling + lab.plan.rounds
    texts = list(lab.words.messages(rounds * lab.plan.block, stream=1))
    blocks = [texts[start : start + lab.plan.block] for start in range(0, len(texts), lab.plan.block)]
    durabilities: tuple[Durability, ...] = ("full", "normal")
    for durability in durabilities:
        lab.progress(f"appending one message per transaction, durability {durability}")
        with ExitStack() as opened:
            peers = _opened(opened, lab.folder, f"append-{durability}", durability)
            costs: dict[str, list[Cost]] = {name: [] for name in peers}
            sealing = []
            for block in blocks:
                for name, peer in peers.items():
                    costs[name].append(_one_by_one(peer, block))
                sealing.append(_sealing(block))
        found = {name: middle(some[lab.plan.settling :]) for name, some in costs.items()}
        yield from _compared(f"append one message, durability {durability}", found, _LIMITS[durability])
        yield _sealed(durability, middle(sealing), found[_OURS])


def _opened(opened: ExitStack, folder: Path, name: str, durability: Durability) -> dict[str, Peer]:
    """Open Holdfast and the peers that are there; those with a durability of their own only at full."""
    peers: dict[str, Peer] = {_OURS: opened.enter_context(closing(Ours(folder / f"{name}.db", durability)))}
    for number, (title, (make, module)) in enumerate(PEERS.items()):
        if is_there(module) and (durability == "full" or title in _SQLITE):
            peer = make(folder / f"{name}-{number}.db", durability)
            peers[title] = opened.enter_context(closing(peer))
    return peers


def _one_by_one(peer: Peer, block: list[str]) -> Cost:
    made = [[peer.made(text)] for text in block]
    with timed() as cost:
        for one in made:
            peer.append(one)
    return cost / len(block)


def _compared(
    title: str, found: Mapping[str, Cost], limit: float | None = None, own: Bar | None = None
) -> Iterator[Measurement]:
    """Hold Holdfast against each by wall time, and against what was asked of it beside a bare insert."""
    ours = found[_OURS]
    for name, theirs in found.items():
        if name != _OURS:
            ratio = theirs.wall / ours.wall
            asked = at_least(ratio, limit, "× as fast") if limit and name == _BARE else None
            yield measured(
                title,
                ours,
                "µs",
                against=name,
                theirs=theirs,
                ratio=ratio,
                ratio_of=f"× as fast by wall time, {theirs.cpu / ours.cpu:.2f} by CPU time",
                bar=own if own and name == _BARE else asked,
            )


def _sealed(durability: str, sealing: Cost, append: Cost) -> Measurement:
    share = sealing.cpu / append.cpu
    return measured(
        f"checksum of one message, durability {durability}",
        sealing,
        "µs",
        against="append",
        theirs=append,
        ratio=share,
        ratio_of="of the CPU time",
        bar=at_most(share, _SEALING, "of the CPU time"),
    )


def _sealing(block: list[str]) -> Cost:
    """Sum up the rows that Holdfast would store; an append does that as well."""
    whole: dict[str, object] = dict.fromkeys(tables()["messages"].names) | {"given": 0}
    rows = [whole | dict(zip(COLUMNS.split(", "), row(n, text), strict=True)) for n, text in enumerate(block)]
    checksum = sealer("messages", b"")
    with timed() as cost:
        for one in rows:
            checksum(one)
    return cost / len(block)


def batches(lab: SpeedLab) -> Iterator[Measurement]:
    """Append many messages in one call and one transaction, in turns."""
    size = lab.plan.batch
    lab.progress(f"appending batches of {size:,} messages")
    costs: dict[str, list[Cost]] = {}
    with ExitStack() as opened:
        peers = _opened(opened, lab.folder, "batch", "full")
        for number in range(lab.plan.rounds):
            texts = list(lab.words.messages(size, stream=10 + number))
            for name, peer in peers.items():
                made = [peer.made(text) for text in texts]
                cost = cost_of(lambda peer=peer, made=made: peer.append(made))  # type: ignore[misc]  # bound at once
                costs.setdefault(name, []).append(cost / size)
    found = {name: middle(some) for name, some in costs.items()}
    asked = at_most(1000 * found[_OURS].cpu, _BATCH, "µs of CPU time")
    yield from _compared(f"append a batch of {size:,}, a message", found, own=asked)


def together(lab: SpeedLab) -> Iterator[Measurement]:
    """Append from many threads to one file, each to its own conversation, one message per transaction."""
    threads, block = lab.plan.threads, lab.plan.block
    lab.progress(f"appending from {threads} threads")
    texts = list(lab.words.messages(threads * block, stream=2))
    costs: dict[str, list[Cost]] = {}
    with ExitStack() as opened, ThreadPoolExecutor(threads) as pool:
        peers = _opened(opened, lab.folder, "threads", "full")
        for turn in range(lab.plan.repeats + 1):
            for name, peer in peers.items():
                if isinstance(peer, Threaded):
                    cost = _threaded(pool, peer, [texts[n::threads] for n in range(threads)], turn)
                    costs.setdefault(name, []).append(cost / len(texts))
    found = {name: middle(some[1:]) for name, some in costs.items()}
    yield from _compared(f"append from {threads} threads, a message", found)


def _threaded(pool: ThreadPoolExecutor, peer: Threaded, blocks: list[list[str]], turn: int) -> Cost:
    """Time from when all threads have opened theirs until the last has appended."""
    begin = Barrier(len(blocks) + 1, timeout=60)

    def work(number: int) -> None:
        with closing(peer.thread(turn * len(blocks) + number)) as handle:
            made = [[handle.made(text)] for text in blocks[number]]
            begin.wait()
            for one in made:
                handle.append(one)

    running = [pool.submit(work, number) for number in range(len(blocks))]
    begin.wait()
    with timed() as cost:
        for one in running:
            one.result()
    return cost
