"""Parameters of tools: read from a signature, described as JSON schema, and checked before a call."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from holdfast.errors import InvalidInput
from holdfast.kinds import LONGEST
from holdfast.safety.guard import mask_name
from holdfast.types import is_whole

MOST = 1_000_000  # characters of arguments as JSON
_QUOTED = 40  # characters of an argument in an error


class JsonType(NamedTuple):
    """A type of arguments: the annotation, the words for it in errors, and the test of a value."""

    python: type
    words: str
    accepts: Callable[[object], bool]


def _is_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)


TYPES: Mapping[str, JsonType] = {
    "string": JsonType(str, "text", lambda value: isinstance(value, str)),
    "integer": JsonType(int, "a whole number", is_whole),
    "boolean": JsonType(bool, "true or false", lambda value: isinstance(value, bool)),
    "array": JsonType(list, "a list of texts", _is_texts),
    "object": JsonType(dict, "an object", lambda value: isinstance(value, Mapping)),
}
"""The types of arguments, by their names in JSON schema."""


@dataclass(frozen=True, slots=True)
class Range:
    """The whole numbers that a parameter takes, as `Annotated[int, Range(1, 50)]` in a signature."""

    first: int
    last: int

    def check(self, value: int, name: str) -> int:
        """Return a number if it is within the range.

        Raises:
            InvalidInput: it is not.

        """
        if self.first <= value <= self.last:
            return value
        beyond = f"below {self.first}" if value < self.first else f"above {self.last}"
        raise InvalidInput(f"`{name}` is {beyond}.", f"Pass {self.first} to {self.last}, or leave it out.")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: its JSON type, its description, and the values that it accepts."""

    name: str
    type: str
    description: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()
    range: Range | None = None

    def schema(self) -> dict[str, object]:
        """Return it as JSON schema."""
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
    """Return the JSON schema of an object with these parameters and no others."""
    listed = tuple(parameters)
    written: dict[str, object] = {"type": "object", "properties": {p.name: p.schema() for p in listed}}
    if required := [param.name for param in listed if param.required]:
        written["required"] = required
    return written | {"additionalProperties": False}


def parameters(function: Callable[..., object]) -> tuple[Parameter, ...]:
    """Return the parameters of a function or method; the text in `Annotated[str, "…"]` describes one."""
    hints = get_type_hints(function, include_extras=True)
    return tuple(
        _parameter(name, hints[name], required=param.default is param.empty)
        for name, param in inspect.signature(function).parameters.items()
        if name != "self"
    )


def _parameter(name: str, hint: Any, *, required: bool) -> Parameter:
    extras: list[object] = []
    while get_origin(hint) in (Annotated, Union, UnionType):
        if get_origin(hint) is Annotated:
            hint, *metadata = get_args(hint)
            extras += metadata
        else:
            hint = next(member for member in get_args(hint) if member is not NoneType)
    description = next((extra for extra in extras if isinstance(extra, str)), "")
    if get_origin(hint) is Literal:
        return Parameter(name, "string", description, required, get_args(hint))
    allowed = next((extra for extra in extras if isinstance(extra, Range)), None)
    annotation = get_origin(hint) or hint
    type_ = next(name for name, known in TYPES.items() if known.python is annotation)
    return Parameter(name, type_, description, required, range=allowed)


def parse(arguments: Mapping[str, object] | str | None) -> Mapping[str, object]:
    """Return the arguments of a call, passed as a mapping or as JSON.

    Raises:
        InvalidInput: they are not a JSON object, or longer than 1,000,000 characters.

    """
    if arguments is None:
        return {}
    if isinstance(arguments, str):
        if len(arguments) > MOST:
            what = f"The arguments have {len(arguments):,} characters."
            raise InvalidInput(what, f"Pass at most {MOST:,} of them.")
        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError) as error:
            raise InvalidInput("The arguments are no JSON.", "Pass a JSON object.") from error
    if not isinstance(arguments, Mapping):
        raise InvalidInput(f"The arguments are {_name_of(arguments)}, not an object.", "Pass a JSON object.")
    return arguments


def checked(arguments: Mapping[str, object], declared: Iterable[Parameter], what: str) -> dict[str, object]:
    """Return the arguments of a call, converted for its function, without those that are null.

    Raises:
        InvalidInput: one is unknown, missing or of another type; the message names it, and what is possible.

    """
    by_name = {param.name: param for param in declared}
    names = (f"`{name}`" if param.required else f"`{name}` (optional)" for name, param in by_name.items())
    todo = f"{what} takes {', '.join(names) or 'no arguments'}."
    values = {}
    for name, value in arguments.items():
        if name not in by_name:
            raise InvalidInput(f"{what} has no argument {quoted_argument(name)}.", todo)
        if value is not None:
            values[name] = _accept(value, by_name[name])
    if missing := [f"`{name}`" for name, param in by_name.items() if param.required and name not in values]:
        raise InvalidInput(f"{what} needs {', '.join(missing)}.", todo)
    return values


def _accept(value: object, declared: Parameter) -> object:
    """Return a value that a parameter accepts, 5.0 as 5 for a whole number."""
    if declared.type == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    type_ = TYPES[declared.type]
    if not type_.accepts(value):
        what = f"`{declared.name}` must be {type_.words}, not {_name_of(value)}."
        is_quoted = declared.type == "integer" and isinstance(value, str)
        raise InvalidInput(what, "Pass it without quotes." if is_quoted else "Correct its type.")
    if isinstance(value, str) and len(value) > LONGEST:
        what = f"`{declared.name}` has {len(value):,} characters."
        raise InvalidInput(what, f"Pass at most {LONGEST:,} of them.")
    if declared.range and isinstance(value, int):
        declared.range.check(value, declared.name)
    if declared.choices and value not in declared.choices:
        what = f"`{declared.name}` cannot be {quoted_argument(value)}."
        raise InvalidInput(what, f"Use one of {', '.join(declared.choices)}.")
    return value


def quoted_argument(value: object) -> str:
    """Return the beginning of an argument in quotes, without credentials."""
    text = mask_name(str(value))
    return repr(text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…")


def _name_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "a number"
    if isinstance(value, list | tuple):
        return "a list"
    match = next((known for known in TYPES.values() if known.accepts(value)), None)
    return match.words if match else type(value).__name__
