"""Placeholders in system texts: `{user:language}`, filled from scratchpads."""

from __future__ import annotations

import re
from collections.abc import Callable

from holdfast.errors import InvalidInput
from holdfast.prompt.entry_marks import harmless_value

# With braces around it, it stands for itself: `{{topic}}`.
# After a prefix a name may have blanks and some signs; without one, braces of code would be placeholders.
_PLACEHOLDER = re.compile(
    r"(\{?)\{(?:(user:|app:|temp:)(\w[\w ./@+'-]{0,511})|([^\W\d][\w.-]{0,99}))(\??)\}(\}?)"
)


def fill(text: str, look_up: Callable[[str, str], str | None]) -> str:
    """Return a system text with the values of its placeholders, each by one call of `look_up`.

    `look_up` is given the prefix ("user:", "app:", "temp:", or "" for the chat) and the name. A value is not
    looked through for placeholders, and one that looks like an order to the model is withheld.

    Raises:
        InvalidInput: a placeholder without "?" has no value.

    """

    def value(match: re.Match[str]) -> str:
        before, prefix, of_all, of_chat, optional, behind = match.groups(default="")
        name = of_all or of_chat
        if before and behind:
            return match[0][1:-1]
        stored = look_up(prefix, name)
        if stored is None and not optional:
            raise InvalidInput(
                f"The system text names {{{prefix}{name}}}, which no scratchpad has.",
                f"Set it, or write {{{prefix}{name}?}} for nothing, or {{{{{prefix}{name}}}}} for the words.",
            )
        return before + (harmless_value(name, stored) if stored else "") + behind

    return _PLACEHOLDER.sub(value, text) if "{" in text else text
