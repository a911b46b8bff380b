"""What agents are offered: the actions on a memory, their results, documents, and memory files."""

from collections.abc import Mapping

from holdfast.tools import guidance_on
from holdfast.tools.actions import Actions
from holdfast.tools.files import Files
from holdfast.tools.json_schema import Parameter, checked
from holdfast.tools.permissions import Action
from holdfast.tools.read_actions import quoted
from holdfast.tools.render import of_record, of_summary
from holdfast.tools.results import ORIGIN, MemoryItem, as_json
from holdfast.tools.search_fetch import Documents
from holdfast.tools.tool import failure, tools_for
from holdfast.types import Record, Summary


def check_texts(
    arguments: Mapping[str, object], required: Mapping[str, bool], what: str
) -> dict[str, object]:
    """Return the arguments of a call that takes texts; `required` has its parameters.

    Raises:
        InvalidInput: one is unknown, missing or no text.

    """
    return checked(arguments, (Parameter(name, "string", "", must) for name, must in required.items()), what)


def as_item(source: Record | Summary) -> MemoryItem:
    """Return a record or a summary as agents read it."""
    return of_record(source) if isinstance(source, Record) else of_summary(source)
