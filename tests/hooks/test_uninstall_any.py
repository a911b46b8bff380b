"""Whatever stood in a configuration before: installed and uninstalled, the same text is there again."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast_cli.hooks.clients import client_of
from install_home import FILES, HOOKED, Home
from soak import cases

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the folders of other systems are others")

LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=6)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=6,
)
HOOK = st.fixed_dictionaries({"type": st.just("command"), "command": st.sampled_from(["say a", "holdfast"])})
GROUPS = st.lists(
    st.fixed_dictionaries({"hooks": st.lists(HOOK, max_size=2)}, optional={"matcher": st.text(max_size=3)}),
    max_size=2,
)
NATIVE = sorted({hook.native for name in HOOKED for hook in client_of(name).hooks})
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "version": st.just(1),
        "theme": VALUES,
        "hooks": st.dictionaries(st.sampled_from([*NATIVE, "Other"]), GROUPS, max_size=3),
        "mcpServers": st.dictionaries(st.text(max_size=4), VALUES, max_size=2),
        "last": VALUES,
    },
)
LAYOUTS = st.sampled_from(
    [
        json.dumps,
        lambda document: json.dumps(document, indent=2) + "\n",
        lambda document: "\ufeff" + json.dumps(document, indent="\t").replace("\n", "\r\n"),
        lambda document: (
            json.dumps(document, indent=4).replace(",\n", ", // and\n\n").replace("{\n", "{ /**/\n")
        ),
        lambda document: f" {json.dumps(document)}\n\n// the end",
        lambda document: json.dumps(document, indent=1, ensure_ascii=False).replace("{}", "{ }"),
    ]
)
TOML = st.sampled_from(
    ["", "\n", "a = 1", 'a = "x"\n', "# c\n\n\n", '[b]\r\nc = 1 # "\r\n', "[mcp_servers.x]\n"]
)


@pytest.fixture(scope="module")
def patched() -> Any:
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield monkeypatch


@pytest.mark.slow
@given(st.sampled_from(HOOKED), DOCUMENTS, LAYOUTS, TOML, st.booleans(), st.booleans())
@settings(max_examples=cases(15, 180), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_configuration_comes_back(
    patched: pytest.MonkeyPatch,
    name: str,
    document: dict[str, Any],
    layout: Any,
    toml: str,
    twice: bool,
    former: bool,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder).resolve(), patched)
        text = layout(document)
        files = [file for file in FILES[name] if not file.endswith(".md")]
        for file in files:
            home.write(file, toml if file.endswith(".toml") else text)
            if former:
                # An earlier backup, of which nothing must come back.
                home.write(f"{file}.bak", '{"former": 1}' if file.endswith(".json") else "former = 1")
        before = home.texts()
        home.run("install", name, "--yes")
        assert home.texts() != before
        if twice:
            home.run("install", name, "--user", "bob", "--yes")
        home.run("uninstall", name, "--yes")
        assert home.texts() == before
        patched.chdir("/")


@given(st.sampled_from(HOOKED), DOCUMENTS, LAYOUTS)
@settings(max_examples=cases(15, 180))
def test_what_was_edited_since_stays(name: str, document: dict[str, Any], layout: Any) -> None:
    """Without the backups that show what it was: at most what is empty is gone."""
    from holdfast_cli.hooks.hook_entries import HookEntries
    from holdfast_cli.hooks.json_text import JsonText

    entries = HookEntries(client_of(name))
    wanted = entries.entries_for(
        dict.fromkeys([hook.event for hook in client_of(name).hooks], "holdfast hook stop --client x")
    )
    text = layout({"first": 1, **document})
    removed = entries.remove(entries.add(text, wanted))
    found, was = JsonText(removed).root.plain, JsonText(text).root.plain
    assert isinstance(found, dict)
    assert isinstance(was, dict)
    own = {hook.native for hook in client_of(name).hooks}
    hooks = {event: groups for event, groups in was.pop("hooks", {}).items() if groups or event not in own}
    assert found.pop("hooks", {}) == hooks
    found.pop("version", None), was.pop("version", None)
    assert found == was
    full = hooks and all(event in hooks for event in own) and "version" in document
    if full:
        assert removed == text
