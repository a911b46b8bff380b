"""The shape of the package: the direction of imports, exports, the cost of an import, errors, sizes."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import holdfast
from holdfast import HoldfastError, MissingExtra, dedup, errors
from programs import run
from room_budgets import BUDGETS, TOTAL

ROOT = Path(holdfast.__file__).parent
CHECKOUT = Path(__file__).parents[1]
TREES = {file: ast.parse(file.read_text("utf-8")) for file in sorted(ROOT.rglob("*.py"))}
BENCHMARKS = {
    file: ast.parse(file.read_text("utf-8")) for file in sorted(CHECKOUT.glob("benchmarks/**/*.py"))
}

# From the ground up: a room imports only what is below it, wherever the import stands; those of one line do
# not import each other.
ROOMS = (
    "errors",
    "types",
    "settings kinds events",
    "contract",
    "text",
    "safety",
    "messages",
    "store",
    "llm",
    "search",
    "dedup",
    "records",
    "prompt",
    "compaction",
    "learning",
    "tools",
    "front",
    "providers integrations io testing demo",
    "hooks",
    "cli",
)
FLOOR = {room: floor for floor, rooms in enumerate(ROOMS) for room in rooms.split()}
# The handles, and what a program imports.
FRONT = set("holdfast acting_as aio awaiting chat handle memory run runtime scratchpad verify".split())


class Import(NamedTuple):
    room: str
    target: str


def named(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def part_of(file: Path) -> str:
    place = file.relative_to(ROOT).with_suffix("").parts
    return "holdfast" if place == ("__init__",) else place[0]


def room_of(part: str) -> str:
    # What `python -m holdfast` runs is the command line.
    return "cli" if part == "__main__" else "front" if part in FRONT else part


@cache
def nodes(tree: ast.AST) -> list[ast.AST]:
    """Return all nodes of a tree: to walk it takes longer than what most tests do with them."""
    return list(ast.walk(tree))


def targets(file: Path) -> Iterator[str]:
    """Yield the modules that a file imports, late imports and those for types included."""
    for node in nodes(TREES[file]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name their module in full"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports(file: Path) -> Iterator[Import]:
    """Yield which room of the package a file imports, and by which module."""
    for target in targets(file):
        names = target.split(".")
        if names[0] == "holdfast":
            room = room_of(names[1]) if len(names) > 1 else "front"
            yield Import(room if room in FLOOR else "front", target)


def test_imports_point_one_way() -> None:
    wrong = [
        f"{named(file)} imports {found.target}"
        for file in TREES
        for found in imports(file)
        if found.room != (own := room_of(part_of(file))) and FLOOR[found.room] >= FLOOR[own]
    ]
    assert wrong == []


def test_the_rooms_of_safety_and_dedup_are_entered_by_their_doors() -> None:
    doors = {f"holdfast.dedup.{name}" for name in dedup.__all__}
    wrong = [
        f"{named(file)} imports {target}"
        for file in TREES
        for target in targets(file)
        if (
            part_of(file) != "safety"
            and target.startswith("holdfast.safety")
            and not f"{target}.".startswith("holdfast.safety.guard.")
        )
        or (part_of(file) != "dedup" and target.startswith("holdfast.dedup") and target not in doors)
    ]
    assert wrong == []


def test_every_part_of_the_package_is_in_a_room() -> None:
    assert {room_of(part_of(file)) for file in ROOT.rglob("*.py")} <= FLOOR.keys()


HOMES = {
    "numpy": {"text", "safety", "llm", "search", "dedup", "records", "learning"},
    "Stemmer": {"text"},
    "typer": {"cli"},
    "rich": {"cli"},
    "platformdirs": {"cli", "hooks"},
    "pathspec": {"hooks"},
    "asyncio": {"aio", "awaiting", "llm", "integrations"},
    "pydantic_ai": {"llm", "integrations"},
    "pydantic": {"integrations"},
    "model2vec": {"llm"},
    "fastembed": {"llm"},
    "mcp": {"integrations"},
    "anthropic": {"integrations"},
    "starlette": {"integrations"},
    "uvicorn": {"integrations"},
    "opentelemetry": {"providers"},
    "sumy": set(),
    "sqlite3": {"store"},
    "psycopg": {"store"},
    "psycopg_pool": {"store"},
    "psutil": set(),
    "rank_bm25": set(),
    "benchmarks": set(),  # beside the package, not in it
    "socket": {"integrations"},  # a type only
    "urllib": set(),
    "http": set(),
}


def test_a_library_is_imported_only_where_it_belongs() -> None:
    wrong = [
        f"{named(file)} imports {head}"
        for file in TREES
        for head in {target.split(".")[0] for target in targets(file)}
        if part_of(file) not in HOMES.get(head, {part_of(file)})
    ]
    assert wrong == []


SQL = re.compile(
    r"\bSELECT\b.+\bFROM\b|\bINSERT\s+INTO\b|\bUPDATE\s+\w+\s+SET\b|\bDELETE\s+FROM\b|"
    r"\bCREATE\s+(?:UNIQUE\s+)?(?:TABLE|INDEX|SCHEMA)\b|\bPRAGMA\s",
    re.DOTALL,
)


def strings(tree: ast.AST) -> Iterator[str]:
    """Yield the strings of a module that are not documentation, with … for what is put into them."""
    parts = [node for node in nodes(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    first = [part.body[0] for part in parts if part.body]
    documentation = {node.value for node in first if isinstance(node, ast.Expr)}
    for node in nodes(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in documentation:
            yield node.value


def test_there_is_no_sql_outside_of_the_store() -> None:
    wrong = [
        f"{named(file)}: {text}"
        for file, tree in TREES.items()
        if part_of(file) != "store"
        for text in strings(tree)
        if SQL.search(text)
    ]
    assert wrong == []


# What is exported

NAMES = """BudgetExceeded Change Chat ChatInfo ChatStats Closed CompactionResult Conflict Damaged Denied
    Description Erasure Event Expansion ExplainedWord Explanation Extraction Finding Grant Hit Hits
    HoldfastError InvalidInput Job Kind Learning Limit Memory Message MissingExtra ModelFailed NewerSchema
    Omission Prompt Ranking Receipt Record Relearning Role Run Scope Scratchpad Shortened Summary Thresholds
    Tool ToolCall Unavailable UnknownFormat Usage Verification View Why Window Wording WorkResult Writer
    acting_as""".split()


def test_the_exported_names_are_these() -> None:
    assert holdfast.__all__ == NAMES


def test_the_exported_names_are_there() -> None:
    assert [name for name in NAMES if not hasattr(holdfast, name)] == []


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("Role", "Writer")])
def test_an_exported_name_is_documented(name: str) -> None:
    documentation = getattr(holdfast, name).__doc__
    assert documentation
    assert documentation.rstrip().endswith((".", "`"))


def public_parts(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        ) and not node.name.startswith("_"):
            if any(isinstance(mark, ast.Name) and mark.id == "overload" for mark in node.decorator_list):
                continue
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public_parts(node)


def test_everything_public_is_documented() -> None:
    missing = [
        f"{file.name} {getattr(part, 'name', '')}"
        for file, tree in (TREES | BENCHMARKS).items()
        for part in (tree, *public_parts(tree))
        if not ast.get_docstring(part)
    ]
    assert missing == []


def test_an_installation_has_the_package_and_nothing_beside_it() -> None:
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))
    assert settings["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["src/holdfast"]}


def test_the_package_has_a_version() -> None:
    assert holdfast.__version__.count(".") == 2


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "py.typed").exists()


# What an import costs

HEAVY = {
    "numpy",
    "typer",
    "rich",
    "asyncio",
    "pydantic_ai",
    "openai",
    "psycopg",
    "psycopg_pool",
    "Stemmer",
    "platformdirs",
    "pathspec",
    "hypothesis",
}
LOADED = "import json, sys; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert HEAVY.isdisjoint(json.loads(run(f"import holdfast; {LOADED}")))


LOADED_OF_US = "import json, sys; print(json.dumps([name for name in sys.modules if 'holdfast.' in name]))"
# What only those need who name it.
NAMED = {
    "holdfast.chat",
    "holdfast.records.writing",
    "holdfast.learning.results",
    "holdfast.run",
    "holdfast.settings",
    "holdfast.tools",
    "holdfast.types.changes",
    "holdfast.types.chats",
    "holdfast.types.explanations",
    "holdfast.types.integrity",
    "holdfast.types.jobs",
    "holdfast.types.prompts",
    "holdfast.types.summaries",
}


def test_importing_the_package_loads_the_guard_and_what_it_reads() -> None:
    loaded = json.loads(run(f"import holdfast; {LOADED_OF_US}"))
    rooms = {room_of(name.split(".")[1]) for name in loaded} - {"front"}
    assert rooms == {"errors", "types", "safety"}
    assert NAMED.isdisjoint(loaded)


def test_a_recall_loads_nothing_that_it_does_not_return() -> None:
    program = "from holdfast import Memory; Memory(':memory:').recall('office')\n"
    assert NAMED.isdisjoint(json.loads(run(f"{program}{LOADED_OF_US}")))


def test_a_name_that_is_imported_late_is_the_one_of_its_module() -> None:
    from holdfast.types import summaries

    assert holdfast.Summary is holdfast.types.Summary is summaries.Summary
    with pytest.raises(AttributeError, match="module 'holdfast' has no attribute 'Sumary'"):
        _ = holdfast.Sumary


def test_writing_and_reading_load_nothing_heavy() -> None:
    script = (
        "from holdfast import Memory\nm = Memory(':memory:')\nc = m.chat('a')\n"
        "c.append(role='user', content='x')\n"
    )
    assert HEAVY.isdisjoint(
        json.loads(run(f"{script}c.history(), c.stats(), c.window(), m.chats()\n{LOADED}"))
    )


# What errors say

ERRORS = {
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, HoldfastError)
}


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_an_error_is_documented_with_what_happened_and_what_to_do(name: str) -> None:
    assert (
        len([sentence for sentence in str(getattr(errors, name).__doc__).split(".") if sentence.strip()]) >= 2
    )


def test_there_is_one_root_of_all_errors() -> None:
    assert all(issubclass(getattr(holdfast, name), HoldfastError) for name in ERRORS)


def test_an_error_reads_as_two_sentences() -> None:
    assert str(HoldfastError("It broke.", "Mend it.")) == "It broke. Mend it."


def test_how_to_install_an_extra_is_said_in_one_place() -> None:
    project = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].keys() - {"bench", "peers", "dev", "claude"}
    assert {extra for extra in extras if f"pip install '.[{extra}]'" in MissingExtra.of(extra).todo} == extras
    saying = [
        file.name
        for file in ROOT.rglob("*.py")
        if "in a checkout of Holdfast: pip" in file.read_text("utf-8")
    ]
    assert saying == ["errors.py"]


def ends_as_a_sentence(text: ast.expr) -> bool:
    if isinstance(text, ast.JoinedStr):
        text = text.values[-1]
    return not isinstance(text, ast.Constant) or str(text.value).endswith((".", "!"))


def test_what_is_raised_says_what_happened_and_what_to_do() -> None:
    wrong = [
        f"{file.name}: {ast.unparse(call)}"
        for file, tree in (TREES | BENCHMARKS).items()
        for call in nodes(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ERRORS
        if len(call.args) != 2 or not all(map(ends_as_a_sentence, call.args))
    ]
    assert wrong == []


# Sizes and names

FILE_LINES, FUNCTION_LINES, CLASS_METHODS = 400, 40, 25
LEFT = set("".splitlines())


TEST_LINES = 600


def test_files_of_tests_stay_small() -> None:
    tests = CHECKOUT / "tests"
    long = {
        file.relative_to(tests).as_posix()
        for file in tests.rglob("*.py")
        if len(file.read_text("utf-8").splitlines()) > TEST_LINES
    }
    assert long == set()


def long_files() -> Iterator[str]:
    for file in TREES:
        if len(file.read_text("utf-8").splitlines()) > FILE_LINES:
            yield named(file)


def long_functions() -> Iterator[str]:
    for file, tree in TREES.items():
        for node in nodes(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if (node.end_lineno or node.lineno) - node.lineno >= FUNCTION_LINES:
                yield f"{named(file)} {node.name}"


def wide_classes() -> Iterator[str]:
    for file, tree in TREES.items():
        for node in nodes(tree):
            if isinstance(node, ast.ClassDef):
                methods = {
                    part.name
                    for part in node.body
                    if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)
                    and not part.name.startswith("_")
                }
                if len(methods) > CLASS_METHODS and node.name not in ("MemoryHandle", "AsyncMemory"):
                    yield f"{named(file)} {node.name}"


def test_files_functions_and_classes_stay_small() -> None:
    assert [*long_files(), *long_functions(), *wide_classes()] == []


NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip


def code_lines(file: Path) -> int:
    """Count the lines that are neither blank nor comments nor in a docstring."""
    docstrings: set[int] = set()
    for node in nodes(TREES[file]):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and ast.get_docstring(node) is not None:
                docstrings.update(range(first.lineno, (first.end_lineno or 0) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(file.read_text("utf-8")).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def test_rooms_keep_to_their_budgets() -> None:
    sizes = Counter[str]()
    for file in TREES:
        sizes[room_of(part_of(file))] += code_lines(file)
    spent = {rooms: sum(sizes.pop(room, 0) for room in rooms.split()) for rooms in BUDGETS}
    assert not sizes
    assert {rooms: size for rooms, size in spent.items() if size > BUDGETS[rooms]} == {}
    assert sum(spent.values()) <= TOTAL


def test_a_name_means_one_thing() -> None:
    modules = Counter((room_of(part_of(file)), file.stem) for file in TREES if file.stem != "__init__")
    classes = Counter(
        node.name
        for tree in TREES.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, number in (modules + Counter()).items() if number > 1] == []
    assert [name for name, number in classes.items() if number > 1] == []


def test_docstrings_name_their_result() -> None:
    odd = [
        f"{named(file)}:{node.lineno} {text.splitlines()[0]}"
        for file, tree in TREES.items()
        for node in nodes(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and (text := ast.get_docstring(node) or "").split()[:1]
        and text.split()[0] in ("Say", "Give", "Tell")
    ]
    assert odd == []


def test_suppressions_are_rare() -> None:
    text = "\n".join(file.read_text("utf-8") for file in TREES)
    assert text.count("# noqa") <= 40
    assert text.count("SLF001") <= 8


def module_of(file: Path) -> str:
    return ".".join(("holdfast", *file.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


def test_no_modules_import_each_other_in_a_circle() -> None:
    names = {module_of(file): file for file in TREES}
    edges = {
        name: {
            found if found in names else found.rpartition(".")[0]
            for found in targets(file)
            if (found in names or found.rpartition(".")[0] in names)
        }
        - {name, "holdfast"}
        for name, file in names.items()
    }
    del edges["holdfast"]
    # Take away what imports nothing that is left, and what nothing imports; circles remain.
    while free := {
        name
        for name, needed in edges.items()
        if not needed & edges.keys() or not any(name in other for other in edges.values())
    }:
        for name in free:
            del edges[name]
    assert sorted(edges) == []
