# ruff: noqa: INP001, S108, S311, S603, T201 - a script that prints and runs our own tests, not a package
"""Measure what share of random mutants of a room its tests and the conformance kit catch.

`python scripts/mutants.py store --count 100 --seed 34 --out build/store.jsonl`. A mutant is the source with
one change inside a function; a seed and a source give the same mutants whatever the tests are. Each runs in a
process of its own, in a copy of the checkout, against the tests that reach the changed statement: quick ones
first, until one fails. An unmutated run finds which tests reach it: there each statement of the room notes
that it ran, in whatever process. `build/mutants` keeps this until a file of the sources or tests changes.
Tests that fail without a mutant are left out, and listed.

`--out` keeps the results; an interrupted run goes on with the same file. `--only` runs the survivors in such
a file again, or the mutants whose ids are in a file, one a line.
"""

from __future__ import annotations

import argparse
import ast
import ctypes
import faulthandler
import hashlib
import importlib
import json
import marshal
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from importlib.util import MAGIC_NUMBER, cache_from_source
from itertools import takewhile
from math import frexp
from mmap import mmap
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple, TypeVar

import psutil
import pytest

CHECKOUT = Path(__file__).parents[1]
CACHE = CHECKOUT / "build" / "mutants"
PACKAGE = Path("src", "holdfast")
KIT = "tests/testing/"
MEMORY = PACKAGE / "memory.py"  # what is run of the kit opens a memory
OF_DEFECTS = "test_a_defect_of_"  # those tests are of the kit itself
RUN = "--run"  # the word for a run of tests in a process of its own

PATIENCE = 20.0  # seconds for a test, besides five times what it takes without a mutant
START = 120.0  # seconds for what is before the first test, and after the last
SERVER = 2.0  # seconds to start PostgreSQL
BYTES = 8 << 30  # of data of a process, and of a file
LINES = 10_000  # more than a file has
PR_SET_CHILD_SUBREAPER = 36  # of Linux
TOO_LONG = 1  # the exit code of a process whose test took too long, and of one where a test failed

T = TypeVar("T")
Note = dict[str, Any]


class Edit(NamedTuple):
    """A new value of a field of a node, its place, and words for it."""

    kind: str
    at: ast.expr
    words: str
    field: str
    value: object


class Mutant(NamedTuple):
    """An edit of a file, and the number of the statement that it is in."""

    id: str
    kind: str
    file: str
    node: int  # in the order of `ast.walk`
    edit: tuple[int, int]
    statement: int


class Fixture(NamedTuple):
    """A fixture with a parameter, and whether several tests share it."""

    base: str
    name: str
    parameter: int  # the identity of its value
    wide: bool


class Test(NamedTuple):
    """A test that passes without a mutant, what it takes, and the statements that it reaches."""

    id: str
    seconds: float
    postgres: bool
    statements: frozenset[int]

    def rank(self) -> int:
        """Return the place in the order of tests: those of a module stay together as far as that goes."""
        return frexp(self.seconds + SERVER * self.postgres)[1]

    def limit(self) -> float:
        """Return the seconds after which a mutant has made it endless."""
        return PATIENCE + 5 * self.seconds


SWAPS: dict[type[ast.AST], tuple[str, tuple[type[ast.AST], ...]]] = {
    ast.Lt: ("<", (ast.LtE, ast.GtE)),
    ast.LtE: ("<=", (ast.Lt, ast.Gt)),
    ast.Gt: (">", (ast.GtE, ast.LtE)),
    ast.GtE: (">=", (ast.Gt, ast.Lt)),
    ast.Eq: ("==", (ast.NotEq,)),
    ast.NotEq: ("!=", (ast.Eq,)),
    ast.Is: ("is", (ast.IsNot,)),
    ast.IsNot: ("is not", (ast.Is,)),
    ast.In: ("in", (ast.NotIn,)),
    ast.NotIn: ("not in", (ast.In,)),
    ast.And: ("and", (ast.Or,)),
    ast.Or: ("or", (ast.And,)),
    ast.Add: ("+", (ast.Sub,)),
    ast.Sub: ("-", (ast.Add,)),
    ast.Mult: ("*", (ast.FloorDiv,)),
    ast.Div: ("/", (ast.Mult,)),
    ast.FloorDiv: ("//", (ast.Mult,)),
    ast.Mod: ("%", (ast.Mult,)),
    ast.LShift: ("<<", (ast.RShift,)),
    ast.RShift: (">>", (ast.LShift,)),
    ast.BitAnd: ("&", (ast.BitOr,)),
    ast.BitOr: ("|", (ast.BitAnd,)),
    ast.BitXor: ("^", (ast.BitAnd,)),
}
KINDS = "operator", "constant", "branch", "call"
FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef


def main(words: list[str]) -> int:
    """Run the mutants that the command asks for; return the exit code."""
    options = command().parse_args(words)
    for needed in (PACKAGE / options.room, Path("tests", options.room)):
        if not (options.checkout / needed).is_dir():
            sys.exit(f"There is no {options.checkout / needed}. Name a folder of {PACKAGE} that has tests.")
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="hfm-", dir=memory) as folder:
        Path(folder).chmod(0o755)  # tests run programs as other users
        first = Copy(options.checkout.resolve(), Path(folder, "0"))
        copies = [first, *(Copy(first.tree, Path(folder, str(n))) for n in range(1, options.processes))]
        places = possible(first.tree, options.room)
        if options.only:
            mutants = named(places, options.only.read_text("utf-8").splitlines())
        else:
            mutants = chosen(places, options.count, options.seed)
        state = digest(first.tree)
        tests, broken = reach(options.room, copies, state)
        results = list(tried(mutants, tests, copies, options.out, state))
    print(report(options.room, results))
    for test, why in broken.items():
        print(f"Left out, as it fails without a mutant: {test}: {why}")
    return 0


def command() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("room", help="a folder of src/holdfast and of tests")
    parser.add_argument("--count", type=int, default=100, help="how many mutants, of four kinds evenly")
    parser.add_argument("--seed", type=int, default=34)
    parser.add_argument("--checkout", type=Path, default=CHECKOUT, help="another tree than this one")
    parser.add_argument("--only", type=Path, help="a file of ids, or of results, of which survivors run")
    parser.add_argument("--out", type=Path, help="a file for results, as lines of JSON")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    return parser


# Which mutants there are.


def possible(tree: Path, room: str) -> dict[str, list[list[Mutant]]]:
    """Return the places of a room where a mutant can be, by kind; each has several mutants."""
    errors = {
        node.name for node in ast.walk(parse(tree / PACKAGE / "errors.py")) if isinstance(node, ast.ClassDef)
    }
    places: dict[str, list[list[Mutant]]] = {kind: [] for kind in KINDS}
    ids: Counter[str] = Counter()
    for number, path in list(enumerate(sources(tree, room)))[1:]:
        module = parse(path)
        order = {id(node): place for place, node in enumerate(ast.walk(module))}
        name = path.relative_to(tree / PACKAGE).as_posix()
        for node, line in nodes(module, errors):
            for place, edits in enumerate(changes(node)):
                mutants = []
                for alternative, edit in enumerate(edits):
                    id_ = f"{name}:{edit.at.lineno}:{edit.at.col_offset + 1} {edit.kind} {edit.words}"
                    ids[id_] += 1
                    id_ = f"{id_} #{ids[id_]}" if ids[id_] > 1 else id_
                    where, statement = (place, alternative), number * LINES + line
                    mutants.append(Mutant(id_, edit.kind, name, order[id(node)], where, statement))
                places[edits[0].kind].append(mutants)
    return places


def sources(tree: Path, room: str) -> list[Path]:
    """Return the files whose statements have numbers: that of a memory, and those of the room."""
    return [tree / MEMORY, *sorted((tree / PACKAGE / room).rglob("*.py"))]


def parse(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text("utf-8"))


def nodes(node: ast.AST, errors: set[str], line: int = 0) -> Iterator[tuple[ast.AST, int]]:
    """Walk through what is inside functions; with each node comes the line of its statement."""
    if line:
        yield node, line
    inside = bool(line) or isinstance(node, FUNCTIONS)
    for child in parts(node, errors):
        yield from nodes(child, errors, child.lineno if inside and isinstance(child, ast.stmt) else line)


def parts(node: ast.AST, errors: set[str]) -> Iterable[ast.AST]:
    """Return the children of a node, without types, defaults, texts of errors and what only checkers read."""
    match node:
        case ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body) | ast.ClassDef(body=body):
            return body
        case ast.Lambda(body=value) | ast.Call(func=ast.Name(id="cast"), args=[_, value]):
            return [value]
        case ast.AnnAssign(value=None) | ast.Raise() | ast.Expr(value=ast.Constant()):
            return []
        case ast.AnnAssign(value=ast.expr() as value) | ast.Assert(test=value):
            return [value]
        case ast.JoinedStr(values=values):
            return [part.value for part in values if isinstance(part, ast.FormattedValue)]
        case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=orelse):
            return orelse
        case ast.Call(func=ast.Name(id=name)) if name in errors or name.endswith(("Error", "Warning")):
            return []
    return ast.iter_child_nodes(node)


def changes(node: ast.AST) -> Iterator[list[Edit]]:
    """Return the places in a node itself, each with its edits."""
    match node:
        case ast.Compare(ops=ops, comparators=rights):
            for place, (op, right) in enumerate(zip(ops, rights, strict=True)):
                before, after = ops[:place], ops[place + 1 :]
                yield [
                    Edit("operator", right, words, "ops", [*before, new, *after]) for words, new in swaps(op)
                ]
        case (
            ast.BinOp(op=op, right=at)
            | ast.AugAssign(op=op, value=at)
            | ast.BoolOp(op=op, values=[_, at, *_])
        ):
            if edits := [Edit("operator", at, words, "op", new) for words, new in swaps(op)]:
                yield edits
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield [Edit("operator", node, f"not -> bool of {short(operand)}", "operand", negated(operand))]
        case ast.Constant(value=bool() | int() | float() | str() as value):
            yield [
                Edit("constant", node, f"{short(node)} -> {words}", "value", new)
                for words, new in values(value)
            ]
        case ast.If(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.Constant):
            yield [forced("if", test, value=True), forced("if", test, value=False), inverse("if", test)]
        case ast.While(test=test) if not isinstance(test, ast.Constant):
            # Without an end it would only be a test of our patience.
            yield [forced("while", test, value=False), inverse("while", test)]
        case ast.Expr(value=ast.Call() | ast.Await(value=ast.Call()) as call):
            yield [Edit("call", call, f"{short(call)} -> pass", "value", ast.Constant(None))]


def swaps(op: ast.AST) -> list[tuple[str, ast.AST]]:
    """Return the operators that can stand for another, with words for the exchange."""
    sign, others = SWAPS.get(type(op), ("", ()))
    return [(f"{sign} -> {SWAPS[other][0]}", other()) for other in others]


def values(value: float | str) -> list[tuple[str, object]]:
    """Return what can stand for a constant, with words for it."""
    if isinstance(value, bool):
        return [(str(not value), not value)]
    if isinstance(value, str):
        return [*([("''", "")] if value else []), ("itself + 'x'", f"{value}x")]
    return [(str(value + 1), value + 1)]


def forced(name: str, test: ast.expr, *, value: bool) -> Edit:
    """Return the edit by which a test always has the same answer."""
    return Edit("branch", test, f"{name} {short(test)} -> {value}", "test", ast.Constant(value))


def inverse(name: str, test: ast.expr) -> Edit:
    """Return the edit by which a test has the other answer."""
    return Edit("branch", test, f"{name} {short(test)} -> not", "test", negated(test))


def negated(test: ast.expr) -> ast.expr:
    """Return an expression that is true where another is not."""
    return ast.UnaryOp(ast.Not(), test)


def short(node: ast.AST) -> str:
    """Return a node as text of one line, which may be cut."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else f"{text[:59]}…"


def chosen(places: dict[str, list[list[Mutant]]], count: int, seed: int) -> list[Mutant]:
    """Return random mutants of all kinds evenly; where a kind has too few places, others have more."""
    chance = random.Random(seed)
    orders = {kind: chance.sample(places[kind], len(places[kind])) for kind in KINDS}
    mutants: list[Mutant] = []
    while len(mutants) < count and any(orders.values()):
        for kind in KINDS:
            if orders[kind] and len(mutants) < count:
                mutants.append(chance.choice(orders[kind].pop()))
    return mutants


def named(places: dict[str, list[list[Mutant]]], lines: list[str]) -> list[Mutant]:
    """Return the mutants with these ids, or those that survived in these results."""
    every = {mutant.id: mutant for kind in KINDS for place in places[kind] for mutant in place}
    results = [json.loads(line) if line.startswith("{") else {"id": line} for line in lines if line.strip()]
    ids = [result["id"] for result in results if not result.get("caught")]
    if unknown := [id_ for id_ in ids if id_ not in every]:
        sys.exit(f"There is no mutant {unknown[0]!r}. Take ids of the same source.")
    return [every[id_] for id_ in ids]


def mutated(path: Path, mutant: Mutant) -> ast.Module:
    """Return the syntax tree of a file with the edit of a mutant."""
    module = parse(path)
    node = list(ast.walk(module))[mutant.node]
    place, alternative = mutant.edit
    edit = list(changes(node))[place][alternative]
    setattr(node, edit.field, edit.value)
    return module


def marked(path: Path, number: int) -> ast.Module:
    """Return the syntax tree of a file in which each statement of a function notes that it ran."""
    module = parse(path)
    functions = [node for node in ast.walk(module) if isinstance(node, FUNCTIONS)]
    inside = {id(node): node for function in functions for node in ast.walk(function)}
    for node in inside.values():
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                block[:] = [part for statement in block for part in noted(statement, number)]
    start = len(list(takewhile(is_opening, module.body)))
    module.body[start:start] = ast.parse("from holdfast_reach import reached as __reached__").body
    return module


def noted(statement: ast.stmt, number: int) -> list[ast.stmt]:
    """Return a statement behind one that notes it."""
    if is_opening(statement):
        return [statement]
    return [*ast.parse(f"__reached__[{number * LINES + statement.lineno}] = 1").body, statement]


def is_opening(statement: ast.stmt) -> bool:
    """Return whether nothing may stand before a statement: a docstring, or `from __future__`."""
    match statement:
        case ast.Expr(value=ast.Constant(value=str())) | ast.ImportFrom(module="__future__"):
            return True
    return False


# Memory that all processes share: one that is killed, or may not write, has noted what it reached.
REACHED = """
import mmap, os
file = os.open({file!r}, os.O_RDWR)
reached = mmap.mmap(file, 0)
os.close(file)
"""


# Where they run.


class Copy:
    """A copy of the checkout, in which one process at a time runs tests."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        self.tree = folder / "tree"
        self.reached = folder / "reached"
        self._temporary = folder / "t"  # short: the path of a socket has 107 bytes at most
        self._request, self._notes, self._log = (folder / name for name in ("request", "notes", "log"))

        def left_out(place: str, names: list[str]) -> set[str]:
            top = Path(place) == checkout
            return {
                name
                for name in names
                if name == "__pycache__" or (top and (name[0] == "." or name in ("build", "dist")))
            }

        shutil.copytree(checkout, self.tree, symlinks=True, ignore=left_out)

    def run(self, tests: dict[str, float] | None, files: Iterable[str], **request: object) -> list[Note]:
        """Run these tests of files in their order, or all; return what became of each, and of the process."""
        shutil.rmtree(self._temporary, ignore_errors=True)
        self._temporary.mkdir()
        self._notes.write_text("")
        told = {"tests": tests, "files": list(files), "notes": str(self._notes), **request}
        self._request.write_text(json.dumps(told))
        # Names of sets of strings come in the same order each time.
        own = {"PYTHONPATH": str(self.tree / "src"), "TMPDIR": str(self._temporary), "PYTHONHASHSEED": "0"}
        data = os.environ.get("HOLDFAST_DATA", str(CHECKOUT.parent / "shared" / "data"))
        kept = {
            k: v
            for k, v in os.environ.items()
            if k not in ("CI", "PYTEST_ADDOPTS", "PYTHONDONTWRITEBYTECODE")
        }
        with self._log.open("wb") as log:
            done = subprocess.run(
                [sys.executable, "-P", __file__, RUN, str(self._request)],
                cwd=self.tree,
                env={**kept, "HOLDFAST_DATA": data, **own},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
            )
        notes: list[Note] = [json.loads(line) for line in self._notes.read_text().splitlines()]
        last = (self._log.read_text(errors="replace").strip().splitlines() or [""])[-1]
        finished = any(note["event"] == "finish" for note in notes)
        return [*notes, {"event": "end", "code": done.returncode, "finished": finished, "last": last}]

    def load(self, file: Path, module: ast.Module) -> None:
        """Let every process that imports a file have a module in place of what is written there."""
        code = compile(ast.fix_missing_locations(module), str(file), "exec", dont_inherit=True)
        compiled = Path(cache_from_source(str(file)))
        compiled.parent.mkdir(exist_ok=True)
        # Compiled code with this flag is never compared with the source.
        compiled.write_bytes(MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + marshal.dumps(code))

    def unload(self, file: Path) -> None:
        """Let a file be what is written there."""
        Path(cache_from_source(str(file))).unlink()


def shared(copies: list[Copy], jobs: Iterable[Callable[[Copy], T]]) -> Iterator[T]:
    """Do jobs in whichever copy is free; return their results as they come."""
    free: Queue[Copy] = Queue()
    for copy in copies:
        free.put(copy)

    def do(job: Callable[[Copy], T]) -> T:
        copy = free.get()
        try:
            return job(copy)
        finally:
            free.put(copy)

    pool = ThreadPoolExecutor(len(copies))
    try:
        for done in as_completed([pool.submit(do, job) for job in jobs]):
            yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def digest(tree: Path) -> str:
    """Return a value that differs after a change of what the tests depend on."""
    read = hashlib.sha256(Path(__file__).read_bytes() + sys.version.encode())
    files = (path for folder in ("src", "tests") for path in (tree / folder).rglob("*") if path.is_file())
    for path in sorted(path for path in files if path.suffix != ".pyc"):
        read.update(path.relative_to(tree).as_posix().encode() + hashlib.sha256(path.read_bytes()).digest())
    return read.hexdigest()[:16]


def reach(room: str, copies: list[Copy], state: str) -> tuple[list[Test], dict[str, str]]:
    """Return the tests of a room and the kit, and why others fail without a mutant."""
    kept = CACHE / f"{room}-{state}.json"
    if not kept.exists():
        began = time.monotonic()
        recorded, broken = passed(recording(room, copies))
        of_kit = (test for test in recorded if test.id.startswith(KIT))
        fakes = {test.id for test in of_kit if min(test.statements, default=LINES) >= LINES}
        ranked = sorted((test for test in recorded if test.id not in fakes), key=Test.rank)
        parts = [ranked[part :: len(copies)] for part in range(len(copies))]
        plain, failed = passed(note for notes in shared(copies, map(job, parts)) for note in notes)
        seconds = {test.id: test.seconds for test in plain}
        tests = [test._replace(seconds=seconds[test.id]) for test in ranked if test.id in seconds]
        CACHE.mkdir(parents=True, exist_ok=True)
        values = [{**test._asdict(), "statements": sorted(test.statements)} for test in tests]
        kept.write_text(json.dumps({"tests": values, "broken": {**broken, **failed}}))
        print(f"{len(tests)} tests, found in {time.monotonic() - began:.0f} s", flush=True)
    told = json.loads(kept.read_text())
    tests = [Test(**{**test, "statements": frozenset(test["statements"])}) for test in told["tests"]]
    return tests, told["broken"]


def job(tests: list[Test]) -> Callable[[Copy], list[Note]]:
    """Return the run of tests without a mutant."""
    limits = {test.id: test.limit() for test in tests}
    return lambda copy: copy.run(limits, files_of(tests), stop=False)


def files_of(tests: Iterable[Test]) -> list[str]:
    """Return the files that have tests."""
    return sorted({test.id.partition("::")[0] for test in tests})


def recording(room: str, copies: list[Copy]) -> Iterator[Note]:
    """Run all tests of a room and the kit, each file in one of the copies; note what each reaches."""
    for copy in copies:
        numbered = sources(copy.tree, room)
        copy.reached.write_bytes(bytes(len(numbered) * LINES))
        copy.reached.chmod(0o666)
        (copy.tree / "src" / "holdfast_reach.py").write_text(REACHED.format(file=str(copy.reached)))
        for number, path in enumerate(numbered):
            copy.load(path, marked(path, number))
    tree = copies[0].tree
    folders = tree / "tests" / room, tree / KIT
    files = sorted(str(path.relative_to(tree)) for one in folders for path in one.rglob("test_*.py"))

    def part(number: int) -> Callable[[Copy], list[Note]]:
        own = files[number :: len(copies)]
        return lambda copy: copy.run(None, own, stop=False, room=room)

    for notes in shared(copies, map(part, range(len(copies)))):
        yield from notes
    for copy in copies:
        for path in sources(copy.tree, room):
            copy.unload(path)
        (copy.tree / "src" / "holdfast_reach.py").unlink()


def passed(notes: Iterable[Note]) -> tuple[list[Test], dict[str, str]]:
    """Return the tests that pass in runs without a mutant, and why others fail."""
    reached: dict[str, list[int]] = {}
    done, broken = [], {}
    for note in notes:
        match note:
            case {"event": "reach", "test": test, "statements": statements}:
                reached[test] = statements
            case {"event": "failed", "test": test, "why": why}:
                broken[test] = why
            case {"event": "passed", "test": test, "seconds": seconds, "postgres": postgres}:
                done.append(Test(test, seconds, postgres, frozenset()))
            case {"event": "end", "finished": False, "code": code, "last": last}:
                sys.exit(f"The tests do not run without a mutant, the process ended with {code}: {last}")
    tests = [test._replace(statements=frozenset(reached.get(test.id, ()))) for test in done]
    return [test for test in tests if test.id not in broken], broken


def tried(
    mutants: list[Mutant], tests: list[Test], copies: list[Copy], out: Path | None, state: str
) -> Iterator[Note]:
    """Run mutants, print and keep what became of each, and return it; take what `out` has already."""
    reaching: dict[int, list[Test]] = defaultdict(list)
    for test in sorted(tests, key=Test.rank):
        for statement in test.statements:
            reaching[statement].append(test)
    lines = out.read_text("utf-8").splitlines() if out and out.exists() else []
    before = {old["id"]: old for old in map(json.loads, lines) if old["state"] == state}
    yield from (before[mutant.id] for mutant in mutants if mutant.id in before)
    jobs = [trial(one, reaching[one.statement]) for one in mutants if one.id not in before]
    for result in shared(copies, jobs):
        verdict = "caught  " if result["caught"] else "survived"
        print(f"{verdict} {result['id']}  {result['test']}  {result['seconds']:.1f} s", flush=True)
        if out:
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps({**result, "state": state}, ensure_ascii=False) + "\n")
        yield result


def trial(mutant: Mutant, tests: list[Test]) -> Callable[[Copy], Note]:
    """Return the run of a mutant against tests, quick ones first."""

    def run(copy: Copy) -> Note:
        file = copy.tree / PACKAGE / mutant.file
        began = time.monotonic()
        copy.load(file, mutated(file, mutant))
        try:
            limits = {test.id: test.limit() for test in tests}
            failed = failure(copy.run(limits, files_of(tests), stop=True)) if tests else None
        finally:
            copy.unload(file)
        result = {"id": mutant.id, "kind": mutant.kind, "caught": failed is not None, "tests": len(tests)}
        test, why = failed or (f"{len(tests) or 'no'} test{'s' * (len(tests) != 1)}", "")
        return {**result, "test": test, "why": why, "seconds": time.monotonic() - began}

    return run


def failure(notes: list[Note]) -> tuple[str, str] | None:
    """Return the first test that failed, or that the process has not survived, and why."""
    test, end = "collection", notes[-1]
    for note in notes:
        if note["event"] == "failed":
            return note["test"], note["why"]
        test = note.get("test", test)
    if end["code"] == 0 and end["finished"]:
        return None
    return test, end["last"] if end["code"] != TOO_LONG else "it does not end"


def report(room: str, results: list[Note]) -> str:
    """Return the shares that were caught, and the mutants that were not."""

    def share(of: list[Note]) -> str:
        caught = sum(result["caught"] for result in of)
        return f"caught {caught} of {len(of)} ({caught / max(len(of), 1):.0%})"

    lines = [f"{room}: {share(results)}"]
    lines += [f"  {kind}: {share([one for one in results if one['kind'] == kind])}" for kind in KINDS]
    survivors = sorted((one["id"], one["test"]) for one in results if not one["caught"])
    return "\n".join([*lines, "Survivors:", *(f"  {id_}  {tests}" for id_, tests in survivors)])


# The process in which tests run.


def run_apart(request: Note) -> int:
    """Run tests in a child, and end whatever processes it leaves; return its exit code."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)  # what it leaves becomes a child of ours
    inner = os.fork()
    if inner == 0:
        return run_tests(request)
    try:
        return os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1])
    finally:
        left = psutil.Process().children(recursive=True)
        for signal in (psutil.Process.terminate, psutil.Process.kill):
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    signal(process)
            _, left = psutil.wait_procs(left, timeout=5)


def run_tests(request: Note) -> int:
    """Run tests in this process."""
    for limited in (resource.RLIMIT_DATA, resource.RLIMIT_FSIZE):
        resource.setrlimit(limited, (BYTES, BYTES))
    plugins: list[object] = [Runner(request)]
    if "room" in request:
        plugins.append(Reach(request))
    return int(pytest.main(["-q", "-p", "no:cacheprovider", *request["files"]], plugins=plugins))


class Runner:
    """A plugin of pytest that runs tests in an order, notes what becomes of them and ends what is endless."""

    def __init__(self, request: Note) -> None:
        self._limits: dict[str, float] | None = request["tests"]
        self._stop: bool = request["stop"]
        self._notes = Path(request["notes"]).open("a", buffering=1, encoding="utf-8")  # noqa: SIM115 - to the end
        self._log = os.dup(2)
        self._seconds: dict[str, float] = defaultdict(float)
        self._lost: set[str] = set()  # failed or skipped
        self._patience(START)

    def _patience(self, seconds: float) -> None:
        faulthandler.dump_traceback_later(seconds, exit=True, file=self._log)

    def _note(self, event: str, **facts: object) -> None:
        self._notes.write(json.dumps({"event": event, **facts}) + "\n")

    def pytest_sessionstart(self) -> None:
        """Let Hypothesis try the same examples each time, and not look for smaller ones that fail."""
        from hypothesis import Phase, settings

        phases = Phase.explicit, Phase.generate, Phase.target
        settings.register_profile("mutants", derandomize=True, database=None, phases=phases)
        settings.load_profile("mutants")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        """Put tests in order, after all others have."""
        yield
        if self._limits is None:
            items[:] = [item for item in items if not item.name.startswith(OF_DEFECTS)]
        else:
            there = {item.nodeid: item for item in items}
            items[:] = [there[test] for test in self._limits if test in there]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note files that cannot be imported."""
        if report.failed:
            self._failed(report)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note what runs now, and give it its time."""
        self._note("start", test=nodeid)
        self._patience((self._limits or {}).get(nodeid, 10 * START))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what has become of a test."""
        self._seconds[report.nodeid] += report.duration
        if not report.passed:
            self._lost.add(report.nodeid)
        if report.failed:
            self._failed(report)
        if report.when == "teardown":
            self._patience(START)
            if report.nodeid not in self._lost:
                seconds = round(self._seconds[report.nodeid], 4)
                postgres = ("database", "postgres") in report.user_properties
                self._note("passed", test=report.nodeid, seconds=seconds, postgres=postgres)

    def _failed(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        crash = getattr(report.longrepr, "reprcrash", None)
        why = " ".join(str(crash.message if crash else report.longreprtext).split())
        self._note("failed", test=report.nodeid, why=why[:300])
        if self._stop:
            os._exit(1)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Note that nothing is missing."""
        self._note("finish")


class Reach:
    """A plugin of pytest that notes which statements a test reaches, itself or by a fixture.

    What a fixture does once for several tests, or what is cached, would otherwise count for the first of
    them only, and a mutant would not be tried on the others.
    """

    def __init__(self, request: Note) -> None:
        self._room: str = request["room"]
        self._notes = Path(request["notes"])
        self._reached: mmap = importlib.import_module("holdfast_reach").reached
        self._imports: set[int] = set()
        self._open = [self._imports]
        self._of_tests: dict[str, set[int]] = {}
        self._of_fixtures: dict[Fixture, set[int]] = defaultdict(set)
        self._users: dict[Fixture, set[str]] = defaultdict(set)
        self._names: dict[str, list[str]] = {}

    def _turn(self) -> None:
        """Give what was reached since the last turn to the tests and fixtures that run."""
        memory, at = self._reached, -1
        while (at := memory.find(b"\1", at + 1)) >= 0:
            memory[at] = 0
            for statements in self._open:
                statements.add(at)

    @contextmanager
    def _into(self, statements: set[int]) -> Iterator[None]:
        self._turn()
        self._open.append(statements)
        try:
            yield
        finally:
            self._turn()
            self._open.pop()

    def pytest_collection_finish(self) -> None:
        """Count what imports reach for all tests."""
        self._turn()
        self._open.clear()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Count what a test reaches, when nothing is cached."""
        for name, module in list(sys.modules.items()):
            if name.startswith(f"holdfast.{self._room}"):
                for value in list(vars(module).values()):
                    if hasattr(value, "cache_clear"):
                        value.cache_clear()
        self._names[item.nodeid] = getattr(item, "fixturenames", [])
        with self._into(self._of_tests.setdefault(item.nodeid, set())):
            result = yield
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        """Count what a fixture reaches, for all tests that have it."""
        wide = fixturedef.scope != "function"
        parameter = id(getattr(request, "param", None))
        fixture = Fixture(fixturedef.baseid, fixturedef.argname, parameter, wide)
        self._users[fixture].update(list(self._of_tests)[-1:])
        with self._into(self._of_fixtures[fixture]):
            result = yield
        return result

    def pytest_sessionfinish(self) -> None:
        """Note what each test reaches."""
        for fixture, statements in self._of_fixtures.items():
            tests = {
                test
                for test, names in self._names.items()
                if fixture.wide and fixture.name in names and test.startswith(fixture.base)
            }
            for test in tests | self._users[fixture]:
                self._of_tests[test] |= statements
        with self._notes.open("a", encoding="utf-8") as file:
            for test, own in self._of_tests.items():
                note = {"event": "reach", "test": test, "statements": sorted(own | self._imports)}
                file.write(json.dumps(note) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == [RUN]:
        sys.exit(run_apart(json.loads(Path(sys.argv[2]).read_text("utf-8"))))
    sys.exit(main(sys.argv[1:]))
