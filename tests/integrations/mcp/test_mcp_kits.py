"""What others wrote to check MCP servers: the Inspector's command line and the conformance suite."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from platformdirs import user_cache_path

import mcp_peers
from mcp_peers import Served, command
from programs import start

db = mcp_peers.db
pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
PATIENCE = 300  # seconds for an installation
# Those that need no tools of their own. `ping` and the handshake are of the era that the suite speaks.
SCENARIOS = """server-initialize ping tools-list resources-list completion-complete
    server-sse-multiple-streams dns-rebinding-protection""".split()
# A server without a token, which the suite cannot send.
OPEN = """
import sys
from holdfast import Memory
from holdfast.integrations.mcp import http
from holdfast.integrations.mcp.server import make_server

def ready(url):
    print(url, flush=True)

with Memory(sys.argv[1], user="ada") as memory:
    http.serve(http.application(make_server(memory)), "127.0.0.1", 0, ready=ready)
"""


@pytest.fixture(scope="session")
def kits() -> Path:
    """Install the kits in their pinned versions, once on a machine; in CI they are required."""
    if (HERE / "node_modules").is_dir():
        return HERE / "node_modules" / ".bin"
    if shutil.which("npm") is None:
        if os.environ.get("CI"):
            pytest.fail("the kits need Node and npm")
        pytest.skip("no npm: the Inspector and the conformance suite did not run")
    pinned = [HERE / "package.json", HERE / "package-lock.json"]
    version = hashlib.sha256(b"".join(one.read_bytes() for one in pinned)).hexdigest()[:12]
    folder = user_cache_path("holdfast-tests") / f"mcp-{version}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as made:
            for one in pinned:
                shutil.copy(one, made)
            install = ["npm", "ci", "--no-audit", "--no-fund", "--loglevel", "error"]
            done = subprocess.run(
                install, cwd=made, capture_output=True, text=True, timeout=PATIENCE, check=False
            )
            if done.returncode and not os.environ.get("CI"):
                pytest.skip(
                    f"npm could not install the Inspector and the conformance suite: {done.stderr[-300:]}"
                )
            assert done.returncode == 0, done.stderr
            place = Path(made) / "whole"
            place.mkdir()
            (Path(made) / "node_modules").rename(place / "node_modules")
            if not folder.is_dir():  # another worker may have been faster
                place.rename(folder)
    return folder / "node_modules" / ".bin"


def run(kits: Path, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a kit on the Node that is installed with it."""
    with tempfile.TemporaryDirectory() as folder:  # some leave files where they run
        return subprocess.run(
            [str(kits / "node"), str(kits / name), *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


# The Inspector


@pytest.fixture(scope="module")
def served(db: str) -> Iterator[Served]:
    with Served(db) as server:
        yield server


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest, db: str, served: Served) -> list[str]:
    """Name a server as the Inspector wants it."""
    if request.param == "stdio":
        return command(db)
    return [served.url, "--transport", "http", "--header", f"Authorization: Bearer {served.token}"]


def inspected(kits: Path, target: list[str], *arguments: str) -> str:
    done = run(kits, "mcp-inspector", "--cli", *target, *arguments)
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr.lower(), done.stderr
    return done.stdout


def test_the_inspector_finds_nothing_wrong_with_the_tools(kits: Path, target: list[str]) -> None:
    listed = json.loads(inspected(kits, target, "--method", "tools/list", "--strict"))
    assert len(listed["tools"]) == 12


def test_the_inspector_calls_a_tool(kits: Path, target: list[str]) -> None:
    called = ("--method", "tools/call", "--tool-name", "recall", "--tool-arg", "query=marathon")
    assert "Berlin" in inspected(kits, target, *called)


# The conformance suite


@pytest.fixture(scope="module")
def open_url(db: str) -> Iterator[str]:
    """Serve without a token, by the name that the suite uses in its own tests."""
    with start(OPEN, db) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        yield url.replace("127.0.0.1", "localhost")
        process.terminate()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_it_conforms(kits: Path, open_url: str, scenario: str) -> None:
    done = run(kits, "conformance", "server", "--url", open_url, "--scenario", scenario)
    assert done.returncode == 0, done.stdout
    assert ", 0 failed, 0 warnings" in done.stdout
