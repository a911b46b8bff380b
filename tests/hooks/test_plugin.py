"""The plugin of Claude Code, whose files are data of the package."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

import holdfast
from holdfast import Memory
from holdfast_cli.hooks.clients import client_of
from holdfast_cli.hooks.hook_call import EVENTS
from holdfast_cli.hooks.hook_entries import HookEntries
from holdfast_cli.hooks.install import Setup, hook_command, skill_text

PLUGIN = files("holdfast_cli.hooks").joinpath("plugin")


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


def test_the_skill_names_tools_that_there_are(quick: Memory) -> None:
    tools = {tool.name for tool in quick.tools(quick.chat("a"))}
    named = set(re.findall(r"`([a-z]+)`", skill_text())) - {"holdfast"}
    assert {"recall", "remember", "expand"} <= named <= tools
