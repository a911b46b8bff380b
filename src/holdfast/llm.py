"""The language model: from what is passed as `llm=` to text, and every way of it to fail as one error.

A model of pydantic-ai has connections that its calls share, and a connection belongs to the event loop that opened it.
So there is one loop of our own, on a thread of its own, and those models answer on it whoever asks, from wherever.
"""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from inspect import isawaitable, isclass, iscoroutinefunction, signature
from threading import Lock, Thread, get_ident
from typing import TYPE_CHECKING, NoReturn, Protocol, TypeAlias, TypeGuard, TypeVar

from holdfast.errors import InvalidInput, MissingExtra, ModelFailed, Reason
from holdfast.types import check_name

if TYPE_CHECKING:
    import asyncio

    from pydantic_ai.models import Model as PydanticModel

T = TypeVar("T")
Complete: TypeAlias = Callable[[str], str] | Callable[[str], Awaitable[str]]


class ModelObject(Protocol):
    """A model object of pydantic-ai, as far as a type checker must know it; others have not to install it."""

    @property
    def model_id(self) -> str:
        """The provider and the name, as in "openai:gpt-5-mini"."""

    @property
    def model_name(self) -> str:
        """The name alone."""


_LEAVING: set[asyncio.Future[bool | None]] = set()  # an event loop keeps no hold of its tasks
LLM: TypeAlias = Complete | str | ModelObject

# Words of the names of exceptions and of the codes of providers, in lower case without underscores.
_WORDS: dict[Reason, tuple[str, ...]] = {
    "authentication": (
        *("authentication", "unauthenticated", "unauthorized", "permissiondenied", "accessdenied"),
        *("forbidden", "apikey", "credential", "expiredtoken"),
    ),
    "quota": ("ratelimit", "quota", "toomanyrequests", "resourceexhausted", "throttl", "billing"),
    "timeout": ("timeout", "timedout", "deadlineexceeded"),
    "answer": ("unexpectedmodelbehavior", "decodeerror"),
}
_STATUSES: dict[Reason, tuple[int, ...]] = {
    "authentication": (401, 403),
    "quota": (402, 429),
    "timeout": (408, 504),
}
_SAID: dict[Reason, tuple[str, str]] = {
    "authentication": (
        "was not let in by its provider",
        "Check the API key and that it may use this model, then try again.",
    ),
    "quota": (
        "refused to answer because a rate limit or a quota is used up",
        "Wait and try again, or raise the limit at the provider.",
    ),
    "timeout": ("did not answer in time", "Try again, or allow more time."),
    "answer": ("gave an answer that cannot be read", "Try again, or use another model."),
    "error": ("failed", "The exception that this was raised from says more: mend its cause and try again."),
}


@dataclass(frozen=True, slots=True)
class Model:
    """Hold a model that can be asked: `name` is what the user calls it, and `is_async` says if several calls can run at once.

    `ask` gives the answer or what can be awaited for it; a model that is `homebound` must be awaited on our own loop.
    """

    name: str
    is_async: bool
    ask: Callable[[str], object] = field(repr=False)
    homebound: bool = field(default=False, repr=False)


# From what a user passes


def resolve(llm: LLM) -> Model:
    """Make the model that `llm` means: a function from text to text, a name with its provider, or a pydantic-ai model.

    A name is looked up at once, so that a wrong one is found here: this loads pydantic-ai and takes up to a second. A
    model object must be one that no agent uses meanwhile: its connections cannot be shared with another event loop.

    Raises:
        InvalidInput: it is none of these, or there is no such provider.
        MissingExtra: a name was passed, and what it needs is not installed.
        ModelFailed: there is no key for the provider, or another of its settings is missing.

    """
    if isinstance(llm, str):
        return _named(llm)
    if _is_model_object(llm):
        return _from_pydantic(llm, llm.model_id)
    if isclass(llm) or not callable(llm):
        what = f"the class {llm.__name__}" if isclass(llm) else f"of type {type(llm).__name__}"
        raise InvalidInput(
            f"`llm` is {what}, which cannot be asked anything.",
            "Pass a function from text to text, a name such as 'openai:gpt-5-mini', or a model of pydantic-ai.",
        )
    _check_takes_a_prompt(llm)
    return Model(_name_of(llm), _is_async(llm), llm)


def _is_model_object(llm: object) -> TypeGuard[PydanticModel]:
    """Say whether it is a model of pydantic-ai, without loading that: who has such a model has loaded it."""
    models = sys.modules.get("pydantic_ai.models")
    return models is not None and isinstance(llm, models.Model)


def _check_takes_a_prompt(llm: Callable[..., object]) -> None:
    try:
        taken = signature(llm)
    except (TypeError, ValueError):  # some that are written in C have none
        return
    try:
        taken.bind("prompt")
    except TypeError as error:
        names = ", ".join(taken.parameters)  # without their defaults, of which one may be a key
        raise InvalidInput(
            f"`llm` cannot be called with a prompt alone: its parameters are ({names}).",
            "Pass a function of one text; functools.partial can fill in the rest.",
        ) from error


def _name_of(llm: object) -> str:
    if isinstance(llm, partial):
        return _name_of(llm.func)
    name = getattr(llm, "__qualname__", None) or type(llm).__qualname__
    return name if isinstance(name, str) else "custom"


def _is_async(llm: object) -> bool:
    if isinstance(llm, partial):
        return _is_async(llm.func)
    return iscoroutinefunction(llm) or iscoroutinefunction(getattr(llm, "__call__", None))  # noqa: B004


def _named(name: str) -> Model:
    check_name(name, "`llm`")
    provider, colon, rest = name.partition(":")
    if colon and not (provider.strip() and rest.strip()):
        raise InvalidInput(
            f"{_shown(name)!r} names a provider or a model, but not both.", "Pass 'provider:model'."
        )
    try:
        from pydantic_ai.exceptions import UserError  # noqa: PLC0415 - half a second, for those who use it
        from pydantic_ai.models import infer_model  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra(
            "A model that is given by its name needs pydantic-ai.", "Run: pip install 'holdfast[llm]'."
        ) from error
    try:
        with _explained(name, but=(UserError, ImportError)):
            return _from_pydantic(infer_model(name), name)
    except UserError as error:
        raise _unusable(name, str(error)) from error
    except ImportError as error:
        wanted = re.search(r"pydantic-ai-slim\[[a-z-]+\]", str(error))
        raise MissingExtra(
            f"The provider of {_shown(name)!r} needs a package that is not installed.",
            f"Run: pip install '{wanted[0] if wanted else f'pydantic-ai-slim[{provider}]'}'.",
        ) from error


def _unusable(name: str, text: str) -> InvalidInput | ModelFailed:
    """Explain why pydantic-ai made no model of a name: a setting is missing, or it does not know the provider."""
    settings = dict.fromkeys(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", text))
    if settings:
        key = any(setting.endswith(("_KEY", "_TOKEN")) for setting in settings)
        return ModelFailed(
            f"The model {_shown(name)} cannot be asked without {'a key' if key else 'more settings'} (UserError).",
            f"Set {' or '.join(settings)} in the environment, or pass a model object of pydantic-ai.",
            reason="authentication" if key else "error",
        )
    likely = re.search(r"Did you mean '([^']+)'", text)
    return InvalidInput(
        f"{_shown(name)!r} is not a model that pydantic-ai knows{f'; {likely[1]!r} is' if likely else ''}.",
        "Name the provider as well, as in 'openai:gpt-5-mini', or pass a function from text to text.",
    )


def _from_pydantic(model: PydanticModel, name: str) -> Model:
    async def ask(prompt: str) -> str:
        from pydantic_ai.direct import model_request  # noqa: PLC0415 - as above
        from pydantic_ai.messages import ModelRequest  # noqa: PLC0415

        # Entered, it has a client for this event loop, and closes it when the last of the calls at once has ended.
        # No temperature: models that reason refuse one with a warning, and a model object may have its own.
        try:
            async with _entered(model):
                answer = await model_request(model, [ModelRequest.user_text_prompt(prompt)], instrument=False)
        except RuntimeError as error:
            if "event loop" not in str(error):
                raise
            raise ModelFailed(
                f"The model {_shown(name)} has connections of another event loop (RuntimeError).",
                "Pass a model object that nothing else uses, or the name of the model.",
            ) from error
        return answer.text or ""  # of only thoughts, or nothing, no text is left

    return Model(name, is_async=True, ask=ask, homebound=True)


@asynccontextmanager
async def _entered(model: PydanticModel) -> AsyncIterator[None]:
    """Enter a model, and see to it that leaving it is not cancelled half-way, which would leave connections open."""
    import asyncio  # noqa: PLC0415

    await model.__aenter__()
    try:
        yield
    finally:
        leaving = asyncio.ensure_future(model.__aexit__(None, None, None))
        _LEAVING.add(leaving)
        leaving.add_done_callback(_LEAVING.discard)
        await asyncio.shield(leaving)


# Asking


def complete(model: Model, prompt: str, patience: float | None = None) -> str:
    """Ask a model and wait for its answer, also from within a running event loop (which waits as well).

    An asynchronous model is waited for at most `patience` seconds; nothing can end the wait for another one.

    Raises:
        ModelFailed: it raised an error, or what it answered is not text.

    """
    if model.is_async:
        if model.homebound and _HOME.is_here():
            raise ModelFailed(
                f"The model {_shown(model.name)} was to be waited for on the event loop that it answers on.",
                "Await `acomplete` there.",
            )
        return run(lambda: acomplete(model, prompt, patience))
    answer = _call(model, prompt)
    return run(lambda: _text(model, answer)) if isawaitable(answer) else _checked(model, answer)


async def acomplete(model: Model, prompt: str, timeout: float | None = None) -> str:  # noqa: ASYNC109 - a part of the API
    """Ask a model and await its answer, for at most `timeout` seconds.

    A synchronous function is called on a thread. It goes on there, unheard, when the wait for it is cancelled or over.

    Raises:
        ModelFailed: it raised an error, did not answer in time, or what it answered is not text.

    """
    import asyncio  # noqa: PLC0415 - loaded only where it is used

    try:
        async with asyncio.timeout(timeout):
            if model.homebound:
                return await _at_home(lambda: _text(model, model.ask(prompt)))
            # What it raises is explained on the thread: a StopIteration would never arrive from there.
            call = partial(_call, model, prompt)
            return await _text(model, call() if model.is_async else await asyncio.to_thread(call))
    except TimeoutError as error:  # ours: that of a model is explained already
        raise ModelFailed(
            f"The model {_shown(model.name)} did not answer within {timeout:g} s (TimeoutError).",
            "Try again, or allow more time.",
            reason="timeout",
        ) from error


def _call(model: Model, prompt: str) -> object:
    with _explained(model.name):
        return model.ask(prompt)


async def _text(model: Model, answer: object) -> str:
    if isawaitable(answer):
        with _explained(model.name):
            answer = await answer
    return _checked(model, answer)


def _checked(model: Model, answer: object) -> str:
    if isinstance(answer, str):
        return answer
    raise ModelFailed(
        f"The model {_shown(model.name)} answered with {type(answer).__name__} instead of text.",
        "Make the function return a str.",
        reason="answer",
    )


# The event loop of our own


def run(work: Callable[[], Coroutine[object, object, T]]) -> T:
    """Run a coroutine on our own event loop and wait for it, as for several calls of `acomplete` at once.

    What a model keeps open between two calls stays usable this way, as it would not on a new loop for each.
    """
    import asyncio  # noqa: PLC0415

    if _HOME.is_here():  # a model that waits for another one: the loop cannot turn meanwhile
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

        with ThreadPoolExecutor(1) as pool:
            return pool.submit(copy_context().run, asyncio.run, _settled(work)).result()()
    there = asyncio.run_coroutine_threadsafe(_settled(work), _HOME.loop())
    try:
        return there.result()()
    except BaseException:  # such as KeyboardInterrupt
        there.cancel()
        raise


async def _at_home(work: Callable[[], Coroutine[object, object, T]]) -> T:
    """Await something on our own event loop; when it is cancelled, also that it has closed what it had open."""
    import asyncio  # noqa: PLC0415

    if _HOME.is_here():
        return await work()
    here, over = asyncio.get_running_loop(), asyncio.Event()

    async def settled() -> Callable[[], T]:
        try:
            return await _settled(work)
        finally:
            with suppress(RuntimeError):  # nobody waits any more: the loop is closed
                here.call_soon_threadsafe(over.set)

    there = asyncio.run_coroutine_threadsafe(settled(), _HOME.loop())
    try:
        return (await asyncio.wrap_future(there))()
    except asyncio.CancelledError:
        await over.wait()
        raise


async def _settled(work: Callable[[], Coroutine[object, object, T]]) -> Callable[[], T]:
    """Give what gives the result or raises the error: a KeyboardInterrupt would end the loop on its way."""
    try:
        result = await work()
    except BaseException as error:  # noqa: BLE001 - it is raised where the work was asked for
        return partial(_throw, error)
    return lambda: result


def _throw(error: BaseException) -> NoReturn:
    raise error


class _Home:
    """An event loop on a thread of its own, which begins when it is first needed and ends with the process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._thread: Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def is_here(self) -> bool:
        """Say whether it is this thread that it runs on."""
        return self._thread is not None and self._thread.is_alive() and self._thread.ident == get_ident()

    def loop(self) -> asyncio.AbstractEventLoop:
        """Give the loop, running."""
        with self._lock:
            # A process that was forked has the loop, but not its thread.
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                self._loop, self._thread = _begin()
            return self._loop


_HOME = _Home()


def _begin() -> tuple[asyncio.AbstractEventLoop, Thread]:
    import asyncio  # noqa: PLC0415
    import atexit  # noqa: PLC0415
    from concurrent.futures import Future  # noqa: PLC0415

    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def live() -> None:
        end = asyncio.Event()
        begun.set_result((asyncio.get_running_loop(), end))
        await end.wait()

    def work() -> None:
        try:
            asyncio.run(live())
        except Exception as error:
            if begun.done():
                raise
            begun.set_exception(error)  # such as no file descriptor left for a loop

    thread = Thread(target=work, name="holdfast-llm", daemon=True)
    thread.start()
    loop, end = begun.result()

    def finish() -> None:
        if thread.is_alive():
            loop.call_soon_threadsafe(end.set)
            thread.join(5)  # seconds: a call that blocks the loop must not keep the process

    atexit.register(finish)
    return loop, thread


# How it failed


@contextmanager
def _explained(name: str, *, but: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turn what a model raises into ModelFailed; what is one, or among the others, stays as it is."""
    try:
        yield
    except Exception as error:
        if isinstance(error, (ModelFailed, *but)):
            raise
        raise _failed(name, error) from error


def _failed(name: str, error: Exception) -> ModelFailed:
    """Explain an error without its text, in which there may be a key or the prompt."""
    chain = list(_chain(error))
    reason: Reason = next((found for each in chain if (found := _reason(each))), "error")
    status = next((f", status {code}" for each in chain if (code := _status(each))), "")
    said, todo = _SAID[reason]
    return ModelFailed(
        f"The model {_shown(name)} {said} ({type(error).__name__}{status}).", todo, reason=reason
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that it came from, the nearest first."""
    left, seen = [error], set[int]()
    while left:
        error = left.pop(0)
        if id(error) in seen:
            continue
        seen.add(id(error))
        yield error
        left += error.exceptions if isinstance(error, BaseExceptionGroup) else ()
        if cause := error.__cause__ or (None if error.__suppress_context__ else error.__context__):
            left.append(cause)


def _reason(error: BaseException) -> Reason | None:
    """Say what kind of failure an error is by its class, the code that its provider gave, and its HTTP status."""
    names = [kind.__name__ for kind in type(error).__mro__]
    codes = [getattr(error, name, None) for name in ("code", "provider_error_code", "provider_error_type")]
    text = " ".join([*names, *(code for code in codes if isinstance(code, str))]).lower().replace("_", "")
    told = [reason for reason, words in _WORDS.items() if any(word in text for word in words)]
    return next(iter(told + [reason for reason, codes in _STATUSES.items() if _status(error) in codes]), None)


def _status(error: BaseException) -> int:
    for holder in (error, getattr(error, "response", None)):
        if isinstance(status := getattr(holder, "status_code", None), int):
            return status
    return 0


def _shown(name: str) -> str:
    """Give the name of a model without the key that somebody may have passed as one."""
    from holdfast.text.guard import redact, scan  # noqa: PLC0415 - its rules take a while to load

    return redact(name, scan(name))
