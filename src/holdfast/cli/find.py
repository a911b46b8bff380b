"""The commands that search: recall in all chats, search in one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, cast

import typer

from holdfast.cli.arguments import KIND_NAMES, end, moment, one_of
from holdfast.cli.chats import ChatId, find_chat, the_chat, titles_of
from holdfast.cli.options import Options, ReadOptions
from holdfast.cli.render.screen import Part, Screen, answer, plain, when
from holdfast.compaction.explorer import SORTS, Sort
from holdfast.memory import Memory
from holdfast.safety.guard import Secrets
from holdfast.text.references import write_reference
from holdfast.types import ROLES, SOURCES, Hit, Role, Source

_Query = Annotated[
    list[str], typer.Argument(metavar="QUERY", help="A question or some words; no quotes needed.")
]
_ChatOnly = Annotated[str | None, typer.Option(metavar="CHAT", help="Only in this chat.")]
_Roles = Annotated[
    list[str] | None,
    typer.Option(
        parser=one_of(ROLES), metavar="ROLE", help=f"Only this role, may be repeated: {', '.join(ROLES)}."
    ),
]
_Since = Annotated[
    datetime | None,
    typer.Option(parser=moment, metavar="7d|DATE", help="Only from so long ago, or this date or time, on."),
]
_Until = Annotated[
    datetime | None,
    typer.Option(parser=end, metavar="7d|DATE", help="Only up to the end of this date, or before this time."),
]
_Kinds = Annotated[
    list[str] | None,
    typer.Option(metavar="KIND", help=f"Only records of this kind, may be repeated: {KIND_NAMES}."),
]
_Sources = Annotated[
    list[str] | None,
    typer.Option(
        parser=one_of(SOURCES),
        metavar="SOURCE",
        help=f"Only what is this, may be repeated: {', '.join(SOURCES)}.",
    ),
]
_TagsOnly = Annotated[
    list[str] | None,
    typer.Option(metavar="TAG", help="Only records with this tag; of several, one is enough."),
]
_ValidAt = Annotated[
    datetime | None,
    typer.Option(
        parser=moment,
        metavar="DATE",
        help="Records that are true in the world at this time; now otherwise.",
    ),
]
_Limit = Annotated[int, typer.Option(min=0, help="At most so many hits.")]
_MinScore = Annotated[float, typer.Option(min=0, max=1, help="Only hits with at least this score.")]


def recall(
    options: ReadOptions,
    *,
    query: _Query,
    source: _Sources = None,
    kind: _Kinds = None,
    tag: _TagsOnly = None,
    chat: _ChatOnly = None,
    role: _Roles = None,
    since: _Since = None,
    until: _Until = None,
    valid_at: _ValidAt = None,
    limit: _Limit = 5,
    min_score: _MinScore = 0.0,
) -> None:
    """Find the messages, summaries and records that answer a question, best first, with reasons.

    For example: holdfast recall which exercise did my physio give me
    """
    _recall(
        options,
        " ".join(query),
        limit,
        sources=cast("Sequence[Source] | None", source or None),
        roles=cast("Sequence[Role] | None", role or None),
        kinds=kind or None,
        tags=tag or None,
        chat=chat,
        since=since,
        until=until,
        valid_at=valid_at,
        min_score=min_score,
        secrets=cast("Secrets", options.secrets),
    )


_Regex = Annotated[bool, typer.Option("--regex", help="The query is a regular expression, in linear time.")]
_Before = Annotated[
    datetime | None, typer.Option(parser=moment, metavar="DATE", help="Only before this time.")
]
_Sort = Annotated[
    str | None,
    typer.Option(parser=one_of(SORTS), metavar="|".join(SORTS), help="The order; best first without it."),
]


def search(
    options: ReadOptions,
    *,
    chat: ChatId,
    query: _Query,
    regex: _Regex = False,
    since: _Since = None,
    before: _Before = None,
    sort: _Sort = None,
    limit: _Limit = 20,
) -> None:
    """Find messages and summaries of one chat, by words or by a regular expression.

    For example: holdfast search porto-trip "train at [0-9]+" --regex
    """
    with options.open() as memory:
        info = the_chat(options, memory, chat)
        hits = memory.chat(chat).search(
            " ".join(query),
            limit=limit,
            regex=regex,
            since=since,
            before=before,
            sort=cast("Sort | None", sort),
            secrets=cast("Secrets", options.secrets),
        )
    titles = {chat: info.title}
    if options.json:
        answer({"chat": chat, "query": " ".join(query), "hits": [described(hit, titles) for hit in hits]})
        return
    screen = Screen()
    for place, hit in enumerate(hits, start=1):
        show_hit(screen, f"{place}.", hit, titles)
        screen.say("")
    if not hits:
        screen.say(f"Nothing found in {chat}.")
        screen.say("→ Try other words, or search everywhere with `holdfast recall`.")


def _recall(options: Options, question: str, limit: int, **filters: Any) -> None:
    with options.open() as memory:
        hits = memory.recall(question, limit=limit, **filters)
        titles = titles_of(memory, [hit.chat for hit in hits])
        if not hits and (chat := filters["chat"]) is not None and not find_chat(memory.scoped(user=""), chat):
            the_chat(options, memory, chat)
        more = _more(options, memory, hits[0]) if hits else ""
        is_empty = not hits and not memory.version() and not memory.chats(agent="", archived=None, limit=1)
    if options.json:
        answer({"query": question, "hits": [described(hit, titles) for hit in hits]})
        return
    screen = Screen()
    for place, hit in enumerate(hits, start=1):
        show_hit(screen, f"{place}.", hit, titles)
        screen.say("")
    if hits:
        screen.say((more, "dim"))
    else:
        del filters["secrets"]
        filtered = any((*filters.values(), options.agent))
        _say_nothing_found(screen, options, empty=is_empty, filtered=filtered)


def _more(options: Options, memory: Memory, hit: Hit) -> str:
    """Name the command that shows more of a hit, which may be in what all users share."""
    shared = replace(options, user="")
    if hit.source == "record":
        holder = options if memory.changes(id=hit.id, limit=1) else shared
        return f"All about the first: {holder.line('records', hit.id)}"
    if hit.source == "summary":
        return f"What is behind the first: {options.line('expand', hit.id)}"
    holder = options if find_chat(memory, hit.chat) else shared
    around = write_reference(hit.chat, max(1, hit.seq - 4), hit.seq + 3)
    return f"Read around the first: {holder.line('show', around)}"


def _say_nothing_found(screen: Screen, options: Options, *, empty: bool, filtered: bool) -> None:
    """Print that nothing was found, and what to try."""
    screen.say(f"Nothing found{options.whose()}.")
    if others := options.others():
        screen.say(f"→ {others}")
    elif empty:
        screen.say("→ There is nothing to search yet: `holdfast import PATH…`, or `holdfast remember TEXT…`.")
    elif filtered:
        screen.say("→ Try other words, or fewer filters.")
    else:
        screen.say("→ Try other words; `holdfast chats` and `holdfast records` list what there is.")


def show_hit(screen: Screen, mark: str, hit: Hit, titles: Mapping[str, str], focus: str = "") -> None:
    """Print a hit: how sure, when, who, where, the words, and why.

    Of a record: its kind, and where it was learned. Of a summary: which messages it stands for.
    """
    # The text analysis is loaded by who needs it.
    from holdfast.cli.render.excerpt import excerpt

    screen.say(
        f"{mark} ",
        (f"{hit.score:.2f}", "bold"),
        (f"  {when(hit.at)}  ", "dim"),
        (hit.kind if hit.source == "record" else hit.actor, "bold"),
        *_where(hit, titles.get(hit.chat, "")),
        hang=3,
    )
    screen.say(*excerpt(hit.text, hit.why.words, focus), indent=3)
    flags = f"  flags: {', '.join(hit.flags)}" if hit.flags else ""
    screen.say((f"why: {hit.why}{flags}", "dim"), indent=3)


def _where(hit: Hit, title: str) -> list[Part]:
    """Return the source of a hit: a message, the range of a summary, or where a record was learned."""
    if hit.source == "summary":
        place = f"({write_reference(hit.chat, hit.seq, hit.last_seq)}, {hit.id})"
        return [f"  of {title}  " if title else "  of ", (place, "dim")]
    place = write_reference(hit.chat, hit.seq, hit.last_seq or None) if hit.seq else hit.chat
    if hit.source == "message":
        return [f"  in {title}  " if title else "  in ", (f"({place})", "dim")]
    learned = f"  learned in {title}{'  ' if title else ''}" if hit.chat else f"  from {hit.actor}  "
    return [learned, (f"({place}, {hit.id})" if hit.chat else f"({hit.id})", "dim")]


def described(hit: Hit, titles: Mapping[str, str]) -> dict[str, object]:
    """Make JSON-compatible data of a hit, with the title of its chat."""
    return {**plain(hit), "title": titles.get(hit.chat, "")}
