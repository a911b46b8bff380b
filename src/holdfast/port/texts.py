"""Texts cleaned, counted, on one line and in a normal form, words found in them, and tables of words."""

from typing import TYPE_CHECKING

from holdfast.text.clean import clean
from holdfast.text.shorten import shorten_line
from holdfast.text.tables import headed_lists
from holdfast.text.tokens import estimate_tokens
from holdfast.types.late import importer

if TYPE_CHECKING:
    from holdfast.text.sentences import one_line
    from holdfast.text.snippet import find, snippet

# Not all who need one of them analyse words.
__getattr__ = importer(
    "holdfast.port.texts", {"text.sentences": "one_line", "text.snippet": "find snippet"}, "holdfast"
)
