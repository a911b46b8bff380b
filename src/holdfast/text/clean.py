"""What text must lose before it can be stored the same way in every database."""

from __future__ import annotations

REPLACEMENT = "\ufffd"


def clean(text: str) -> str:
    r"""Replace NUL and lone surrogates by U+FFFD, and join surrogate pairs into the character that they encode.

    PostgreSQL stores neither; SQLite would, and the two would answer differently. Linear; the usual text is returned
    as it is.

    >>> clean("a\x00b")
    'a\ufffdb'
    """
    if "\x00" in text:
        text = text.replace("\x00", REPLACEMENT)
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
