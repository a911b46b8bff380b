"""What agents are offered: the actions on a memory, their results, documents, and memory files."""

from holdfast.tools import guidance_on
from holdfast.tools.actions import Actions
from holdfast.tools.file_commands import FileCommandError
from holdfast.tools.files import Files
from holdfast.tools.json_schema import Parameter, checked
from holdfast.tools.permissions import Action
from holdfast.tools.read_actions import quoted
from holdfast.tools.render import of_record, of_summary
from holdfast.tools.results import ORIGIN, MemoryItem, as_json
from holdfast.tools.search_fetch import Documents
from holdfast.tools.tool import failure, tools_for
