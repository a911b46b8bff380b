# ruff: noqa: INP001, S108, S311, S603, T201 - a script that prints and runs our own tests, not a package
"""Measure what share of random mutants of a room its tests and the conformance kit catch.

`python scripts/mutants.py store --count 100 --seed 34 --out build/store.jsonl`. A mutant is the source with
one change inside a function; a seed and a source give the same mutants whatever the tests are. Each runs in a
process of its own, in a copy of the checkout, against the tests that reach the changed statement: quick ones
first, until one fails. An unmutated run finds which tests reach it: there each statement of the room sets a
flag, in whatever process. `build/mutants` keeps this until the sources, the tests or this script change.
Tests that fail without a mutant are left out, and listed.

`--out` keeps the results; an interrupted run goes on with the same file. `--only` runs the survivors in such
a file again, or the mutants whose ids are in a file, one a line. A mutant that only a race of threads shows
may survive one run and not another.
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
import signal
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
MEMORY = PACKAGE / "memory.py"  # a test of the kit is run when it opens a memory
OF_DEFECTS = "test_a_defect_of_"  # how tests of the kit begin that break a memory themselves
RUN = "--run"  # the word for a run of tests in a process of its own

PATIENCE = 20.0  # seconds for a test, besides five times what it takes without a mutant
START = 120.0  # seconds for what is before the first test, and after the last
SERVER = 2.0  # seconds to start PostgreSQL
BYTES = 8 << 30  # of data of a process, and of a file
LINES = 10_000  # more than a file has
SUBREAPER = 36  # the option of prctl, on Linux
ENDLESS = 1  # the exit code when time is up

T = TypeVar("T")
Note = dict[str, Any]
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


def main(words: list[str]) -> int:
    """Run the mutants that the command asks for; return the exit code."""
    options = command().parse_args(words)
    signal.signal(signal.SIGTERM, end_in_order)
    for needed in (PACKAGE / options.room, Path("tests", options.room)):
        if not (options.checkout / needed).is_dir():
            sys.exit(f"There is no {options.checkout / needed}. Name a folder of {PACKAGE} that has tests.")
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="hfm-", dir=memory) as folder:
        Path(folder).chmod(0o755)  # tests run programs as other users
        first = Copy(options.checkout.resolve(), Path(folder, "0"))
        copies = [first, *(Copy(first.tree, Path(folder, str(n))) for n in range(1, options.processes))]
        places = places_by_kind(first.tree, options.room)
        if options.only:
            mutants = mutants_of_lines(places, options.only.read_text("utf-8").splitlines())
        else:
            mutants = random_mutants(places, options.count, options.seed)
        state = digest(first.tree)
        tests, broken = tests_of_room(options.room, copies, state)
        results = list(results_of(mutants, tests, copies, options.out, state))
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


# Which mutants there are


def places_by_kind(tree: Path, room: str) -> dict[str, list[list[Mutant]]]:
    """Return the places of a room where a mutant can be, by kind; each has several mutants."""
    classes = ast.walk(parse(tree / PACKAGE / "errors.py"))
    errors = {node.name for node in classes if isinstance(node, ast.ClassDef)}
    places: dict[str, list[list[Mutant]]] = {kind: [] for kind in KINDS}
    ids: Counter[str] = Counter()
    for number, path in list(enumerate(sources(tree, room)))[1:]:
        module = parse(path)
        order = {id(node): position for position, node in enumerate(ast.walk(module))}
        name = path.relative_to(tree / PACKAGE).as_posix()
        for node, line in nodes_in_functions(module, errors):
            for place, alternatives in enumerate(edits(node)):
                mutants = []
                for number_of_edit, edit in enumerate(alternatives):
                    id_ = f"{name}:{edit.at.lineno}:{edit.at.col_offset + 1} {edit.kind} {edit.words}"
                    ids[id_] += 1
                    id_ = f"{id_} #{ids[id_]}" if ids[id_] > 1 else id_
                    where = order[id(node)], (place, number_of_edit)
                    mutants.append(Mutant(id_, edit.kind, name, *where, number * LINES + line))
                places[alternatives[0].kind].append(mutants)
    return places


def sources(tree: Path, room: str) -> list[Path]:
    """Return the files whose statements have numbers: that of a memory, and those of the room."""
    return [tree / MEMORY, *sorted((tree / PACKAGE / room).rglob("*.py"))]


def parse(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text("utf-8"))


def nodes_in_functions(node: ast.AST, errors: set[str], line: int = 0) -> Iterator[tuple[ast.AST, int]]:
    """Walk through what is inside functions; with each node comes the line of its statement."""
    if line:
        yield node, line
    inside = bool(line) or isinstance(node, FUNCTIONS)
    for child in children(node, errors):
        own = child.lineno if inside and isinstance(child, ast.stmt) else line
        yield from nodes_in_functions(child, errors, own)


def children(node: ast.AST, errors: set[str]) -> Iterable[ast.AST]:
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


def edits(node: ast.AST) -> Iterator[list[Edit]]:
    """Return the places in a node itself, each with its edits."""
    match node:
        case ast.Compare(ops=ops, comparators=rights):
            for place, (op, right) in enumerate(zip(ops, rights, strict=True)):
                new = [(words, [*ops[:place], other, *ops[place + 1 :]]) for words, other in swaps(op)]
                yield [Edit("operator", right, words, "ops", value) for words, value in new]
        case (
            ast.BinOp(op=op, right=at)
            | ast.AugAssign(op=op, value=at)
            | ast.BoolOp(op=op, values=[_, at, *_])
        ) if swaps(op):
            yield [Edit("operator", at, words, "op", other) for words, other in swaps(op)]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield [Edit("operator", node, f"not -> bool of {short(operand)}", "operand", negation(operand))]
        case ast.Constant(value=bool() | int() | float() | str() as value):
            before = short(node)
            yield [
                Edit("constant", node, f"{before} -> {words}", "value", new) for words, new in others(value)
            ]
        case ast.If(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.Constant):
            yield [branch("if", test, words) for words in ("True", "False", "not")]
        case ast.While(test=test) if not isinstance(test, ast.Constant):
            # Without an end it would only be a test of our patience.
            yield [branch("while", test, words) for words in ("False", "not")]
        case ast.Expr(value=ast.Call() | ast.Await(value=ast.Call()) as call):
            yield [Edit("call", call, f"{short(call)} -> pass", "value", ast.Constant(None))]


def swaps(op: ast.AST) -> list[tuple[str, ast.AST]]:
    """Return the operators that can stand for another, with words for the exchange."""
    sign, classes = SWAPS.get(type(op), ("", ()))
    return [(f"{sign} -> {SWAPS[other][0]}", other()) for other in classes]


def others(value: float | str) -> list[tuple[str, object]]:
    """Return what can stand for a constant, with words for it."""
    if isinstance(value, bool):
        return [(str(not value), not value)]
    if isinstance(value, str):
        return [*([("''", "")] if value else []), ("itself + 'x'", f"{value}x")]
    return [(str(value + 1), value + 1)]


def branch(name: str, test: ast.expr, words: str) -> Edit:
    """Return the edit by which a test has always one answer, or the other one."""
    value = negation(test) if words == "not" else ast.Constant(words == "True")
    return Edit("branch", test, f"{name} {short(test)} -> {words}", "test", value)


def negation(test: ast.expr) -> ast.expr:
    """Return an expression that is true where another is not."""
    return ast.UnaryOp(ast.Not(), test)


def short(node: ast.AST) -> str:
    """Return a node as text of one line, which may be cut."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else f"{text[:59]}…"


def random_mutants(places: dict[str, list[list[Mutant]]], count: int, seed: int) -> list[Mutant]:
    """Return random mutants of all kinds evenly; where a kind has too few places, others have more."""
    chance = random.Random(seed)
    left = {kind: chance.sample(places[kind], len(places[kind])) for kind in KINDS}
    mutants: list[Mutant] = []
    while len(mutants) < count and any(left.values()):
        for kind in KINDS:
            if left[kind] and len(mutants) < count:
                mutants.append(chance.choice(left[kind].pop()))
    return mutants


def mutants_of_lines(places: dict[str, list[list[Mutant]]], lines: list[str]) -> list[Mutant]:
    """Return the mutants with these ids, or those that survived in these results."""
    every = {mutant.id: mutant for kind in KINDS for place in places[kind] for mutant in place}
    results = [json.loads(line) if line.startswith("{") else {"id": line} for line in lines if line.strip()]
    ids = list(dict.fromkeys(result["id"] for result in results if not result.get("caught")))
    if unknown := [id_ for id_ in ids if id_ not in every]:
        sys.exit(f"There is no mutant {unknown[0]!r}. Take ids of the same source.")
    return [every[id_] for id_ in ids]


def mutant_tree(path: Path, mutant: Mutant) -> ast.Module:
    """Return the syntax tree of a file with the edit of a mutant."""
    module = parse(path)
    node = list(ast.walk(module))[mutant.node]
    place, alternative = mutant.edit
    edit = list(edits(node))[place][alternative]
    setattr(node, edit.field, edit.value)
    return module


def tree_with_flags(path: Path, number: int) -> ast.Module:
    """Return the syntax tree of a file in which each statement of a function sets its flag."""
    module = parse(path)
    functions = [node for node in ast.walk(module) if isinstance(node, FUNCTIONS)]
    inside = {id(node): node for function in functions for node in ast.walk(function)}
    for node in inside.values():
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                flags = [f"__flags__[{number * LINES + statement.lineno}] = 1" for statement in block]
                pairs = zip(flags, list(block), strict=True)
                block[:] = [
                    part
                    for flag, statement in pairs
                    for part in ([] if is_opening(statement) else ast.parse(flag).body) + [statement]
                ]
    start = len(list(takewhile(is_opening, module.body)))
    module.body[start:start] = ast.parse("from holdfast_flags import flags as __flags__").body
    return module


def is_opening(statement: ast.stmt) -> bool:
    """Return whether nothing may stand before a statement: a docstring, or `from __future__`."""
    match statement:
        case ast.Expr(value=ast.Constant(value=str())) | ast.ImportFrom(module="__future__"):
            return True
    return False


# Memory that all processes share: one that is killed, or may not write, has set its flags.
FLAGS = """
import mmap, os
file = os.open({file!r}, os.O_RDWR)
flags = mmap.mmap(file, 0)
os.close(file)
"""


# Where they run


class Copy:
    """A copy of the checkout, in which one process at a time runs tests."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        self.tree = folder / "tree"
        self._temporary = folder / "t"  # short: the path of a socket has 107 bytes at most
        self._flags, self._request, self._notes, self._log = (
            folder / name for name in ("flags", "request", "notes", "log")
        )

        def left_out(place: str, names: list[str]) -> list[str]:
            top = [name for name in names if name.startswith(".") or name in ("build", "dist")]
            return ["__pycache__", *(top if Path(place) == checkout else [])]

        shutil.copytree(checkout, self.tree, symlinks=True, ignore=left_out)
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, tests: dict[str, float] | None, files: Iterable[str], **request: object) -> list[Note]:
        """Run these tests of files in their order, or all; return what became of each, and of the process."""
        shutil.rmtree(self._temporary, ignore_errors=True)
        self._temporary.mkdir()
        self._notes.write_text("")
        request |= {"tests": tests, "files": list(files), "notes": str(self._notes)}
        self._request.write_text(json.dumps(request))
        unset = "CI", "PYTEST_ADDOPTS", "PYTHONDONTWRITEBYTECODE"
        environment = {
            "HOLDFAST_DATA": str(CHECKOUT.parent / "shared" / "data"),
            **{name: value for name, value in os.environ.items() if name not in unset},
            "PYTHONPATH": os.pathsep.join((str(self.tree / "src"), str(self.tree / "cli" / "src"))),
            "TMPDIR": str(self._temporary),
            "PYTHONHASHSEED": "0",
        }
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, RUN, str(self._request)],
                cwd=self.tree,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            code = self._process.wait()
        notes: list[Note] = [json.loads(line) for line in self._notes.read_text().splitlines()]
        last = (self._log.read_text(errors="replace").strip().splitlines() or [""])[-1]
        whole = any(note["event"] == "finish" for note in notes)
        return [*notes, {"event": "end", "code": code, "whole": whole, "last": last}]

    def stop(self) -> None:
        """End what runs."""
        if self._process:
            self._process.terminate()

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

    def record(self, room: str, files: Iterable[str]) -> list[Note]:
        """Run all tests of files, and note the statements of a room that each reaches."""
        numbered = sources(self.tree, room)
        self._flags.write_bytes(bytes(len(numbered) * LINES))
        self._flags.chmod(0o666)
        imported = self.tree / "src" / "holdfast_flags.py"
        imported.write_text(FLAGS.format(file=str(self._flags)))
        for number, path in enumerate(numbered):
            self.load(path, tree_with_flags(path, number))
        try:
            return self.run(None, files, stop=False, room=room)
        finally:
            for path in numbered:
                self.unload(path)
            imported.unlink()


def in_copies(copies: list[Copy], jobs: Iterable[Callable[[Copy], T]]) -> Iterator[T]:
    """Do jobs in whichever copy is free; return their results as they come."""
    free: Queue[Copy] = Queue()
    for copy in copies:
        free.put(copy)

    def result(job: Callable[[Copy], T]) -> T:
        copy = free.get()
        try:
            return job(copy)
        finally:
            free.put(copy)

    pool = ThreadPoolExecutor(len(copies))
    try:
        for future in as_completed([pool.submit(result, job) for job in jobs]):
            yield future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for copy in copies:
            copy.stop()  # one that has ended is no longer there to be stopped
        pool.shutdown()


def digest(tree: Path) -> str:
    """Return a value that differs after a change of what the tests depend on."""
    value = hashlib.sha256(Path(__file__).read_bytes() + sys.version.encode())
    files = (path for folder in ("src", "tests") for path in (tree / folder).rglob("*") if path.is_file())
    for path in sorted(path for path in files if path.suffix != ".pyc"):
        value.update(path.relative_to(tree).as_posix().encode() + hashlib.sha256(path.read_bytes()).digest())
    return value.hexdigest()[:16]


def tests_of_room(room: str, copies: list[Copy], state: str) -> tuple[list[Test], dict[str, str]]:
    """Return the tests of a room and the kit, and why others fail without a mutant."""
    cache = CACHE / f"{room}-{state}.json"
    if not cache.exists():
        began = time.monotonic()
        tree, number = copies[0].tree, len(copies)
        paths = (path for name in (f"tests/{room}", KIT) for path in (tree / name).rglob("test_*.py"))
        files = sorted(str(path.relative_to(tree)) for path in paths)
        tests, broken = passing_tests(
            in_copies(copies, [recording(room, files[n::number]) for n in range(number)])
        )
        tests = sorted((test for test in tests if not opens_no_memory(test)), key=Test.rank)
        # Once more without flags, in the order in which mutants are run.
        plain, failed = passing_tests(in_copies(copies, [trial(tests[n::number]) for n in range(number)]))
        seconds = {test.id: test.seconds for test in plain}
        tests = [test._replace(seconds=seconds[test.id]) for test in tests if test.id in seconds]
        CACHE.mkdir(parents=True, exist_ok=True)
        values = [{**test._asdict(), "statements": sorted(test.statements)} for test in tests]
        cache.write_text(json.dumps({"tests": values, "broken": {**broken, **failed}}))
        print(f"{len(tests)} tests, found in {time.monotonic() - began:.0f} s", flush=True)
    found = json.loads(cache.read_text())
    tests = [Test(**{**test, "statements": frozenset(test["statements"])}) for test in found["tests"]]
    return tests, found["broken"]


def recording(room: str, files: list[str]) -> Callable[[Copy], list[Note]]:
    """Return the run of files in which tests note what they reach."""
    return lambda copy: copy.record(room, files)


def trial(tests: list[Test], *, stop: bool = False) -> Callable[[Copy], list[Note]]:
    """Return the run of tests in this order."""
    limits = {test.id: test.limit() for test in tests}
    files = sorted({test.id.partition("::")[0] for test in tests})
    return lambda copy: copy.run(limits, files, stop=stop)


def opens_no_memory(test: Test) -> bool:
    """Return whether a test is one of the kit that opens no memory."""
    return test.id.startswith(KIT) and min(test.statements, default=LINES) >= LINES


def passing_tests(runs: Iterable[list[Note]]) -> tuple[list[Test], dict[str, str]]:
    """Return the tests that pass in runs without a mutant, and why others fail."""
    statements: dict[str, list[int]] = {}
    tests, broken = [], {}
    for note in (note for notes in runs for note in notes):
        match note:
            case {"event": "reach", "test": test, "statements": numbers}:
                statements[test] = numbers
            case {"event": "failed", "test": test, "why": why}:
                broken[test] = why
            case {"event": "passed", "test": test, "seconds": seconds, "postgres": postgres}:
                tests.append(Test(test, seconds, postgres, frozenset()))
            case {"event": "end", "whole": False, "code": code, "last": last}:
                sys.exit(f"The tests do not run without a mutant, the process ended with {code}: {last}")
    tests = [test._replace(statements=frozenset(statements.get(test.id, ()))) for test in tests]
    return [test for test in tests if test.id not in broken], broken


def results_of(
    mutants: list[Mutant], tests: list[Test], copies: list[Copy], out: Path | None, state: str
) -> Iterator[Note]:
    """Run mutants, print and keep what became of each, and return it; take what `out` has already."""
    reaching: dict[int, list[Test]] = defaultdict(list)
    for test in sorted(tests, key=Test.rank):
        for statement in test.statements:
            reaching[statement].append(test)
    lines = out.read_text("utf-8").splitlines() if out and out.exists() else []
    before = {result["id"]: result for result in map(json.loads, lines) if result["state"] == state}
    yield from (before[mutant.id] for mutant in mutants if mutant.id in before)
    left = [mutant for mutant in mutants if mutant.id not in before]
    for result in in_copies(copies, [mutant_trial(mutant, reaching[mutant.statement]) for mutant in left]):
        verdict = "caught  " if result["caught"] else "survived"
        print(f"{verdict} {result['id']}  {result['test']}  {result['seconds']:.1f} s", flush=True)
        if out:
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps({**result, "state": state}, ensure_ascii=False) + "\n")
        yield result


def mutant_trial(mutant: Mutant, tests: list[Test]) -> Callable[[Copy], Note]:
    """Return the run of a mutant against tests, until one fails."""

    def run(copy: Copy) -> Note:
        file = copy.tree / PACKAGE / mutant.file
        began = time.monotonic()
        copy.load(file, mutant_tree(file, mutant))
        try:
            failed = failure(trial(tests, stop=True)(copy)) if tests else None
            if failed and "pg_ctl" in failed[1]:  # PostgreSQL has not started in time
                failed = failure(trial(tests, stop=True)(copy))
        finally:
            copy.unload(file)
        test, why = failed or (f"{len(tests) or 'no'} test{'s' * (len(tests) != 1)}", "")
        result = {"id": mutant.id, "kind": mutant.kind, "caught": failed is not None, "tests": len(tests)}
        return {**result, "test": test, "why": why, "seconds": round(time.monotonic() - began, 2)}

    return run


def failure(notes: list[Note]) -> tuple[str, str] | None:
    """Return the first test that failed, or that the process has not survived, and why."""
    test, end = "collection", notes[-1]
    for note in notes:
        if note["event"] == "failed":
            return note["test"], note["why"]
        test = note.get("test", test)
    if end["code"] == 0 and end["whole"]:
        return None
    return test, end["last"] if end["code"] != ENDLESS else "it does not end"


def report(room: str, results: list[Note]) -> str:
    """Return the shares that were caught, and the mutants that were not."""

    def share(of: list[Note]) -> str:
        caught = sum(result["caught"] for result in of)
        return f"caught {caught} of {len(of)} ({caught / max(len(of), 1):.0%})"

    lines = [f"{room}: {share(results)}"]
    lines += [
        f"  {kind}: {share([result for result in results if result['kind'] == kind])}" for kind in KINDS
    ]
    survivors = sorted((result["id"], result["test"]) for result in results if not result["caught"])
    return "\n".join([*lines, "Survivors:", *(f"  {id_}  {tests}" for id_, tests in survivors)])


# The process in which tests run


def run_apart(request: Note) -> int:
    """Run tests in a child, and end whatever processes it leaves; return its exit code."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SUBREAPER, 1)  # what it leaves becomes a child of ours
    child = os.fork()
    if child == 0:
        return run_tests(request)
    signal.signal(signal.SIGTERM, end_in_order)
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        left = psutil.Process().children(recursive=True)
        for way in (psutil.Process.terminate, psutil.Process.kill):
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    way(process)
            _, left = psutil.wait_procs(left, timeout=5)


def end_in_order(*_: object) -> None:
    """End in order when a signal asks for it."""
    sys.exit("Ended by a signal.")


def run_tests(request: Note) -> int:
    """Run tests in this process."""
    for kind in (resource.RLIMIT_DATA, resource.RLIMIT_FSIZE):
        resource.setrlimit(kind, (BYTES, BYTES))
    plugins: list[object] = [Runner(request), *([Reach(request)] if "room" in request else [])]
    return int(pytest.main(["-q", "-p", "no:cacheprovider", *request["files"]], plugins=plugins))


class Runner:
    """A plugin of pytest that runs tests in an order, notes what becomes of them and ends what is endless."""

    def __init__(self, request: Note) -> None:
        self._limits: dict[str, float] | None = request["tests"]
        self._stop: bool = request["stop"]
        self._notes = Path(request["notes"])
        self._log = os.dup(2)
        self._seconds: dict[str, float] = defaultdict(float)
        self._lost: set[str] = set()  # failed or skipped
        self._allow(START)

    def _allow(self, seconds: float) -> None:
        faulthandler.dump_traceback_later(seconds, exit=True, file=self._log)

    def _note(self, event: str, **facts: object) -> None:
        with self._notes.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"event": event, **facts}) + "\n")

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
            self._fail(report)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note what runs now, and give it its time."""
        self._note("start", test=nodeid)
        self._allow((self._limits or {}).get(nodeid, 10 * START))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what has become of a test."""
        self._seconds[report.nodeid] += report.duration
        if not report.passed:
            self._lost.add(report.nodeid)
        if report.failed:
            self._fail(report)
        if report.when == "teardown":
            self._allow(START)
            if report.nodeid not in self._lost:
                seconds = round(self._seconds[report.nodeid], 4)
                postgres = ("database", "postgres") in report.user_properties
                self._note("passed", test=report.nodeid, seconds=seconds, postgres=postgres)

    def _fail(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        crash = getattr(report.longrepr, "reprcrash", None)
        why = " ".join(str(crash.message if crash else report.longreprtext).split())
        self._note("failed", test=report.nodeid, why=why[:300])
        if self._stop:
            os._exit(2)

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
        self._flags: mmap = importlib.import_module("holdfast_flags").flags
        self._imports: set[int] = set()
        self._open = [self._imports]
        self._tests: dict[str, set[int]] = {}
        # Of each fixture with a parameter, what it reaches and which tests have it.
        self._fixtures: dict[object, tuple[set[int], set[str]]] = defaultdict(lambda: (set(), set()))

    def _turn(self) -> None:
        """Count what was reached since the last turn for the tests and fixtures that run."""
        at = -1
        while (at := self._flags.find(b"\1", at + 1)) >= 0:
            self._flags[at] = 0
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
        with self._into(self._tests.setdefault(item.nodeid, set())):
            result = yield
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        """Count what a fixture reaches, for all tests that have it."""
        base, name = fixturedef.baseid, fixturedef.argname
        statements, users = self._fixtures[base, name, id(getattr(request, "param", None))]
        users.update(list(self._tests)[-1:])
        if fixturedef.scope != "function":
            items = (item for item in request.session.items if item.nodeid.startswith(base))
            users.update(item.nodeid for item in items if name in getattr(item, "fixturenames", ()))
        with self._into(statements):
            result = yield
        return result

    def pytest_sessionfinish(self) -> None:
        """Note what each test reaches."""
        for statements, users in self._fixtures.values():
            for test in users & self._tests.keys():
                self._tests[test] |= statements
        with self._notes.open("a", encoding="utf-8") as file:
            for test, own in self._tests.items():
                note = {"event": "reach", "test": test, "statements": sorted(own | self._imports)}
                file.write(json.dumps(note) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == [RUN]:
        sys.exit(run_apart(json.loads(Path(sys.argv[2]).read_text("utf-8"))))
    sys.exit(main(sys.argv[1:]))
