"""What one session did, in at most 2,000 characters: by rules, or in the words of a model that is asked for them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.compaction.summary_passages import BARE
from holdfast.learning.decision_sentences import Spoken, decided, is_courtesy, is_next_step, spoken
from holdfast.learning.extraction_prompt import says_too_little
from holdfast.learning.throttle import rest
from holdfast.learning.tool_uses import uses
from holdfast.llm.json_answers import listed, parse, picked, table, text_of
from holdfast.llm.llm_request import LLMRequest, Unreadable
from holdfast.messages.passages import EXPAND, Passage, grave, harmless
from holdfast.text.message_text import without_payloads, without_reasoning
from holdfast.text.one_line import cut, gist
from holdfast.text.sentences import one_line, sentences
from holdfast.types import Message

if TYPE_CHECKING:
    from holdfast.llm.prompt_files import PromptTemplate

LONGEST = 2_000  # characters of an episode
MOST_FILES = 8
MOST_DECISIONS = 3

_ASKED, _LATER, _DECISION, _OUTCOME = 240, 180, 140, 240  # characters
_SUBSTANCE = 20  # characters of a request that says what is wanted: "proceed" does not
_REPORT = 50  # characters of a message that says how something ended
_SAME = 0.6  # the share of words that two wordings of one request have in common
_TALK = 200  # tokens, of a conversation between people
_LONGEST_PATH = 120  # characters
_LOOKED_AT = 200  # paths, the most often touched of a session
_SHOWN_PARTS = 3  # of an absolute path, from its end
_LISTED = 32  # files or decisions that are read of an answer
_EDITED, _READ, _MENTIONED = 8, 2, 1  # what a file counts each time
_EXTENSIONS = frozenset(
    "py pyi ipynb go mod js jsx mjs cjs ts tsx rs java kt kts c h cc cpp hpp cs fs rb php swift m scala clj ex exs erl hs ml "
    "lua r jl dart zig sh bash zsh fish ps1 bat sql html htm css scss sass less vue svelte json jsonl yaml yml toml ini cfg "
    "conf env lock xml md mdx rst adoc txt csv tsv proto graphql tf tmpl j2 gradle cmake tex service".split()
)
_FILE_NAMES = frozenset(
    "makefile dockerfile jenkinsfile procfile gemfile rakefile license .gitignore .env".split()
)
_PRODUCTS = frozenset("node.js next.js vue.js react.js express.js nuxt.js three.js d3.js asp.net".split())
_PASSING = re.compile(r"^(?:/private)?/(?:tmp|var/folders)/|/(?:node_modules|tool-results|\.git|\.claude)/")
_URL = re.compile(r"\b[a-z][a-z0-9+]{1,11}://[^\s\"'`<>]*", re.IGNORECASE)
_RUN = re.compile(r"[\w./\\~@+-]++")
_SEPARATOR = re.compile(r"[\\/]+")
_TERMINAL = re.compile(  # what a terminal showed: a prompt, a path alone, a line that begins with a picture
    r"\s*(?:\[\d{1,4}[/:-].*|(?:\(\w{1,20}\) )?[\w.-]{1,40}@[\w.-]{1,40}[:~ ].*|[$%❯➜] .*|"
    r"[^\s/]*+/\S*+\s*+|[^\x00-\x7f\w¿¡«“‘„「].*)"
)
_IMAGE = re.compile(r"\[image: [^\[\]]{0,400}\]")
_HEADING = re.compile(r"\s*(?:#{1,6} .*|\*\*[^*]*\*\*:?\s*|\|.*)")  # or a row of a table
_SETTLED = re.compile(
    r"decided|agreed|conclusion|key insight|learned that|entschieden|beschlossen|vereinbart|décidé|convenu|decidi|acordamos",
    re.IGNORECASE,
)
_TO_KEEP = re.compile(
    rf"{_SETTLED.pattern}|remember|note that|\buse\b|merke? dir|notez|utiliserons|recuerda|en cuenta|usaremos",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_ENDS = (".", "!", "?", "…", "。", "！", "？")

_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "summary": {"type": "string"},
        "files": {"type": "array", "items": {"type": "string"}},
        "decisions": {"type": "array", "items": {"type": "string"}},
        "outcome": {"type": "string"},
    },
    "required": ["summary", "files", "decisions", "outcome"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Episode:
    """Hold what one session did.

    `text` says it in at most 2,000 characters. `turns` counts what the user said. `files` are those that mattered, at most
    8, the most often edited and read first; `decisions` at most 3 sentences; `outcome` how it ended, "" if nobody said.
    """

    text: str
    turns: int
    files: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    outcome: str = ""


def compose(messages: Sequence[Message]) -> Episode:
    """Say what a session did, without a model; the same messages give the same episode. `text` is empty if nobody spoke."""
    told = list(spoken(messages))
    if not any(message.role == "assistant" for message in messages):
        return Episode(_talk(told), _turns(told))
    files = _key_files(told)
    outcome = _outcome(told)
    found = _main_decisions(told, outcome)
    text = _told(_labelled(*zip(("Asked", "Later"), _asked(told), strict=False)), files, found, outcome)
    return Episode(text, _turns(told), files, found, outcome)


def question(episode: Episode, transcript: str, prompt: PromptTemplate) -> LLMRequest:
    """Ask a model to say what a session did, given its transcript and the episode that rules made of it.

    Neither can close the tags that it stands between.
    """
    filled = prompt.fill(draft=_framed(episode.text), transcript=_framed(transcript))
    return LLMRequest("episode", filled, _SCHEMA, prompt.label, answer_tokens=600)


def read(answer: str, episode: Episode, transcript: str = "") -> Episode:
    """Take what a model said about a session in place of what rules made of it; what it left out stays as it was.

    What the summary does not say of the files, the decisions and the outcome is written behind it. A summary that is too
    long, also for the transcript, is cut; files that stand neither in the transcript nor in the episode are dropped, and so
    are decisions and an outcome of one word.

    Raises:
        Unreadable: the answer is no JSON object that has a summary, or something in it is no text.

    """
    given = table(parse(answer), "the answer")
    most = min(LONGEST, max(_ASKED, len(transcript))) if transcript else LONGEST
    summary = cut(_line(picked(given, "summary")), most)
    if says_too_little(summary):
        raise Unreadable("its summary is missing or says nothing.")
    known = "\n".join((episode.text, *episode.files, transcript))
    files = [path for path in _lines(picked(given, "files")) if _stands_in(path, known)]
    decisions = (one for one in _lines(picked(given, "decisions")) if not says_too_little(one))
    found = [cut(one, _DECISION) for one in decisions]
    outcome = cut(_line(picked(given, "outcome")), _OUTCOME)
    told = replace(
        episode,
        files=tuple(dict.fromkeys(files))[:MOST_FILES] or episode.files,
        decisions=tuple(dict.fromkeys(found))[:MOST_DECISIONS] or episode.decisions,
        outcome=episode.outcome if says_too_little(outcome) else outcome,
    )
    return replace(told, text=_with_rest(summary, told))


def _turns(told: Iterable[Spoken]) -> int:
    """Count the messages in which a user says something: no commands such as "/exit", and nothing that a program wrote."""
    return sum(message.role == "user" and bool(prose) for message, prose in told)


def _key_files(told: Sequence[Spoken]) -> tuple[str, ...]:
    """Name the files that a session touched most; one that is written in several ways is one."""
    touched: Counter[str] = Counter()
    for use in uses(message for message, _ in told):
        rest()
        named = (*use.paths, *(path for text in use.texts for path in _paths(text)))
        for path in dict.fromkeys(path for path in named if _is_file(path)):
            touched[path] += _EDITED if use.edits else _READ
    for _, prose in told:
        rest()
        for path in dict.fromkeys(_paths(prose)):
            touched[path] += _MENTIONED
    weights: Counter[str] = Counter()
    names: dict[str, str] = {}
    for path, whole in _wholes(dict(touched.most_common(_LOOKED_AT))).items():
        weights[whole] += touched[path]
        if not _is_absolute(path) and len(_parts(path)) > len(_parts(names.get(whole, ""))):
            names[whole] = path
    shown = dict.fromkeys(_short(names.get(whole, whole)) for whole, _ in weights.most_common())
    return tuple(shown)[:MOST_FILES]


def _paths(text: str) -> Iterator[str]:
    """Find what looks like the path of a file in a text, but for addresses."""
    for run in _RUN.findall(_URL.sub(" ", text)):
        path = run.rstrip(".-@+").lstrip("@+")
        if _is_file(path):
            yield path


def _is_file(path: str) -> bool:
    if not 2 < len(path) <= _LONGEST_PATH or path.startswith(("//", "-")) or _PASSING.search(path):
        return False
    name = _SEPARATOR.split(path)[-1].lower()
    stem, dot, extension = name.rpartition(".")
    return name not in _PRODUCTS and (name in _FILE_NAMES or bool(stem and dot and extension in _EXTENSIONS))


def _wholes(touched: Mapping[str, int]) -> dict[str, str]:
    """Map each path to the longest that ends with it, of several the one that was touched most."""
    parts = {path: _parts(path) for path in touched}
    same_name: dict[str, list[str]] = {}
    for path in touched:
        same_name.setdefault(parts[path][-1], []).append(path)
    return {
        path: max(
            (one for one in same_name[own[-1]] if parts[one][-len(own) :] == own),
            key=lambda one: (len(parts[one]) > len(own), touched[one], len(parts[one])),
        )
        for path, own in parts.items()
    }


def _parts(path: str) -> list[str]:
    return [part for part in _SEPARATOR.split(path) if part not in {"", ".", ".."}]


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "~", "\\")) or path[1:2] == ":"


def _short(path: str) -> str:
    """Leave off where a path begins: the folders that all files of a session share say nothing."""
    parts = _parts(path)
    if _is_absolute(path) and len(parts) > _SHOWN_PARTS:
        return "/".join(parts[-_SHOWN_PARTS:])
    return path.removeprefix("./")


def _asked(told: Iterable[Spoken]) -> list[str]:
    """Say what the user asked for first, and which later request took the most work, if that is another one."""
    requests: list[str] = []
    work: Counter[int] = Counter()
    for message, prose in told:
        line = _request(prose) if message.role == "user" else ""
        if line and (len(line) >= _SUBSTANCE or not requests):
            requests.append(line)
        elif requests:
            work[len(requests) - 1] += 1
    later = [number for number in range(1, len(requests)) if not _alike(requests[0], requests[number])]
    main = max(later, key=lambda number: (work[number], -number), default=0)
    return [requests[0], *([cut(requests[main], _LATER)] if main else [])] if requests else []


def _request(prose: str) -> str:
    """Say what a user's message asks for, without courtesy and what a terminal showed, if there is anything else."""
    rest()
    lines = prose.splitlines()
    spoken = "\n".join(line for line in lines if not _TERMINAL.fullmatch(line))
    wanted = [one for one in sentences(spoken) if not (is_courtesy(one) or is_next_step(one))]
    return _prose(wanted, _ASKED) if wanted or spoken else gist("\n".join(lines), _ASKED)


def _prose(told: Iterable[str], longest: int) -> str:
    """Write sentences, and lines that are none, one after the other, as many as begin within `longest` characters."""
    text = ""
    for line in map(gist, told):
        if line and len(text) <= longest:
            text += f"{' ' if text else ''}{line if line.endswith((*_ENDS, ':')) else f'{line}.'}"
    return cut(text, longest)


def _alike(one: str, other: str) -> bool:
    words, others = set(_WORD.findall(one.lower())), set(_WORD.findall(other.lower()))
    return len(words & others) >= _SAME * min(len(words), len(others))


def _main_decisions(told: Sequence[Spoken], outcome: str) -> tuple[str, ...]:
    """Choose the decisions to name: what was settled goes first, then what a user said, then what was said last."""
    users = {message.actor for message, _ in told if message.role == "user"}
    found = {
        cut(one.text, _DECISION): one.speaker in users
        for one in decided(told)
        if _TO_KEEP.search(one.text) and not _alike(one.text, outcome)
    }
    ranked = list(found)[::-1]
    ranked.sort(key=lambda text: (not _SETTLED.search(text), not found[text]))
    chosen = ranked[:MOST_DECISIONS]
    return tuple(text for text in found if text in chosen)


def _outcome(told: Sequence[Spoken]) -> str:
    """Say how a session ended: the beginning of the assistant's last message that reports something.

    A message that ends with what comes next reports only a step.
    """
    lines = (_reported(prose) for message, prose in reversed(told) if message.role == "assistant")
    return next((line for line in lines if len(line) >= _REPORT), "")


def _reported(prose: str) -> str:
    rest()
    first, *others = prose.splitlines() or [""]
    plain = [first, *(line for line in others if not _HEADING.fullmatch(line))]
    reports = (_report("\n".join(lines)) for lines in (plain, [first, *others]))
    return next((line for line in reports if len(line) >= _REPORT), "")


def _report(text: str) -> str:
    told = sentences(text)
    if not told or is_next_step(told[-1]):
        return ""
    return _prose(
        (one for one in told if not (is_courtesy(one) or is_next_step(one) or one.endswith("?"))), _OUTCOME
    )


def _with_rest(summary: str, episode: Episode) -> str:
    """Write behind a summary what it does not say of an episode, for which it gives way where both are too long."""
    kept = cut(summary, LONGEST - len(_told(".", (), episode.decisions, episode.outcome)))
    found = [one for one in episode.decisions if not _says(kept, one)]
    outcome = "" if _says(" ".join((kept, *found)), episode.outcome) else episode.outcome
    return _told(kept, [path for path in episode.files if not _stands_in(path, kept)], found, outcome)


def _says(text: str, part: str) -> bool:
    """Say whether a part stands in a text word for word; in other words it might say something else, such as a number."""
    words, others = (f" {' '.join(_WORD.findall(one.lower()))} " for one in (text, part))
    return others in words


def _told(start: str, files: Sequence[str], found: Sequence[str], outcome: str) -> str:
    """Write an episode; the files that matter least go until it fits."""
    parts = (("Files", ", ".join(files)), ("Decided", " ".join(map(_ended, found))), ("Outcome", outcome))
    rest = _labelled(*parts)
    text = f"{_ended(start)} {rest}" if start and rest else start or rest
    return _told(start, files[:-1], found, outcome) if files and len(text) > LONGEST else text


def _labelled(*parts: tuple[str, str]) -> str:
    return " ".join(f"{label}: {_ended(part)}" for label, part in parts if part)


def _ended(text: str) -> str:
    return text if text.endswith(_ENDS) else f"{text.rstrip(',;:')}."


def _talk(told: Iterable[Spoken]) -> str:
    """Say what people talked about, where no agent took part: the sentences that say most of it."""
    # The text analysis is loaded only by who needs it.
    from holdfast.compaction.extract import extract

    said = [
        Passage(_IMAGE.sub(" ", prose), one.actor, None, one.role)
        for one, prose in told
        if one.role == "user"
    ]
    lines = [line for line in extract(said, _TALK).splitlines()[1:] if not line.startswith(EXPAND)]
    return cut(one_line(" ".join(line.removeprefix(BARE) for line in lines)), LONGEST)


def _framed(text: str) -> str:
    return text.replace("<", "&lt;").replace(">", "&gt;")


def _line(value: object) -> str:
    """Bring what a model said to one line without reasoning, payloads and what may do harm; "" if it says nothing."""
    text = without_payloads(without_reasoning(text_of(value)))
    line = one_line(harmless(text) if grave(text) else text)
    return line if _WORD.search(line) else ""


def _lines(value: object) -> list[str]:
    return [line for line in map(_line, listed(value)[:_LISTED]) if line]


def _stands_in(path: str, text: str) -> bool:
    """Say whether a path is written in a text, and not merely as a part of a longer name."""
    return re.search(rf"(?<![\w.-]){re.escape(path)}(?![\w-])", text) is not None
