"""Failures of a model: any exception as one error with a remedy, without the text of the exception."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.errors import HoldfastError, ModelFailed, Reason

# Words in the names of exceptions and in the codes of providers, in lower case without underscores.
_WORDS: dict[Reason, str] = {
    "authentication": "authentication unauthenticated unauthorized permissiondenied accessdenied forbidden "
    "apikey credential expiredtoken",
    "quota": "ratelimit quota toomanyrequests resourceexhausted throttl billing",
    "timeout": "timeout timedout deadlineexceeded",
    "unavailable": "connecterror connectionerror connectionrefused connectionreset apiconnection "
    "serviceunavailable overloaded badgateway",
    "answer": "unexpectedmodelbehavior decodeerror",
}
_STATUSES: dict[Reason, tuple[int, ...]] = {
    "authentication": (401, 403),
    "quota": (402, 429),
    "timeout": (408, 504),
    "unavailable": (502, 503, 529),
}
_MESSAGES: dict[Reason, tuple[str, str]] = {
    "authentication": (
        "was refused access by its provider",
        "Check the API key and that it may use this model, then try again.",
    ),
    "quota": (
        "refused to answer because a rate limit or a quota is used up",
        "Wait and try again, or raise the limit at the provider.",
    ),
    "unavailable": ("cannot be reached", "Try again later."),
    "timeout": ("did not answer in time", "Try again, or allow more time."),
    "answer": ("gave an answer that cannot be read", "Try again, or use another model."),
    "error": ("failed", "See the exception that this was raised from, fix its cause and try again."),
}

_NOT_FOUND = 404
_MISSING = (
    "Check the name of the model and the address of its provider. 'openai:' speaks OpenAI's newer protocol; "
    "a server with only the older one needs 'openai-chat:'."
)


@contextmanager
def explained(name: str, *, but: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turn an exception of a model into ModelFailed; such an error, or one of `but`, stays as it is."""
    try:
        yield
    except Exception as error:
        if isinstance(error, (ModelFailed, *but)):
            raise
        raise _failure(name, error) from error


def logged(error: HoldfastError, what: str) -> str:
    """Log an error with its cause, and return its text as it can be read without that."""
    # Only for those whose model fails.
    import logging

    logging.getLogger("holdfast").debug("A model failed: %s.", what, exc_info=error)
    if not isinstance(error, ModelFailed) or error.reason != "error" or "exception" not in error.todo:
        return str(error)
    return f"{error.what} The logger 'holdfast' has the cause, at the level DEBUG."


def _failure(name: str, error: Exception) -> ModelFailed:
    """Return an error without the text of the exception, which may hold a key or the prompt."""
    chain = list(_chain(error))
    reason: Reason = next(filter(None, map(_reason, chain)), "error")
    codes = [code for code in map(_status, chain) if code]
    status = f", status {codes[0]}" if codes else ""
    what, todo = _MESSAGES[reason]
    what = f"The model {redacted(name)} {what} ({type(error).__name__}{status})."
    return ModelFailed(what, _MISSING if _NOT_FOUND in codes else todo, reason=reason)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, the nearest first."""
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
    """Return the reason by the class of an error, the code of its provider and its HTTP status."""
    names = [kind.__name__ for kind in type(error).__mro__]
    codes = [getattr(error, name, None) for name in ("code", "provider_error_code", "provider_error_type")]
    text = " ".join([*names, *(code for code in codes if isinstance(code, str))]).lower().replace("_", "")
    by_name = [reason for reason, words in _WORDS.items() if any(word in text for word in words.split())]
    by_status = [reason for reason, statuses in _STATUSES.items() if _status(error) in statuses]
    return next(iter(by_name + by_status), None)


def _status(error: BaseException) -> int:
    for holder in (error, getattr(error, "response", None)):
        if isinstance(status := getattr(holder, "status_code", None), int):
            return status
    return 0


def redacted(name: str) -> str:
    """Return the name of a model, with a key that was passed as one redacted."""
    # Its rules take a while to load.
    from holdfast.safety.guard import redact, scan

    return redact(name, scan(name))
