"""What may be passed as a model."""

from __future__ import annotations

import asyncio
import re
import sys
from functools import partial

import pytest
from llm_models import CALLABLES, KEY, Shouter, shout, shout_with
from pydantic_ai.models.test import TestModel

from holdfast import InvalidInput, MissingExtra, ModelFailed
from holdfast.llm.adapters import resolve
from holdfast.llm.model import LLM, acomplete, complete
from programs import run as run_program
from tables import each

# What may be passed


@each("kind", CALLABLES)
def test_every_kind_of_callable_answers(kind: str) -> None:
    llm, is_async = CALLABLES[kind]
    model = resolve(llm)
    assert model.is_async is is_async
    for schema in (None, {"type": "object"}):  # which no function is told
        assert complete(model, "hello", schema=schema) == "HELLO"
        assert asyncio.run(acomplete(model, "hello", schema=schema)) == "HELLO"


@each(
    ("llm", "name"),
    [
        (shout, "shout"),
        (Shouter().method, "Shouter.method"),
        (Shouter(), "Shouter"),
        (partial(shout_with, "!"), "shout_with"),
        (TestModel(), "test:test"),
        (TestModel(model_name="mine"), "test:mine"),
    ],
)
def test_a_model_has_a_name(llm: LLM, name: str) -> None:
    assert resolve(llm).name == name


@each("llm", [5, None, b"openai:gpt-5-mini", Shouter, TestModel, [], object(), {"a": 1}])
def test_what_is_no_model_is_refused(llm: object) -> None:
    wrong: LLM = llm  # type: ignore[assignment]
    with pytest.raises(InvalidInput, match="Pass a function from text to text, a name"):
        resolve(wrong)


@each("llm", [lambda: "x", lambda a, b: a + b, lambda *, prompt: prompt, shout_with])
def test_a_function_that_takes_no_prompt_is_refused(llm: object) -> None:
    wrong: LLM = llm  # type: ignore[assignment]
    with pytest.raises(InvalidInput, match=re.escape("functools.partial")):
        resolve(wrong)


@each(
    "name", ["", "  ", "openai:", ":gpt-5-mini", "gpt-5-mini", "nope:gpt-5-mini", "Summarise\nthis.", "a\0b"]
)
def test_a_name_that_names_no_model_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        resolve(name)


def test_a_name_without_a_provider_is_completed() -> None:
    with pytest.raises(InvalidInput, match="'openai:gpt-5-mini'") as caught:
        resolve("gpt-5-mini")
    assert caught.value.what.startswith("'gpt-5-mini' is not a model")


def test_the_default_of_a_parameter_is_not_shown() -> None:
    def ask(prompt: str, system: str, key: str = KEY) -> str:
        return prompt + system + key

    wrong: LLM = ask  # type: ignore[assignment]
    with pytest.raises(InvalidInput, match=re.escape("(prompt, system, key)")) as caught:
        resolve(wrong)
    assert KEY not in str(caught.value)


def test_a_key_that_was_passed_as_a_name_is_not_shown() -> None:
    with pytest.raises(InvalidInput) as caught:
        resolve(KEY)
    assert KEY not in str(caught.value)


@each(
    ("name", "setting", "reason"),
    [
        ("openai:gpt-5-mini", "OPENAI_API_KEY", "authentication"),
        ("ollama:llama3", "OLLAMA_BASE_URL", "error"),
    ],
)
def test_a_missing_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, setting: str, reason: str
) -> None:
    for variable in (setting, "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ModelFailed, match=f"Set {setting} in the environment") as caught:
        resolve(name)
    assert caught.value.reason == reason


def test_the_missing_package_of_a_provider_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("pydantic_ai.providers.groq")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "groq", None)
    with pytest.raises(MissingExtra, match=re.escape("pip install 'pydantic-ai-slim[groq]'")):
        resolve("groq:llama-3.3-70b-versatile")


WITHOUT = """
import sys
sys.modules["pydantic_ai"] = None
from holdfast import MissingExtra
from holdfast.llm import adapters, model as llm
assert llm.complete(adapters.resolve(str.upper), "x") == "X"
try:
    adapters.resolve("openai:gpt-5-mini")
except MissingExtra as error:
    print(error)
"""


def test_without_pydantic_ai_functions_do_and_names_say_what_is_missing() -> None:
    assert "pip install '.[llm]'" in run_program(WITHOUT)


def test_nothing_heavy_is_loaded_and_a_synchronous_function_needs_no_event_loop() -> None:
    heavy = ("asyncio", "pydantic_ai", "pydantic", "openai", "concurrent.futures", "logging")
    script = (
        "import sys\nfrom holdfast.llm import adapters, model\n"
        f"print([name for name in {heavy} if name in sys.modules])\n"
        "model.complete(adapters.resolve(str.upper), 'x')\nprint('asyncio' in sys.modules)"
    )
    assert run_program(script) == "[]\nFalse\n"
