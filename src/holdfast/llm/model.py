"""The language model: from what is passed as `llm=` to text, and every way of it to fail as one error.

A model of pydantic-ai has connections that its calls share, and a connection belongs to the event loop that opened it.
So those models answer on the one loop of our own, whoever asks, from wherever.
"""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import isawaitable, isclass, iscoroutinefunction, signature
from itertools import count
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias, TypeGuard

from holdfast.errors import InvalidInput, MissingExtra, ModelFailed
from holdfast.llm.errors import explained, shown
from holdfast.llm.event_loop import at_home, is_here, is_home, run, run_on
from holdfast.types import check_name

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future

    from pydantic_ai.models import Model as PydanticModel
    from pydantic_ai.models import ModelRequestParameters

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
Schema: TypeAlias = Mapping[str, object]
MOST_TOKENS = 1_000_000_000  # of one call
_CALLS = count(1)  # of functions on threads of their own


class Answer(str):
    """The text of an answer, with how many tokens its provider counted in the prompt and in the answer.

    Both numbers are None where nobody counted, as with a plain function; one that is there is from 1 to 1,000,000,000.
    """

    __slots__ = ("answer_tokens", "prompt_tokens")
    prompt_tokens: int | None
    answer_tokens: int | None

    def __new__(cls, text: str, prompt_tokens: int | None = None, answer_tokens: int | None = None) -> Self:
        """Make one of a text and the two numbers."""
        answer = super().__new__(cls, text)
        answer.prompt_tokens = prompt_tokens
        answer.answer_tokens = answer_tokens
        return answer


@dataclass(frozen=True, slots=True)
class Model:
    """Hold a model that can be asked: `name` is what the user calls it, and `is_async` says if several calls can run at once.

    `ask` gives the answer or what can be awaited for it: on our own loop if the model is `homebound`, on that of its `host`
    if it has one. `hold` makes an `ask` whose answers keep to a schema, as far as the provider sees to it.
    """

    name: str
    is_async: bool
    ask: Callable[[str], object] = field(repr=False)
    homebound: bool = field(default=False, repr=False)
    host: asyncio.AbstractEventLoop | None = field(default=None, repr=False)
    hold: Callable[[Schema], Callable[[str], object]] | None = field(default=None, repr=False)


# From what a user passes


def resolve(llm: LLM | Model) -> Model:
    """Make the model that `llm` means: a function from text to text, a name with its provider, or a pydantic-ai model.

    A name is looked up at once, so that a wrong one is found here: this loads pydantic-ai and takes up to a second. What is
    given by its name sends one request for a question, also where its provider's client would send more; a model object
    stays as it was made. It must be one that no agent uses meanwhile: its connections cannot be shared with another event
    loop.

    Raises:
        InvalidInput: it is none of these, or there is no such provider.
        MissingExtra: a name was passed, and what it needs is not installed.
        ModelFailed: there is no key for the provider, or another of its settings is missing.

    """
    if isinstance(llm, Model):  # by who awaits: resolved there, and hosted by the loop of the caller
        return llm
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
            f"{shown(name)!r} names a provider or a model, but not both.", "Pass 'provider:model'."
        )
    try:
        # Half a second, for those who use it.
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model
    except ImportError as error:
        raise MissingExtra.of("llm") from error
    try:
        with explained(name, but=(UserError, ImportError)):
            return _from_pydantic(_asking_once(infer_model(name)), name)
    except UserError as error:
        raise _unusable(name, str(error)) from error
    except ImportError as error:
        wanted = re.search(r"pydantic-ai-slim\[[a-z-]+\]", str(error))
        raise MissingExtra(
            f"The provider of {shown(name)!r} needs a package that is not installed.",
            f"Run: pip install '{wanted[0] if wanted else f'pydantic-ai-slim[{provider}]'}'.",
        ) from error


def _asking_once(model: PydanticModel) -> PydanticModel:
    """Keep the client of a model from trying again: each request is on the meter, and those who ask know when to."""
    client = getattr(model, "client", None)
    if client is not None and hasattr(client, "max_retries"):
        client.max_retries = 0
    return model


def _unusable(name: str, text: str) -> InvalidInput | ModelFailed:
    """Explain why pydantic-ai made no model of a name: a setting is missing, or it does not know the provider."""
    settings = dict.fromkeys(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", text))
    if settings:
        key = any(setting.endswith(("_KEY", "_TOKEN")) for setting in settings)
        return ModelFailed(
            f"The model {shown(name)} cannot be asked without {'a key' if key else 'more settings'} (UserError).",
            f"Set {' or '.join(settings)} in the environment, or pass a model object of pydantic-ai.",
            reason="authentication" if key else "error",
        )
    likely = re.search(r"Did you mean '([^']+)'", text)
    return InvalidInput(
        f"{shown(name)!r} is not a model that pydantic-ai knows{f'; {likely[1]!r} is' if likely else ''}.",
        "Name the provider as well, as in 'openai:gpt-5-mini', or pass a function from text to text.",
    )


def _from_pydantic(model: PydanticModel, name: str) -> Model:
    async def ask(prompt: str, schema: Schema | None = None) -> Answer:
        from pydantic_ai.direct import model_request
        from pydantic_ai.messages import ModelRequest

        messages = [ModelRequest.user_text_prompt(prompt)]
        output = None if schema is None else _output(model, schema)
        # Entered, it has a client for this event loop, and closes it when the last of the calls at once has ended.
        # No temperature: models that reason refuse one with a warning, and a model object may have its own.
        try:
            async with _entered(model):
                answer = await model_request(
                    model, messages, model_request_parameters=output, instrument=False
                )
        except RuntimeError as error:
            if "event loop" not in str(error):
                raise
            raise ModelFailed(
                f"The model {shown(name)} has connections of another event loop (RuntimeError).",
                "Pass a model object that nothing else uses, or the name of the model.",
            ) from error
        prompt_tokens, answer_tokens = map(_counted, (answer.usage.input_tokens, answer.usage.output_tokens))
        return Answer(answer.text or "", prompt_tokens, answer_tokens)  # of only thoughts, no text is left

    return Model(
        name, is_async=True, ask=ask, homebound=True, hold=lambda schema: partial(ask, schema=schema)
    )


def _counted(tokens: int) -> int | None:
    """Give what a provider counted: 0 is that of one that does not, and no call takes as much as others may claim."""
    return tokens if 0 < tokens <= MOST_TOKENS else None


def _output(model: PydanticModel, schema: Schema) -> ModelRequestParameters | None:
    """Say to a provider what an answer must look like, as far as it can be held to that."""
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition

    try:
        profile = model.profile
    except NotImplementedError:  # several models, each of which can do something else
        return None
    if profile.get("supports_json_schema_output"):
        # `strict` is left open: OpenAI takes only some schemas strictly, Anthropic all, and pydantic-ai knows which.
        return ModelRequestParameters(
            output_mode="native", output_object=OutputObjectDefinition(dict(schema))
        )
    if profile.get("supports_json_object_output"):
        return ModelRequestParameters(output_mode="prompted", prompted_output_template=False)
    return None


@asynccontextmanager
async def _entered(model: PydanticModel) -> AsyncIterator[None]:
    """Enter a model, and see to it that leaving it is not cancelled half-way, which would leave connections open."""
    import asyncio

    await model.__aenter__()
    try:
        yield
    finally:
        leaving = asyncio.ensure_future(model.__aexit__(None, None, None))
        _LEAVING.add(leaving)
        leaving.add_done_callback(_LEAVING.discard)
        await asyncio.shield(leaving)


# Asking


def complete(
    model: Model, prompt: str, patience: float | None = None, *, schema: Schema | None = None
) -> Answer:
    """Ask a model and wait for its answer, also from within a running event loop (which waits as well).

    It is waited for at most `patience` seconds. A synchronous function that has not answered by then goes on, unheard, on
    its thread, which the error names; without `patience` it is called on the thread of who waits.

    `schema` is the JSON schema of an object. A provider that can hold its model to it does so, and one that cannot is only
    asked: the prompt must name JSON and tell the shape as well, and the answer may be anything.

    Raises:
        ModelFailed: it raised an error, did not answer in time, or what it answered is not text.

    """
    model = _held(model, schema)
    if model.host is not None:
        return _complete_there(model, model.host, prompt, patience)
    if model.is_async:
        if model.homebound and is_home():
            raise _would_block(model)
        return run(lambda: acomplete(model, prompt, patience))
    answer = _call(model, prompt) if patience is None else _call_aside(model, prompt, patience)
    if isawaitable(answer):
        awaited = replace(model, is_async=True, ask=lambda _: answer)
        return run(lambda: acomplete(awaited, prompt, patience))
    return _checked(model, answer)


async def acomplete(
    model: Model,
    prompt: str,
    timeout: float | None = None,  # noqa: ASYNC109 - a part of the API
    *,
    schema: Schema | None = None,
) -> Answer:
    """Ask a model and await its answer, for at most `timeout` seconds. `schema` is as in `complete`.

    A synchronous function is called on a thread of its own. It goes on there, unheard, when the wait for it is cancelled or
    over, which the error then names.

    Raises:
        ModelFailed: it raised an error, did not answer in time, or what it answered is not text.

    """
    # Loaded only where it is used.
    import asyncio

    model = _held(model, schema)
    if model.host is not None:
        return await asyncio.to_thread(complete, model, prompt, timeout)
    thread = ""
    try:
        async with asyncio.timeout(timeout):
            if model.homebound:
                return await at_home(lambda: _text(model, model.ask(prompt)))
            if model.is_async:
                return await _text(model, _call(model, prompt))
            ended, thread = _aside(model, prompt)
            return await _text(model, await asyncio.wrap_future(ended))
    except TimeoutError as error:  # ours: that of a model is explained already
        raise _late(model, timeout or 0.0, thread) from error


def hosted(model: Model, loop: asyncio.AbstractEventLoop) -> Model:
    """Make a synchronous model of an asynchronous function that runs on an event loop while a thread waits for it.

    Within `complete`, `patience` ends the wait as before. A model that is not asynchronous, or is homebound, stays as it is.
    """
    return replace(model, is_async=False, host=loop) if model.is_async and not model.homebound else model


def _complete_there(
    model: Model, host: asyncio.AbstractEventLoop, prompt: str, patience: float | None
) -> Answer:
    import asyncio

    if is_here(host):
        raise _would_block(model)
    guest = replace(model, is_async=True, host=None)
    try:
        return run_on(host, lambda: acomplete(guest, prompt, patience))
    except asyncio.CancelledError as error:  # there is no task here that it could cancel
        raise ModelFailed(
            f"The model {shown(model.name)} was cancelled on the event loop that it answers on (CancelledError).",
            "Keep the loop running until every call has been answered.",
        ) from error


def _would_block(model: Model) -> ModelFailed:
    return ModelFailed(
        f"The model {shown(model.name)} was to be waited for on the event loop that it answers on.",
        "Await `acomplete` there.",
    )


def _held(model: Model, schema: Schema | None) -> Model:
    """Hold a model to a schema, if it can be."""
    return model if schema is None or model.hold is None else replace(model, ask=model.hold(schema))


def _call_aside(model: Model, prompt: str, patience: float) -> object:
    """Call a function on a thread of its own, which is left alone if it does not answer in time."""
    ended, thread = _aside(model, prompt)
    try:
        return ended.result(patience)
    except TimeoutError as error:  # ours: what the model raises is explained already
        raise _late(model, patience, thread) from error


def _aside(model: Model, prompt: str) -> tuple[Future[object], str]:
    """Call a function on a thread of its own, and return what is to come of it and the name of the thread."""
    # Loaded only where it is used.
    from concurrent.futures import Future
    from threading import Thread

    ended: Future[object] = Future()
    ended.set_running_or_notify_cancel()  # who waits for it may be cancelled, but not the call

    def call() -> None:
        try:
            ended.set_result(_call(model, prompt))
        except BaseException as error:  # noqa: BLE001 - it is raised where the answer is waited for
            ended.set_exception(error)

    # It must not keep the process, or an event loop, from ending.
    thread = Thread(
        target=copy_context().run, args=(call,), name=f"holdfast-model-{next(_CALLS)}", daemon=True
    )
    thread.start()
    return ended, thread.name


def _late(model: Model, patience: float, thread: str) -> ModelFailed:
    left = f"; the call was left to its thread {thread!r}" if thread else ""
    return ModelFailed(
        f"The model {shown(model.name)} did not answer within {patience:g} s (TimeoutError){left}.",
        "Try again, or allow more time; give the function a time-out of its own."
        if thread
        else "Try again, or allow more time.",
        reason="timeout",
    )


def _call(model: Model, prompt: str) -> object:
    with explained(model.name):
        return model.ask(prompt)


async def _text(model: Model, answer: object) -> Answer:
    if isawaitable(answer):
        with explained(model.name):
            answer = await answer
    return _checked(model, answer)


def _checked(model: Model, answer: object) -> Answer:
    if isinstance(answer, Answer):
        return answer
    if isinstance(answer, str):
        return Answer(str.__str__(answer))  # what it holds: a member of an Enum prints as something else
    raise ModelFailed(
        f"The model {shown(model.name)} answered with {type(answer).__name__} instead of text.",
        "Make the function return a str.",
        reason="answer",
    )
