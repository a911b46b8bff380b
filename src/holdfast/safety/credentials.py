"""Credentials in a text, found by their own shape (a table of shapes), or by the words that introduce them.

A value that words introduce is judged by itself: `password = "…"` has a secret, `password = os.environ[…]`,
`password: ********` and `<YOUR_PASSWORD>` have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from functools import cache

from holdfast.safety import credential_values
from holdfast.safety.credential_values import CODE, ValueContext, has_any, is_placeholder, vocabulary
from holdfast.safety.deobfuscate import Folded
from holdfast.text.late_pattern import late_pattern
from holdfast.text.tables import table_lines
from holdfast.types import Finding

# The span of a secret, and its kind.
_Secret = tuple[int, int, str]

# Starts of words, one of which a text (in lower case) has with a secret that is introduced by words.
_HINTS = frozenset(
    "pass pwd pw pgpa losn apik cred pin cvv cvc bear basi sshp mysq phra mnem bind mdp kenn hasl sifr senh "
    "wach adga hesl jels sleu kluc clav chav 2fa mfa".split()
)
# Words with the same start that introduce nothing.
_COMMON = frozenset(
    "basic basics basis basically credit credits creditor passed passes passenger passengers passing passion "
    "passions passionate passive passage passport binds binding bearing bearable bears pink pins".split()
)
_INNER = tuple(
    (
        "passw|n: basic |redis-cli|<secret>|login|alarm|totp|otp seed|token|secret|apikey| -u| -p|cookie|:*:"
        "|:5432:|identified by|contrase|palavra|parol|losenord|salasana|mat khau|sandi|schlussel|chiave|cle "
        "api|mots de|mot de|wiederherst|palabras de|frase "
    ).split("|")
)
_CODES = tuple(
    (
        "door code|gate code|safe code|entry code|backup code|recovery code|code for|code fur|code to |code "
        "d|codigo d|codice d"
    ).split("|")
)
_RECOVERY = ("recovery phrase", "recovery key", "recovery word")
_KEYS = ("api key", "api-key", "api_key", "access key", "private key", "_key", "key:", "key=")
_PASSWORDS = tuple(
    "pass pwd pw cred clave contrase mdp mots mot kennwort senha palavra parola wachtw hasl losenord adgang "
    "salasana heslo jelsz parool sifre khau sandi zugangscode".split()
)
_PHRASES = tuple("phrase mnemonic word frase wort слова 助记词 palabras mots parole slowa".split())
_FOREIGN = tuple(
    "парол сифр сид ключ токен 密码 密碼 口令 密钥 密鑰 令牌 助记词 パスワード 暗証 暗号 キー シークレット "
    "トークン 비밀 암호 패스워드 키 토큰 مرور السر مفتاح عبور گذرواژه "
    "סיסמ מפתח पासवर्ड कूटशब्द टोकन कुंजी รหัสผ่าน κωδικ".split()
)
_OTHER_SCRIPT = late_pattern("[\u0370-\u1fff\u3040-\ud7ff]")
_LONG = 16  # characters of the shortest shape
_PEM = late_pattern(
    r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d|---- BEGIN "
    r"SSH2 ENCRYPTED"
)
_PEM_END = late_pattern(r"-----END [A-Z0-9 ]{0,60}-----|Private-MAC:\s?\w{0,80}|---- END SSH2")
_LONGEST_KEY = 20_000  # characters
_PEM_BODY = late_pattern(rf"(?:\\[nr]|[A-Za-z0-9+/=\s:,.-]){{0,{_LONGEST_KEY}}}")
_URL = late_pattern(r"""://(?P<user>[^\s:/@"'<>`]{0,80}):(?P<v>[^\s/"'<>`]{1,200})@(?=[\w\[.$-])""")
# The following look at a text in lower case, and behind only after a first letter, so that a search can skip
# to that letter.
_BEARER = late_pattern(
    r"""(?:bearer|authorization['"]?\s?[:=]\s?['"]?(?:token|apikey|ssws))\s{1,4}(?P<v>[\w.~+/=:-]{16,4000})"""
)
_BASIC = late_pattern(r"b(?<!\w.)asic\s{1,4}(?P<v>[a-z0-9+/_-]{6,400}={0,2})")
_COMMAND = late_pattern(
    r"""(?:(?:c(?<!\w.)url|w(?<!\w.)get|h(?<!\w.)ttps?)\b[^\n]{0,200}?\s(?:-u|--user)[ """
    r"""=]?["']?[^\s:"']{1,80}:(?P<a>[^\s"']{3,100})"""
    r"""|s(?<!\w.)shpass\s+-p\s?["']?(?P<b>[^\s"']{3,100})"""
    r"""|m(?<!\w.)ysql(?:dump)?\b[^\n]{0,100}?\s-p(?P<c>[^\s"'-][^\s"']{3,80})"""
    r"""|--(?:password|passwd|pass|token|api-key|secret)[ =]["']?(?P<d>[^\s"']{4,200})"""
    r"""|l(?<!\w.)ogin\s\S{1,80}\s{1,4}password\s(?P<e>\S{3,100})"""
    r"""|i(?<!\w.)dentified\s+by\s+["'](?P<f>[^"'\n]{3,100})["']"""
    r"""|p(?<!\w.)assword\s+'(?P<g>[^'\n]{3,100})'"""
    r"""|r(?<!\w.)edis-cli\b[^\n]{0,80}?\s-a\s?["']?(?P<h>[^\s"']{4,100})"""
    r"""|(?:d(?<!\w.)ocker|h(?<!\w.)elm|p(?<!\w.)odman|a(?<!\w.)z"""
    r"""|o(?<!\w.)c)\b[^\n]{0,40}?login\b[^\n]{0,100}?\s-p[ =]?["']?(?P<i>[^\s"'-][^\s"']{3,100}))"""
)
_COMMANDS = tuple(
    " -u|--user|sshpass|mysql|--pass|--token|--api-key|--secret|login|identified|password '| -a| -p".split(
        "|"
    )
)
_QUOTED = (
    """(?:"(?P<a>[^"\\n]{3,200})"|'(?P<b>[^'\\n]{3,200})'|`(?P<c>[^`\\n]{3,200})`|"""
    """[“„«「『](?P<d>[^”“»」』\\n]{3,200})[”“»」』])"""
)
_BARE = (
    """(?P<v>[!#-&(-+.-:=?-_a-~-][!#-&(-+.-:=?-_a-~-]{3,250}|[^\\W\\d_][^\\s"'`<>,，。；、“”「」]{3,60})"""
)
_ASSIGNED = late_pattern(
    rf"""(?:[_-]?(?:value|prod|production|dev|staging|test|live|old|new|main|master|admin|root|db"""
    rf"""|v?\d{{1,3}})(?![a-z]))?"""
    rf"""["'\])*`]{{0,3}}\s{{0,3}}(?::=|=>|={{1,3}}|[:：＝])\s{{0,3}}(?:[*]{{2}}\s?)?(?:{_QUOTED}|{_BARE})"""
)
_OTHER_NAME_AFTER = late_pattern(
    r"(?i)['’]?s?[ _-]?(?:less|manager|polic|length|reset|hash|field|rotation|strength|generator|expir|min"
    r"|max|prompt|input|check|valid|encod|auth|confirm|form\b|file|store|vault|protect|require|change\b|typ"
    r"|count|limit|budget|usage|window|pair|name|id\b|url|uri|path|bucket|ary|ariat|iz|ing\b|ed\b)"
)
_OTHER_NAME_BEFORE = late_pattern(
    r"(?:(?<![A-Za-z])(?i:next|prev|previous|page|csrf|xsrf|csrfmiddleware|continuation|cancel|cancellation"
    r"|sync|resume|cursor|start|end|stop|pad|eos|bos|unk|mask|max|min|per|design|sort|partition|primary"
    r"|foreign|public|idempotency|dedup|cache|type|non|input|output|prompt|total|num|count|of)"
    r"|(?<=[a-z])(?:Page|Next|Continuation|Sync|Cancel|Start|End|Public|Partition|Cursor))[ _-]?$"
)
_PUNCTUATION = ".,;:!?)]}、。，；！？»”’*"
_BEFORE, _BEYOND = 24, 640  # characters around a name that are read
_CACHED = 1_000  # surroundings of names


@cache
def _needles() -> tuple[tuple[str, tuple[str, re.Pattern[str]]], ...]:
    """Return the kinds of secrets with their patterns by needle: a text with the secret has one of these."""
    rows = (line.split(" | ", 2) for line in table_lines("holdfast.safety", "credentials.txt"))
    return tuple(
        (needle, (what, late_pattern(pattern)))
        for what, needles, pattern in rows
        for needle in needles.split()
    )


@cache
def _name(title: str) -> re.Pattern[str]:
    return re.compile(vocabulary()[title].replace("(?-i:", "(?:"))


@cache
def _sentence_pattern() -> re.Pattern[str]:
    """Return the pattern between "my password" and the value, such as "for the router is", in lower case."""
    linking = rf"(?<!\w)(?:{vocabulary()['is']})(?!\w)|[:：是为為は는은이가]"
    link = rf"""[`*]?[^\n.!?:="'@/]{{0,48}}?\s?(?P<link>{linking})"""
    return re.compile(rf"""(?:{link}| |\w{{1,6}} )\s{{0,2}}[*]{{0,2}}(?:{_QUOTED}|{_BARE})""")


def find_secrets(folded: Folded, words: AbstractSet[str]) -> list[Finding]:
    """Return the credentials in a text with these `words` in lower case; they may overlap."""
    secrets = _find_secrets(folded.text, words) if words else []
    return [Finding("secret", *folded.span(start, end), what) for start, end, what in secrets]


def _find_secrets(text: str, words: AbstractSet[str]) -> list[_Secret]:
    secrets: list[_Secret] = []
    lower = text.lower()
    is_introduced = (
        not _HINTS.isdisjoint([word[:4] for word in words - _COMMON])
        or has_any(lower, _INNER)
        or ("cod" in lower and has_any(lower, _CODES))
        or ("recovery" in lower and has_any(lower, _RECOVERY))
        or ("key" in lower and has_any(lower, _KEYS))
        or (not text.isascii() and _OTHER_SCRIPT.search(text) is not None and has_any(lower, _FOREIGN))
    )
    is_long = max(map(len, words)) >= _LONG or "-----" in text or ":AP" in text
    if is_long:
        secrets += _find_private_keys(text)
    if is_long or is_introduced:
        secrets += _find_shapes(text)
        secrets += _find_by(_BASIC, text, lower, credential_values.is_basic, "basic credentials")
    if "://" in lower and "@" in lower:
        secrets += _find_in_urls(text)
    if is_introduced:
        if "bearer" in lower or "authorization" in lower:
            secrets += _find_by(_BEARER, text, lower, credential_values.is_key, "bearer token")
        if has_any(lower, _COMMANDS):
            secrets += _find_by(_COMMAND, text, lower, _is_written_out, "password in a command")
        secrets += _find_introduced(text, lower)
    return secrets


def _find_private_keys(text: str) -> Iterator[_Secret]:
    """Yield private keys, from the first line to the last; a truncated key ends where its letters end."""
    end = 0
    ends = _PEM_END.finditer(text)
    last = next(ends, None)
    for begin in _PEM.finditer(text):
        if begin.start() < end:
            continue
        while last and last.start() < begin.end():
            last = next(ends, None)
        if last and last.end() <= begin.end() + _LONGEST_KEY:
            end = last.end()
        else:
            body = _PEM_BODY.match(text, begin.end())
            end = body.end() if body else begin.end()
        yield begin.start(), end, "private key"


def _find_shapes(text: str) -> Iterator[_Secret]:
    for what, pattern in dict.fromkeys(shape for needle, shape in _needles() if needle in text):
        for match in pattern.finditer(text):
            group = "v" if "v" in pattern.groupindex else 0
            if not credential_values.is_filler(match[group]):
                yield *match.span(group), what


def _find_in_urls(text: str) -> Iterator[_Secret]:
    for match in _URL.finditer(text):
        if not is_placeholder(match["v"]) and match["v"] != match["user"]:
            yield *match.span("v"), "password in a URL"


def _find_by(
    pattern: re.Pattern[str], text: str, lower: str, is_value: Callable[[str], bool], what: str
) -> Iterator[_Secret]:
    """Yield the values of a pattern in headers and commands, as the text has them."""
    for match in pattern.finditer(lower):
        start, end = match.span(match.lastgroup or "")
        if is_value(text[start:end]):
            yield start, end, what


def _is_written_out(value: str) -> bool:
    return not is_placeholder(value) and not CODE.search(value)


def _find_introduced(text: str, lower: str) -> Iterator[_Secret]:
    """Yield credentials in assignments and sentences. Equal surroundings of names are judged once."""
    for title, is_value in _judges(text, lower):
        judged: dict[str, tuple[int, int] | None] = {}
        for name in _name(title).finditer(lower):
            first = max(0, name.start() - _BEFORE)
            around = f"{name.start() - first} {name.end() - first} {text[first : name.end() + _BEYOND]}"
            if around not in judged:
                if len(judged) == _CACHED:
                    judged.clear()
                span = _value(text, lower, name.span(), is_value)
                judged[around] = span and (span[0] - first, span[1] - first)
            if place := judged[around]:
                what = "API key" if title == "key" else title
                yield first + place[0], first + place[1], what


def _value(
    text: str, lower: str, name: tuple[int, int], is_value: Callable[[str, ValueContext], bool]
) -> tuple[int, int] | None:
    """Return the span of the secret that a name introduces, within `_BEFORE` and `_BEYOND` of it."""
    start, end = name
    for how in (_ASSIGNED, _sentence_pattern()):
        match = how.match(lower, end)
        if match is None:
            continue
        group = match.lastgroup or ""
        value = text[slice(*match.span(group))]
        value = value if group != "v" else value.rstrip(_PUNCTUATION)
        linked = how is not _ASSIGNED and bool(match["link"])
        context = ValueContext(group != "v", how is _ASSIGNED, linked, text, start, match.end())
        if is_value(value, context) and not is_placeholder(value):
            first = match.start(group)
            # As a part of another name it introduces nothing: "password manager", "next token".
            before = text[max(0, start - 16) : start]
            is_other = _OTHER_NAME_AFTER.match(text, end) or _OTHER_NAME_BEFORE.search(before)
            return None if is_other else (first, first + len(value))
    return None


def _judges(text: str, lower: str) -> Iterator[tuple[str, Callable[[str, ValueContext], bool]]]:
    """Yield the kinds of secrets whose words a text has, with the judge of their values."""
    if any(map(str.isdigit, text)):
        if has_any(lower, ("key", "token", "secret", "cred", "code", "pat")) or not text.isascii():
            yield "key", credential_values.is_key
        if has_any(lower, ("pin", "cvc", "cvv", "code", "пин")):
            yield "pin", credential_values.is_pin
    if has_any(lower, _PASSWORDS) or not text.isascii():
        yield "password", credential_values.is_password
    if has_any(lower, _PHRASES):
        yield "phrase", credential_values.is_phrase
