"""Messages of the library in the words of the command line."""

import re

_WORDS = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"memory\.chats\(archived=None\) lists", "`holdfast chats --all` lists"),
        (r"in `window\(\)\.summaries`", "that `holdfast tree` shows"),
        (r"call `erase\(rewrite=True\)`", "run `holdfast erase --rewrite`"),
        (r"through a handle of the tenant: memory\.scoped\(user=''\)", "with --user ''"),
        (r", or pass read_only=True", ""),
        (r"Open it (once )?without `read_only`, as", r"Run it \1as"),
        (r"See `memory\.learning\.jobs\(\)`", "`holdfast learn jobs` lists those there are, with their ids"),
        (r"Keep it under 'temp:.*', which stays", "Leave it out: for the next command, nothing is kept"),
        (r"`verify\(repair=True\)`", "`holdfast verify --repair`"),
        (r"`verify`", "`holdfast verify`"),
        (r"\b(\w+)=True\b", r"--\1"),
        (r"Pass True or False", "Write true or false"),
        (r"True, False, None, and lists and dicts", "true, false, null, and lists and objects"),
        (r"`(since|until)`", r"--\1"),
        (r"`(?:memory\.learning\.jobs(?:\(\))?|jobs\(\))`", "`holdfast learn jobs`"),
        (r"in `chat\.history\(\)`", "that `holdfast show` lists"),
        (r"`chat\.branches\(\)`", "those that `holdfast chats branches` lists"),
        (r"`learning\.work`", "`holdfast work`"),
        (r"`(?:memory\.)?(changes|records|quarantine|chats)(?:\(\))?`", r"`holdfast \1`"),
        (r"`(changes|records)\((\w+)=(?:'([^']*)'|(…))\)`", r"`holdfast \1 --\2 \3\4`"),
        (r": (?:Learning|Memory|Compaction)\([^`]*\)\.", " in the program that opens the memory."),
        (r": chat\.run\(\)\.", " in a program."),
        (r"Use run\.remember within `with chat\.run\(\) as run`", "Only a program has runs"),
        (r", or use chat\.remember", ""),
        (r"\b(\w+)='(\w+)'", r"--\1 \2"),
        (r"\b(\w+)=(?=[\s,.;]|$)", r"--\1"),
    )
)


def in_options(text: str) -> str:
    """Put options and commands in the place of arguments and calls.

    >>> in_options("Pass chat= as well, or see `memory.learning.jobs()`.")
    'Pass --chat as well, or see `holdfast learn jobs`.'
    >>> in_options("See `memory.quarantine`.")
    'See `holdfast quarantine`.'
    """
    for pattern, words in _WORDS:
        text = pattern.sub(words, text)
    return text
