"""The text of an episode: what one chat did, in at most 2,000 characters, by rules or by a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.compaction.summary_passages import BARE
from holdfast.learning.decision_sentences import Speech, decided, is_courtesy, is_next_step, speeches_of
from holdfast.learning.grounding import says_too_little
from holdfast.llm.json_answers import listed, parse, picked, table, text_of
from holdfast.llm.llm_request import LLMRequest, Unreadable, exactly
from holdfast.llm.prompt_files import PromptTemplate
from holdfast.messages.passages import EXPAND, Passage, grave, harmless
from holdfast.messages.tool_uses import ToolUse, tool_uses
from holdfast.text.message_text import without_payloads, without_reasoning
from holdfast.text.one_line import cut, gist
from holdfast.text.sentences import one_line, sentences
from holdfast.types import Message

LONGEST = 2_000  # characters of an episode
MOST_FILES = 8
MOST_DECISIONS = 3

_ASKED, _LATER, _DECISION, _OUTCOME = 240, 180, 140, 240  # characters
_SUBSTANCE = 20  # characters of a request that stands alone: "proceed" does not
_REPORT = 50  # characters of a report
_SAME = 0.6  # the share of words that two wordings of one request have in common
_TALK = 200  # tokens, of a conversation between people
_LONGEST_PATH = 120  # characters
_LOOKED_AT = 200  # paths, the most often touched of a session
_SHOWN_PARTS = 3  # of an absolute path, from its end
_LISTED = 32  # files or decisions that are read of an answer
_EDITED, _READ, _MENTIONED = 8, 2, 1  # the weight of each touch of a file
_EXTENSIONS = frozenset(
    "py pyi ipynb go mod js jsx mjs cjs ts tsx rs java kt kts c h cc cpp hpp cs fs rb php swift m scala clj "
    "ex exs erl hs ml lua r jl dart zig sh bash zsh fish ps1 bat sql html htm css scss sass less vue svelte "
    "json jsonl yaml yml toml ini cfg conf env lock xml md mdx rst adoc txt csv tsv proto graphql tf tmpl "
    "j2 gradle cmake tex service".split()
)
_FILE_NAMES = frozenset(
    "makefile dockerfile jenkinsfile procfile gemfile rakefile license .gitignore .env".split()
)
_PRODUCTS = frozenset("node.js next.js vue.js react.js express.js nuxt.js three.js d3.js asp.net".split())
_PASSING = re.compile(r"^(?:/private)?/(?:tmp|var/folders)/|/(?:node_modules|tool-results|\.git|\.claude)/")
_URL = re.compile(r"\b[a-z][a-z0-9+]{1,11}://[^\s\"'`<>]*", re.IGNORECASE)
_RUN = re.compile(r"[\w./\\~@+-]++")
_SEPARATOR = re.compile(r"[\\/]+")
_PATH_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\da-zA-Z_]+")
_MOST_LATER = 3  # requests after the first
_MOST_WORDS = 5  # of a name in a path
# The output of a terminal: a prompt, a path alone, a line that begins with a picture.
_TERMINAL = re.compile(
    r"\s*(?:\[\d{1,4}[/:-].*|(?:\(\w{1,20}\) )?[\w.-]{1,40}@[\w.-]{1,40}[:~ ].*|[$%❯➜] .*|"
    r"[^\s/]*+/\S*+\s*+|[^\x00-\x7f\w¿¡«“‘„「].*)"
)
_IMAGE = re.compile(r"\[image: [^\[\]]{0,400}\]")
# A heading, or a row of a table.
_HEADING = re.compile(r"\s*(?:#{1,6} .*|\*\*[^*]*\*\*:?\s*|\|.*)")
_SETTLED = re.compile(
    r"decided|agreed|conclusion|key insight|learned that|"
    r"entschieden|beschlossen|vereinbart|décidé|convenu|decidi|acordamos",
    re.IGNORECASE,
)
_TO_KEEP = re.compile(
    rf"{_SETTLED.pattern}|remember|note that|\buse\b|merke? dir|"
    r"notez|utiliserons|recuerda|en cuenta|usaremos",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_ENDS = (".", "!", "?", "…", "。", "！", "？")

_TEXT, _TEXTS = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
_SCHEMA = exactly({"summary": _TEXT, "files": _TEXTS, "decisions": _TEXTS, "outcome": _TEXT})


@dataclass(frozen=True, slots=True)
class Episode:
    """What one chat did.

    `text` has at most 2,000 characters. `turns` counts the messages of the user. `files` are at most 8, the
    most often edited and read first; `decisions` at most 3 sentences; `outcome` is how it ended, "" if that
    is unknown.
    """

    text: str
    turns: int
    files: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    outcome: str = ""


def compose(messages: Sequence[Message], but: Container[int] = ()) -> Episode:
    """Return the episode of a chat by rules. Its `text` is empty if nobody spoke.

    Of the messages with the seqs `but` no words are taken; of the files that they use, those that another
    message names.
    """
    every = list(speeches_of(messages))
    speeches = [one for one in every if one.message.seq not in but]
    if not any(message.role == "assistant" for message in messages):
        return Episode(_talk(speeches), _turns(every))
    files = _key_files(every, but)
    outcome = _outcome(every, but)
    found = _main_decisions(speeches, outcome)
    asked = _requests(every, but)
    start = _labelled(("Asked", "".join(asked[:1])), ("Later", " ".join(map(_ended, asked[1:]))))
    return Episode(_composed(start, files, found, outcome), _turns(every), files, found, outcome)


def request(episode: Episode, transcript: str, prompt: PromptTemplate) -> LLMRequest:
    """Return the request for an episode, given the transcript of a chat and its episode by rules.

    Neither can close the tags that it stands between.
    """
    filled = prompt.fill(draft=_framed(episode.text), transcript=_framed(transcript))
    return LLMRequest("episode", filled, _SCHEMA, prompt.label, answer_tokens=600)


def read(answer: str, episode: Episode, transcript: str = "") -> Episode:
    """Return the episode in the words of a model; what the answer left out stays as it was by rules.

    What the summary does not say of the files, the decisions and the outcome is written behind it. A summary
    that is too long, also for the transcript, is cut. Files that stand neither in the transcript nor in the
    episode are dropped, and so are decisions and an outcome of one word.

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
    read = replace(
        episode,
        files=tuple(dict.fromkeys(files))[:MOST_FILES] or episode.files,
        decisions=tuple(dict.fromkeys(found))[:MOST_DECISIONS] or episode.decisions,
        outcome=episode.outcome if says_too_little(outcome) else outcome,
    )
    return replace(read, text=_completed(summary, read))


def _turns(speeches: Iterable[Speech]) -> int:
    """Return the number of a user's messages with prose; commands such as "/exit" have none."""
    return sum(message.role == "user" and bool(prose) for message, prose in speeches)


def _key_files(speeches: Sequence[Speech], but: Container[int]) -> tuple[str, ...]:
    """Return the files that a chat touched most; one that is written in several ways is one."""
    touched: Counter[str] = Counter()
    for message, prose in speeches:
        is_believed = message.seq not in but
        for use in tool_uses((message,)):
            named = _named(use) if is_believed else filter(_is_plain, use.paths)
            for path in dict.fromkeys(path for path in named if _is_file(path)):
                touched[path] += _EDITED if use.edits else _READ
        for path in dict.fromkeys(_paths(prose)) if is_believed else ():
            touched[path] += _MENTIONED
    weights: Counter[str] = Counter()
    names: dict[str, str] = {}
    for path, whole in _wholes(dict(touched.most_common(_LOOKED_AT))).items():
        weights[whole] += touched[path]
        if not _is_absolute(path) and len(_parts(path)) > len(_parts(names.get(whole, ""))):
            names[whole] = path
    shown = dict.fromkeys(_short(names.get(whole, whole)) for whole, _ in weights.most_common())
    return tuple(shown)[:MOST_FILES]


def _named(use: ToolUse) -> tuple[str, ...]:
    return (*use.paths, *(path for text in use.texts for path in _paths(text)))


def _is_plain(path: str) -> bool:
    """Return whether a path is no way to write a sentence: its names have few words, and are no order."""
    names = [" ".join(_PATH_WORD.findall(name)) for name in _SEPARATOR.split(path)]
    return (
        _RUN.fullmatch(path) is not None
        and all(name.count(" ") < _MOST_WORDS for name in names)
        and not grave(" ".join(names))
    )


def _paths(text: str) -> Iterator[str]:
    """Yield what looks like the path of a file in a text, without addresses."""
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
    """Return for each path the longest that ends with it, of several the one that was touched most."""
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
    """Return the end of an absolute path: the folders that all files of a chat share say nothing."""
    parts = _parts(path)
    if _is_absolute(path) and len(parts) > _SHOWN_PARTS:
        return "/".join(parts[-_SHOWN_PARTS:])
    return path.removeprefix("./")


def _requests(speeches: Iterable[Speech], but: Container[int]) -> list[str]:
    """Return the first request of the user, and those that took the most work later, in their order."""
    requests: list[str] = []
    work: Counter[int] = Counter()
    for message, prose in speeches:
        line = _request(prose) if message.role == "user" and message.seq not in but else ""
        if line and (len(line) >= _SUBSTANCE or not requests):
            requests.append(line)
        elif requests:
            work[len(requests) - 1] += 1
    later = [number for number in range(1, len(requests)) if not _alike(requests[0], requests[number])]
    main = sorted(later, key=lambda number: (-work[number], -number))[:_MOST_LATER]
    return [*requests[:1], *(cut(requests[number], _LATER) for number in sorted(main))]


def _request(prose: str) -> str:
    """Return what a user's message asks for, if possible without courtesy and terminal output."""
    lines = prose.splitlines()
    typed = "\n".join(line for line in lines if not _TERMINAL.fullmatch(line))
    asked = [one for one in sentences(typed) if not is_courtesy(one)]
    return _prose(asked, _ASKED) if asked or typed else gist("\n".join(lines), _ASKED)


def _prose(lines: Iterable[str], longest: int) -> str:
    """Return sentences, and other lines, in one line: as many as begin within `longest` characters."""
    text = ""
    for line in map(gist, lines):
        if line and len(text) <= longest:
            text += f"{' ' if text else ''}{line if line.endswith((*_ENDS, ':')) else f'{line}.'}"
    return cut(text, longest)


def _alike(one: str, other: str) -> bool:
    words, others = set(_WORD.findall(one.lower())), set(_WORD.findall(other.lower()))
    return len(words & others) >= _SAME * min(len(words), len(others))


def _main_decisions(speeches: Sequence[Speech], outcome: str) -> tuple[str, ...]:
    """Return the decisions to name: the settled ones go first, then those of a user, then the last ones."""
    users = {message.actor for message, _ in speeches if message.role == "user"}
    found = {
        cut(one.text, _DECISION): one.speaker in users
        for one in decided(speeches)
        if _TO_KEEP.search(one.text) and not _alike(one.text, outcome)
    }
    ranked = list(found)[::-1]
    ranked.sort(key=lambda text: (not _SETTLED.search(text), not found[text]))
    chosen = ranked[:MOST_DECISIONS]
    return tuple(text for text in found if text in chosen)


def _outcome(speeches: Sequence[Speech], but: Container[int]) -> str:
    """Return how a chat ended: the beginning of the assistant's last message that reports something.

    A message that ends with what comes next reports only a step. Where the last report is one of `but`, how
    the chat ended is not known: an earlier report is of something else.
    """
    for message, prose in reversed(speeches):
        line = _reported(prose) if message.role == "assistant" else ""
        if len(line) >= _REPORT:
            return "" if message.seq in but else line
    return ""


def _reported(prose: str) -> str:
    first, *others = prose.splitlines() or [""]
    plain = [first, *(line for line in others if not _HEADING.fullmatch(line))]
    reports = (_report("\n".join(lines)) for lines in (plain, [first, *others]))
    return next((line for line in reports if len(line) >= _REPORT), "")


def _report(text: str) -> str:
    said = sentences(text)
    if not said or is_next_step(said[-1]):
        return ""
    reports = (one for one in said if not (is_courtesy(one) or is_next_step(one) or one.endswith("?")))
    return _prose(reports, _OUTCOME)


def _completed(summary: str, episode: Episode) -> str:
    """Return a summary and what it does not say of an episode; the summary is cut if both are too long."""
    kept = cut(summary, LONGEST - len(_composed(".", (), episode.decisions, episode.outcome)))
    found = [one for one in episode.decisions if not _says(kept, one)]
    outcome = "" if _says(" ".join((kept, *found)), episode.outcome) else episode.outcome
    return _composed(kept, [path for path in episode.files if not _stands_in(path, kept)], found, outcome)


def _says(text: str, part: str) -> bool:
    """Return whether a part stands in a text word for word; reworded, it might name another number."""
    words, others = (f" {' '.join(_WORD.findall(one.lower()))} " for one in (text, part))
    return others in words


def _composed(start: str, files: Sequence[str], found: Sequence[str], outcome: str) -> str:
    """Return the text of an episode; the files that matter least are left out until it fits."""
    parts = (("Files", ", ".join(files)), ("Decided", " ".join(map(_ended, found))), ("Outcome", outcome))
    end = _labelled(*parts)
    text = f"{_ended(start)} {end}" if start and end else start or end
    return _composed(start, files[:-1], found, outcome) if files and len(text) > LONGEST else text


def _labelled(*parts: tuple[str, str]) -> str:
    return " ".join(f"{label}: {_ended(part)}" for label, part in parts if part)


def _ended(text: str) -> str:
    return text if text.endswith(_ENDS) else f"{text.rstrip(',;:')}."


def _talk(speeches: Iterable[Speech]) -> str:
    """Return what people talked about, where no agent took part: the sentences that say most of it."""
    # The text analysis is loaded by the first use.
    from holdfast.compaction.extract import extract

    said = [
        Passage(_IMAGE.sub(" ", prose), one.actor, None, one.role)
        for one, prose in speeches
        if one.role == "user"
    ]
    lines = [line for line in extract(said, _TALK).splitlines()[1:] if not line.startswith(EXPAND)]
    return cut(one_line(" ".join(line.removeprefix(BARE) for line in lines)), LONGEST)


def _framed(text: str) -> str:
    return text.replace("<", "&lt;").replace(">", "&gt;")


def _line(value: object) -> str:
    """Return a text of a model in one line, without reasoning, payloads and what may do harm."""
    text = without_payloads(without_reasoning(text_of(value)))
    line = one_line(harmless(text) if grave(text) else text)
    return line if _WORD.search(line) else ""


def _lines(value: object) -> list[str]:
    return [line for line in map(_line, listed(value)[:_LISTED]) if line]


def _stands_in(path: str, text: str) -> bool:
    """Return whether a path is written in a text, and not merely as a part of a longer name."""
    return re.search(rf"(?<![\w.-]){re.escape(path)}(?![\w-])", text) is not None
