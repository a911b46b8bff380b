"""The arguments and options of all commands by their names, each declared once.

An entry such as `erase.chat` is that of one command, or of a class of options.
"""

from collections.abc import Collection
from functools import partial
from typing import Annotated, Any, get_args

from typer import Argument, Option
from typer.models import ArgumentInfo, OptionInfo

from holdfast.kinds import KINDS
from holdfast.types import ROLES, SOURCES, WRITERS, JobStatus
from holdfast.types.grants import RIGHTS
from holdfast_cli.commands.arguments import (
    check_path,
    one_of,
    read_duration,
    read_end,
    read_message,
    read_messages,
    read_point,
    read_prompt,
    read_range,
    read_time,
)
from holdfast_cli.commands.options import USER
from holdfast_cli.commands.where_option import read_where
from holdfast_cli.hooks.clients import NAMES, ONLY_SERVER
from holdfast_cli.hooks.hook_call import EVENTS
from holdfast_cli.hooks.location import DATABASE
from holdfast_cli.hooks.project import PROJECT

CLAUDE_CODE = "~/.claude/projects"
_KIND_NAMES = ", ".join(kind.name for kind in KINDS)
_CLIENTS = (*NAMES, *ONLY_SERVER)


# Any: what typer takes.
def _option(what: str, metavar: str | None = None, *names: str, **more: Any) -> OptionInfo:
    option: OptionInfo = Option(*names, metavar=metavar, help=what, **more)
    return option


def _argument(what: str, metavar: str | None = None, **more: Any) -> ArgumentInfo:
    argument: ArgumentInfo = Argument(metavar=metavar, help=what, **more)
    return argument


def _choice(choices: Collection[str], metavar: str, what: str) -> OptionInfo:
    return _option(f"{what}: {', '.join(choices)}.", metavar, parser=one_of(choices))


_memory = partial(_option, rich_help_panel="Memory and output")
_http = partial(_option, rich_help_panel="Over HTTP")
ChatId = Annotated[str, _argument("The id of a chat, or its beginning; `holdfast chats` lists them.", "CHAT")]

PARAMETERS: dict[str, ArgumentInfo | OptionInfo] = {
    # Of all commands.
    "db": _memory(
        f"The database: a file, or a postgresql:// URL. Default: ${DATABASE}, then memory.db in your "
        "data folder.",
        "PATH|URL",
    ),
    "tenant": _memory("The tenant."),
    "user": _memory(
        f"Whose memory it is. Default: ${USER}, then the only user in the database, then what all users "
        "share."
    ),
    "agent": _memory("The agent, if several share a memory."),
    "project": _memory(
        f"A project of the user; `.` for that of this folder, as for hooks. Default: ${PROJECT}."
    ),
    "team": _memory("A team of the tenant, in place of a project."),
    "reads": _memory(
        "A further space that is read, such as team:core or project:shop; repeat it for more.", "SPACE"
    ),
    "secrets": _memory("Mask credentials, or show them.", "mask|show", parser=one_of(("mask", "show"))),
    "json": _memory("Print one JSON document, for programs."),
    # Of many.
    "by": _choice(WRITERS, "WRITER", "Who writes"),
    "chat": _option("Only in this chat.", "CHAT"),
    "dry_run": _option("Only show the difference; the model is asked all the same."),
    "full": _option("Do not shorten tool results and other long texts."),
    "kind": _option(f"Only of this kind: {_KIND_NAMES}."),
    "limit": _option("At most so many. Without a default: all.", min=0),
    "llm": _option("The model to ask, such as openai:gpt-5-mini.", "NAME"),
    "messages": _option("Only these messages of the chat.", "N|N-N|CHAT#N-N", parser=read_messages),
    "offset": _option("Leave out so many of the first.", min=0),
    "since": _option("Only from this time on.", "7d|24h|DATE", parser=read_time),
    "tag": _option("Only records with this tag; of several, one is enough.", "TAG"),
    "valid_at": _option("Only records that are true in the world at this time.", "DATE", parser=read_time),
    "where": _option(
        "Only with this metadata, may be repeated: stars>=4, lang=de, lang in de,en, KEY, !KEY, JSON.",
        "FILTER",
        parser=read_where,
    ),
    "yes": _option("Do not ask.", None, "--yes", "-y"),
    # To find.
    "query": _argument("A question or some words; no quotes needed."),
    "quoted": _argument("A question or some words, in quotes.", "QUERY"),
    "hit": _argument("A message, or the id of a record or a summary.", "CHAT#N|RECORD|SUMMARY"),
    "FindOptions.kind": _option(f"Only records of this kind, may be repeated: {_KIND_NAMES}.", "KIND"),
    "source": _choice(SOURCES, "SOURCE", "Only from this source, may be repeated"),
    "role": _choice(ROLES, "ROLE", "Only this role, may be repeated"),
    "until": _option("Only up to the end of this date, or before this time.", "7d|DATE", parser=read_end),
    "latest": _option("Of nearly equal messages, the latest first."),
    "untrusted": _option("Only what waits in quarantine, which is not found otherwise."),
    "unhelpful": _option("It did not help."),
    "span": _argument("2026-03-14, yesterday, 14 March, 2026-W11, last week; no quotes needed.", "DAY|WEEK"),
    # Of chats.
    "everything": _option("Include archived chats.", None, "--all"),
    "regex": _option("The query is a regular expression."),
    "title": _argument("The new title; no quotes needed."),
    "undo": _option("Bring an archived chat back."),
    "rewind.seq": _argument("The message that is to be the last one; 0 for none.", "N", min=0),
    "switch": _option("Go to the branch with this last message.", "N", min=0),
    "show.chat": _argument(
        "The id of a chat, which `holdfast chats` lists; or a message, or several, as monday#3-7.",
        "CHAT|CHAT#N-N",
    ),
    "show.limit": _option("At most so many, the newest unless --after is given.", min=0),
    "before": _option("Only messages before this one.", "N|CHAT#N", parser=read_message),
    "after": _option("Only messages after this one, the first of them.", "N|CHAT#N", parser=read_message),
    "budget": _option("Tokens at most.", min=0),
    "window.query": _option("Show the whole prompt for this question, with what is recalled for it."),
    "stats.chat": _argument("Count one chat instead of all.", "CHAT"),
    # Of summaries.
    "compact.full": _option("Go on until the chat takes less than its target."),
    "compact.budget": _option("Tokens of the window that the chat is to fit.", min=0),
    "compact.prompt": _option(
        "Another prompt for leaf, condensed or arc, such as leaf=my/leaf.md; may be repeated.",
        "KIND=VERSION|PATH",
    ),
    "tree.identity": _argument("The id of a chat, or of a summary to show with its place.", "CHAT|SUMMARY"),
    "expand.identity": _argument(
        "The id of a summary, as `holdfast tree` shows it; or a message, or several, as monday#3-7.",
        "SUMMARY|CHAT#N-N",
    ),
    "max_tokens": _option("Tokens at most, but always one entry at least.", min=0),
    "cursor": _option("Where to go on, from the answer before.", "CURSOR"),
    "changes.diff": _option(
        "Instead, how the records of two versions differ, as a unified diff; a date means its end.",
        "VERSION[..VERSION]",
        parser=read_range,
    ),
    # Of records.
    "records.text": _option("Only with this in the text or the category."),
    "text": _argument("What is known; no quotes needed. `-` reads standard input."),
    "what": _argument("The id of a record, or a part of its text that is in no other.", "RECORD|TEXT"),
    "remember.kind": _option(f"What kind of thing it is: {_KIND_NAMES}."),
    "remember.target": _option("What a fact is about: user or env. Of a note: session or plan."),
    "target": _option("Only about this (user, env), or in this part of notes (session, plan)."),
    "RecordOptions.category": _option("One word for what it belongs to."),
    "category": _option("Only of this category."),
    "RecordOptions.tag": _option("A tag; may be repeated.", "TAG"),
    "priority": _option("How important it is: 10 is the most, 5 usual.", min=1, max=10),
    "RecordOptions.since": _option("True from this date or time on.", "DATE", parser=read_time),
    "RecordOptions.until": _option(
        "True up to the end of this date, or before this time.", "DATE", parser=read_end
    ),
    "remember.chat": _option("The chat, or the messages of one, in which it was learned.", "CHAT|CHAT#N-N"),
    "records.identity": _argument("Show all of this record, and its history.", "RECORD"),
    "at": _option("As of this version, or the end of this date.", "VERSION|DATE", parser=read_point),
    "pin.undo": _option("End the pin."),
    "text_only": _option("Print only the text of the record, ready for a file."),
    "why": _option("The reason, for the history."),
    "rollback.what": _argument(f"The id of a record, or all of a kind: {_KIND_NAMES}.", "RECORD|KIND"),
    "rollback.version": _argument("A version; `holdfast changes` lists them.", min=0),
    "release": _option("Release this record.", "RECORD"),
    "discard": _option("Retract this record.", "RECORD"),
    "release_all": _option("Release all of them; with --chat, those of the chat."),
    "quarantine.to": _option("Where to release it, such as user or team:core.", "SPACE"),
    "erase.chat": _option("This chat, and all that was learned in it.", "CHAT"),
    "erase.record": _option("This record, in all of its versions.", "RECORD"),
    "rewrite": _option(
        "Rewrite PostgreSQL's tables, locking each; alone: clean the files after earlier erasures."
    ),
    "keep": _option("Keep this record, and retract what contradicts it; several are all true.", "RECORD"),
    "name": _argument("Show what is under this name."),
    "value": _argument("Put this there; `-` reads standard input."),
    "scratchpad.chat": _option("The scratchpad of this chat.", "CHAT"),
    "remove": _option("Remove this name.", "NAME"),
    "search": _option("Only with this in the name or value.", "TEXT"),
    # Of spaces.
    "space": _argument("What is shared: project:NAME, user, team:NAME or tenant."),
    "grantee": _option("The user who gets the right.", "user:NAME", "--to"),
    "rights": _option("What may be done.", "|".join(RIGHTS), parser=one_of(RIGHTS)),
    "record": _argument("The id of a record.", "RECORD"),
    "to": _argument("Where it goes, such as user or team:core.", "SPACE"),
    # To learn.
    "extract.text": _argument("What to learn from; `-` reads standard input."),
    "extract.chat": _option("Learn from this chat instead.", "CHAT"),
    "episodes.query": _argument("A question or some words; no quotes needed. Without one, the newest."),
    "relearn.kind": _option("Learn anew observations, facts or episodes."),
    "relearn.prompt": _option(
        "A version of the prompt, such as v1, or a file: a path with a folder, or ending with .md. The "
        "usual one without it; v3 (of episodes v2) is the thorough one.",
        "VERSION|PATH",
        parser=read_prompt,
    ),
    "kind.name": _argument("What the records are to be called, such as allergy."),
    "kind.learn": _argument("What is to be learned, in quotes.", "WHAT"),
    "example": _option("A sentence in which a user says it; may be repeated."),
    "status": _choice(get_args(JobStatus), "STATUS", "Only of this status"),
    "retry": _option("Open this one again, to be run by the next worker.", "JOB"),
    "work.limit": _option("At most so many jobs.", min=1),
    "work.watch": _option(
        "Keep looking for jobs until interrupted; with --json, print one document per line."
    ),
    "every": _option("How long to wait before looking again.", "SECONDS", min=1),
    "everyone": _option("For all users of this tenant, not only this one."),
    "work.dry_run": _option(
        "Only print what it would ask the model, what that takes, and what it would learn without one."
    ),
    "rule": _argument("How long which kind is kept after it was said last; h, d or w.", "KIND=TIME"),
    "unused": _option("After it was said or used last."),
    "expire.erase": _option("Erase them for ever, with a receipt."),
    "expire.dry_run": _option("Only list what would go, and why."),
    # To take in and out.
    "paths": _argument(
        f"Files, folders or zips; {CLAUDE_CODE} when none is given.", "PATH", callback=check_path
    ),
    "folders": _argument("Folders to watch.", "FOLDER", exists=True, file_okay=False),
    "no_projects": _option("All into one heap, not sessions of agents into their projects."),
    "import.dry_run": _option("Only show what edits of exported records would change."),
    "import.format": _option("Take all Markdown files, and no others, as notes: into records.", "notes"),
    "columns": _option(
        "Take CSV or JSONL: as messages by content, role, at, chat, name, id, title, or as records by "
        "text, kind, category, tags and more; meta=* for all other columns.",
        "FIELD=COLUMN,…",
        "--map",
    ),
    "encoding": _option("That of CSV files, with --map."),
    "unnamed": _argument("", hidden=True),
    "export.chat": _option("Only this chat; may be repeated.", "CHAT"),
    "output": _option("Write to a file instead of stdout.", "FILE", "--output", "-o"),
    "force": _option("Replace the file if there is one."),
    "export.everything": _option(
        "Everything: summaries, records with all versions, pads, jobs, receipts as well.", None, "--all"
    ),
    "feedback": _option("A set of questions instead, with what helped, for `python -m benchmarks recall`."),
    "format": _option(
        "For other programs: openai, anthropic, langgraph (a chat a line), or markdown, to be read.", "FORMAT"
    ),
    "records": _option("What is known, as Markdown to be edited; import takes edits over."),
    # To serve.
    "read_only": _option("Only what reads; nothing can be changed."),
    "http": _http("Serve over HTTP, not to who started it."),
    "host": _http("The address to listen at."),
    "port": _http("The port to listen at; 0 for any free one.", min=0, max=65535),
    "remote": _http("Allow a --host that other machines reach. Unencrypted: put a proxy with TLS before it."),
    "request_seconds": _http("Close a connection whose request takes longer to arrive, headers and body."),
    "idle_seconds": _http("Close a session that nobody uses for so long."),
    "max_sessions": _http("Open no more sessions than this at once.", min=1),
    "client": _argument(f"{', '.join(_CLIENTS)}.", "CLIENT", parser=one_of(_CLIENTS)),
    "in_project": _option("For this project only, not for all projects of this user.", None, "--project"),
    "install.read_only": _option("The tools can only read; hooks still store what is said."),
    "diff": _option("Show the difference in each file before anything is written."),
    "only_print": _option("Print what to add, and write nothing.", None, "--print"),
    "event": _argument(f"One of {', '.join(EVENTS)}."),
    "hook.client": _option("The client that calls: claude-code, codex, cursor or gemini."),
    "wait": _option("Return when all is done."),
    # To tend.
    "older": _option("The time since its newest message.", "90d", "--older-than", parser=read_duration),
    "move.folder": _option("Where the files go.", "FOLDER", "--to", file_okay=False),
    "move.archived": _option("Only chats that are archived."),
    "here": _option("Only the project of the current folder, instead of everything.", None, "--project"),
    "duration": _option(
        "End the pause by itself after this time.", "30m|2h|1d", "--for", parser=read_duration
    ),
    "repair": _option("First build the search index again from what is stored."),
    "path": _argument("The copy; there must be nothing of that name.", "FILE"),
    "damaged": _argument("A file that is damaged.", exists=True, dir_okay=False),
    "new": _argument("A new database; there must be nothing of that name."),
}
