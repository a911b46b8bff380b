"""The command that coding agents call, for the help; `holdfast.__main__` takes a shorter way."""

from holdfast_cli.commands.options import Options, args
from holdfast_cli.hooks import entry


def hook(options: Options, *, event: str, client: str, wait: bool = False) -> None:
    """Answer an event of a coding agent, which writes JSON to stdin. Clients call it, not people.

    For example: holdfast hook prompt --client claude-code
    """
    words = args(client=client, db=options.db or "", tenant=options.tenant, user=options.user, wait=wait)
    entry.main([event, *words])
