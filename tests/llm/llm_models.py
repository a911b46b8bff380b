"""Models to call, and what makes them fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import partial

import pytest
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from holdfast import ModelFailed
from holdfast.llm.adapters import resolve
from holdfast.llm.model import LLM, Model, complete
from llm_server import Server

KEY = "sk-proj-abcdEFGH1234ijkl5678MNOP9012"
BEARER = "Bearer abcdEFGH1234ijkl5678MNOP9012"
PERSON: ContextVar[str] = ContextVar("PERSON", default="nobody")


def shout(prompt: str) -> str:
    return prompt.upper()


async def ashout(prompt: str) -> str:
    await asyncio.sleep(0)
    return prompt.upper()


def shout_with(mark: str, prompt: str) -> str:
    return prompt.upper() + mark


async def ashout_with(mark: str, prompt: str) -> str:
    return prompt.upper() + mark


class Shouter:
    def __call__(self, prompt: str) -> str:
        return prompt.upper()

    def method(self, prompt: str) -> str:
        return prompt.upper()

    async def amethod(self, prompt: str) -> str:
        return prompt.upper()


class AsyncShouter:
    async def __call__(self, prompt: str) -> str:
        return prompt.upper()


def failing(error: BaseException) -> Callable[[str], str]:
    def fail(prompt: str) -> str:
        raise error

    return fail


def afailing(error: BaseException) -> Callable[[str], Awaitable[str]]:
    async def fail(prompt: str) -> str:
        raise error

    return fail


def answering(answer: object) -> Callable[[str], str]:
    """Make a model that breaks its promise of text."""
    wrong: Callable[[str], str] = lambda _: answer  # type: ignore[assignment, return-value]  # noqa: E731
    return wrong


def failure(model: Model, prompt: str = "x") -> ModelFailed:
    with pytest.raises(ModelFailed) as caught:
        complete(model, prompt)
    return caught.value


class RateLimitError(Exception):
    pass


CALLABLES: dict[str, tuple[LLM, bool]] = {
    "function": (shout, False),
    "async function": (ashout, True),
    "lambda": (lambda prompt: prompt.upper(), False),
    "function of an awaitable": (lambda prompt: ashout(prompt.lower()), False),
    "bound method": (Shouter().method, False),
    "async bound method": (Shouter().amethod, True),
    "object": (Shouter(), False),
    "async object": (AsyncShouter(), True),
    "partial": (partial(shout_with, ""), False),
    "async partial": (partial(ashout_with, ""), True),
    "partial of an object": (partial(AsyncShouter()), True),
    "builtin": (str.upper, False),
}


def model_object(server: Server, name: str = "served") -> OpenAIChatModel:
    return OpenAIChatModel(name, provider=OpenAIProvider(base_url=server.url, api_key=KEY))


def served_by(server: Server) -> Model:
    return resolve(model_object(server))
