"""Answers of a model: one that cannot be read is requested once more, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from holdfast.errors import ModelFailed
from holdfast.llm.llm_request import LLMRequest, Unreadable

T = TypeVar("T")
# Reasons for which a model would fail again at once.
FOR_ALL = ("limit", "authentication", "quota", "unavailable")


class Stopped(Exception):
    """The work is to end. `str` of it is the reason."""


def ask_and_read(
    ask: Callable[[LLMRequest], str],
    request: LLMRequest,
    read: Callable[[str], T],
    model: str,
    stop_reason: Callable[[], str] = str,
) -> T:
    """Return what `read` makes of a model's answer. An answer that cannot be read is requested once more.

    Raises:
        ModelFailed: the model failed, a limit does not allow the call, or both answers cannot be read.
        Stopped: the answer cannot be read, and the work is to end.

    """
    answer = ask(request)
    try:
        return read(answer)
    except Unreadable as why:
        if reason := stop_reason():
            raise Stopped(reason) from why
        answer = ask(request.again(answer, why))
    try:
        return read(answer)
    except Unreadable as why:
        raise ModelFailed(
            f"The model {model} answered twice what cannot be used: {why}",
            "Try again, or use another model.",
            reason="answer",
        ) from why
