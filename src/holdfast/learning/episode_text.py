"""The text of an episode: what one chat did, in at most 2,000 characters, by rules or by a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.compaction.summary_passages import BARE
from holdfast.compaction.work_steps import FAILED, RAN, merged, steps_of
from holdfast.learning.grounding import says_too_little
from holdfast.learning.speeches import (
    LearnedStatement,
    Speech,
    is_courtesy,
    is_next_step,
    learned_statements,
    speeches_of,
)
from holdfast.llm.json_answers import listed, picked, table, text_of
from holdfast.llm.llm_request import Unreadable
from holdfast.messages.passages import EXPAND, Passage, grave, harmless
from holdfast.messages.tool_uses import rendered, tool_uses
from holdfast.text.message_text import without_payloads, without_reasoning
from holdfast.text.one_line import cut, gist
from holdfast.text.sentences import one_line, sentences
from holdfast.text.statements import StatementKind
from holdfast.types import Message

LONGEST = 2_000  # characters of an episode
MOST_DECISIONS = 3

_ASKED, _LATER, _DECISION, _FINDING, _OPEN, _OUTCOME = 240, 220, 180, 180, 180, 240  # characters
_MOST = 8  # decisions, and findings
_PLACES = 1_000  # in the order of a message; more than its statements that are chosen
# What an episode lists under one label, by the place in the session; what matters most stands first.
_Ranking = dict[int, str]
_SUBSTANCE = 20  # characters of a request that stands alone: "proceed" does not
_REPORT = 50  # characters of a report
_SAME = 0.6  # the share of words that two wordings of one request have in common
_TALK = 200  # tokens, of a conversation between people
_LISTED = 32  # files or decisions that are read of an answer
_MOST_LATER = 8  # requests after the first
# Lines that a terminal showed: a prompt, after which comes output; a path alone, one that begins with a
# picture, or that has columns.
_PROMPT = re.compile(
    r"\s*(?:\[?\d{1,4}[/:-]\d.*[\]$%#>] .*|(?:\(\w{1,20}\) )?[\w.-]{1,40}@[\w.-]{1,40}[:~ ].*|[$%❯➜] .*)"
)
_OUTPUT = re.compile(
    r"\s*(?:\[\d{1,4}[/:-].*|[^\s/]*+/\S*+\s*+|[^\x00-\x7f\w¿¡«“‘„「].*|.*\S\t.*|#{1,6} \w+)"
)
# A line that a person types after output.
_TYPED = re.compile(r"[\w\"'“‘„「«¿¡](?!.*\S  )")
_IMAGE = re.compile(r"\[image: [^\[\]]{0,400}\]")
# A heading, or a row of a table.
_HEADING = re.compile(r"\s*(?:#{1,6} .*|\*\*[^*]*\*\*:?\s*|\|.*)")
# What is said to be left, where a line or a sentence begins.
_LEFT = re.compile(
    r"\W{0,6}(?:to-?do|defer\w*|remaining|left (?:to do|open|out)|"
    r"still (?:open|to do|failing|missing|needs?|fails?)|"
    r"not (?:yet )?(?:done|implemented|tested|verified|committed)|nothing (?:is )?committed|"
    r"open (?:items?|points?|questions?)|next (?:steps?|up)|follow-?ups?|known (?:issues?|limitations?)|"
    r"out of scope|untested|pending|(?:do you )?want me to|would you like me to|should i|shall i|"
    r"offen|noch (?:offen|zu tun)|soll ich|à faire|reste à|pendiente|falta)\b",
    re.IGNORECASE,
)
# The lists of names; and what is kept of lists that are cut where there is too much.
_NAMES = frozenset(("Files", "Ran"))
_KEPT = {"Later": 0, "Files": 0, "Decided": MOST_DECISIONS, "Found": 0, "Ran": 0, "Left open": 0}
_DECIDED = frozenset[StatementKind](("decision", "order", "request"))
_FOUND = frozenset[StatementKind](("cause",))
_MARKUP = re.compile(r"</?[A-Za-z]")
_WORD = re.compile(r"\w+")
_ENDS = (".", "!", "?", "…", "。", "！", "？")


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


def compose(
    messages: Sequence[Message], but: Container[int] = (), is_known: Callable[[str], bool] = lambda _: False
) -> Episode:
    """Return the episode of a chat by rules. Its `text` is empty if nobody spoke.

    Of the messages with the seqs `but` no words are taken; of the files that they use, those that another
    message names. What `is_known` to all is neither decided nor found in it, nor its outcome.
    """
    every = list(speeches_of(messages))
    speeches = [speech for speech in every if speech.message.seq not in but]
    if not any(message.role == "assistant" for message in messages):
        return Episode(_talk(speeches), _turns(every))
    files, outcome, work = key_files(every, but), _outcome(every, but), _work(every)
    outcome = "" if is_known(outcome) else outcome
    first, requests = _requests(every, but, work)
    left = [line for line in _loose_ends(every, but) if not _says_one_of(line, [first])]
    own = (claim for claim in learned_statements(messages) if not any(seq in but for seq in claim.messages))
    claims = [claim for claim in own if not is_known(claim.text)]
    users = {message.actor for message, _ in every if message.role == "user"}
    # What was followed by more work matters more.
    claims.sort(key=lambda claim: (claim.speaker in users, work.get(claim.messages[1], 0)), reverse=True)
    decided = _main(claims, _DECIDED, _DECISION, known := [first, *left, outcome])
    known += decided.values()
    later = {place: line for place, line in requests.items() if not _says_one_of(line, known)}
    findings = _main(claims, _FOUND, _FINDING, [*known, *later.values()])
    # Whatever shows a part of it shows the beginning.
    lists = {
        "Outcome": _ranking([outcome]),
        "Decided": decided,
        "Left open": _ranking(left),
        "Asked": _ranking([first]),
        "Found": findings,
        "Later": later,
        "Files": _ranking(files),
        "Ran": _ranking(worked_commands([message for message in messages if message.seq not in but])),
    }
    main = sorted(list(decided)[:MOST_DECISIONS])
    return Episode(_fit(lists), _turns(every), files, tuple(map(decided.__getitem__, main)), outcome)


def read_episode(answer: object, episode: Episode, transcript: str = "") -> Episode:
    """Return the episode in the words of a model; what the answer left out stays as it was by rules.

    What the summary does not say of the outcome and the decisions stands before it, and the files behind it.
    A summary that is too long, also for the transcript, is cut. Files that stand neither in the transcript
    nor in the episode are dropped, and so are decisions and an outcome of one word.

    Raises:
        Unreadable: the answer is no JSON object that has a summary, or something in it is no text.

    """
    fields = table(answer, "the answer")
    most = min(LONGEST, max(_ASKED, len(transcript))) if transcript else LONGEST
    summary = cut(_line(picked(fields, "summary")), most)
    if says_too_little(summary):
        raise Unreadable("its summary is missing or says nothing.")
    known = "\n".join((episode.text, *episode.files, transcript))
    files = [path for path in _lines(picked(fields, "files")) if _stands_in(path, known)]
    decisions = (text for text in _lines(picked(fields, "decisions")) if not says_too_little(text))
    decided = [cut(text, _DECISION) for text in decisions]
    outcome = cut(_line(picked(fields, "outcome")), _OUTCOME)
    result = replace(
        episode,
        files=tuple(dict.fromkeys(files))[:MOST_FILES] or episode.files,
        decisions=tuple(dict.fromkeys(decided))[:MOST_DECISIONS] or episode.decisions,
        outcome=episode.outcome if says_too_little(outcome) else outcome,
    )
    return replace(result, text=_complete(summary, result))


def _turns(speeches: Iterable[Speech]) -> int:
    """Return the number of a user's messages with prose; commands such as "/exit" have none."""
    return sum(message.role == "user" and bool(prose) for message, prose in speeches)


def _work(speeches: Iterable[Speech]) -> dict[int, int]:
    """Return the number of messages between each message of the user and the next, by its seq."""
    work: dict[int, int] = {}
    last = 0
    for message, prose in speeches:
        if message.role == "user" and prose:
            last = message.seq
            work[last] = 0
        elif work:
            work[last] += 1
    return work


def _requests(
    speeches: Iterable[Speech], but: Container[int], work: Mapping[int, int]
) -> tuple[str, _Ranking]:
    """Return the first request of the user, "" for none, and the later ones that took the most work."""
    requests: list[str] = []
    effort: list[int] = []
    for message, prose in speeches:
        if message.role != "user" or message.seq in but:
            continue
        line = _request(prose)
        if line and (len(line) >= _SUBSTANCE or not requests):
            # A repeated request replaces the one before it, unless that is the first.
            if len(requests) > 1 and _are_alike(requests[-1], line):
                del requests[-1], effort[-1]
            requests.append(line)
            effort.append(0)
        if requests:
            effort[-1] += work.get(message.seq, 0)
    first = "".join(requests[:1])
    later = [number for number in range(1, len(requests)) if not _are_alike(first, requests[number])]
    main = sorted(later, key=lambda number: (-effort[number], -number))[:_MOST_LATER]
    return first, {number: cut(requests[number], _LATER) for number in main}


def _request(prose: str) -> str:
    """Return what a user's message asks for, without courtesy and what a terminal showed."""
    typed = "\n".join(_typed_lines(prose.splitlines()))
    request = [sentence for sentence in sentences(typed) if not is_courtesy(sentence)]
    return _prose(request, _ASKED) if request else gist(typed, _ASKED)


def _typed_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines that a person typed. After a prompt comes output, until plain text after a gap."""
    is_shown, is_first = False, True
    for line in lines:
        is_prompt, is_output = _PROMPT.fullmatch(line), _OUTPUT.fullmatch(line)
        asks = line.rstrip().endswith("?") and line.count(" ") > 1
        if is_prompt:
            is_shown = True
        elif not is_output and (asks or (is_first and _TYPED.match(line))):
            is_shown = False
        if line.strip() and not (is_shown or is_prompt or is_output):
            yield line
        is_first = not line.strip()


def _prose(lines: Iterable[str], longest: int) -> str:
    """Return sentences, and other lines, in one line: as many as begin within `longest` characters."""
    text = ""
    for line in map(gist, lines):
        if line and len(text) <= longest:
            text += f"{' ' if text else ''}{line if line.endswith((*_ENDS, ':')) else f'{line}.'}"
    return cut(text, longest)


def _are_alike(text: str, other: str) -> bool:
    """Return whether two texts have most words in common, and no number that the other has not."""
    words, others = set(_WORD.findall(text.lower())), set(_WORD.findall(other.lower()))
    numbers, other_numbers = ({word for word in some if word[0].isdigit()} for some in (words, others))
    is_same = numbers <= other_numbers or other_numbers <= numbers
    return is_same and len(words & others) >= _SAME * min(len(words), len(others))


def _main(
    claims: Iterable[LearnedStatement], kinds: frozenset[StatementKind], longest: int, known: Sequence[str]
) -> _Ranking:
    """Return the first statements of some kinds, by their messages, that say nothing `known`."""
    chosen: _Ranking = {}
    for claim in claims:
        text = cut(gist(claim.text, LONGEST), longest)
        is_new = not _MARKUP.search(text) and not _says_one_of(text, (*known, *chosen.values()))
        if claim.kind in kinds and len(chosen) < _MOST and is_new:
            chosen[claim.messages[1] * _PLACES + len(chosen)] = text
    return chosen


def _says_one_of(text: str, others: Iterable[str]) -> bool:
    return any(_are_alike(text, other) for other in others if other)


def _loose_ends(speeches: Sequence[Speech], but: Container[int]) -> list[str]:
    """Return the open points at the end of a chat: the remaining or offered work in its last report.

    If work was begun and nothing reported since, it is the last request of the user.
    """
    is_begun = False
    for message, prose in reversed(speeches):
        is_begun = is_begun or bool(message.calls or rendered(message))
        if message.role == "user" and len(line := _request(prose)) >= _SUBSTANCE:
            return [cut(line, _OPEN)] if is_begun and message.seq not in but else []
        if message.role == "assistant" and len(_find_report(prose)) >= _REPORT:
            left = [sentence for sentence in sentences(prose) if _LEFT.match(sentence)]
            return [] if message.seq in but else [cut(gist(sentence), _OPEN) for sentence in left[-2:]]
    return []


def _outcome(speeches: Sequence[Speech], but: Container[int]) -> str:
    """Return how a chat ended: the beginning of the assistant's last message that reports something.

    A message that ends with what comes next reports only a step. Where the last report is one of `but`, how
    the chat ended is not known: an earlier report is of something else.
    """
    for message, prose in reversed(speeches):
        line = _find_report(prose) if message.role == "assistant" else ""
        if len(line) >= _REPORT:
            return "" if message.seq in but else line
    return ""


def _find_report(prose: str) -> str:
    first, *others = prose.splitlines() or [""]
    plain = [first, *(line for line in others if not _HEADING.fullmatch(line))]
    reports = (_report("\n".join(lines)) for lines in (plain, [first, *others]))
    return next((line for line in reports if len(line) >= _REPORT), "")


def _report(text: str) -> str:
    lines = sentences(text)
    if not lines or is_next_step(lines[-1]):
        return ""
    reports = (line for line in lines if not (is_courtesy(line) or is_next_step(line) or _LEFT.match(line)))
    reports = (line for line in reports if not line.endswith("?"))
    return _prose(reports, _OUTCOME)


def _complete(summary: str, episode: Episode) -> str:
    """Return a summary with the points of an episode that it lacks, and cut where both are too long."""
    lists = {"Outcome": _ranking([episode.outcome]), "Decided": _ranking(episode.decisions)}
    kept = cut(summary, LONGEST - len(f". {_join_lists(lists)}"))
    decisions = [text for text in episode.decisions if not _says(kept, text)]
    outcome = "" if _says(" ".join((kept, *decisions)), episode.outcome) else episode.outcome
    files = [path for path in episode.files if not _stands_in(path, kept)]
    lists = {"Outcome": _ranking([outcome]), "Decided": _ranking(decisions)}
    return _fit({**lists, "": _ranking([kept]), "Files": _ranking(files)})


def _says(text: str, part: str) -> bool:
    """Return whether a part stands in a text word for word; reworded, it might name another number."""
    words, others = (f" {' '.join(_WORD.findall(phrase.lower()))} " for phrase in (text, part))
    return others in words


def _ranking(texts: Iterable[str]) -> _Ranking:
    return {place: text for place, text in enumerate(texts) if text}


def _fit(lists: Mapping[str, _Ranking]) -> str:
    """Return the text of an episode; until it fits, the longest list loses its least important entry."""
    text = _join_lists(lists)
    spare = {label: texts for label, texts in lists.items() if len(texts) > _KEPT.get(label, len(texts))}
    if len(text) <= LONGEST or not spare:
        return text
    longest = max(spare, key=lambda label: sum(map(len, spare[label].values())))
    return _fit({**lists, longest: dict(list(spare[longest].items())[:-1])})


def _join_lists(lists: Mapping[str, _Ranking]) -> str:
    """Return lists as text, each after its label and in its own order."""
    parts = []
    for label, ranked in lists.items():
        texts = [ranked[place] for place in sorted(ranked)]
        if texts:
            text = ", ".join(texts) if label in _NAMES else " ".join(map(_end_sentence, texts))
            parts.append(f"{label}: {_end_sentence(text)}" if label else _end_sentence(text))
    return " ".join(parts)


def _end_sentence(text: str) -> str:
    return text if text.endswith(_ENDS) else f"{text.rstrip(',;:')}."


def _talk(speeches: Iterable[Speech]) -> str:
    """Return the main sentences of a conversation between people, without an agent."""
    # The text analysis is loaded by the first use.
    from holdfast.compaction.extract import extract

    passages = [
        Passage(_IMAGE.sub(" ", prose), message.actor, None, message.role)
        for message, prose in speeches
        if message.role == "user"
    ]
    lines = [line for line in extract(passages, _TALK).splitlines()[1:] if not line.startswith(EXPAND)]
    return cut(one_line(" ".join(line.removeprefix(BARE) for line in lines)), LONGEST)


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


# What a chat worked with: the files that it touched most, and the commands that worked

MOST_FILES = 8

_LONGEST_PATH = 120  # characters
_LOOKED_AT = 200  # paths, the most often touched of a session
_SHOWN_PARTS = 3  # of an absolute path, from its end
_EDITED, _READ, _MENTIONED = 8, 2, 1  # the weight of each touch of a file
_MOST_WORDS = 5  # of a name in a path
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
_MOST_COMMANDS = 3
# A program and its arguments in a few words, without quotes and paths of the machine.
_COMMAND = re.compile(r"[^\s\"'`$]{1,60}(?: (?![/~])[^\s\"'`$]{1,60}){1,7}")
_URL = re.compile(r"\b[a-z][a-z0-9+]{1,11}://[^\s\"'`<>]*", re.IGNORECASE)
_RUN = re.compile(r"[\w./\\~@+-]++")
_SEPARATOR = re.compile(r"[\\/]+")
_PATH_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\da-zA-Z_]+")


def key_files(speeches: Sequence[Speech], but: Container[int]) -> tuple[str, ...]:
    """Return the files that a chat touched most; one that is written in several ways is one."""
    touched: Counter[str] = Counter()
    for message, prose in speeches:
        is_believed = message.seq not in but
        for use in tool_uses((message,)):
            mentions = (path for text in use.texts for path in _paths(text))
            paths = (*use.paths, *mentions) if is_believed else filter(_is_plain, use.paths)
            for path in dict.fromkeys(path for path in paths if _is_file(path)):
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


def _is_plain(path: str) -> bool:
    """Return whether a path cannot hide a sentence: its names have few words, and are no order."""
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
    """Return for each path the longest path that ends with it, of several the most touched."""
    parts = {path: _parts(path) for path in touched}
    same_name: dict[str, list[str]] = {}
    for path in touched:
        same_name.setdefault(parts[path][-1], []).append(path)
    return {
        path: max(
            (other for other in same_name[own[-1]] if parts[other][-len(own) :] == own),
            key=lambda other: (len(parts[other]) > len(own), touched[other], len(parts[other])),
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


def worked_commands(messages: Sequence[Message]) -> list[str]:
    """Return the commands that a chat ran most often, twice at least, and that worked when they ran last."""
    done = merged(steps_of(messages))
    times, failed = Counter[str](), Counter[str]()
    for step in done:
        times[step.what] += step.times if step.verb in (RAN, FAILED) else 0
        failed[step.what] = max(failed[step.what], step.number if step.verb == FAILED else 0)
    worked = [step.what for step in done if step.verb == RAN and step.number > failed[step.what]]
    again = [what for what in worked if times[what] > 1 and _COMMAND.fullmatch(what)]
    return sorted(again, key=lambda what: -times[what])[:_MOST_COMMANDS]
