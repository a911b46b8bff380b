"""External sources: tools and programs that brought foreign text into a chat, and what may repeat it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from holdfast.messages.tool_uses import ToolUse, rendered, tool_uses
from holdfast.safety.guard import has_orders, scan
from holdfast.types import MAX_COUNT, Message

# Names of tools, in lower case: they look something up, open an address, or read what other people write.
_USUAL = tuple(
    "*web* *fetch* *browser* *http* *url* *wget* *screenshot* computer computer_use *navigate* *visit* "
    "*scrape* *scraping* *crawl* *download* open_page read_page *google* *tavily* *perplexity* *wikipedia* "
    "*arxiv* bing bing_* duckduckgo* *mail* *inbox* *slack* *discord* *telegram* *whatsapp* *github* "
    "*gitlab* *jira* *confluence* *notion* mcp__*".split()
)
# They bring what others wrote as well, but report in the words of a model, to one that answers at once.
_SUB_AGENTS = tuple("task agent dispatch_agent spawn_agent *subagent* *sub_agent*".split())
# What clients write for their models, word for word, into results of tools and messages of users.
_NOTICES = re.compile(
    r"Note: \S{1,400} was modified, either by the user or by a linter\. Don't tell the user this, since "
    r"they are already aware\."
    r"|(?:Your todo list has changed|(?:The|Today's) date has changed|"
    r"This is a reminder that your todo list is currently empty)\."
    r"(?: Today's date is now [\d-]{1,10}\.)? (?:DO NOT|No need to|Do not) mention this (?:explicitly )?"
    r"to the user(?: explicitly)?(?: because they are already aware)?\."
    r"(?: Here are the latest contents of your todo list:)?"
    r"|(?:Again,? do not mention this message|Make sure that you NEVER mention this reminder) to the user"
    r"|(?:Please )?[Cc]ontinue the conversation from where (?:we left it|it left) off without asking the "
    r"user any further questions\."
    r"|Codebase and user instructions are shown below\. Be sure to adhere to these instructions\. IMPORTANT: "
    r"These instructions OVERRIDE any default behavior and you MUST follow them exactly as written\."
    r"|As you answer the user's questions, you can use the following context:"
    r"|STOP what you are doing and wait for the user to tell you how to proceed\."
)
_SEARCHING = "*search*"
# Searches of what is local: the code, the tools, the memory.
_LOCAL = tuple(
    "*file* *code* *grep* *glob* *regex* *symbol* *pattern* *text* *replace* *_dir *directory* *folder* "
    "*workspace* *project* semantic_search *tool* *memory* *memories* *session* *history*".split()
)
_OWN_TOOLS = "mcp__holdfast"
_SHELL = re.compile(r"bash|shell|terminal|exec|command|pwsh|^sh$|^cmd$", re.IGNORECASE)
_BEFORE = (
    r"(?:^|[;&|({!`\n]|[ \t]-(?:\w{0,3}c|[Cc]ommand)[ \t]{1,4}[\"']?)[ \t]{0,8}"
    r"(?:(?:sudo|env|time|timeout|nohup|exec|command|xargs|if|then|else|do|while|until)[ \t]{1,4}"
    r"(?:(?:-\S{1,20}|\d{1,6}[smh]?)[ \t]{1,4}){0,4}|\w{1,40}=\S{0,80}[ \t]{1,4}){0,4}"
    r"(?:[\w./~-]{0,80}/)?"
)
# Most likely a part of the project: the runner of packages downloads only what is not installed.
_INSTALLED = (
    r"tsc|tsx|ts-node|eslint|prettier|biome|jest|vitest|mocha|playwright|cypress|vite|webpack|"
    r"next|prisma|nx|turbo"
)
_REACHING = (
    r"curl|wget|aria2c|lynx|w3m|links|nc|ncat|netcat|telnet|socat|ssh|scp|sftp|ftp",
    r"(?i:iwr|irm|Invoke-WebRequest|Invoke-RestMethod|Start-BitsTransfer)",
    r"rsync(?=[^\n;|&]{1,300}?\w:)",
    r"git[ \t]{1,4}clone(?=[^\n;|&]{1,300}?(?:://|@))",
    r"gh[ \t]{1,4}(?:api|issue|pr|gist|search|release)",
    r"docker[ \t]{1,4}pull",
    rf"npx(?![ \t]{{1,4}}(?:--no\b|--no-install\b|(?:{_INSTALLED})(?![\w@-])))",
    r"bunx|uvx|pipx[ \t]{1,4}(?:run|install)|npm[ \t]{1,4}exec|(?:pnpm|yarn)[ \t]{1,4}dlx",
    # What is listed in the project, or is the project itself, is its own.
    r"pip[\d.]{0,5}[ \t]{1,4}install(?![ \t]{1,4}(?:-e|-r|--editable|--requirement|\.))",
    r"npm[ \t]{1,4}(?:install|i|add)(?=[ \t]{1,4}[\w@])",
)
_PROGRAM = re.compile(
    rf"{_BEFORE}(?:python[\d.]{{0,5}}[ \t]{{1,4}}-m[ \t]{{1,4}}|uv[ \t]{{1,4}})?"
    rf"({'|'.join(_REACHING)})(?=\s|$)"
)
_INLINE = re.compile(r"\b(python|node)[\d.]{0,5}[ \t]{1,4}(?:-\w{0,3}[ce]|--eval|-[ \t]{0,4}<<|<<)")
_REQUEST = re.compile(
    r"\bimport[ \t]{1,4}(?:requests|httpx|aiohttp|urllib3)\b"
    r"|\b(?:requests|httpx)\.(?:get|post|request|Session|Client)\b"
    r"|\burllib\.request\b|\burlopen\b|\bhttp\.client\b|\bfrom[ \t]{1,4}(?:requests|httpx|aiohttp|urllib3)\b"
    r"|\bfetch\(|\bhttps?\.(?:get|request)\("
)


def untrusted(messages: Sequence[Message], names: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the names of the external sources that a chat used, sorted.

    These are tools whose lower-case names match one of the patterns `names`, None for the usual ones;
    programs that a shell ran to reach another machine, such as "curl"; and tools whose results the guard took
    for instructions. Tools of this memory are none.
    """
    used = {source for use in tool_uses(messages) for source in _sources(use, names)}
    return tuple(sorted(used.union(name for _, name in _flagged_results(messages))))


def outside_seqs(messages: Sequence[Message], names: Sequence[str] | None = None) -> set[int]:
    """Return the seqs of the messages with text of external sources, and of those that may repeat it.

    The first are the results of what `untrusted` names, as messages of their own or as written into an
    assistant's. The others are all messages of the assistant after them until the next message of the user. A
    result belongs to the nearest earlier call with its id.
    """
    bringing = {*_results(messages, names), *(seq for seq, _ in _flagged_results(messages))}
    return bringing.union(_after(messages, bringing))


def from_here_on(messages: Sequence[Message], names: Sequence[str] | None = None) -> set[int]:
    """Return the seqs of the messages whose words may come from an external source, whoever repeats them.

    All but the user's are among them from the first use of such a source to the end of the chat: what was
    read can be told much later, in other words, in parts, or in another language. So is every message that
    the guard took for an instruction. What a sub-agent brought is among them in its own turn only.
    """
    used = (
        message.seq
        for message in messages
        for use in tool_uses((message,))
        for name in _sources(use, names)
        if names is not None or not _matches(name.lower(), _SUB_AGENTS)
    )
    first = min((*used, *(seq for seq, _ in _flagged_results(messages))), default=MAX_COUNT)
    later = {message.seq for message in messages if message.seq >= first and message.role != "user"}
    return later | outside_seqs(messages, names) | {message.seq for message in messages if _is_order(message)}


def _is_order(message: Message) -> bool:
    """Return whether the guard took a message for an instruction, and not for a notice of a client."""
    if "instruction" not in message.flags:
        return False
    rest = _NOTICES.sub(" ", message.content)
    return rest == message.content or has_orders(scan(rest, closely=False))


def _results(messages: Iterable[Message], patterns: Sequence[str] | None) -> Iterator[int]:
    outside: dict[str, bool] = {}
    for message in messages:
        written = rendered(message)
        if any(outside.get(call) for call in message.answers) or (written and _sources(written, patterns)):
            yield message.seq
        # What is written into the message comes after its calls.
        called = zip(message.calls, tool_uses((message,)), strict=False)
        outside.update((call.id, bool(_sources(use, patterns))) for call, use in called)


def _after(messages: Iterable[Message], bringing: set[int]) -> Iterator[int]:
    """Yield the seqs of an assistant's messages that stand in one turn after one that brings something in."""
    may_repeat = False
    for message in messages:
        may_repeat = message.seq in bringing or (may_repeat and message.role != "user")
        if may_repeat and message.role == "assistant":
            yield message.seq


def _sources(use: ToolUse, patterns: Sequence[str] | None) -> set[str]:
    """Return the external sources of a tool use: the tool itself, or the programs that it ran."""
    lower = use.name.lower()
    if lower.startswith(_OWN_TOOLS):
        return set()
    sources = {use.name} if _is_outside(lower, patterns) else set()
    if _SHELL.search(use.name):
        sources.update(name for command in use.commands for name in _programs(command))
    return sources


def _is_outside(name: str, patterns: Sequence[str] | None) -> bool:
    if patterns is not None:
        return _matches(name, patterns)
    return _matches(name, (*_USUAL, *_SUB_AGENTS)) or (
        fnmatchcase(name, _SEARCHING) and not _matches(name, _LOCAL)
    )


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _programs(command: str) -> Iterator[str]:
    yield from (" ".join(run.split()) for run in _PROGRAM.findall(command))
    inline = _INLINE.search(command)
    if inline and _REQUEST.search(command, inline.end()):
        yield inline[1]


def _flagged_results(messages: Sequence[Message]) -> Iterator[tuple[int, str]]:
    """Yield the results that the guard took for instructions, each with the name of its tool."""
    callers = {call.id: call.name for message in messages for call in message.calls}
    for message in messages:
        name = _tool(message, callers)
        if name and not name.lower().startswith(_OWN_TOOLS) and _is_order(message):
            yield message.seq, name


def _tool(message: Message, callers: Mapping[str, str]) -> str:
    """Return the name of the tool whose result a message is, "" if it is none."""
    if message.role == "tool":
        return callers.get(message.call_id or "") or message.name or "tool"
    use = rendered(message)
    return use.name if use else ""
