"""How fast messages are stored, beside the same rows in a bare database and beside others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from threading import Barrier

from benchmarks.clock import Cost, cost_of, middle, timed
from benchmarks.measurement import Bar, Measurement, SpeedLab, at_most, compared
from benchmarks.peers import PEERS, SERVER, Durability, Ours, Peer, Plain, Threaded, is_there, new_database

_OURS = "Holdfast"
_RATES: dict[Durability, float] = {"full": 0.7, "normal": 0.3}  # of a bare insert
_PLAIN = 280 / 166  # times a plain insert takes
_CLIENTS = {1: 2_800 / 9_300, 8: 6_000 / 9_300}  # of the rate of plain inserts, by users
_BATCH = 25  # µs a message
_SQLITE = ("bare", "FTS5")  # whose durability is set; the others have their own


def measure(lab: SpeedLab) -> Iterator[Measurement]:
    """Append one message per transaction at both durabilities, in turns, a block each.

    What is measured is a database in use. While the write-ahead log of a new one grows to its full size, each
    commit at full durability also writes the file's metadata, which costs each contender the same and hides
    what they differ in.
    """
    durabilities: tuple[Durability, ...] = ("full", "normal")
    for durability in durabilities:
        lab.progress(f"appending one message per transaction, durability {durability}")
        with _opened(lab.folder, f"append-{durability}", durability) as peers:
            found = _in_blocks(lab, peers, lab.plan.settling)
        yield from _compared(f"append, {durability} durability, wall", found, limit=1 / _RATES[durability])


@contextmanager
def _opened(folder: Path, name: str, durability: Durability) -> Iterator[dict[str, Peer]]:
    """Open Holdfast and the peers that are there; those with a durability of their own only at full."""
    with ExitStack() as opened:
        peers: dict[str, Peer] = {
            _OURS: opened.enter_context(closing(Ours(folder / f"{name}.db", durability)))
        }
        for number, (title, (make, module)) in enumerate(PEERS.items()):
            if is_there(module) and (durability == "full" or title in _SQLITE):
                peer = make(folder / f"{name}-{number}.db", durability)
                peers[title] = opened.enter_context(closing(peer))
        yield peers


def _in_blocks(lab: SpeedLab, peers: Mapping[str, Peer], settling: int = 1) -> dict[str, Cost]:
    """Append one by one, in turns; what the first rounds take does not count."""
    block, rounds = lab.plan.block, settling + lab.plan.rounds
    texts = list(lab.words.messages(rounds * block, stream=1))
    costs: dict[str, list[Cost]] = {name: [] for name in peers}
    for start in range(0, len(texts), block):
        for name, peer in peers.items():
            made = [[peer.made(text)] for text in texts[start : start + block]]
            with timed() as cost:
                for one in made:
                    peer.append(one)
            costs[name].append(cost / block)
    return {name: middle(some[settling:]) for name, some in costs.items()}


def _compared(
    title: str, found: Mapping[str, Cost], limit: float | None = None, bar: Bar | None = None
) -> Iterator[Measurement]:
    """Hold Holdfast against each by wall time; a bare insert is what something is asked for beside."""
    ours, bare, *others = found
    yield compared(title, found[ours], bare, found[bare], "µs", clock="wall", limit=limit, bar=bar)
    for name in others:
        yield compared(title, found[ours], name, found[name], "µs", clock="wall")


def batches(lab: SpeedLab) -> Iterator[Measurement]:
    """Append many messages in one call and one transaction, in turns."""
    size = lab.plan.batch
    lab.progress(f"appending batches of {size:,} messages")
    costs: dict[str, list[Cost]] = {}
    with _opened(lab.folder, "batch", "full") as peers:
        for number in range(lab.plan.rounds):
            texts = list(lab.words.messages(size, stream=10 + number))
            for name, peer in peers.items():
                cost = cost_of(partial(peer.append, [peer.made(text) for text in texts]))
                costs.setdefault(name, []).append(cost / size)
    found = {name: middle(some) for name, some in costs.items()}
    bar = at_most(1000 * found[_OURS].cpu, _BATCH, "µs")
    yield from _compared(f"batch of {size:,}, a message, wall", found, bar=bar)


def together(lab: SpeedLab) -> Iterator[Measurement]:
    """Append from many threads to one file, each to its own conversation, one message per transaction."""
    lab.progress(f"appending from {lab.plan.threads} threads")
    with _opened(lab.folder, "threads", "full") as peers:
        found = _by_threads(lab, peers)
    yield from _compared(f"append from {lab.plan.threads} threads, wall", found)


def on_postgresql(lab: SpeedLab) -> Iterator[Measurement]:
    """Append on PostgreSQL beside a plain insert: alone, and as many clients as there are threads."""
    if not is_there("psycopg") or not (lab.url or is_there(SERVER)):
        return
    lab.progress("appending on PostgreSQL")
    clients = lab.plan.threads
    with new_database(lab.url) as url:
        for users in (1, clients):
            with closing(Ours(url, "full", users)) as ours, closing(Plain(url, f"of-{users}")) as plain:
                peers: dict[str, Peer] = {_OURS: ours, "plain": plain}
                if users == 1:
                    yield from _compared("PostgreSQL: append, wall", _in_blocks(lab, peers), limit=_PLAIN)
                title = f"PostgreSQL: {users} user{'s' * (users > 1)} × {clients} clients, wall"
                yield from _compared(title, _by_threads(lab, peers), limit=1 / _CLIENTS.get(users, 1))


def _by_threads(lab: SpeedLab, peers: Mapping[str, Peer]) -> dict[str, Cost]:
    """Append from threads that have a conversation each, in turns; the first turn does not count."""
    threads = lab.plan.threads
    texts = list(lab.words.messages(threads * lab.plan.block, stream=2))
    costs: dict[str, list[Cost]] = {}
    with ThreadPoolExecutor(threads) as pool:
        for turn in range(lab.plan.repeats + 1):
            for name, peer in peers.items():
                if isinstance(peer, Threaded):
                    cost = _threaded(pool, peer, [texts[n::threads] for n in range(threads)], turn)
                    costs.setdefault(name, []).append(cost / len(texts))
    return {name: middle(some[1:]) for name, some in costs.items()}


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
