"""The arguments and options of all commands by their names, each declared once.

An entry such as `erase.chat` is that of one command, or of a class of options.
"""

from collections.abc import Collection
from functools import partial
from typing import Annotated, get_args

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
_memory = partial(Option, rich_help_panel="Memory and output")
_http = partial(Option, rich_help_panel="Over HTTP")


def _choice(choices: Collection[str], metavar: str, what: str) -> OptionInfo:
    option: OptionInfo = Option(
        parser=one_of(choices), metavar=metavar, help=f"{what}: {', '.join(choices)}."
    )
    return option


ChatId = Annotated[
    str, Argument(metavar="CHAT", help="The id of a chat, or its beginning; `holdfast chats` lists them.")
]

PARAMETERS: dict[str, ArgumentInfo | OptionInfo] = {
    # Of all commands.
    "db": _memory(
        metavar="PATH|URL",
        help=f"The database: a file, or a postgresql:// URL. Default: ${DATABASE}, then memory.db in your "
        "data folder.",
    ),
    "tenant": _memory(help="The tenant."),
    "user": _memory(
        help=f"Whose memory it is. Default: ${USER}, then the only user in the database, then what all users "
        "share."
    ),
    "agent": _memory(help="The agent, if several share a memory."),
    "project": _memory(
        help=f"A project of the user; `.` for that of this folder, as for hooks. Default: ${PROJECT}."
    ),
    "team": _memory(help="A team of the tenant, in place of a project."),
    "reads": _memory(
        metavar="SPACE",
        help="A further space that is read, such as team:core or project:shop; repeat it for more.",
    ),
    "secrets": _memory(
        parser=one_of(("mask", "show")), metavar="mask|show", help="Mask credentials, or show them."
    ),
    "json": _memory(help="Print one JSON document, for programs."),
    "verbose": _memory(help="Show what the guard flagged in words of the user and assistant as well."),
    # Of many.
    "by": _choice(WRITERS, "WRITER", "Who writes"),
    "chat": Option(metavar="CHAT", help="Only in this chat."),
    "dry_run": Option(help="Only show the difference; the model is asked all the same."),
    "full": Option(help="Do not shorten tool results and other long texts."),
    "kind": Option(help=f"Only of this kind: {_KIND_NAMES}."),
    "limit": Option(min=0, help="At most so many. Without a default: all."),
    "llm": Option(metavar="NAME", help="The model to ask, such as openai:gpt-5-mini."),
    "messages": Option(
        parser=read_messages, metavar="N|N-N|CHAT#N-N", help="Only these messages of the chat."
    ),
    "offset": Option(min=0, help="Leave out so many of the first."),
    "since": Option(parser=read_time, metavar="7d|24h|DATE", help="Only from this time on."),
    "tag": Option(metavar="TAG", help="Only records with this tag; of several, one is enough."),
    "valid_at": Option(
        parser=read_time, metavar="DATE", help="Only records that are true in the world at this time."
    ),
    "where": Option(
        parser=read_where,
        metavar="FILTER",
        help="Only with this metadata, may be repeated: stars>=4, lang=de, lang in de,en, KEY, !KEY, JSON.",
    ),
    "yes": Option("--yes", "-y", help="Do not ask."),
    # To find.
    "query": Argument(help="A question or some words; no quotes needed."),
    "quoted": Argument(metavar="QUERY", help="A question or some words, in quotes."),
    "hit": Argument(metavar="CHAT#N|RECORD|SUMMARY", help="A message, or the id of a record or a summary."),
    "FindOptions.kind": Option(
        metavar="KIND", help=f"Only records of this kind, may be repeated: {_KIND_NAMES}."
    ),
    "source": _choice(SOURCES, "SOURCE", "Only from this source, may be repeated"),
    "role": _choice(ROLES, "ROLE", "Only this role, may be repeated"),
    "until": Option(
        parser=read_end, metavar="7d|DATE", help="Only up to the end of this date, or before this time."
    ),
    "latest": Option(help="Of nearly equal messages, the latest first."),
    "untrusted": Option(help="Only what waits in quarantine, which is not found otherwise."),
    "unhelpful": Option(help="It did not help."),
    "span": Argument(
        metavar="DAY|WEEK", help="2026-03-14, yesterday, 14 March, 2026-W11, last week; no quotes needed."
    ),
    # Of chats.
    "everything": Option("--all", help="Include archived chats."),
    "regex": Option(help="The query is a regular expression."),
    "title": Argument(help="The new title; no quotes needed."),
    "undo": Option(help="Bring an archived chat back."),
    "show.chat": Argument(
        metavar="CHAT|CHAT#N-N",
        help="The id of a chat, which `holdfast chats` lists; or a message, or several, as monday#3-7.",
    ),
    "show.limit": Option(min=0, help="At most so many, the newest unless --after is given."),
    "before": Option(parser=read_message, metavar="N|CHAT#N", help="Only messages before this one."),
    "after": Option(
        parser=read_message, metavar="N|CHAT#N", help="Only messages after this one, the first of them."
    ),
    "budget": Option(min=0, help="Tokens at most."),
    "window.query": Option(help="Show the whole prompt for this question, with what is recalled for it."),
    "stats.chat": Argument(metavar="CHAT", help="Count one chat instead of all."),
    # Of summaries.
    "compact.full": Option(help="Go on until the chat takes less than its target."),
    "compact.budget": Option(min=0, help="Tokens of the window that the chat is to fit."),
    "compact.prompt": Option(
        metavar="KIND=VERSION|PATH",
        help="Another prompt for leaf, condensed or arc, such as leaf=my/leaf.md; may be repeated.",
    ),
    "tree.identity": Argument(
        metavar="CHAT|SUMMARY", help="The id of a chat, or of a summary to show with its place."
    ),
    "expand.identity": Argument(
        metavar="SUMMARY|CHAT#N-N",
        help="The id of a summary, as `holdfast tree` shows it; or a message, or several, as monday#3-7.",
    ),
    "max_tokens": Option(min=0, help="Tokens at most, but always one entry at least."),
    "cursor": Option(metavar="CURSOR", help="Where to go on, from the answer before."),
    # Of records.
    "records.text": Option(help="Only with this in the text or the category."),
    "text": Argument(help="What is known; no quotes needed. `-` reads standard input."),
    "what": Argument(
        metavar="RECORD|TEXT", help="The id of a record, or a part of its text that is in no other."
    ),
    "remember.kind": Option(help=f"What kind of thing it is: {_KIND_NAMES}."),
    "remember.target": Option(help="What a fact is about: user or env. Of a note: session or plan."),
    "target": Option(help="Only about this (user, env), or in this part of notes (session, plan)."),
    "RecordOptions.category": Option(help="One word for what it belongs to."),
    "category": Option(help="Only of this category."),
    "RecordOptions.tag": Option(metavar="TAG", help="A tag; may be repeated."),
    "expected_version": Option(
        min=0, metavar="VERSION", help="Only if this is still its version; 0 if there is none yet."
    ),
    "priority": Option(min=1, max=10, help="How important it is: 10 is the most, 5 usual."),
    "RecordOptions.since": Option(parser=read_time, metavar="DATE", help="True from this date or time on."),
    "RecordOptions.until": Option(
        parser=read_end, metavar="DATE", help="True up to the end of this date, or before this time."
    ),
    "remember.chat": Option(
        metavar="CHAT|CHAT#N-N", help="The chat, or the messages of one, in which it was learned."
    ),
    "records.identity": Argument(metavar="RECORD", help="Show all of this record, and its history."),
    "at": Option(
        parser=read_point, metavar="VERSION|DATE", help="As of this version, or the end of this date."
    ),
    "text_only": Option(help="Print only the text of the record, ready for a file."),
    "why": Option(help="The reason, for the history."),
    "rollback.what": Argument(
        metavar="RECORD|KIND", help=f"The id of a record, or all of a kind: {_KIND_NAMES}."
    ),
    "rollback.version": Argument(min=0, help="A version; `holdfast changes` lists them."),
    "release": Option(metavar="RECORD", help="Release this record."),
    "discard": Option(metavar="RECORD", help="Retract this record."),
    "release_all": Option(help="Release all of them; with --chat, those of the chat."),
    "quarantine.to": Option(metavar="SPACE", help="Where to release it, such as user or team:core."),
    "erase.chat": Option(metavar="CHAT", help="This chat, and all that was learned in it."),
    "erase.record": Option(metavar="RECORD", help="This record, in all of its versions."),
    "rewrite": Option(
        help="Rewrite PostgreSQL's tables, locking each; alone: clean the files after earlier erasures."
    ),
    "name": Argument(help="Show what is under this name."),
    "value": Argument(help="Put this there; `-` reads standard input."),
    "scratchpad.chat": Option(metavar="CHAT", help="The scratchpad of this chat."),
    "remove": Option(metavar="NAME", help="Remove this name."),
    "search": Option(metavar="TEXT", help="Only with this in the name or value."),
    # Of spaces.
    "space": Argument(help="What is shared: project:NAME, user, team:NAME or tenant."),
    "grantee": Option("--to", metavar="user:NAME", help="The user who gets the right."),
    "rights": Option(parser=one_of(RIGHTS), metavar="|".join(RIGHTS), help="What may be done."),
    "record": Argument(metavar="RECORD", help="The id of a record."),
    "to": Argument(metavar="SPACE", help="Where it goes, such as user or team:core."),
    # To learn.
    "extract.text": Argument(help="What to learn from; `-` reads standard input."),
    "extract.chat": Option(metavar="CHAT", help="Learn from this chat instead."),
    "episodes.query": Argument(help="A question or some words; no quotes needed. Without one, the newest."),
    "relearn.kind": Option(help="Learn anew observations, facts or episodes."),
    "relearn.prompt": Option(
        parser=read_prompt,
        metavar="VERSION|PATH",
        help="A version of the prompt, such as v1, or a file: a path with a folder, or ending with .md. The "
        "usual one without it; v3 (of episodes v2) is the thorough one.",
    ),
    "kind.name": Argument(help="What the records are to be called, such as allergy."),
    "kind.learn": Argument(metavar="WHAT", help="What is to be learned, in quotes."),
    "example": Option(help="A sentence in which a user says it; may be repeated."),
    "status": _choice(get_args(JobStatus), "STATUS", "Only of this status"),
    "retry": Option(metavar="JOB", help="Open this one again, to be run by the next worker."),
    "work.limit": Option(min=1, help="At most so many jobs."),
    "work.watch": Option(
        help="Keep looking for jobs until interrupted; with --json, print one document per line."
    ),
    "every": Option(min=1, metavar="SECONDS", help="How long to wait before looking again."),
    "everyone": Option(help="For all users of this tenant, not only this one."),
    "work.dry_run": Option(
        help="Only print what it would ask the model, what that takes, and what it would learn without one."
    ),
    "work.prompt": Option(
        metavar="KIND=VERSION|PATH",
        help="Another prompt for a kind of jobs, such as session=v2; may be repeated. A file is a path with "
        "a folder, or ends with .md.",
    ),
    # To take in and out.
    "paths": Argument(
        metavar="PATH", callback=check_path, help=f"Files, folders or zips; {CLAUDE_CODE} when none is given."
    ),
    "folders": Argument(metavar="FOLDER", exists=True, file_okay=False, help="Folders to watch."),
    "no_projects": Option(help="All into one heap, not sessions of agents into their projects."),
    "import.dry_run": Option(help="Only show what edits of exported records would change."),
    "import.format": Option(
        metavar="notes", help="Take all Markdown files, and no others, as notes: into records."
    ),
    "columns": Option(
        "--map",
        metavar="FIELD=COLUMN,…",
        help="Take CSV or JSONL: as messages by content, role, at, chat, name, id, title, or as records by "
        "text, kind, category, tags and more; meta=* for all other columns.",
    ),
    "encoding": Option(help="That of CSV files, with --map."),
    "unnamed": Argument(hidden=True),
    "export.chat": Option(metavar="CHAT", help="Only this chat; may be repeated."),
    "output": Option("--output", "-o", metavar="FILE", help="Write to a file instead of stdout."),
    "force": Option(help="Replace the file if there is one."),
    "export.everything": Option(
        "--all", help="Everything: summaries, records with all versions, pads, jobs, receipts as well."
    ),
    "feedback": Option(
        help="A set of questions instead, with what helped, for `python -m benchmarks recall`."
    ),
    "format": Option(
        metavar="FORMAT",
        help="For other programs: openai, anthropic, langgraph (a chat a line), or markdown, to be read.",
    ),
    "records": Option(help="What is known, as Markdown to be edited; import takes edits over."),
    # To serve.
    "read_only": Option(help="Only what reads; nothing can be changed."),
    "http": _http(help="Serve over HTTP, not to who started it."),
    "host": _http(help="The address to listen at."),
    "port": _http(min=0, max=65535, help="The port to listen at; 0 for any free one."),
    "remote": _http(
        help="Allow a --host that other machines reach. Unencrypted: put a proxy with TLS before it."
    ),
    "request_seconds": _http(
        help="Close a connection whose request takes longer to arrive, headers and body."
    ),
    "idle_seconds": _http(help="Close a session that nobody uses for so long."),
    "max_sessions": _http(min=1, help="Open no more sessions than this at once."),
    "client": Argument(parser=one_of(_CLIENTS), metavar="CLIENT", help=f"{', '.join(_CLIENTS)}."),
    "in_project": Option("--project", help="For this project only, not for all projects of this user."),
    "install.read_only": Option(help="The tools can only read; hooks still store what is said."),
    "diff": Option(help="Show the difference in each file before anything is written."),
    "only_print": Option("--print", help="Print what to add, and write nothing."),
    "event": Argument(help=f"One of {', '.join(EVENTS)}."),
    "hook.client": Option(help="The client that calls: claude-code, codex, cursor or gemini."),
    "wait": Option(help="Return when all is done."),
    # To tend.
    "here": Option("--project", help="Only the project of the current folder, instead of everything."),
    "duration": Option(
        "--for", parser=read_duration, metavar="30m|2h|1d", help="End the pause by itself after this time."
    ),
    "repair": Option(help="First build the search index again from what is stored."),
    "path": Argument(metavar="FILE", help="The copy; there must be nothing of that name."),
    "damaged": Argument(exists=True, dir_okay=False, help="A file that is damaged."),
    "new": Argument(help="A new database; there must be nothing of that name."),
}
