"""Adapters: from the value of `llm=` to a model that can be called."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from inspect import isclass, iscoroutinefunction, signature
from typing import TYPE_CHECKING, TypeGuard, TypeVar

from holdfast.errors import InvalidInput, MissingExtra, ModelFailed
from holdfast.llm.errors import explained, redacted
from holdfast.llm.model import LLM, MOST_TOKENS, Answer, Model, Schema
from holdfast.types import check_name

if TYPE_CHECKING:
    import asyncio

    from pydantic_ai.models import Model as PydanticModel
    from pydantic_ai.models import ModelRequestParameters

T = TypeVar("T")
# An event loop holds no reference to its tasks.
_LEAVING: set[asyncio.Future[bool | None]] = set()


def resolve(llm: LLM | Model) -> Model:
    """Return the model for a function from text to text, a name with its provider, or a pydantic-ai model.

    A name is looked up at once, so that a wrong one is found here: this loads pydantic-ai and takes up to a
    second. A model made from a name sends one request for a call, also where its provider's client would send
    more. A model object stays as it was made; no agent may use it meanwhile, since its connections belong to
    one event loop.

    Raises:
        InvalidInput: it is none of these, or there is no such provider.
        MissingExtra: the package that a name needs is not installed.
        ModelFailed: the key of the provider, or another of its settings, is missing.

    """
    if isinstance(llm, Model):
        # Resolved already, where it is awaited, and hosted by the event loop of the caller.
        return llm
    if isinstance(llm, str):
        return _look_up(llm)
    if _is_model_object(llm):
        return _from_pydantic(llm, llm.model_id)
    if isclass(llm) or not callable(llm):
        what = f"the class {llm.__name__}" if isclass(llm) else f"of type {type(llm).__name__}"
        raise InvalidInput(
            f"`llm` is {what}, which is not a model.",
            "Pass a function from text to text, a name such as 'openai:gpt-5-mini', or a pydantic-ai model.",
        )
    _check_takes_a_prompt(llm)
    return Model(name_of(llm), is_async(llm), llm)


def _is_model_object(llm: object) -> TypeGuard[PydanticModel]:
    """Return whether it is a model of pydantic-ai, without loading that: its owner has loaded it."""
    models = sys.modules.get("pydantic_ai.models")
    return models is not None and isinstance(llm, models.Model)


def _check_takes_a_prompt(llm: Callable[..., object]) -> None:
    try:
        taken = signature(llm)
    except (TypeError, ValueError):
        # Some functions written in C have no signature.
        return
    try:
        taken.bind("prompt")
    except TypeError as error:
        # Without their defaults: one of them may be a key.
        names = ", ".join(taken.parameters)
        raise InvalidInput(
            f"`llm` cannot be called with a prompt alone: its parameters are ({names}).",
            "Pass a function of one text; functools.partial can fill in the rest.",
        ) from error


def name_of(llm: object) -> str:
    """Return the name of a callable, "custom" for one without a name."""
    if isinstance(llm, partial):
        return name_of(llm.func)
    name = getattr(llm, "__qualname__", None) or type(llm).__qualname__
    return name if isinstance(name, str) else "custom"


def is_async(llm: object) -> bool:
    """Return whether a callable returns an awaitable, as far as its definition shows."""
    if isinstance(llm, partial):
        return is_async(llm.func)
    # B004: it is not asked whether it can be called, but how.
    return iscoroutinefunction(llm) or iscoroutinefunction(getattr(llm, "__call__", None))  # noqa: B004


def _look_up(name: str) -> Model:
    check_name(name, "`llm`")
    provider, colon, rest = name.partition(":")
    if colon and not (provider.strip() and rest.strip()):
        raise InvalidInput(
            f"{redacted(name)!r} names a provider or a model, but not both.", "Pass 'provider:model'."
        )
    try:
        # Takes half a second to load.
        from pydantic_ai.models import infer_model
    except ImportError as error:
        raise MissingExtra.of("llm") from error
    with explained_name(name, _unknown):
        return _from_pydantic(without_retries(infer_model(name)), name)


def without_retries(owner: T) -> T:
    """Return a model or provider with its client's retries off: requests are metered, and callers retry."""
    client = getattr(owner, "client", None)
    if client is not None and hasattr(client, "max_retries"):
        client.max_retries = 0
    return owner


@contextmanager
def explained_name(
    name: str, unknown: Callable[[str, str], InvalidInput], *others: type[Exception]
) -> Iterator[None]:
    """Turn the errors of pydantic-ai for a name into ours; `others` stand for an unknown name, too."""
    from pydantic_ai.exceptions import UserError

    wrong: tuple[type[Exception], ...] = (UserError, *others)
    try:
        with explained(name, but=(*wrong, ImportError)):
            yield
    except wrong as error:
        raise _missing_setting(name, str(error)) or unknown(name, str(error)) from error
    except ImportError as error:
        raise _missing_package(name, str(error)) from error


def _missing_package(name: str, text: str) -> MissingExtra:
    """Return the error for a name whose provider needs a package, as the text of pydantic-ai's error says."""
    wanted, provider = re.search(r"pydantic-ai-slim\[[a-z-]+\]", text), name.partition(":")[0]
    return MissingExtra(
        f"The provider of {redacted(name)!r} needs a package that is not installed.",
        f"Run: pip install '{wanted[0] if wanted else f'pydantic-ai-slim[{provider}]'}'.",
    )


def _missing_setting(name: str, text: str) -> ModelFailed | None:
    """Return the error for a name refused for a setting that is missing; None for another reason."""
    settings = dict.fromkeys(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", text))
    if not settings:
        return None
    key = any(setting.endswith(("_KEY", "_TOKEN")) for setting in settings)
    return ModelFailed(
        f"The model {redacted(name)} needs {'a key' if key else 'more settings'} (UserError).",
        f"Set {' or '.join(settings)} in the environment, or pass a model object of pydantic-ai.",
        reason="authentication" if key else "error",
    )


def _unknown(name: str, text: str) -> InvalidInput:
    likely = re.search(r"Did you mean '([^']+)'", text)
    return InvalidInput(
        f"{redacted(name)!r} is not a model of pydantic-ai{f'; {likely[1]!r} is' if likely else ''}.",
        "Name the provider as well, as in 'openai:gpt-5-mini', or pass a function from text to text.",
    )


def _from_pydantic(model: PydanticModel, name: str) -> Model:
    async def ask(prompt: str, schema: Schema | None = None) -> Answer:
        from pydantic_ai.direct import model_request
        from pydantic_ai.messages import ModelRequest

        messages = [ModelRequest.user_text_prompt(prompt)]
        output = None if schema is None else _output(model, schema)
        # Entered, it has a client for this event loop, and closes it when the last of its concurrent calls
        # has ended. No temperature: reasoning models refuse one with a warning, and a model object may have
        # its own.
        try:
            async with _enter(model):
                answer = await model_request(
                    model, messages, model_request_parameters=output, instrument=False
                )
        except RuntimeError as error:
            if "event loop" not in str(error):
                raise
            raise ModelFailed(
                f"The model {redacted(name)} has connections of another event loop (RuntimeError).",
                "Pass a model object that nothing else uses, or the name of the model.",
            ) from error
        prompt_tokens, answer_tokens = map(counted, (answer.usage.input_tokens, answer.usage.output_tokens))
        # An answer of thoughts alone has no text.
        return Answer(answer.text or "", prompt_tokens, answer_tokens)

    return Model(
        name, is_async=True, ask=ask, homebound=True, hold=lambda schema: partial(ask, schema=schema)
    )


def counted(tokens: int) -> int | None:
    """Return the tokens that a provider counted; None for nonsense, and for 0 of one without counts."""
    return tokens if 0 < tokens <= MOST_TOKENS else None


def _output(model: PydanticModel, schema: Schema) -> ModelRequestParameters | None:
    """Return the request parameters that hold a provider to a schema, None where it cannot be."""
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition

    try:
        profile = model.profile
    except NotImplementedError:
        # Several models with different capabilities.
        return None
    if profile.get("supports_json_schema_output"):
        # `strict` is left to pydantic-ai: OpenAI takes only some schemas strictly, Anthropic all.
        return ModelRequestParameters(
            output_mode="native", output_object=OutputObjectDefinition(dict(schema))
        )
    if profile.get("supports_json_object_output"):
        return ModelRequestParameters(output_mode="prompted", prompted_output_template=False)
    return None


@asynccontextmanager
async def _enter(model: PydanticModel) -> AsyncIterator[None]:
    """Enter a model, and leave it uncancelled, so that no connection stays open."""
    import asyncio

    await model.__aenter__()
    try:
        yield
    finally:
        leaving = asyncio.ensure_future(model.__aexit__(None, None, None))
        _LEAVING.add(leaving)
        leaving.add_done_callback(_LEAVING.discard)
        await asyncio.shield(leaving)
