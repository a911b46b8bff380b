"""What a function for agents takes: read from its signature, written as JSON schema, checked before it is called."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin, get_type_hints

from holdfast.errors import InvalidInput
from holdfast.kinds import LONGEST
from holdfast.safety.guard import mask_name
from holdfast.types import is_whole

MOST = 1_000_000  # characters of arguments as JSON
_TYPES = {str: "string", int: "integer", bool: "boolean", list: "array", dict: "object"}
_NAMES = {
    "string": "text",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list of texts",
    "object": "an object",
}
_IS: Mapping[str, Callable[[object], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": is_whole,
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list | tuple) and all(isinstance(one, str) for one in value),
    "object": lambda value: isinstance(value, Mapping),
}


@dataclass(frozen=True, slots=True)
class Range:
    """Say which whole numbers something may be; `Annotated[int, Range(1, 50)]` in the signature of a function."""

    first: int
    last: int

    def check(self, value: int, name: str) -> int:
        """Return a number if it is one of them.

        Raises:
            InvalidInput: it is not.

        """
        if self.first <= value <= self.last:
            return value
        beyond = f"below {self.first}" if value < self.first else f"above {self.last}"
        raise InvalidInput(f"`{name}` is {beyond}.", f"Pass {self.first} to {self.last}, or leave it out.")


@dataclass(frozen=True, slots=True)
class Parameter:
    """Describe one parameter: its JSON type, what it is for, and what it may be; without a default it is required."""

    name: str
    type: str
    description: str
    required: bool = False
    choices: tuple[str, ...] = ()
    range: Range | None = None

    def schema(self) -> dict[str, object]:
        """Write it as JSON schema."""
        schema: dict[str, object] = {"type": self.type}
        if self.type == "array":
            schema["items"] = {"type": "string"}
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.range:
            schema |= {"minimum": self.range.first, "maximum": self.range.last}
        if self.description:
            schema["description"] = self.description
        return schema


def schema(parameters: Iterable[Parameter]) -> dict[str, object]:
    """Write parameters as the JSON schema of an object that has no others."""
    listed = tuple(parameters)
    written: dict[str, object] = {
        "type": "object",
        "properties": {one.name: one.schema() for one in listed},
    }
    if required := [one.name for one in listed if one.required]:
        written["required"] = required
    written["additionalProperties"] = False
    return written


def parameters(function: Callable[..., object]) -> tuple[Parameter, ...]:
    """Read what a function or a method takes; an annotation `Annotated[str, "…"]` says what for."""
    hints = get_type_hints(function, include_extras=True)
    return tuple(
        _parameter(name, hints[name], required=one.default is one.empty)
        for name, one in inspect.signature(function).parameters.items()
        if name != "self"
    )


def _parameter(name: str, hint: object, *, required: bool) -> Parameter:
    said = getattr(hint, "__metadata__", ())
    description = next((one for one in said if isinstance(one, str)), "")
    bare = getattr(hint, "__origin__", hint) if said else hint
    if get_origin(bare) in (Union, UnionType):
        bare = next(one for one in get_args(bare) if one is not NoneType)
        if not description:
            return _parameter(name, bare, required=required)
    if get_origin(bare) is Literal:
        return Parameter(name, "string", description, required, get_args(bare))
    known = _TYPES[get_origin(bare) or bare]  # type: ignore[index]  # a type it is
    within = next((one for one in said if isinstance(one, Range)), None)
    return Parameter(name, known, description, required, range=within)


def parsed(arguments: Mapping[str, object] | str | None) -> Mapping[str, object]:
    """Read the arguments of a call, given as a mapping or as JSON.

    Raises:
        InvalidInput: it is no JSON object, or longer than 1,000,000 characters.

    """
    if arguments is None:
        return {}
    if isinstance(arguments, str):
        if len(arguments) > MOST:
            raise InvalidInput(
                f"The arguments have {len(arguments):,} characters.", f"Pass at most {MOST:,} of them."
            )
        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError) as error:
            raise InvalidInput("The arguments are no JSON.", "Pass a JSON object.") from error
    if not isinstance(arguments, Mapping):
        raise InvalidInput(f"The arguments are {_name_of(arguments)}, not an object.", "Pass a JSON object.")
    return arguments


def checked(arguments: Mapping[str, object], known: Iterable[Parameter], what: str) -> dict[str, object]:
    """Give the arguments of a call as its function takes them; null stands for the default, and is left out.

    Raises:
        InvalidInput: one is unknown, missing or of another type; the message says which, and what is possible.

    """
    listed = {one.name: one for one in known}
    possible = f"{what} takes {_listed(listed.values())}."
    given = {}
    for name, value in arguments.items():
        if name not in listed:
            raise InvalidInput(f"{what} has no argument {_quoted(name)}.", possible)
        if value is not None:
            given[name] = _checked(value, listed[name])
    if missing := [one.name for one in listed.values() if one.required and one.name not in given]:
        raise InvalidInput(f"{what} needs {', '.join(f'`{name}`' for name in missing)}.", possible)
    return given


def _checked(value: object, known: Parameter) -> object:
    """Check one value; a whole number that is written as 5.0 is one."""
    if known.type == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if not _IS[known.type](value):
        wrong = f"`{known.name}` must be {_NAMES[known.type]}, not {_name_of(value)}."
        quoted = known.type == "integer" and isinstance(value, str)
        raise InvalidInput(wrong, "Pass it without quotes." if quoted else "Correct its type.")
    if isinstance(value, str) and len(value) > LONGEST:
        raise InvalidInput(
            f"`{known.name}` has {len(value):,} characters.", f"Pass at most {LONGEST:,} of them."
        )
    if known.range and isinstance(value, int):
        known.range.check(value, known.name)
    if known.choices and value not in known.choices:
        raise InvalidInput(
            f"`{known.name}` cannot be {_quoted(value)}.", f"Use one of {', '.join(known.choices)}."
        )
    return value


def _listed(known: Iterable[Parameter]) -> str:
    names = [f"`{one.name}`" if one.required else f"`{one.name}` (optional)" for one in known]
    return ", ".join(names) if names else "no arguments"


def _quoted(name: object) -> str:
    text = mask_name(str(name))
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


def _name_of(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "text"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, list | tuple):
        return "a list"
    return "null" if value is None else "an object" if isinstance(value, Mapping) else type(value).__name__
