"""The questions to the user of an MCP client before a call removes something or changes a constraint."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from holdfast.errors import Denied, InvalidInput, MissingExtra
from holdfast.port.tools import quoted

try:
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver.resolve import Elicit
    from pydantic import BaseModel, Field
except ImportError as error:
    raise MissingExtra.of("mcp") from error

if TYPE_CHECKING:
    from holdfast.port.tools import Action, Actions

_SHOWN = 300  # characters of a stored text in a question
_AGREED = 1_000  # characters of a new constraint, which is shown whole

Given = Mapping[str, Any]
Question = Callable[["Actions", Given], str]
"""Return the question for a call; "" where nothing is to be asked."""


class Consent(BaseModel):
    """The user's answer to a question."""

    agreed: bool = Field(title="I agree", description="Without it, nothing is changed.")


def asking(action: Action, actions: Actions) -> Callable[..., object] | None:
    """Return the resolver that asks the user before a call of an action; None if no call needs consent.

    The resolver returns None for a call that needs none.
    """
    if action.name not in _QUESTIONS:
        return None
    question = _QUESTIONS[action.name]

    def ask(*, context: Context[Any, Any], **given: object) -> Elicit[Consent] | None:
        words = question(actions, {name: value for name, value in given.items() if value is not None})
        if not words:
            return None
        if not _can_be_asked(context):
            raise Denied(
                f"`{action.name}` must ask the user first, and this client cannot ask.",
                "Tell them: they can do it with the command line, `holdfast --help`.",
            )
        return Elicit(words, Consent)

    names = [parameter.name for parameter in action.parameters]
    keyword = inspect.Parameter.KEYWORD_ONLY
    # The SDK reads the signature.
    ask.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, keyword) for name in ("context", *names)]
    )
    ask.__annotations__ = {"context": Context}
    return ask


def _can_be_asked(context: Context[Any, Any]) -> bool:
    """Return whether the client has forms: it names them, or no mode at all, as before there were others."""
    capabilities = context.client_capabilities
    elicitation = None if capabilities is None else capabilities.elicitation
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _forget(actions: Actions, given: Given) -> str:
    kind, text = _find_record(actions, given["id"])
    return f"Take back this {kind}: {_quote(text)}?"


def _update(actions: Actions, given: Given) -> str:
    kind, text = _find_record(actions, given["id"])
    # The former text stays in the history.
    if kind != "constraint":
        return ""
    return f"Replace the constraint {_quote(text)} by {_quote_whole(given['text'])}?"


def _history(actions: Actions, given: Given) -> str:
    # Nothing is restored without an id or a kind.
    if "restore" not in given or not {"id", "kind"} & given.keys():
        return ""
    what = f"all of the kind {_quote(given.get('kind', ''))}"
    if "id" in given:
        # The history has retracted records as well.
        changes = actions.history(id=given["id"], limit=1).changes
        what = _quote(changes[0].after or changes[0].before if changes else given["id"])
    return f"Take {what} back to what it was at version {given['restore']}?"


def _constraints(actions: Actions, given: Given) -> str:
    questions = []
    if "add" in given:
        questions.append(f"Always hold to this: {_quote_whole(given['add'])}?")
    if "remove" in given:
        questions.append(f"Remove the constraint {_quote(_find_record(actions, given['remove'])[1])}?")
    return " ".join(questions)


def _scratchpad(_: Actions, given: Given) -> str:
    return f"Remove {_quote(given['remove'])} from the scratchpad for ever?" if "remove" in given else ""


def _find_record(actions: Actions, identity: str) -> tuple[str, str]:
    """Return the kind and the text of a record."""
    item = actions.expand(identity).items[0]
    if item.id != identity or item.kind == "message":
        raise InvalidInput("This is the id of no record.", "Use an id from a result.")
    return item.kind, item.text


def _quote(text: str) -> str:
    line = " ".join(text.split())
    return quoted(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…")


def _quote_whole(text: str) -> str:
    """Return a constraint in quotes, whole.

    Raises:
        InvalidInput: it is longer than a user would read.

    """
    if len(text) > _AGREED:
        raise InvalidInput(
            f"A constraint of {len(text):,} characters is too long to be agreed to.",
            f"Say it in {_AGREED:,} or less.",
        )
    return quoted(" ".join(text.split()))


_QUESTIONS: Mapping[str, Question] = {
    "forget": _forget,
    "update": _update,
    "history": _history,
    "constraints": _constraints,
    "scratchpad": _scratchpad,
}
