"""Names that programs use are found whole and by part."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast import Memory
from recall_corpora import Said, found, tell
from tables import each

pytest_plugins = ["recall_fixtures"]

IDENTIFIERS = [
    ("parse_http_header", ["parse", "http", "header", "PARSE_HTTP_HEADER", "headers"]),
    ("ERR_4312", ["4312", "err", "err_4312"]),
    ("HTTPServer", ["http", "server", "httpserver", "HTTPSERVER", "httpServer"]),
    ("YouTube", ["youtube", "YOUTUBE", "tube"]),
    ("sha256Sum", ["sha256", "sum"]),
    ("src/a/b.py", ["b.py", "py", "src"]),
    ("C:/Users/ada/notes.txt", ["notes.txt", "notes", "ada"]),
    ("192.168.17.4", ["192.168.17.4", "168"]),
    ("anna.k@example.com", ["anna", "example.com", "ANNA.K@EXAMPLE.COM"]),
    ("550e8400-e29b-41d4-a716-446655440000", ["550e8400", "446655440000"]),
    ("__init__", ["init"]),
    ("o'brien-smith", ["o'brien", "smith"]),
    ("größe_max", ["größe", "GROSSE", "max"]),
]
PLAIN = [
    (whole, query) for whole, parts in IDENTIFIERS for query in [whole, whole.upper(), whole.lower(), *parts]
]
# An identifier, and messages that have all of its parts, but not it.
DECOYS = [
    (
        "parse_http_header",
        ["parse the http header", "parse parse http http header header", "header_http_parse"],
    ),
    ("HTTPServer", ["an http server", "server http http server"]),
    ("src/a/b.py", ["src and a and b py", "src/b/a.py", "b.py of src"]),
    ("anna.k@example.com", ["anna k at example com", "example.com has anna.k"]),
    (
        "550e8400-e29b-41d4-a716-446655440000",
        ["446655440000 a716 41d4 e29b 550e8400", "550e8400-e29b-a716-41d4-446655440000"],
    ),
]


@each(("whole", "query"), PLAIN)
def test_an_identifier_is_found_whole_and_by_part(spaces: Iterator[Memory], whole: str, query: str) -> None:
    space = next(spaces)
    tell(space, [Said("a", f"We looked at {whole}, and then went home."), Said("b", "Nothing to see.")])
    assert [hit.chat for hit in space.recall(query)] == ["a"]


@each(("whole", "decoys"), DECOYS)
@each("ask", ["{}", "what about {}?", "({})"])
def test_a_whole_identifier_comes_before_its_parts(
    spaces: Iterator[Memory], whole: str, decoys: list[str], ask: str
) -> None:
    space = next(spaces)
    tell(space, [Said(f"decoy{n}", f"then {decoy} came up") for n, decoy in enumerate(decoys)])
    tell(space, [Said("exact", f"then {whole} came up")])
    hits = space.recall(ask.format(whole))
    assert hits[0].chat == "exact"
    assert hits[0].score > hits[1].score


@each("around", ["({})", '"{}"', "`{}`", "{}.", "{}:", "={};", "*{}*", "“{}”"])
def test_signs_around_an_identifier_do_not_matter(spaces: Iterator[Memory], around: str) -> None:
    space = next(spaces)
    tell(
        space,
        [Said("parts", "parse the http header"), Said("exact", "see " + around.format("parse_http_header"))],
    )
    assert space.recall("parse_http_header")[0].chat == "exact"


def test_an_identifier_among_many_similar_ones_is_found(spaces: Iterator[Memory]) -> None:
    space = next(spaces)
    tell(space, [Said(f"chat{n}", f"the code ERR_{n} was logged") for n in range(4000, 4400)])
    assert found(space.recall("What does ERR_4312 mean?"))[0] == "the code ERR_4312 was logged"
