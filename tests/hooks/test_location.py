"""Where data and state of a user are: as `platformdirs` says, which hooks do not load for it."""

from __future__ import annotations

import pytest
from platformdirs import user_config_path, user_data_path, user_state_path

from holdfast_cli.hooks.location import user_folder

CASES: tuple[dict[str, str], ...] = (
    {"HOME": "/home/ada"},
    {"HOME": "/home/ada/"},
    {"HOME": "relative"},
    {"HOME": ""},
    {},
    {"HOME": "/home/ada", "XDG_CONFIG_HOME": "/config", "XDG_DATA_HOME": "/data", "XDG_STATE_HOME": "/state"},
    {"HOME": "/home/ada", "XDG_DATA_HOME": "", "XDG_STATE_HOME": ""},
    {"HOME": "/home/ada", "XDG_DATA_HOME": "here", "XDG_STATE_HOME": "~/state"},
    {"HOME": "/home/ada", "XDG_DATA_HOME": "/two words", "XDG_STATE_HOME": "/end/ "},
    {"HOME": "/home/ada", "XDG_DATA_HOME": "/a:/b", "XDG_STATE_HOME": "/été/状態"},
)


@pytest.mark.parametrize("environment", CASES)
def test_the_folders_are_those_of_platformdirs(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert user_folder("config") == user_config_path("holdfast", appauthor=False)
    assert user_folder("data") == user_data_path("holdfast", appauthor=False)
    assert user_folder("state") == user_state_path("holdfast", appauthor=False)
