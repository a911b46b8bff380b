"""The commands that search in all chats, and rate hits: recall, why, feedback."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from holdfast import Memory
from holdfast.types import Hit
from holdfast.types.references import write_reference
from holdfast_cli.commands.lookup import find_chat, the_chat, titles_of, with_space
from holdfast_cli.commands.options import Options, Output, ReadOptions
from holdfast_cli.commands.quarantine import ways_out
from holdfast_cli.commands.render.screen import Part, Screen, plain, when
from holdfast_cli.commands.render.wording import in_options
from holdfast_cli.commands.where_option import MetaFilter, join_filters

_OWN = frozenset({"user", "assistant", "system", "developer", "app"})  # roles that write in their own words


@dataclass(frozen=True, slots=True, kw_only=True)
class FindOptions(ReadOptions):
    """The memory to search, and the filters. The fields are options."""

    source: list[str] | None = None
    kind: list[str] | None = None
    tag: list[str] | None = None
    chat: str | None = None
    role: list[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    valid_at: datetime | None = None
    where: list[MetaFilter] | None = None
    limit: int = 5
    latest: bool = False
    untrusted: bool = False

    # Any: keywords of many types.
    def filters(self) -> dict[str, Any]:
        """Return the filters, None for those that were not given."""
        several = {"sources": self.source, "roles": self.role, "kinds": self.kind, "tags": self.tag}
        filters: dict[str, Any] = {name: values or None for name, values in several.items()}
        filters |= {name: getattr(self, name) for name in ("chat", "since", "until", "valid_at")}
        trust = "untrusted" if self.untrusted else None
        return {**filters, "trust": trust, "where": join_filters(self.where)}

    def keywords(self) -> dict[str, Any]:
        """Return the keywords of a recall or its explanation."""
        prefer = "latest" if self.latest else None
        return {**self.filters(), "limit": self.limit, "prefer": prefer, "secrets": self.secrets}


def recall(options: FindOptions, *, query: list[str]) -> None:
    """Find the messages, summaries and records that answer a question, best first, with reasons.

    $HOLDFAST_EMBED names an embedder, to find by meaning as well what `holdfast work` has embedded.

    For example: holdfast recall which exercise did my physio give me
    """
    text, chat = " ".join(query), options.chat
    with options.open(embed=True) as memory:
        hits = memory.recall(text, **options.keywords())
        own = memory.scope.reference(memory.scope.space)
        titles = titles_of(memory, [with_space(hit, own).chat for hit in hits])
        if not hits and chat is not None and not find_chat(memory.scoped(user=""), chat):
            the_chat(options, memory, chat)
        further = _further(options, memory, hits[0]) if hits else ""
        is_empty = not hits and not memory.version() and not memory.chats(agent="", archived=None, limit=1)
    more = options.larger(options.limit) if len(hits) == options.limit else None
    screen = show_hits(options, hits, titles, own, query=text, more=more)
    if more:
        screen.say((f"More, if there are any: {more}", "dim"))
    if hits:
        screen.say((further, "dim"))
        if options.untrusted:
            screen.say((f"Quarantined. {ways_out(options, hits[0].id)}", "dim"))
    else:
        is_filtered = any((*options.filters().values(), options.agent))
        todo = _todo(is_empty=is_empty, is_filtered=is_filtered)
        options.say_nothing(screen, f"Nothing found{options.whose()}.", todo)


def why(options: FindOptions, *, quoted: str, hit: str) -> None:
    """Explain why a message, record or summary is found for a question, or why not.

    $HOLDFAST_EMBED names an embedder, as for `holdfast recall`.

    For example: holdfast why "which exercise did my physio give me" porto-trip#3
    """
    with options.open(embed=True) as memory:
        explanation = memory.explain(quoted, hit, **options.keywords())
    screen = options.answer(
        {**plain(explanation), "found": explanation.found, "lacks": list(explanation.lacks)}
    )
    for line in str(explanation).splitlines():
        screen.say(line, hang=3)


def feedback(options: Options, *, quoted: str, hit: str, unhelpful: bool = False) -> None:
    """Store whether a hit helped to answer a question.

    It changes no ranking; `holdfast export --feedback` makes questions for the benchmark of it.

    For example: holdfast feedback "which exercise did my physio give me" porto-trip#3
    """
    with options.open() as memory:
        record = memory.learning.feedback(hit, helpful=not unhelpful, query=quoted)
    screen = options.answer(plain(record))
    screen.say(f"Stored that it {'did not help' if unhelpful else 'helped'}{options.whose()}: {record.id}.")
    screen.say((f"Take it back: {options.line('undo')}", "dim"))


def _todo(*, is_empty: bool, is_filtered: bool) -> str:
    """Return a hint for a search without hits."""
    if is_empty:
        return "There is nothing to search yet: `holdfast import PATH…`, or `holdfast remember TEXT…`."
    if is_filtered:
        return "Try other words, or fewer filters."
    return "Try other words; `holdfast chats` and `holdfast records` list what there is."


def _further(options: Options, memory: Memory, hit: Hit) -> str:
    """Name the command that shows more of a hit, in the space of the hit."""
    whose = memory.scope.named(hit.space)
    if whose.space != memory.scope.space:
        options = replace(options, user=whose.user, project=whose.project, team=whose.team, reads=None)
    if hit.source == "record":
        return f"All about the first: {options.line('records', hit.id)}"
    if hit.source == "summary":
        return f"What is behind the first: {options.line('expand', hit.id)}"
    around = write_reference(hit.chat, max(1, hit.seq - 4), hit.seq + 3)
    return f"Read around the first: {options.line('show', around)}"


def show_hits(
    options: Output, hits: Sequence[Hit], titles: Mapping[str, str], own: str = "", **fields: object
) -> Screen:
    """Answer with hits, each with its space unless that is the own one, and return the screen."""
    if degraded := getattr(hits, "degraded", None):
        fields["degraded"] = degraded
    screen = options.answer({**fields, "hits": hit_data(hits, titles, own)})
    if degraded:
        screen.say((in_options(degraded), "yellow"))
    for place, hit in enumerate(hits, start=1):
        show_hit(screen, f"{place}.", with_space(hit, own), titles)
        screen.say("")
    return screen


def hit_data(hits: Sequence[Hit], titles: Mapping[str, str], own: str = "") -> list[dict[str, object]]:
    """Return the JSON data of hits, with the titles of their chats."""
    pairs = [(hit.chat, with_space(hit, own)) for hit in hits]
    return [{**plain(hit), "chat": chat, "title": titles.get(hit.chat, "")} for chat, hit in pairs]


def show_hit(screen: Screen, mark: str, hit: Hit, titles: Mapping[str, str], focus: str = "") -> None:
    """Print a hit: score, time, actor, source, text, reasons, and the flags of words from outside.

    A record has its kind in place of the actor; a summary has the range of its messages.
    """
    # Only an excerpt needs the text analysis.
    from holdfast_cli.commands.render.excerpt import excerpt

    screen.say(
        f"{mark} ",
        (f"{hit.score:.2f}", "bold"),
        (f"  {when(hit.at)}  ", "dim"),
        (hit.kind if hit.source == "record" else hit.actor, "bold"),
        *_where(hit, titles.get(hit.chat, "")),
        (f"  {hit.space}" if "nearness" in hit.why else "", "dim"),
        hang=3,
    )
    screen.say(*excerpt(hit.text, hit.why.words, focus), indent=3)
    flags = f"  flags: {', '.join(hit.flags)}" if hit.flags and hit.role not in _OWN else ""
    again = f"  said {hit.times} times, last on {when(hit.last)}" if hit.last else ""
    screen.say((f"why: {hit.why}{again}{flags}", "dim"), indent=3)


def _where(hit: Hit, title: str) -> list[Part]:
    """Return the source of a hit: a message, the range of a summary, or where a record was learned."""
    if hit.source == "record" and not hit.chat:
        return [f"  from {hit.actor}  ", (f"({hit.id})", "dim")]
    place = write_reference(hit.chat, hit.seq, hit.last_seq or None) if hit.seq else hit.chat
    identity = "" if hit.source == "message" else f", {hit.id}"
    word = {"message": "in", "summary": "of", "record": "learned in"}[hit.source]
    return [f"  {word} {title}{'  ' if title else ''}", (f"({place}{identity})", "dim")]
