"""The command that coding agents call, for the help; `holdfast.__main__` takes a shorter way."""

from typing import Annotated

from typer import Argument, Option

from holdfast.cli.options import Options, given
from holdfast.hooks import entry
from holdfast.hooks.hook_call import EVENTS


def hook(
    options: Options,
    *,
    event: Annotated[str, Argument(help=f"One of {', '.join(EVENTS)}.")],
    client: Annotated[str, Option(help="The client that calls: claude-code, codex, cursor or gemini.")],
    wait: Annotated[bool, Option("--wait", help="Return when all is done.")] = False,
) -> None:
    """Answer an event of a coding agent, which writes JSON to stdin. Clients call it, not people.

    For example: holdfast hook prompt --client claude-code
    """
    named = given(client=client, db=options.db or "", tenant=options.tenant, user=options.user, wait=wait)
    entry.main([event, *named])
