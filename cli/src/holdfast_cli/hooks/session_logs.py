"""Session logs by the projects that they belong to, for an import of what was said before."""

import os

from holdfast_cli.formats import gemini
from holdfast_cli.formats.files import File, object_in
from holdfast_cli.formats.import_items import ImportedMessage
from holdfast_cli.formats.json_values import dict_of, text_of
from holdfast_cli.formats.sources import SourceFile
from holdfast_cli.formats.zip_files import READ_ERRORS
from holdfast_cli.hooks.project import project_of

_LINES, _LINE = 50, 1 << 20  # of a log: those that may name its folder, and the bytes of one
_AGENTS = ("Claude Code", "Codex", "Gemini CLI")


def project_of_log(source: SourceFile) -> str:
    """Return the project of the first folder that a session log names, as hooks name it; "" for none."""
    if source.format.name not in _AGENTS:
        return ""
    try:
        folder = _folder(source.file) if source.format.is_line else _folder_of_chat(source)
    except READ_ERRORS:
        # Whoever reads it reports that.
        return ""
    return project_of(folder).name if os.path.isabs(folder) else ""  # noqa: PTH117 - raises for no path


def _folder_of_chat(source: SourceFile) -> str:
    first = next((item for item in source.read() if isinstance(item, ImportedMessage)), None)
    return first.chat.folder if first else ""


def _folder(log: File) -> str:
    """Return the folder that a session was started in, "" if its first lines name none."""
    with log.open() as stream:
        for _ in range(_LINES):
            line = dict_of(object_in(stream.readline(_LINE)))
            # That of Gemini CLI stands beside its chats.
            beside = gemini.folder_of(log, line) if gemini.is_chat(line) else ""
            own = text_of(line.get("cwd")) or text_of(dict_of(line.get("payload")).get("cwd"))
            if folder := beside or own:
                return folder
    return ""
