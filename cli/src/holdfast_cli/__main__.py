"""`holdfast`: the command line, and the hooks, which load nothing of it."""

import sys


def main() -> None:
    """Run the command line, or answer the event of a coding agent: `holdfast hook EVENT`."""
    if sys.argv[1:2] == ["hook"]:
        from holdfast_cli.hooks import entry

        entry.main(sys.argv[2:])
    from holdfast_cli.commands import main as command_line

    command_line()


if __name__ == "__main__":
    main()
