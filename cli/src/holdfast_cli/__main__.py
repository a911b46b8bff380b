"""`holdfast`: the command line, and the hooks, which load nothing of it."""

import atexit
import gc
import os
import sys


def main() -> None:
    """Run the command line, or answer the event of a coding agent: `holdfast hook EVENT`."""
    # There is little to collect in what is loaded, and no large matrix that is worth many threads.
    gc.disable()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if sys.argv[1:2] == ["hook"]:
        from holdfast_cli.hooks import entry

        entry.main(sys.argv[2:])
    from holdfast_cli.commands import main as command_line

    gc.enable()
    # Nor at the end of the process.
    atexit.register(gc.freeze)
    command_line()


if __name__ == "__main__":
    main()
