"""The shape of the package: which way imports point, what is exported, what an import costs, what errors say."""

from __future__ import annotations

import ast
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import holdfast
from holdfast import HoldfastError, MissingExtra, errors
from programs import run

ROOT = Path(holdfast.__file__).parent
CHECKOUT = Path(__file__).parents[1]
FILES = [pytest.param(file, id=str(file.relative_to(ROOT))) for file in sorted(ROOT.rglob("*.py"))]
BENCHMARKS = [
    pytest.param(file, id=f"benchmarks/{file.name}") for file in sorted(CHECKOUT.glob("benchmarks/*.py"))
]

# Each part may import from its own layer and from those above it in this list.
LAYERS = (
    "errors types kinds acting text payload events logs",
    "store",
    "recall context learn llm failures loop meter",
    "memory chat digest incoming knowledge standing learner view opened pad run",
    "holdfast",
    "aio contract agents io web cli demo testing null tracing __main__",
)
LAYER = {part: number for number, parts in enumerate(LAYERS) for part in parts.split()}
# What is imported the other way, within a function, so that it is loaded only by those who use it.
LATE = {("memory", "aio"), ("memory", "agents")}


class Import(NamedTuple):
    part: str
    target: str


def part_of(file: Path) -> str:
    place = file.relative_to(ROOT).with_suffix("").parts
    return "holdfast" if place == ("__init__",) else place[0]


def runtime_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a module, but for what only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if (
            isinstance(child, ast.If)
            and isinstance(child.test, ast.Name)
            and child.test.id == "TYPE_CHECKING"
        ):
            continue
        yield child
        yield from runtime_nodes(child)


def targets(file: Path) -> Iterator[str]:
    """Yield the modules that a file imports when it runs, late imports included."""
    for node in runtime_nodes(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name their module in full"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports(file: Path) -> Iterator[Import]:
    """Yield which part of the package imports which other one."""
    for target in targets(file):
        names = target.split(".")
        if names[0] == "holdfast":
            yield Import(part_of(file), names[1] if len(names) > 1 and names[1] in LAYER else "holdfast")


@pytest.mark.parametrize("file", FILES)
def test_imports_point_one_way(file: Path) -> None:
    wrong = [found for found in imports(file) if LAYER[found.target] > LAYER[found.part]]
    assert set(wrong) <= LATE


def test_every_part_of_the_package_has_a_layer() -> None:
    assert {part_of(file) for file in ROOT.rglob("*.py")} <= LAYER.keys()


HOMES = {
    "numpy": {"text", "recall", "learn"},
    "Stemmer": {"text"},
    "typer": {"cli"},
    "rich": {"cli"},
    "platformdirs": {"cli"},
    "asyncio": {"aio", "llm", "loop", "agents"},
    "pydantic_ai": {"llm", "agents"},
    "pydantic": {"agents"},
    "mcp": {"agents"},
    "anthropic": {"agents"},
    "starlette": {"agents", "web"},
    "uvicorn": {"agents", "web"},
    "opentelemetry": {"tracing"},
    "sumy": set(),
    "sqlite3": {"store"},
    "psycopg": {"store"},
    "psycopg_pool": {"store"},
    "psutil": set(),
    "rank_bm25": set(),
    "benchmarks": set(),  # beside the package, not in it
    "socket": set(),
    "urllib": set(),
    "http": set(),
}


@pytest.mark.parametrize("file", FILES)
def test_a_library_is_imported_only_where_it_belongs(file: Path) -> None:
    heads = {target.split(".")[0] for target in targets(file)}
    assert [head for head in heads if part_of(file) not in HOMES.get(head, {part_of(file)})] == []


# What is exported

NAMES = """BudgetExceeded Change Chat ChatInfo ChatStats Closed CompactionResult Conflict Damaged Denied Description Erasure Event Expansion
    Extraction Finding Hit HoldfastError InvalidInput Job Kind Learning Limit Memory Message MissingExtra ModelFailed
    NewerSchema Omission Pad Prompt Ranking Receipt Record Relearning Role Run Scope Shortened Spend Summary Tool ToolCall Unavailable UnknownFormat
    Verification View Why Window Wording WorkResult Writer acting""".split()


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


@pytest.mark.parametrize("file", FILES + BENCHMARKS)
def test_everything_public_is_documented(file: Path) -> None:
    tree = ast.parse(file.read_text("utf-8"))
    assert ast.get_docstring(tree)
    assert [part.name for part in public_parts(tree) if not ast.get_docstring(part)] == []


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
    "hypothesis",
}
LOADED = "import json, sys; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert HEAVY.isdisjoint(json.loads(run(f"import holdfast; {LOADED}")))


def test_writing_and_reading_load_nothing_heavy() -> None:
    script = "from holdfast import Memory\nm = Memory(':memory:')\nc = m.chat('a')\nc.append(role='user', content='x')\n"
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
    extras = project["optional-dependencies"].keys() - {"bench", "dev"}
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


@pytest.mark.parametrize("file", FILES + BENCHMARKS)
def test_what_is_raised_says_what_happened_and_what_to_do(file: Path) -> None:
    raised = [
        node
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS
    ]
    for call in raised:
        assert len(call.args) == 2, ast.unparse(call)
        assert all(map(ends_as_a_sentence, call.args)), ast.unparse(call)
