"""The work at each event of a coding agent: the answer that the client waits for, then all the rest."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import Unavailable
from holdfast_cli.hooks import journal
from holdfast_cli.hooks.location import default_path, is_there, location_of
from holdfast_cli.hooks.privacy import Privacy, as_query, why_withheld
from holdfast_cli.hooks.project import Project, open_memory, project_of
from holdfast_cli.hooks.session_state import SessionState, prune

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast import Memory
    from holdfast.types import Role
    from holdfast_cli.formats.import_items import ImportedMessage
    from holdfast_cli.hooks.hook_call import HookCall, HookOptions
    from holdfast_cli.hooks.hook_limit import HookLimit

# How long a hook waits for a database that another process writes: what is behind it waits for the hook.
_BUSY = 0.1
# What a batch of an import may take.
_BATCH = 0.15
# How long what nobody waits for does.
_PATIENT = 30.0
_LATER = "the database was locked: what is left is done afterwards"
# Jobs of learning without a model that one stop runs, and the seconds after which it begins no other one.
_JOBS, _LEARNING = 4, 30
# Clients whose transcripts are read from their beginning each time: later lines may change what earlier ones
# say (Codex, Gemini CLI), or ids are made of places and words (Cursor).
_READ_WHOLE = ("codex", "cursor", "gemini")
# The folder that Claude Code was started in, whatever folder its commands go to.
_STARTED_IN = "CLAUDE_PROJECT_DIR"


class Outcome(NamedTuple):
    """The outcome of an event: the text for the model, the ids that it shows, or why there is none.

    `message` is for the person. `goes_on` says that there is something to do which the client does not wait
    for; see `HookEvents.after`.
    """

    text: str = ""
    message: str = ""
    project: str = ""
    shown: tuple[str, ...] = ()
    tokens: int = 0
    note: str = ""
    goes_on: bool = False


class HookEvents:
    """The events of one session. `limit` is the time until the client is to have its answer."""

    def __init__(self, call: HookCall, options: HookOptions, limit: HookLimit) -> None:
        self._call, self._options, self._limit = call, options, limit
        self._state = SessionState.of(call.client, call.session)
        if not self._state.project:
            project = project_of(self._folder)
            self._state.project, self._state.root = project.name, str(project.root)
            self._state.note(project=project.name, root=str(project.root))

    @property
    def project(self) -> str:
        """The name of the project, which a session keeps wherever it goes."""
        return self._state.project

    @property
    def _folder(self) -> str:
        """The folder that the session was started in, as far as the client tells, else the one it is in."""
        folder = os.environ.get(_STARTED_IN) if self._call.client == "claude-code" else ""
        return (folder or self._call.cwd or ".").replace("\0", "")

    # What the client waits for

    def answer(self) -> Outcome:
        """Return the outcome that the client waits for; an empty one while the user has paused the memory.

        Raises:
            HoldfastError: the database cannot be read.

        """
        if why := self._why_withheld():
            return Outcome(note=why, project=self.project)
        match self._call.event:
            case "session-start":
                outcome = self._session_start()
            case "prompt":
                outcome = self._prompt()
            case _:
                # A stop and the end of a session have no answer: what they do is done in `after`.
                outcome = self._before_compaction()
        return outcome._replace(project=self.project)

    def _session_start(self) -> Outcome:
        from holdfast_cli.hooks.session_context import session_context, waiting_wishes

        last = journal.last_start(journal.tail(), self._call.client, self.project)
        with self._open(create=True) as memory:
            resumes = self._call.source in ("resume", "compact")
            context = session_context(memory, self._call.session if resumes else "")
            wishes = waiting_wishes(memory, last, self._options)
        self._note_shown(context.shown)
        return Outcome(context.text, wishes, shown=context.shown, tokens=context.tokens)

    def _prompt(self) -> Outcome:
        from holdfast_cli.hooks.small_talk import asks_for_nothing

        keeps, query = not self._reads_transcripts, as_query(self._call.prompt)
        if asks_for_nothing(query):
            return Outcome(note="nothing to recall", goes_on=keeps)
        from holdfast_cli.hooks.prompt_context import prompt_context

        with self._open() as memory:
            before = frozenset(self._state.shown_before())
            context = prompt_context(memory, query, self._call.session, before)
        self._note_shown(context.shown)
        note = "" if context.text else "nothing likely enough"
        return Outcome(context.text, shown=context.shown, tokens=context.tokens, note=note, goes_on=keeps)

    def _before_compaction(self) -> Outcome:
        if not self._reads_transcripts:
            return Outcome(note="no transcript that can be read")
        if self._call.client == "gemini":
            # It calls this in the middle of turns, whose lines it writes again.
            return Outcome(note="the transcript is imported at the end of the turn")
        if self._call.client in _READ_WHOLE:
            return Outcome(note="the transcript is imported afterwards", goes_on=True)
        from holdfast_cli.hooks.tail import TimeIsOver

        try:
            with self._open(create=True) as memory:
                self._import(memory, self._check_time)
        except TimeIsOver:
            return Outcome(note="the rest is imported afterwards", goes_on=True)
        except Unavailable:
            # What goes on waits longer, and tells what it cannot do.
            return Outcome(note=_LATER, goes_on=True)
        return Outcome(goes_on=True)

    def _check_time(self) -> None:
        from holdfast_cli.hooks.tail import TimeIsOver

        # A batch that has begun is stored within the rest.
        if self._limit.left() < _BATCH:
            raise TimeIsOver

    def _note_shown(self, names: tuple[str, ...]) -> None:
        if names:
            self._state.note(at=time.time(), shown=names)

    # What it does not wait for

    def after(self) -> str:
        """Do the work that the client does not wait for: import, compact, and learn without a model.

        Returns:
            Why nothing was done; "" where it was.

        Raises:
            HoldfastError: the database cannot be written.

        """
        if why := self._why_withheld():
            return why
        if self._call.event == "session-end":
            self._state.note(ended=True)
        from holdfast.port.safekeeping import freeze_index
        from holdfast_cli.hooks.known_files import note_known

        with self._open(create=True, busy=None) as memory:
            if self._call.event == "prompt":
                self._keep(memory, "user", self._call.prompt)
            elif self._reads_transcripts:
                self._import(memory, lambda: None)
            else:
                self._keep(memory, "assistant", self._call.answer)
            chat = memory.chat(self._call.session)
            if chat.stats().messages and chat.needs_compaction():
                # Without a model, for when the client has forgotten the beginning.
                chat.compact()
            root = Path(self._state.root)
            note_known(memory, root, Path.home(), Privacy.read(), Path(self._folder))
            if self._call.event in ("stop", "session-end"):
                self._learn(memory)
            # The next prompt, a process of its own, would analyse it in its time.
            freeze_index(memory)
        prune()
        return ""

    def _why_withheld(self) -> str:
        return why_withheld(Project(self.project, Path(self._state.root)))

    @property
    def _reads_transcripts(self) -> bool:
        """Whether there is a reader of the client's transcripts; else prompts and answers are kept."""
        client, transcript = self._call.client, self._call.transcript
        return client == "claude-code" or (client in _READ_WHOLE and Path(transcript).is_file())

    def _import(self, memory: Memory, check_time: Callable[[], None]) -> None:
        from holdfast_cli.hooks.tail import import_tail

        if not self._call.transcript:
            return
        transcript, rules = Path(self._call.transcript), Privacy.read(self._state.root)
        # Those of the sub-agents of Claude Code are beside it.
        subagents = sorted((transcript.with_suffix("") / "subagents").glob("agent-*.jsonl"))
        for path in (transcript, *subagents):
            import_tail(
                memory,
                path,
                appended=self._call.client not in _READ_WHOLE,
                location=self._location,
                rules=rules,
                rewrite=self._with_shown,
                check_time=check_time,
            )

    def _with_shown(self, item: ImportedMessage) -> ImportedMessage:
        """Return a message with the ids that its writer was shown, so that they are not learned as news."""
        message = item.message
        if message.role != "assistant" or item.chat.id != self._call.session:
            return item
        at = message.at.timestamp() if message.at else None
        return replace(item, message=replace(message, shown=self._state.shown_before(at)))

    def _keep(self, memory: Memory, role: Role, text: str) -> None:
        """Store a prompt or an answer that is told by the client only, once, without what is private.

        Its id is made of the words that are stored and how often they were said in the session, as a reader
        of the whole transcript can make it too.
        """
        from holdfast.types import Message
        from holdfast_cli.formats.import_items import ImportedChat, ImportedMessage
        from holdfast_cli.formats.json_values import hook_id
        from holdfast_cli.formats.redaction import Redactor

        if not text.strip():
            return
        agent = f"/agent-{self._call.agent}" if self._call.agent else ""
        chat = memory.chat(f"{self._call.session}{agent}")
        history = chat.history()
        shown = self._state.shown_before() if role == "assistant" else ()
        message = Message(role, text, at=datetime.now(UTC), shown=shown)
        redactor = Redactor(Privacy.read(), cwd=self._state.root)
        item = redactor.redact(ImportedMessage(ImportedChat(chat.id), 0, message))
        if not isinstance(item, ImportedMessage):
            return
        # Not of the private words: a hash of a short number tells it.
        text = item.message.content
        prefix = hook_id(role, text)
        same = [earlier for earlier in history if earlier.id.startswith(prefix)]
        if same and role == "assistant" and history[-1].id == same[-1].id:
            # The same stop, reported twice.
            return
        chat.append(replace(item.message, id=f"{prefix}{len(same) + 1}"))

    def _learn(self, memory: Memory) -> None:
        if self._state.ended or self._call.event == "session-end":
            chat = memory.chat(self._call.session)
            if chat.stats().messages:
                chat.end()
        memory.learning.work(limit=_JOBS, until=datetime.now(UTC) + timedelta(seconds=_LEARNING))

    # The database

    @property
    def _location(self) -> str:
        return location_of(self._options.db)

    def _open(self, *, create: bool = False, busy: float | None = _BUSY) -> Memory:
        """Open the memory of the project; a database that is not there is made only with `create`.

        Raises:
            Unavailable: there is none, or it cannot be opened.

        """
        from holdfast.port.safekeeping import wait_for_locks

        location = self._location
        if not is_there(location):
            if not create:
                raise Unavailable("There is no database.", "The next stop makes one.")
            if Path(location) == default_path():
                Path(location).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        wait_for_locks(_PATIENT if busy is None else busy)
        user = self._options.user or os.environ.get("HOLDFAST_USER", "")
        return open_memory(self.project, location, tenant=self._options.tenant, user=user)
