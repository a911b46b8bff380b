"""Every statement that Holdfast runs: the space comes first, in the SQL that both databases share."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import holdfast
from holdfast.store import postgres_purge
from holdfast.store.schema import split_statements
from tables import each

ROOT = Path(holdfast.__file__).parent
SCHEMA = (ROOT / "store" / "schema.sql").read_text("utf-8")
TABLES = re.findall(r"CREATE TABLE (\w+)", SCHEMA)
OURS = "|".join(TABLES)
# … and {} stand for a table whose name is put in.
TABLE = rf"(?:(?:{OURS})\b|(?:…|{{}})(?=\s\S))"

# A table that is read or changed, and the condition that comes next, behind what stands in parentheses.
# Looked for everywhere, also within these.
PARENTHESES = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
USE = re.compile(
    rf"(?=(\b(?:FROM|JOIN|UPDATE|USING)\s+{TABLE}"
    rf"(?:(?!\bWHERE\b|\bON\s+(?!CONFLICT))(?:{PARENTHESES}|[^()]))*(?:\b(?:WHERE|ON)\s+(\S* = \S+))?))"
)
SPACE_FIRST = re.compile(r"(?:\w+\.)?space = (?::space|\w+\.space)")
SPACE_GIVEN = re.compile(r"\b(?:WHERE|ON) (?:\w+\.)?space = :space")
INSERT = re.compile(r"\bINSERT INTO (?:\w+) \((\w+)")
ON_CONFLICT = re.compile(r"\bON CONFLICT(?! \(space\b)")
NOT_PORTABLE = re.compile(
    r"::|\bnow\(|\bSERIAL\b|\bAUTOINCREMENT\b|\bINTEGER\b|\bREAL\b|->|\bILIKE\b|\bGLOB\b|\bCOLLATE\b|\bstrftime\(|"
    r"\bjson_|\bINSERT OR\b|\bREPLACE INTO\b|\bCURRENT_TIMESTAMP\b|\browid\b|\?",
    re.IGNORECASE,
)


def texts(source: str) -> Iterator[str]:
    """Yield the string constants of a module but its docstrings, with … for what is put into them."""
    tree = ast.parse(source)
    skipped = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped.update(map(id, node.values))
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.value


def problem(statement: str) -> str | None:
    """Say what is wrong with a statement that uses one of our tables."""
    uses = list(USE.finditer(statement))
    for use in uses:
        if not SPACE_FIRST.fullmatch((use[2] or "").rstrip(",)")):
            return f"does not begin its condition with the space: {use[1]}"
    if uses and not SPACE_GIVEN.search(statement):
        return "is not given the space"
    if any(column != "space" for column in INSERT.findall(statement)):
        return "does not insert the space first"
    if ON_CONFLICT.search(statement):
        return "does not look for conflicts within the space"
    return "is not portable" if NOT_PORTABLE.search(statement) else None


ACROSS_SPACES = {
    # A worker has to find whom to work for: names of spaces, and nothing else.
    "SELECT min(space) AS space FROM {} WHERE space > :after",
    # And which of them are on its agenda: names of spaces and of workers, and times.
    (
        "SELECT space, worker, due FROM agenda WHERE (space, worker) > (:after, :last) "
        "ORDER BY space, worker LIMIT :page"
    ),
    # A user has to find what was granted to her: the own rights, in whatever space of the tenant.
    (
        "SELECT space, number, grantee, rights, actor, at, why FROM grants "
        "WHERE space >= :shared AND space < :end AND grantee = :grantee AND ended = :open AND rights <> ''"
    ),
}
STATEMENTS = [
    text
    for file in sorted((ROOT / "store").glob("*.py"))
    for text in texts(file.read_text("utf-8"))
    if re.search(rf"\b(?:FROM|JOIN|INTO|UPDATE|USING)\s+{TABLE}", text)
    and " ".join(text.split()) not in ACROSS_SPACES
]


@each("statement", STATEMENTS)
def test_a_statement_puts_the_space_first(statement: str) -> None:
    assert problem(statement) is None


def test_the_statements_were_found() -> None:
    assert len(STATEMENTS) > 15


@each(
    "statement",
    [
        "SELECT length FROM sessions",
        "SELECT length FROM sessions WHERE space LIKE :space",
        "SELECT length FROM sessions WHERE (space = :space OR chat = :chat)",
        "SELECT m.seq FROM messages m JOIN sessions s ON s.space = m.space WHERE m.chat = :chat",
        "SELECT (SELECT max(doc) FROM messages) FROM sessions WHERE space = :space",
        "UPDATE sessions SET length = (SELECT coalesce(max(seq), 0) FROM messages WHERE space = :space)",
        "INSERT INTO sessions (chat, space) VALUES (:chat, :space)",
        "INSERT INTO sessions (space, chat) VALUES (:space, :chat) ON CONFLICT (chat) DO NOTHING",
        "SELECT chat::text FROM sessions WHERE space = :space",
        "INSERT OR IGNORE INTO sessions (space, chat) VALUES (:space, :chat)",
    ],
)
def test_a_statement_that_does_not_put_the_space_first_would_be_noticed(statement: str) -> None:
    assert problem(statement) is not None


def test_each_table_index_and_constraint_begins_with_the_space() -> None:
    tables = re.findall(r"CREATE TABLE (\w+) \(\s*(\w+) (\w+) NOT NULL", SCHEMA)
    assert {tuple(rest) for table, *rest in tables} == {("space", "TEXT")}
    for statement in split_statements(SCHEMA):
        if re.search(rf"CREATE TABLE (?:{OURS})", statement):
            assert re.search(r"PRIMARY KEY \(space\b|space TEXT NOT NULL PRIMARY KEY", statement), statement
    text = re.sub(r"--.*", "", SCHEMA)
    assert set(re.findall(r"\b(?:KEY|UNIQUE|REFERENCES \w+|INDEX \w+\s+ON \w+)\s*\((\w+)", text)) == {"space"}


def test_the_schema_is_portable() -> None:
    text = re.sub(r"--.*", "", SCHEMA)
    assert not NOT_PORTABLE.search(text)
    types = re.findall(r"^[ \t]+\w+ ([A-Z]+(?: PRECISION)?)\b", text, re.MULTILINE)
    assert set(types) - {"KEY"} <= {"TEXT", "BIGINT", "DOUBLE PRECISION", "BYTEA"}


def test_what_is_erased_leaves_every_table_on_disk() -> None:
    """PostgreSQL keeps deleted rows in its files until the table is vacuumed."""
    assert {*postgres_purge.PERSONAL, "spaces", "erasures"} == set(TABLES)
