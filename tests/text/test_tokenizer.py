"""Counters by name: `Memory(count_tokens="openai:gpt-5-mini")`, with a table that these tests make."""

from __future__ import annotations

import hashlib
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiktoken
from tiktoken import registry

from holdfast import InvalidInput, Memory, MissingExtra, Unavailable
from holdfast.text.tokens import counter
from programs import run

URL = "http://127.0.0.1:9/tables/paper.tiktoken"  # nobody listens there
PLUGIN = f"""
from tiktoken.load import load_tiktoken_bpe

def encoding(name, ranks):
    return {{
        "name": name, "pat_str": r"\\S+|\\s+(?!\\S)|\\s+", "mergeable_ranks": ranks,
        "special_tokens": {{"<|endoftext|>": 999}},
    }}

def tiny():
    letters = {{bytes([code]): code for code in range(256)}}
    return encoding("tiny", letters | {{b"ma": 256, b"th": 257, b"aa": 258, b"aaaa": 259}})

def paper():
    return encoding("paper", load_tiktoken_bpe({URL!r}))

ENCODING_CONSTRUCTORS = {{"tiny": tiny, "paper": paper}}
"""


@pytest.fixture(autouse=True)
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make our encodings known to tiktoken, by a plugin of it, and a folder of tables, empty at first."""
    plugins, tables = tmp_path / "plugins" / "tiktoken_ext", tmp_path / "tables"
    plugins.mkdir(parents=True)
    tables.mkdir()
    (plugins / "paper.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(plugins.parent)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tables))
    monkeypatch.delitem(sys.modules, "tiktoken_ext.paper", raising=False)
    monkeypatch.setattr(registry, "ENCODING_CONSTRUCTORS", None)
    monkeypatch.setattr(registry, "ENCODINGS", {})
    monkeypatch.setitem(tiktoken.model.MODEL_TO_ENCODING, "tiny-model", "tiny")
    registry._available_plugin_modules.cache_clear()
    return tables


@pytest.fixture(autouse=True, scope="module")
def _forget() -> Iterator[None]:
    yield
    registry._available_plugin_modules.cache_clear()


@pytest.mark.parametrize("name", ["openai:tiny-model", "tiktoken:tiny"])
def test_messages_prompts_and_tools_are_counted_by_the_tokenizer_of_a_model(name: str) -> None:
    with Memory(":memory:", user="ada", count_tokens=name) as memory:
        chat = memory.chat("monday")
        assert chat.append(role="user", content="maths").tokens == 4 + 3
        assert chat.prompt(1_000, system="maths").tokens["system"] == 3
        assert memory.tools(chat)


def test_what_looks_like_a_special_token_is_text() -> None:
    assert counter("tiktoken:tiny")("<|endoftext|>") == len("<|endoftext|>")


@pytest.mark.parametrize("text", ["a" * 1_000_000, " " * 1_000_000 + "x", "ä" * 500_000, "ma" * 500_000])
def test_a_long_run_without_a_break_is_counted(text: str) -> None:
    """The regular expressions of tiktoken give up on some of these, and its merging was quadratic once."""
    count = counter("tiktoken:tiny")
    whole = len(text) / 1_000 * count(text[:1_000])
    assert whole * 0.99 <= count(text) <= whole * 1.01


def test_a_table_is_read_from_a_local_file(tables: Path) -> None:
    table = "\n".join(f"{b64encode(bytes([code])).decode()} {code}" for code in range(256))
    (tables / hashlib.sha1(URL.encode()).hexdigest()).write_text(table)
    assert counter("tiktoken:paper")("maths") == 5


def test_without_network_and_table_it_is_said_where_the_table_goes() -> None:
    with pytest.raises(Unavailable, match=r"'paper'.*\$TIKTOKEN_CACHE_DIR"):
        counter("tiktoken:paper")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gpt-5-mini", "Unknown tokenizer 'gpt-5-mini'. .*openai:"),
        ("anthropic:claude", "Unknown tokenizer 'anthropic:claude'"),
        ("openai:", "Unknown tokenizer 'openai:'"),
        ("openai:nothing-of-theirs", "no model 'nothing-of-theirs'.*tiktoken:o200k_base"),
        ("tiktoken:nothing", "no encoding 'nothing'.*o200k_base.*paper, .*tiny"),
    ],
)
def test_a_name_that_means_no_tokenizer_is_refused_before_anything_is_opened(
    tmp_path: Path, name: str, said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        Memory(tmp_path / "memory.db", count_tokens=name)
    assert not (tmp_path / "memory.db").exists()


def test_without_tiktoken_functions_do_and_names_say_what_is_missing() -> None:
    script = """
import sys
sys.modules["tiktoken"] = None
from holdfast import Memory, MissingExtra
Memory(":memory:", count_tokens=len).close()
try:
    Memory(":memory:", count_tokens="openai:gpt-5-mini")
except MissingExtra as error:
    print(error)
"""
    assert "pip install '.[tiktoken]'" in run(script)
    assert MissingExtra.of("tiktoken").what == "The tokenizer of a model needs tiktoken."
