"""The plugin of Claude Code, whose files are data of the package."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import holdfast
from holdfast import Memory
from holdfast.text.tokens import estimate_tokens
from holdfast_cli.hooks.clients import client_of
from holdfast_cli.hooks.hook_call import EVENTS
from holdfast_cli.hooks.hook_entries import HookEntries
from holdfast_cli.hooks.install import Setup, hook_command, skill_text

PLUGIN = files("holdfast_cli.hooks").joinpath("plugin")
DOCUMENT = (Path(__file__).parents[2] / "docs" / "coding-agents.md").read_text("utf-8")


def read(*names: str) -> Any:
    return json.loads(PLUGIN.joinpath(*names).read_text("utf-8"))


def test_the_plugin_and_its_marketplace_name_each_other_and_the_version() -> None:
    manifest, market = read(".claude-plugin", "plugin.json"), read(".claude-plugin", "marketplace.json")
    assert manifest["version"] == holdfast.__version__
    assert [(plugin["name"], plugin["source"]) for plugin in market["plugins"]] == [(manifest["name"], "./")]


def test_the_plugin_calls_what_an_install_in_a_project_would() -> None:
    client = client_of("claude-code")
    commands = {event: hook_command(client, event, Setup(), shared=True) for event in EVENTS}
    hooks = HookEntries(client)
    assert read("hooks", "hooks.json") == json.loads(hooks.snippet(hooks.entries_for(commands)))
    assert read(".mcp.json")["mcpServers"]["holdfast"]["args"] == ["mcp", "--project", "."]


def head_of_skill() -> dict[str, str]:
    lines = skill_text().split("---\n")[1].splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_the_skill_is_of_the_form_that_clients_read() -> None:
    head = head_of_skill()
    assert head["name"] == "memory"
    assert 0 < len(head["description"]) <= 1_024


def test_the_skill_names_tools_that_there_are(quick: Memory) -> None:
    tools = {tool.name for tool in quick.tools(quick.chat("a"))}
    named = set(re.findall(r"`([a-z]+)`", skill_text())) - {"holdfast"}
    assert {"recall", "remember", "expand"} <= named <= tools


def test_the_tokens_of_the_skill_are_those_that_the_document_states() -> None:
    head = head_of_skill()
    always = estimate_tokens(f"{head['name']}: {head['description']}")
    found = re.search(r"(\d+) tokens in every session.* (\d+) more", DOCUMENT)
    assert found is not None
    assert (int(found[1]), int(found[2])) == (always, estimate_tokens(skill_text()))
    assert always < 100
    assert estimate_tokens(skill_text()) < 700
