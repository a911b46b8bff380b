"""Decoded readings of a text that is encoded, escaped, reversed, or one word a line. Bounded, and linear."""

from __future__ import annotations

import codecs
import re
from base64 import b64decode
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from holdfast.safety.credential_values import has_any
from holdfast.text.late_pattern import late_pattern

LONGEST = 200_000  # characters of all readings of a text together; beyond that it is read as it stands only
_RUN = 20  # characters that hide an order, at least
_CODE = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"
_TO_RUNS = bytes(97 if code in _CODE else 32 for code in range(256))
_LONG = b"a" * _RUN
_BASE64 = late_pattern(rf"[A-Za-z0-9+/_-]{{{_RUN},}}(?:\r?\n[A-Za-z0-9+/_-]{{4,}})*")
_STANDARD = str.maketrans("-_", "+/", "\r\n")
_HEX = late_pattern(r"(?:[0-9a-f]{2})+|(?:[0-9A-F]{2})+")
_BITS = late_pattern(r"(?:[01]{8}[\s,]{0,3}){6,}")
_READABLE = late_pattern("[^\ufffd\x00-\x08\x0b-\x1f\x7f]{12,}")
_HAS_WORDS = late_pattern(r"[^\x00-\x7f]|[ \n\t<{]|^[A-Za-z0-9+/=_-]{24,}$")  # or encoded once more
_PERCENT = late_pattern(r"%[0-9A-Fa-f]{2}")
_OCTETS = late_pattern(r"(?:%[0-9A-Fa-f]{2})+")
_ENTITY = late_pattern(
    r"&(?:#\d{2,7}|#[xX][0-9A-Fa-f]{2,6}|lt|gt|quot|lbrack|rbrack|vert|colon|NewLine|Tab|shy|zwnj);"
)
_ESCAPE = late_pattern(r"\\(?:u\{?([0-9A-Fa-f]{4,6})\}?|x([0-9A-Fa-f]{2}))")
_LINE = late_pattern(r"[^\W_][\w'’-]*")
_LINES = 4  # with a word each
_WIDEST = 80  # characters of such a line
_BESIDE = 600  # characters before and after what is escaped that belong to it, on its line
# Common English words and those of injections, reversed and rotated by 13 letters.
_BACKWARDS = frozenset(
    "eht ruoy uoy lla htiw siht taht erongi suoiverp roirp snoitcurtsni tpmorp metsys selur tegrof "
    "drageresid drowssap sdrowssap terces sterces dnes laever resu tnatsissa egassem dna yek nekot eteled "
    "edirrevo wollof".split()
)
_ROTATED = frozenset(
    "gur lbhe lbh nyy jvgu guvf gung vtaber cerivbhf cevbe vafgehpgvbaf cebzcg flfgrz ehyrf sbetrg qvfertneq "
    "cnffjbeq cnffjbeqf frperg frpergf fraq erirny hfre nffvfgnag zrffntr naq xrl gbxra qryrgr bireevqr "
    "sbyybj".split()
)
_REVERSED_OR_ROTATED = _BACKWARDS | _ROTATED


class DecodedText(NamedTuple):
    """A part of a text, decoded."""

    start: int
    end: int
    text: str


def may_be_encoded(text: str, words: AbstractSet[str]) -> bool:
    """Return whether a text, with these words in lower case, may be encoded. Cheap: most texts may not."""
    return (
        _has_run(text)
        or not _REVERSED_OR_ROTATED.isdisjoint(words)
        or has_any(text, ("%", "&", "\\", "011"))
        or text.count("\n") >= _LINES - 1
    )


def _has_run(text: str) -> bool:
    return _LONG in text.encode("ascii", "replace").translate(_TO_RUNS)


def readings(text: str, words: AbstractSet[str]) -> Iterator[DecodedText]:
    """Yield the decoded readings of a text, up to `LONGEST` characters in all."""
    left = LONGEST
    for reading in _readings(text, words):
        yield reading._replace(text=reading.text[:left])
        left -= len(reading.text)
        if left <= 0:
            return


def _readings(text: str, words: AbstractSet[str]) -> Iterator[DecodedText]:
    yield from _decode_escapes(text)
    for run in _BASE64.finditer(text) if _has_run(text) else ():
        yield from (DecodedText(*run.span(), decoded) for decoded in _decode_run(run.group()))
    for run in _BITS.finditer(text) if "011" in text else ():
        octets = bytes(int(octet, 2) for octet in re.findall("[01]{8}", run.group()))
        yield from (DecodedText(*run.span(), decoded) for decoded in _readable_pieces(octets))
    if not _REVERSED_OR_ROTATED.isdisjoint(words):
        if len(_BACKWARDS & words) > 1:
            yield DecodedText(0, len(text), text[::-1])
        if len(_ROTATED & words) > 1:
            yield DecodedText(0, len(text), codecs.encode(text, "rot13"))
    if text.count("\n") >= _LINES - 1:
        yield from _one_a_line(text)


def _decode_escapes(text: str) -> Iterator[DecodedText]:
    """Yield the text with percent signs, entities, backslashes decoded, each from first to last."""
    if span := _span(_PERCENT, text, "%", 3):
        yield DecodedText(*span, _OCTETS.sub(_decode_octets, text[slice(*span)].replace("+", " ")))
    if span := _span(_ENTITY, text, "&", 1):
        # Few texts have entities, and the table of their names is long.
        from html import unescape

        yield DecodedText(*span, unescape(text[slice(*span)]))
    if span := _span(_ESCAPE, text, "\\", 3):
        yield DecodedText(*span, _ESCAPE.sub(_decode_char, text[slice(*span)]))


def _span(pattern: re.Pattern[str], text: str, sign: str, least: int) -> tuple[int, int] | None:
    """Return the span of the escapes with the words around them; None for fewer than `least`."""
    if text.count(sign) < least:
        return None
    spans = [match.span() for match in pattern.finditer(text)]
    if len(spans) < least:
        return None
    first, last = spans[0][0], spans[-1][1]
    start = max(text.rfind("\n", 0, first) + 1, first - _BESIDE)
    stop = text.find("\n", last)
    return start, min(len(text) if stop < 0 else stop, last + _BESIDE)


def _decode_octets(match: re.Match[str]) -> str:
    return bytes.fromhex(match.group().replace("%", "")).decode("utf-8", "replace")


def _decode_char(match: re.Match[str]) -> str:
    code = int(match[1] or match[2], 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else " "


def _decode_run(run: str) -> Iterator[str]:
    """Yield a run decoded as hexadecimal or as base64, which may begin after some other letters."""
    if _HEX.fullmatch(run):
        yield from _readable_pieces(bytes.fromhex(run))
        return
    plain = run.translate(_STANDARD)
    for skipped in range(4):
        whole = skipped + (len(plain) - skipped) // 4 * 4
        rest = plain[whole:].ljust(4, "=") if len(plain) - whole > 1 else ""
        pieces = list(_readable_pieces(b64decode(plain[skipped:whole] + rest)))
        yield from pieces
        if pieces:
            return


def _readable_pieces(raw: bytes) -> Iterator[str]:
    """Yield the readable pieces of bytes; noise has none of this length."""
    yield from filter(_HAS_WORDS.search, _READABLE.findall(raw.decode("utf-8", "replace")))


def _one_a_line(text: str) -> Iterator[DecodedText]:
    """Yield lines of one word each, joined."""
    words: list[str] = []
    start = end = at = 0
    for line in (*text.split("\n"), "- - -"):
        parts = len(line) < _WIDEST and line.split(None, 2)
        words_of_line = _LINE.findall(line) if parts and len(parts) < 3 else ()
        if len(words_of_line) == 1:
            start = start if words else at
            words.append(words_of_line[0])
            end = at + len(line)
        elif parts != []:  # another line, not a blank one
            if len(words) >= _LINES:
                yield DecodedText(start, end, " ".join(words))
            words = []
        at += len(line) + 1
