"""How a model fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from llm_models import BEARER, KEY, afailing, ashout, failing, failure
from pydantic_ai.models.test import TestModel

from holdfast import ModelFailed
from holdfast.llm.adapters import resolve
from holdfast.llm.model import LLM, Model, acomplete, complete
from tables import each

# How it fails


class AuthenticationError(Exception):
    pass


def refused(**told: object) -> Exception:
    """Make an error that tells more of itself, as those of providers do."""
    error = Exception("refused")
    vars(error).update(told)
    return error


def caused_by(cause: BaseException) -> Exception:
    error = RuntimeError("it did not work")
    error.__cause__ = cause
    return error


def in_circles() -> Exception:
    first, second = RuntimeError("first"), RuntimeError("second")
    first.__cause__, second.__cause__ = second, first
    return first


FAILURES: list[tuple[Exception, str]] = [
    (AuthenticationError(), "authentication"),
    (refused(response=SimpleNamespace(status_code=401)), "authentication"),
    (refused(code="invalid_api_key"), "authentication"),
    (refused(status_code=429), "quota"),
    (refused(code="insufficient_quota"), "quota"),
    (TimeoutError(), "timeout"),
    (caused_by(caused_by(refused(response=SimpleNamespace(status_code=403)))), "authentication"),
    (ExceptionGroup("all failed", [ValueError("x"), refused(status_code=429)]), "quota"),
    (PermissionError("a file"), "error"),
    (in_circles(), "error"),
]
TODO = {
    "authentication": "Check the API key",
    "quota": "Wait and try again",
    "timeout": "allow more time",
    "error": "See the exception",
}


@each(("error", "reason"), FAILURES)
def test_failures_are_told_apart_and_say_what_to_do(error: Exception, reason: str) -> None:
    found = failure(resolve(failing(error)))
    assert found.reason == reason
    assert found.__cause__ is error
    assert f"({type(error).__name__}" in found.what
    assert TODO[reason] in found.todo


def test_a_synchronous_function_that_runs_out_of_answers_does_not_hang() -> None:
    answers = iter(["only"])
    model = resolve(lambda _: next(answers))

    async def main() -> str:
        with pytest.raises(ModelFailed, match="StopIteration"):
            await acomplete(model, "x")
        return "went on"

    assert complete(model, "x") == "only"
    assert asyncio.run(main()) == "went on"


def test_an_error_that_is_one_already_stays_as_it_is() -> None:
    error = ModelFailed("It is full.", "Empty it.", reason="quota")
    assert failure(resolve(failing(error))) is error
    assert failure(resolve(afailing(error))) is error


@pytest.mark.parametrize("secret", [KEY, BEARER, "sk-short"])
def test_what_an_error_says_is_not_repeated(secret: str) -> None:
    error = ValueError(f"cannot send {secret} with the prompt about Ada")
    for model in (resolve(failing(error)), resolve(afailing(caused_by(error)))):
        found = failure(model, "the prompt about Ada")
        assert secret not in str(found)
        assert "Ada" not in str(found)


def test_a_key_in_the_name_of_a_model_is_not_repeated() -> None:
    model = resolve(TestModel(model_name=KEY))
    assert KEY not in str(failure(Model(model.name, is_async=False, ask=failing(ValueError()))))


@each("error", [KeyboardInterrupt(), SystemExit(), asyncio.CancelledError()])
@each("make", [failing, afailing])
def test_an_interruption_passes(make: Callable[[BaseException], LLM], error: BaseException) -> None:
    with pytest.raises(type(error)):
        complete(resolve(make(error)), "x")
    assert complete(resolve(ashout), "and on") == "AND ON"
