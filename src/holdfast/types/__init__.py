"""The nouns of Holdfast as frozen dataclasses: what goes in, what comes out, and nothing that does work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, TypeAlias

from holdfast.errors import InvalidInput
from holdfast.text.shorten import shown

Role = Literal["system", "developer", "user", "assistant", "tool"]
ROLES: tuple[Role, ...] = ("system", "developer", "user", "assistant", "tool")
Writer = Literal["user", "agent", "tool", "reflect", "system", "import"]
WRITERS: tuple[Writer, ...] = ("user", "agent", "tool", "reflect", "system", "import")
Trust = Literal["trusted", "quarantined", "released"]
Source = Literal["message", "summary", "record"]
SOURCES: tuple[Source, ...] = ("message", "summary", "record")
JobStatus = Literal["open", "running", "done", "failed"]
Level = Literal["normal", "aggressive", "capped", "deterministic"]
Time = datetime | str  # text is ISO 8601, such as 2026-01-31 or 2026-01-31T09:00; without an offset it is UTC
Range = tuple[int, int]  # the first and the last seq of some messages
MAX_COUNT = 2**62  # beyond every number of things, and within the integers of both databases
MAX_NAME = 512  # bytes in UTF-8 of a name: four of them fit the 2,704 of a row in a PostgreSQL index


def check_name(value: object, what: str, *, empty: bool = False, longest: int = MAX_NAME) -> str:
    """Return `value` if it can name something in both databases, or raise InvalidInput.

    A name is text of at most 512 bytes in UTF-8 without control characters or lone surrogates.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be text, not {type(value).__name__}.", "Pass a string.")
    if not value.strip() and not (empty and value == ""):
        raise InvalidInput(f"{what} is blank.", "Give it at least one visible character.")
    if 4 * len(value) > longest and (size := len(value.encode("utf-8", "replace"))) > longest:
        raise InvalidInput(f"{what} has {size:,} bytes in UTF-8.", f"Use at most {longest:,}.")
    if not value.isprintable() and any(
        ord(c) < 32 or 0xD800 <= ord(c) <= 0xDFFF or ord(c) == 127 for c in value
    ):
        # It is made of these types.
        from holdfast.safety.masking import mask

        raise InvalidInput(
            f"{what} contains control characters or broken Unicode: {mask(value)[:40]!r}.", "Remove them."
        )
    return value


def is_whole(value: object) -> bool:
    """Say whether `value` is a whole number; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def check_count(value: object, what: str) -> int:
    """Return `value` if it is a number of things, 0 or more, or raise InvalidInput."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInput(
            f"`{what}` must be a whole number, not {type(value).__name__}.", "Pass an int of 0 or more."
        )
    if value < 0:
        raise InvalidInput(f"`{what}` is {shown(value)}, below zero.", "Pass 0 or more.")
    return min(value, MAX_COUNT)


def check_key(key: object) -> bytes:
    """Return the key of the checksums; empty for None.

    Raises:
        InvalidInput: it is no bytes, or less than 16 or more than 64.

    """
    if key is None:
        return b""
    if isinstance(key, bytes) and 16 <= len(key) <= 64:
        return key
    raise InvalidInput("`key` is not 16 to 64 bytes.", "Make one with os.urandom(32), and keep it elsewhere.")


def check_flag(value: object, what: str) -> bool:
    """Return `value` if it is True or False, or raise InvalidInput."""
    if not isinstance(value, bool):
        raise InvalidInput(f"`{what}` must be a bool, not {type(value).__name__}.", "Pass True or False.")
    return value


def as_time(value: object, what: str) -> datetime | None:
    """Return the time that `value` is, None for None, or raise InvalidInput."""
    return None if value is None else to_time(value, what)


def to_time(value: object, what: str) -> datetime:
    """Return `value` as a time if it is one or its text in ISO 8601, without an offset as UTC, or raise InvalidInput."""
    try:
        time = datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
    except ValueError:
        time = value
    if not isinstance(time, datetime):
        raise InvalidInput(
            f"`{what}` is {shown(value)}, not a time.", "Pass a datetime, or text such as 2026-01-31T09:00."
        )
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def check_range(messages: object, chat: str) -> Range | None:
    """Return the first and the last `seq` of some messages of a chat, or raise InvalidInput."""
    if messages is None:
        return None
    pair = (messages, messages) if isinstance(messages, int) else messages
    if not (
        isinstance(pair, tuple | list)
        and len(pair) == 2
        and all(is_whole(one) for one in pair)
        and 1 <= pair[0] <= pair[1] <= MAX_COUNT
    ):
        raise InvalidInput(
            f"{shown(messages)} are no messages.",
            "Pass the `seq` of one, or of the first and the last, in this order.",
        )
    if not chat:
        raise InvalidInput("Messages belong to a chat.", "Pass chat= as well.")
    return (pair[0], pair[1])


@dataclass(frozen=True, slots=True)
class Scope:
    """Say whose memory it is: a tenant, a user of it, and the agent that acts.

    Tenant and user together are the *space*: the unit of isolation and of search statistics. An empty agent stands
    for all agents of the user; an empty user for what the whole tenant shares.

    Raises:
        InvalidInput: a part is not text, longer than 512 bytes in UTF-8 (`%` and `/` count as three), or has control
            characters.

    """

    tenant: str = ""
    user: str = ""
    agent: str = ""
    space: str = field(
        init=False, repr=False, compare=False
    )  # tenant and user in a text that is of no other pair

    def __post_init__(self) -> None:
        for part in ("tenant", "user", "agent"):
            check_name(_escape(check_name(getattr(self, part), part, empty=True)), part, empty=True)
        object.__setattr__(self, "space", f"{_escape(self.tenant)}/{_escape(self.user)}")

    @property
    def shared(self) -> Scope:
        """Name the space that all users of the tenant share."""
        return Scope(self.tenant, "", self.agent)


def _escape(part: str) -> str:
    return part.replace("%", "%25").replace("/", "%2F")


def scope_of(space: str) -> Scope:
    """Give the tenant and the user of a space, as a scope of all their agents."""
    tenant, _, user = space.partition("/")
    return Scope(*(part.replace("%2F", "/").replace("%25", "%") for part in (tenant, user)))


@dataclass(frozen=True, slots=True)
class ToolCall:
    """Hold one call of a tool by an assistant; `arguments` is text when the model's JSON was not an object."""

    id: str
    name: str
    arguments: Mapping[str, object] | str = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Message:
    """Hold one event of a session.

    `seq` counts 1, 2, 3 … within its chat and is 0 before it is stored, as `tokens` is. `id` is yours or made at
    append; the same id twice in one chat is one message. `at` is the moment it was said. `calls` are an assistant's
    tool calls, `call_id` the call that a tool message answers, `answers` all calls of this chat that it answers
    (resolved at append; empty when the call is not in the chat). `raw` is the payload it was made from, verbatim.
    `flags` name what the guard found in it when it was stored, such as "instruction" or "secret", the latter also of its
    calls and its name. `shown` names
    what was recalled for the prompt that an assistant's message answers: ids of records, and `chat#seq` of messages.

    Raises:
        InvalidInput: an unknown role, text that is not text, blank content, or a part that does not fit the role.

    """

    role: Role
    content: str = ""
    seq: int = field(default=0, kw_only=True)
    id: str = field(default="", kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    at: datetime | None = field(default=None, kw_only=True)
    tokens: int = field(default=0, kw_only=True)
    calls: tuple[ToolCall, ...] = field(default=(), kw_only=True)
    call_id: str | None = field(default=None, kw_only=True)
    answers: tuple[str, ...] = field(default=(), kw_only=True)
    raw: Mapping[str, object] | None = field(default=None, kw_only=True, hash=False)
    meta: Mapping[str, object] = field(default_factory=dict, kw_only=True, hash=False)
    flags: tuple[str, ...] = field(default=(), kw_only=True)
    shown: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise InvalidInput(f"{shown(self.role)} is not a role.", f"Use one of {', '.join(ROLES)}.")
        if not isinstance(self.content, str):
            raise InvalidInput(
                f"The content of a message must be text, not {type(self.content).__name__}.",
                "Pass a string, or append the whole chat-format dict.",
            )
        if self.calls and self.role != "assistant":
            raise InvalidInput(
                f"A message of role {self.role!r} cannot call tools.", "Use the role 'assistant'."
            )
        if (self.call_id is not None or self.answers) and self.role != "tool":
            raise InvalidInput(
                f"A message of role {self.role!r} cannot answer a call.", "Use the role 'tool'."
            )
        if not self.content and not self.calls and self.role != "tool":
            raise InvalidInput("The message is empty.", "Give it content, or do not append it.")
        if self.content.isspace() and not self.calls and self.role != "tool":
            raise InvalidInput("The message has only white space.", "Give it content, or do not append it.")
        if self.at is not None and not isinstance(self.at, datetime):
            raise InvalidInput(f"`at` must be a datetime, not {type(self.at).__name__}.", "Pass a datetime.")

    @property
    def actor(self) -> str:
        """Name who speaks: the name where there is one, else the role.

        The role decides the speaker: a name that could be taken for another one, and every name of a tool, stands
        behind its role.
        """
        return _speaker(self.role, self.name)


def _speaker(role: str, name: str | None) -> str:
    if not name or name == role:
        return role
    if role == "tool" or not name[0].isalnum() or not name.isascii() or name[:4].casefold() in _BEGINNINGS:
        return _behind(role, name)
    return name


_BEGINNINGS = frozenset(role[:4] for role in ROLES)


def _behind(role: str, name: str) -> str:
    """Put a name behind its role, unless it is that of a person who cannot be taken for another role."""
    # Few names need it.
    from holdfast.safety.deobfuscate import fold, unmask

    seen = name if name.isascii() else unmask(fold(name).text).text
    words = "".join(one if one.isalpha() else " " for one in seen.casefold()).split()
    poses = not words or not seen.lstrip()[:1].isalnum() or words[0] in ROLES
    return f"{role} {name}" if role == "tool" or poses else name


class Why(Mapping[str, float]):
    """Explain a hit: each signal that raised its score with its share (they add up to 1), and the words it matched.

    Reads as a mapping and prints as a phrase: `words 61% (berlin, marathon), session 39%`.
    """

    __slots__ = ("_shares", "words")

    def __init__(self, shares: Mapping[str, float], words: tuple[str, ...] = ()) -> None:
        self._shares = dict(sorted(shares.items(), key=lambda item: -item[1]))
        self.words = words

    def __getitem__(self, signal: str) -> float:
        return self._shares[signal]

    def __iter__(self) -> Iterator[str]:
        return iter(self._shares)

    def __len__(self) -> int:
        return len(self._shares)

    def __str__(self) -> str:
        listed = f" ({', '.join(self.words)})" if self.words else ""
        return ", ".join(
            f"{name} {share:.0%}{listed if name == 'words' else ''}" for name, share in self._shares.items()
        )

    def __repr__(self) -> str:
        return f"Why({self})"


@dataclass(frozen=True, slots=True)
class Wording:
    """Hold other words for what a record says: who said them, and in which messages (first and last `seq`) of which chat."""

    text: str
    by: Writer = field(default="agent", kw_only=True)
    chat: str = field(default="", kw_only=True)
    messages: tuple[int, int] | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Record:
    """Hold one thing that is known, in one of its versions.

    `id` is the same in all versions; `version` is the number of the change that made this one, within its space.
    `target` is what a fact is about ("user", "env") or the compartment of a note ("run", "session", "plan"). `agent` is
    whose it is, "" for that of all agents of the user. `by` wrote the text, `source` says where it came from, `chat` and
    `messages` (first and last `seq`) in which words it was learned. `at` is when it was said: the time of the last of
    these messages, or of storing where there are none. `created` is when this version was stored; `since` and `until`
    are when it is true in the world. `evidence` counts how often it was said, `sources` names who else said it, and
    `wordings` are the words in which it was said again, the newest last. `uses` and
    `used` say how often and when last a note was asked for. `flags` name what the guard found in the text. `action` is
    what made this version ("add", "replace", "duplicate", "update", "retract", …) and `why` says more.
    """

    id: str
    kind: str
    text: str
    version: int = field(default=0, kw_only=True)
    target: str = field(default="", kw_only=True)
    category: str = field(default="", kw_only=True)
    tags: tuple[str, ...] = field(default=(), kw_only=True)
    meta: Mapping[str, object] = field(default_factory=dict, kw_only=True, hash=False)
    priority: int = field(default=5, kw_only=True)
    agent: str = field(default="", kw_only=True)
    source: str = field(default="", kw_only=True)
    sources: tuple[str, ...] = field(default=(), kw_only=True)
    evidence: int = field(default=1, kw_only=True)
    wordings: tuple[Wording, ...] = field(default=(), kw_only=True)
    by: Writer = field(default="agent", kw_only=True)
    run: str = field(default="", kw_only=True)
    chat: str = field(default="", kw_only=True)
    messages: tuple[int, int] | None = field(default=None, kw_only=True)
    at: datetime | None = field(default=None, kw_only=True)
    created: datetime | None = field(default=None, kw_only=True)
    since: datetime | None = field(default=None, kw_only=True)
    until: datetime | None = field(default=None, kw_only=True)
    trust: Trust = field(default="trusted", kw_only=True)
    flags: tuple[str, ...] = field(default=(), kw_only=True)
    replaces: str = field(default="", kw_only=True)
    retracted: bool = field(default=False, kw_only=True)
    action: str = field(default="add", kw_only=True)
    why: str = field(default="", kw_only=True)
    uses: int = field(default=0, kw_only=True)
    used: datetime | None = field(default=None, kw_only=True)

    def valid(self, at: datetime) -> bool:
        """Say whether it is true in the world at a time: from `since` on, and before `until`."""
        return (self.since is None or self.since <= at) and (self.until is None or at < self.until)


@dataclass(frozen=True, slots=True)
class Change:
    """Explain one version of a space: what was done to which record, by whom, when (`at`: stored), and the text before and after it.

    `agent` is the agent that the record belongs to, "" for one of all agents. A compaction (the action "compact", of the kind
    "summary", one for each summary that it wrote, with its `id`) and an erasure (the action "erase", of the kind "erasure",
    with the `id` of its receipt) are no versions: their `version` is 0, they have no texts, and `why` tells of what they were.
    `before` and `after` are None where there was, or is, no such record. `batch` is the first version of the call that
    made this change; `undo` takes back all changes of a call. `said` are the words of a duplicate, "" of any other change.
    """

    version: int
    action: str
    kind: str
    id: str
    before: str | None
    after: str | None
    by: Writer
    chat: str
    at: datetime
    why: str
    batch: int = 0
    said: str = ""
    agent: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class Job:
    """Describe something that is left to do, or was done: what, for whom, how far it is, and what it has cost.

    `kind` is "observe" or "episode" (of a `chat`), "judge" (whether two `records` say the same), "consolidate" (the
    facts) or "reflect" (on the sessions of an agent). `status` is "open", "running", "done" or "failed"; an open job is
    `due` from then on; one that runs is its worker's own until then. `attempts` counts how often it was begun since it was last done. `reason` and `error` tell of the last failure in a
    word and in a sentence. `calls` and tokens are what it has cost so far.
    """

    id: str
    kind: str
    records: tuple[str, ...]
    at: datetime
    status: JobStatus = field(default="open", kw_only=True)
    agent: str = field(default="", kw_only=True)
    chat: str = field(default="", kw_only=True)
    due: datetime | None = field(default=None, kw_only=True)
    attempts: int = field(default=0, kw_only=True)
    ended: datetime | None = field(default=None, kw_only=True)
    reason: str = field(default="", kw_only=True)
    error: str = field(default="", kw_only=True)
    calls: int = field(default=0, kw_only=True)
    prompt_tokens: int = field(default=0, kw_only=True)
    answer_tokens: int = field(default=0, kw_only=True)


@dataclass(frozen=True, slots=True)
class Erasure:
    """Prove that something was erased: what kind of things, how many of each, when and by whom; no words.

    `digest` is the SHA-256 HMAC of what was erased under `key`. The key is in the receipt that `erase` returns and
    nowhere else, so that nobody can guess short words from what is stored.

    `rewritten` names what was written anew, so that no byte of the words is left in it: "file" for SQLite, the tables
    and "planner statistics" for PostgreSQL. `remains` names what was not, each with the reason. Both say how it was when
    the receipt was made; a later erasure, of anything, may have written the rest anew.
    """

    id: str
    what: str
    counts: Mapping[str, int] = field(hash=False)
    by: Writer
    at: datetime
    digest: str
    key: str = ""
    rewritten: tuple[str, ...] = ()
    remains: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Summary:
    """Hold a node of a session's summary tree: it stands for the messages `first` to `last`, which stay in the log.

    A leaf (`depth` 0) was made of messages, any other of the summaries one level below it; `parent` is the id of the
    summary that it is a part of, "" for one of the frontier. `tokens` is what it costs in a prompt, `source_tokens` what
    its `messages` messages cost. `since` and `until` are the times of the earliest and the latest of them. `level` says
    how it came about: "normal" and "aggressive" are two ways of asking the model, "capped" is an answer that was cut
    because it was far too long, "deterministic" was made of sentences of the source without a model. `model` names the
    model that was asked, and is "" where none was. `at` is when it was made.
    """

    id: str
    chat: str
    depth: int
    first: int
    last: int
    text: str
    tokens: int = field(kw_only=True)
    parent: str = field(default="", kw_only=True)
    since: datetime = field(kw_only=True)
    until: datetime = field(kw_only=True)
    level: Level = field(kw_only=True)
    messages: int = field(kw_only=True)
    source_tokens: int = field(kw_only=True)
    model: str = field(default="", kw_only=True)
    at: datetime = field(kw_only=True)

    @property
    def kind(self) -> Literal["leaf", "condensed"]:
        """Say whether it was made of messages or of summaries."""
        return "condensed" if self.depth else "leaf"


@dataclass(frozen=True, slots=True)
class Description:
    """Place a summary in its tree: `parents` contain it, the nearest first; `children` are what it was made of.

    The children of a leaf are messages, `summary.first` to `summary.last`, and not listed.
    """

    summary: Summary
    parents: tuple[str, ...]
    children: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expansion:
    """Give what stands behind a summary: the messages of a leaf, or the children of a condensed one.

    `truncated` says that there is more than the cap let through; pass `cursor` to `expand` to go on.
    """

    summary: Summary
    messages: tuple[Message, ...]
    children: tuple[Summary, ...]
    truncated: bool
    cursor: str | None


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """Account for a compaction: what it made, what that cost, and why it stopped.

    `summaries` are those it made, in their order; each says its level. `messages` were covered for the first time.
    `tokens_before` and `tokens_after` are what stood for the session in a window. `calls` were made of the model, with
    `prompt_tokens` and `answer_tokens` by the memory's own counter. `why` says in a sentence why it stopped.
    `beyond` are the ids of the summaries that as a last resort got more parts than the policy's `fan_in`.
    """

    summaries: tuple[Summary, ...]
    messages: int
    tokens_before: int
    tokens_after: int
    calls: int
    prompt_tokens: int
    answer_tokens: int
    seconds: float
    why: str
    beyond: tuple[str, ...] = ()

    @property
    def leaves(self) -> int:
        """Count the summaries of messages that it made."""
        return sum(not one.depth for one in self.summaries)

    @property
    def nodes(self) -> int:
        """Count the summaries of summaries that it made."""
        return sum(one.depth > 0 for one in self.summaries)

    @property
    def noop(self) -> bool:
        """Say that nothing was changed."""
        return not self.summaries


@dataclass(frozen=True, slots=True)
class Hit:
    """Hold one message, summary or record that recall found, with its score from 0 to 1 and the reasons for it.

    The score is the share of what the question could have scored at most: comparable within one result, and the
    order of a result is the order of its scores. `source` is "message", "summary" or "record". Of a record, `kind` is its
    kind, `role` who wrote it, `at` when, and `chat` and `seq` to `last` where it was learned ("" and 0 if nobody said). Of a
    summary, `seq` to `last` are the messages behind it, and `Chat.expand` gives them. `flags` name what the guard found in the
    text, and "released" a record that was released from quarantine. `wordings` are other words in which a record was said,
    and which it is found by as well. Credentials in the text and the name are masked, unless the recall asked to show
    them; `Chat.history` has the words as they were said.
    """

    source: Source
    text: str
    score: float
    id: str = field(kw_only=True)
    chat: str = field(kw_only=True)
    seq: int = field(kw_only=True)
    role: str = field(kw_only=True)
    name: str | None = field(kw_only=True)
    at: datetime = field(kw_only=True)
    why: Why = field(kw_only=True, hash=False)
    last: int = field(default=0, kw_only=True)
    kind: str = field(default="", kw_only=True)
    flags: tuple[str, ...] = field(default=(), kw_only=True)
    wordings: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def actor(self) -> str:
        """Name who said or wrote it, as `Message.actor` does."""
        return _speaker(self.role, self.name)


@dataclass(frozen=True, slots=True)
class Finding:
    """Point at a part of a text that may do harm: `text[start:end]`, what it is, and how grave.

    `kind` is "invisible", "disguise", "instruction" or "secret". What is "high" is acted upon when the text is to be
    remembered: a secret is redacted, the other kinds put the text into quarantine; "low" is only noted. `message` says
    what was found in a few words that quote nothing of the text.
    """

    kind: Literal["invisible", "disguise", "instruction", "secret"]
    start: int
    end: int
    severity: Literal["low", "high"]
    message: str


@dataclass(frozen=True, slots=True)
class Omission:
    """Name messages that a window leaves out: how many, from which to which `seq`, their tokens, and why."""

    messages: int
    first: int
    last: int
    tokens: int
    why: str


@dataclass(frozen=True, slots=True)
class Shortened:
    """Name a message in whose place a window has a placeholder: its `seq`, its tokens, and how many of them are saved."""

    seq: int
    tokens: int
    saved: int


@dataclass(frozen=True, slots=True)
class Window:
    """Hold what the model will see of a session, oldest first: summaries, then the messages that follow them.

    `tokens` is what both cost. It exceeds `budget` only when the part that is always kept does, and
    `over_budget` then says so. `budget` is None for a window that is limited by count. Of `messages`, those that are
    `shortened` have placeholders for content; the log has their words.
    """

    messages: tuple[Message, ...]
    summaries: tuple[Summary, ...]
    tokens: int
    budget: int | None
    omitted: tuple[Omission, ...]
    shortened: tuple[Shortened, ...] = ()

    @property
    def over_budget(self) -> bool:
        """Say whether the part that is always kept was larger than the budget."""
        return self.budget is not None and self.tokens > self.budget


class Dumpable(Protocol):
    """What `model_dump` makes a dict of, as the models of pydantic do: what the clients of model providers return."""

    def model_dump(self, *, mode: str) -> Mapping[str, object]:
        """Return a dict of JSON values for `mode="json"`."""
        ...


AnyMessage: TypeAlias = Message | Mapping[str, object] | Dumpable
"""What `append` takes."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Hold a prompt ready to be sent: system text, messages in a model's chat format, and an account of its tokens.

    `tokens` maps `system`, `known`, `recalled`, `window`, `total`, `budget` and `free` to token counts; `over` to what the total exceeds the budget by; `room` to what is
    left of the budget to the session and to what was recalled, which is the budget to compact for; and `unchanged` to
    those that it begins with as the last prompt of this chat through the same open memory did. `omitted` counts the records
    that a prompt had no room for, by kind and target, such as "fact/user": recall finds them.
    """

    system: str
    # Any: each client has typed dicts of its own for messages, and no other type passes for all of them.
    messages: list[Any] = field(hash=False)
    window: Window
    hits: tuple[Hit, ...]
    tokens: Mapping[str, int] = field(hash=False)
    omitted: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Receipt:
    """Say what a prompt was made of that was answered: names, numbers and digests, no words.

    `seq` is the message that answered it, `at` when the prompt was made. `version` is the snapshot that it showed, and
    `shared` the same of what the tenant shares. `policy` and `parameters` are how its window was chosen. `system` and
    `query` are the SHA-256 of these two texts, "" where there was none, or where the query was erased. `summaries` are
    the ids of those in its window; `hits` name what was recalled, as `Message.shown` does: records by their id,
    messages as `chat#seq`. What of that was erased since is not named any more.
    """

    seq: int
    at: datetime
    version: int
    shared: int
    budget: int
    policy: str
    parameters: Mapping[str, object] = field(hash=False)
    system: str
    query: str
    summaries: tuple[str, ...]
    hits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChatStats:
    """Count a session: `stored_tokens` of all its messages, `context_tokens` of what stands for them in a window.

    `erased` messages are not among them; their numbers are not used again. `summarised` messages, the oldest, have
    summaries that stand for them.
    """

    messages: int = 0
    stored_tokens: int = 0
    context_tokens: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None
    erased: int = 0
    summarised: int = 0


@dataclass(frozen=True, slots=True)
class ChatInfo:
    """Describe a session; `oldest` and `newest` are the times of its messages.

    `created` is when its first message was stored, None where that was not noted: in chats from before it was.
    """

    id: str
    title: str
    agent: str
    user: str
    archived: bool
    messages: int
    tokens: int
    oldest: datetime
    newest: datetime
    created: datetime | None = None
    channel: str = ""
    meta: Mapping[str, object] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Verification:
    """Report what `verify` checked (name → how many) and every problem that it found; `ok` when there is none.

    `unproven` counts the rows whose checksum proves nothing, which is no problem: they were written before there were
    checksums, or with another key, with one where none is given now, or without one.
    """

    checked: Mapping[str, int] = field(hash=False)
    problems: tuple[str, ...] = ()
    unproven: int = 0

    @property
    def ok(self) -> bool:
        """Say whether everything that was checked holds."""
        return not self.problems
