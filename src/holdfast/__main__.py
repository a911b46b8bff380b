"""`python -m holdfast`: the command line, where it is installed."""

import sys

from holdfast.errors import MissingExtra

if __name__ == "__main__":
    try:
        from holdfast_cli.__main__ import main
    except ModuleNotFoundError as error:
        if error.name != "holdfast_cli":
            raise
        sys.exit(f"Error: {MissingExtra.of('cli', ' ./cli')}")
    main()
