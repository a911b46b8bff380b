"""A pytest plugin for suites of others: it runs coroutines, and expects what only their own can pass."""

from __future__ import annotations

import asyncio
import inspect

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine, as the plugin would that the SDK's tests are written for."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "asyncio: a test that is a coroutine")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Expect the tests to fail that the plugin of a suite lists by name: why, and with which error they end.

    It is an error if one passes, ends otherwise, or is no longer there.
    """
    for plugin in config.pluginmanager.get_plugins():
        listed: dict[str, tuple[str, type[BaseException]]] = getattr(plugin, "NOT_PORTABLE", {})
        found = set[str]()
        for item in items:
            for name in listed.keys() & {item.name, item.name.partition("[")[0]}:
                found.add(name)
                reason, raises = listed[name]
                item.add_marker(pytest.mark.xfail(reason=reason, raises=raises, strict=True))
        if left := listed.keys() - found:
            raise pytest.UsageError(f"listed, but not among the tests: {', '.join(sorted(left))}")
