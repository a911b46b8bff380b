"""The command that finds: recall."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, cast

import typer

from holdfast.cli.options import Options
from holdfast.cli.reading import known_chats
from holdfast.cli.screen import Screen, answer, plain, read_end, read_time, when
from holdfast.memory import Memory
from holdfast.types import ROLES, ChatInfo, Hit, Role


def _role(text: str) -> str:
    if text not in ROLES:
        raise typer.BadParameter(f"{text!r} is none of {', '.join(ROLES)}.")
    return text


_Query = Annotated[
    list[str], typer.Argument(metavar="QUERY", help="A question or some words; no quotes needed.")
]
_ChatOnly = Annotated[str | None, typer.Option(metavar="CHAT", help="Only in this chat.")]
_Roles = Annotated[
    list[str] | None,
    typer.Option(parser=_role, metavar="ROLE", help=f"Only this role, may be repeated: {', '.join(ROLES)}."),
]
_Since = Annotated[
    datetime | None, typer.Option(parser=read_time, metavar="DATE", help="Only from this date or time on.")
]
_Until = Annotated[
    datetime | None,
    typer.Option(
        parser=read_end, metavar="DATE", help="Only up to the end of this date, or before this time."
    ),
]
_MinScore = Annotated[float, typer.Option(min=0, max=1, help="Only hits with at least this score.")]


def recall(
    options: Options,
    *,
    query: _Query,
    chat: _ChatOnly = None,
    role: _Roles = None,
    since: _Since = None,
    until: _Until = None,
    limit: Annotated[int, typer.Option(min=0, help="At most so many hits.")] = 5,
    min_score: _MinScore = 0.0,
) -> None:
    """Find the messages that answer a question, and why.

    Best first. For example: holdfast recall which exercise did my physio give me
    """
    question = " ".join(query)
    roles = cast("Sequence[Role] | None", role or None)
    with options.open() as memory:
        hits = memory.recall(
            question, chat=chat, roles=roles, since=since, until=until, limit=limit, min_score=min_score
        )
        known = known_chats(memory)
        titles = titles_of(memory, hits, known)
    if options.json:
        answer({"query": question, "hits": [described(hit, titles) for hit in hits]})
        return
    screen = Screen()
    for place, hit in enumerate(hits, start=1):
        show_hit(screen, f"{place}.", hit, titles)
        screen.say("")
    if hits:
        holder = options if hits[0].chat in known else replace(options, user="")  # what all users share
        around = holder.line("show", hits[0].chat, "--before", hits[0].seq + 4, "--limit", 8)
        screen.say((f"Read around the first: {around}", "dim"))
    else:
        filtered = bool(chat or roles or since or until or min_score or options.agent)
        _say_nothing_found(screen, options, empty=not known, filtered=filtered)


def _say_nothing_found(screen: Screen, options: Options, *, empty: bool, filtered: bool) -> None:
    """Say that there is no hit, and what to try: it depends on why."""
    screen.say(f"Nothing found{options.whose()}.")
    if empty:
        screen.say("→ There are no chats to search yet: bring some in with `holdfast import PATH…`.")
    elif filtered:
        screen.say("→ Try other words, or fewer filters.")
    else:
        screen.say("→ Try other words; `holdfast chats` lists what there is.")


def show_hit(screen: Screen, mark: str, hit: Hit, titles: Mapping[str, str], focus: str = "") -> None:
    """Print a hit: how sure, when, who, where, the words, and why."""
    from holdfast.cli.excerpt import excerpt  # noqa: PLC0415 - the text analysis is loaded by who needs it

    title = titles.get(hit.chat, "")
    where = f"{title}  " if title else ""
    screen.say(
        f"{mark} ",
        (f"{hit.score:.2f}", "bold"),
        (f"  {when(hit.at)}  ", "dim"),
        (hit.actor, "bold"),
        f"  in {where}",
        (f"({hit.chat} #{hit.seq})", "dim"),
        hang=3,
    )
    screen.say(*excerpt(hit.text, hit.why.words, focus), indent=3)
    screen.say((f"why: {hit.why}", "dim"), indent=3)


def titles_of(memory: Memory, hits: Iterable[Hit], known: Mapping[str, ChatInfo]) -> dict[str, str]:
    """Find the titles of the chats of hits, of which some may be in what all users share."""
    chats = {hit.chat for hit in hits}
    shared = known_chats(memory.scoped(user="")) if chats - known.keys() else {}
    return {info.id: info.title for info in (*shared.values(), *known.values()) if info.id in chats}


def described(hit: Hit, titles: Mapping[str, str]) -> dict[str, object]:
    """Make JSON-compatible data of a hit, with the title of its chat."""
    return {**plain(hit), "title": titles.get(hit.chat, "")}
