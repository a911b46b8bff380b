# ruff: noqa: INP001, S101 - a script, not a package; it asserts what a type checker cannot see
"""Write `docs/reference/`: a page for each public module, from its signatures and docstrings, in order.

`make reference` runs it. The pages are not in the repository. The source is read and not run, so no framework
needs to be installed that an adapter is for.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import griffe

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "reference"
WIDE = 100  # characters of a signature that stands in one line
MADE = "Made by"  # what a class says of itself that nobody else constructs
_SECTION = re.compile(r"^(Args|Attributes|Raises):\n", re.MULTILINE)
_ITEM = re.compile(r"^(\S[^:\n]*): ", re.MULTILINE)
_DOCTEST = re.compile(r" +# doctest: .*$", re.MULTILINE)
_TWIN = re.compile(r"\b(?:awaited|asking)\((\w+)\.")  # how an awaited method is made of another one
_NOTE = "<!-- Made by scripts/reference.py from the docstrings: change those. -->"


@dataclass(frozen=True)
class Page:
    """A module and what its page shows: these names first, then all others that are public, or only these."""

    module: str
    names: tuple[str, ...] = ()
    only: bool = False

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.module.removeprefix('holdfast.')}.md"


PAGES = (
    Page("holdfast", ("Memory", "Chat", "Run", "Scratchpad", "View", "acting_as")),
    Page("holdfast.errors"),
    Page("holdfast.kinds", ("Kind", "Thresholds", "KINDS", "table"), only=True),
    Page("holdfast.dedup", ("classify", "Comparison", "relate", "Relation"), only=True),
    Page("holdfast.events", ("Event", "Call"), only=True),
    Page(
        "holdfast.prompt.window",
        (
            "Compaction",
            "LastN",
            "TokenBudget",
            "FreshTail",
            "Lossless",
            "SummaryBuffer",
            "Policy",
            "make_policy",
        ),
        only=True,
    ),
    Page("holdfast.types.scope", ("Scope",), only=True),
    Page("holdfast.records.options", ("NewRecord",), only=True),
    Page("holdfast.records.quarantine", ("Quarantine",), only=True),
    Page("holdfast.records.grants", ("Grants",), only=True),
    Page("holdfast.compaction.recent_turns", ("RingBuffer",), only=True),
    Page("holdfast.learning.service", ("Learner",), only=True),
    Page(
        "holdfast.aio",
        (
            "AsyncMemory",
            "AsyncChat",
            "AsyncRun",
            "AsyncScratchpad",
            "AsyncView",
            "AsyncTool",
            "AsyncLearner",
            "AsyncQuarantine",
            "AsyncGrants",
        ),
        only=True,
    ),
    Page("holdfast.tools.tool", ("Tool", "ToolResult", "tools_for", "tool_of"), only=True),
    Page("holdfast.tools.exports"),
    Page("holdfast.tools.presets"),
    Page("holdfast.tools.actions"),
    Page("holdfast.tools.results"),
    Page("holdfast.integrations.mcp.server"),
    Page("holdfast.tools.files", ("Files", "FileCommandError"), only=True),
    *(Page(f"holdfast.integrations.{name}") for name in ("anthropic", "openai_agents", "claude_agent")),
    Page("holdfast.integrations.pydantic_ai", ("Remembering", "toolset"), only=True),
    *(Page(f"holdfast.integrations.{name}") for name in ("pydantic_conversations", "crewai", "langchain")),
    Page("holdfast.integrations.langgraph", ("HoldfastStore",)),
    *(
        Page(f"holdfast.integrations.{name}")
        for name in ("llama_index", "google_adk", "strands", "strands_sessions", "agent_framework")
    ),
    Page("holdfast.contract", ("capabilities", "Capability")),
    Page("holdfast.testing"),
    Page("holdfast.testing.minimal"),
    Page(
        "holdfast_cli.formats.export",
        ("export_chats", "export_chats_as", "ExportedChats", "FORMATS"),
        only=True,
    ),
    Page("holdfast_cli.formats.importing", ("import_paths", "import_tables"), only=True),
    Page("holdfast_cli.formats.record_markdown", ("export_records", "ExportedRecords"), only=True),
    Page("holdfast.providers.tracing", ("traced", "unwrap", "Operation"), only=True),
    Page("holdfast.providers.null", ("NullMemory",), only=True),
)
OWN = {page.module for page in PAGES[1:]}  # what else is public is on the first


def main() -> None:
    """Write the pages."""
    write(written(load()))


def write(pages: Mapping[str, str], folder: Path = FOLDER) -> None:
    """Write pages into a folder, in place of those that are there."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    for name, text in pages.items():
        (folder / name).write_text(text, "utf-8")


def load(*folders: Path) -> griffe.ModulesCollection:
    """Read the packages in folders, by default ours."""
    folders = folders or (ROOT / "src", ROOT / "cli" / "src")
    loader = griffe.GriffeLoader(search_paths=folders, allow_inspection=False)
    for folder in folders:
        for file in folder.glob("*/__init__.py"):
            loader.load(file.parent.name)
    return loader.modules_collection


def written(packages: griffe.ModulesCollection) -> dict[str, str]:
    """Write all pages: the names of the files with their text."""
    things = {page: _things(_module(packages, page), page) for page in PAGES}
    shown = {thing.path for found in things.values() for thing in found}
    pages = {page.file: _page(_module(packages, page), page, found, shown) for page, found in things.items()}
    return {"README.md": _index(packages), **pages}


def undocumented(packages: griffe.ModulesCollection, pages: Iterable[Page] = PAGES) -> list[str]:
    """Name what is public in the modules of pages and lacks a docstring with a first sentence."""
    found: list[str] = []
    for page in pages:
        module = _module(packages, page)
        things = [thing for thing in _public(module, page.names) if not thing.is_attribute]
        parts = [part for thing in things if isinstance(thing, griffe.Class) for part in _parts(thing, set())]
        found += [one.path for one in (module, *things, *parts) if not _is_sentence(_doc(one))]
    return sorted(set(found))


def _is_sentence(doc: str) -> bool:
    return doc.split("\n\n", maxsplit=1)[0].rstrip().endswith((".", ":", "`"))


# What is shown ----------------------------------------------------------------------------------------------


def _module(packages: griffe.ModulesCollection, page: Page) -> griffe.Module:
    found = packages[page.module]
    assert isinstance(found, griffe.Module)
    return found


def _doc(thing: griffe.Object) -> str:
    return dedent(thing.docstring.value).strip() if thing.docstring else ""


def _things(module: griffe.Module, page: Page) -> list[griffe.Object]:
    """Give what a page shows of its module."""
    return [_target(module, name) for name in page.names] if page.only else _public(module, page.names)


def _public(module: griffe.Module, first: Iterable[str]) -> list[griffe.Object]:
    """Give what a module offers: the names of its `__all__`, or all of its own that have no underscore."""
    names = [*first]
    if module.exports is not None:
        names += [str(name) for name in module.exports]
    else:
        names += [name for name, one in module.members.items() if _is_own(one)]
    return [_target(module, name) for name in dict.fromkeys(names)]


def _is_own(member: griffe.Object | griffe.Alias) -> bool:
    """Say whether a module offers what it has: not what it imports, nor a constant that nothing explains."""
    if member.is_alias or member.is_module or member.name.startswith("_"):
        return False
    return not member.is_attribute or member.has_docstring


def _target(module: griffe.Module | griffe.Class, name: str) -> griffe.Object:
    found = module[name]
    if isinstance(
        found, griffe.Module
    ):  # `from holdfast.types.acting_as import acting_as` takes the place of the module
        return _target(found, name)
    return found.final_target if isinstance(found, griffe.Alias) else found


def _parts(thing: griffe.Class, shown: Container[str]) -> list[griffe.Object]:
    """Return the methods and properties of a class, its own first, then inherited ones shown nowhere else."""
    found: dict[str, griffe.Object] = {}
    for kind in (thing, *_behind(thing, shown)):
        for name, part in kind.members.items():
            if not name.startswith("_") and not part.is_alias and (part.is_function or part.has_docstring):
                found.setdefault(name, _target(kind, name))
    return list(found.values())


def _behind(thing: griffe.Class, shown: Container[str]) -> list[griffe.Class]:
    """Return the classes that a class inherits from; none if another page shows one of them."""
    try:
        inherited = thing.mro()
    except ValueError:  # one of them is in a package that is not read
        return []
    elsewhere = any(base.path in shown and _home(base) != _home(thing) for base in inherited)
    return [] if elsewhere else inherited


def _home(thing: griffe.Object) -> str:
    """Name the module on whose page a thing is: its own, or the package that offers it, or the first."""
    path: str = thing.module.path
    while path and path not in OWN:
        path = path.rpartition(".")[0]
    return path or "holdfast"


# How it is written ------------------------------------------------------------------------------------------


def _index(packages: griffe.ModulesCollection) -> str:
    lines = [_NOTE, "# Reference", "Every public name, with what its docstring says."]
    entries = [
        f"- [`{page.module}`]({page.file}): {_doc(_module(packages, page)).split(chr(10) * 2)[0]}"
        for page in PAGES
    ]
    return "\n\n".join([*lines, "\n".join(entries)]) + "\n"


def _page(module: griffe.Module, page: Page, things: Iterable[griffe.Object], shown: Container[str]) -> str:
    here = [thing for thing in things if _home(thing) == page.module or page.only]
    blocks = [_NOTE, f"# {page.module}", _prose(_doc(module))]
    for thing in here:
        blocks += _entry(thing, shown)
    links = [
        f"- [`{thing.name}`]({_home(thing).removeprefix('holdfast.')}.md): {_summary(thing)}"
        for thing in things
        if thing not in here
    ]
    if links:
        blocks += ["## On other pages", "\n".join(links)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _summary(thing: griffe.Object) -> str:
    return " ".join(_doc(thing).split("\n\n")[0].split())


def _entry(thing: griffe.Object, shown: Container[str]) -> Iterator[str]:
    """Write what is on the second level: a class with its methods, a function, or an attribute."""
    yield f"## {thing.name}"
    yield _code(_class(thing, shown) if isinstance(thing, griffe.Class) else _head(thing))
    yield _prose(_doc(thing))
    if isinstance(thing, griffe.Class):
        yield _awaited(thing)
        for part in _parts(thing, shown):
            yield f"### {thing.name}.{part.name}"
            yield _code(_head(part))
            yield _prose(_doc(part))


def _awaited(thing: griffe.Class) -> str:
    """Name the methods that are those of another class, awaited; "" where there are none."""
    made = {one.name: _TWIN.match(str(one.value)) for one in thing.attributes.values()}
    twins = {name: match[1] for name, match in made.items() if match}
    names = ", ".join(f"`{name}`" for name in twins)
    # `Memory` is the handle that opens the database.
    return (
        f"The methods of `{next(iter(twins.values())).removesuffix('Handle')}`, awaited: {names}."
        if twins
        else ""
    )


def _code(text: str) -> str:
    return f"```python\n{text}\n```"


def _class(thing: griffe.Class, shown: Container[str]) -> str:
    """Write how a class is declared, and how it is called where users do that."""
    bases = ", ".join(_written(base) for base in thing.bases if _is_known(base, shown))
    head = f"class {thing.name}({bases})" if bases else f"class {thing.name}"
    if bases in ("TypedDict", "NamedTuple"):
        fields = [f"    {one.name}: {_written(one.annotation)}" for one in thing.attributes.values()]
        return "\n".join([f"{head}:", *fields])
    made = any("__init__" in kind.members for kind in (thing, *_behind(thing, shown)))
    if MADE in _doc(thing) or not (made or "dataclass" in thing.labels):
        return head
    return f"{head}\n\n{_call(thing.name, thing.parameters, None)}"


def _is_known(base: str | griffe.Expr, shown: Container[str]) -> bool:
    path = base if isinstance(base, str) else base.canonical_path
    return path in shown or not path.startswith("holdfast.")


def _head(thing: griffe.Object) -> str:
    """Write how a function is called, or what an attribute is."""
    if isinstance(thing, griffe.Function):
        overloads = thing.overloads or [thing]
        asynchronous = "async " if "async" in thing.labels else ""
        return "\n".join(
            f"{asynchronous}{_call(thing.name, one.parameters, one.returns)}" for one in overloads
        )
    assert isinstance(thing, griffe.Attribute)
    if "property" in thing.labels:
        return f"{thing.name}: {_written(thing.annotation)}  # a property"
    return thing.source


def _written(code: str | griffe.Expr | None) -> str:
    """Write an expression with the quotes that the sources have."""
    text = str(code)
    return text if '"' in text else text.replace("'", '"')


def _call(name: str, parameters: griffe.Parameters, returns: str | griffe.Expr | None) -> str:
    written = list(_parameters(parameters))
    gives = f" -> {_written(returns)}" if returns is not None else ""
    line = f"{name}({', '.join(written)}){gives}"
    if len(line) <= WIDE:
        return line
    return "\n".join([f"{name}(", *(f"    {one}," for one in written), f"){gives}"])


def _parameters(parameters: griffe.Parameters) -> Iterator[str]:
    """Write parameters as they are declared, with the marks between their kinds."""
    kinds = griffe.ParameterKind
    listed = [one for one in parameters if one.name not in ("self", "cls")]
    for place, one in enumerate(listed):
        before = listed[place - 1].kind if place else None
        if one.kind is kinds.keyword_only and before not in (kinds.keyword_only, kinds.var_positional):
            yield "*"
        stars = {kinds.var_positional: "*", kinds.var_keyword: "**"}.get(one.kind or kinds.keyword_only, "")
        kind = f": {_written(one.annotation)}" if one.annotation is not None else ""
        equals = " = " if kind else "="
        default = f"{equals}{_written(one.default)}" if one.default is not None and not stars else ""
        yield f"{stars}{one.name}{kind}{default}"
        following = listed[place + 1].kind if place + 1 < len(listed) else None
        if one.kind is kinds.positional_only and following is not kinds.positional_only:
            yield "/"


def _prose(doc: str) -> str:
    """Write a docstring: its text, its examples as code, and its sections as lists."""
    text, *sections = _SECTION.split(_DOCTEST.sub("", doc))
    blocks = [_code(block) if block.startswith(">>>") else block for block in text.strip().split("\n\n")]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        items = [" ".join(item.split()) for item in _ITEM.split(dedent(body).strip())[1:]]
        listed = "\n".join(
            f"- {_names(name)}: {what}" for name, what in zip(items[::2], items[1::2], strict=True)
        )
        blocks += [f"**{title}**", listed]
    return "\n\n".join(blocks)


def _names(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split(", "))


if __name__ == "__main__":
    main()
