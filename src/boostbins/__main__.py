"""``boostbins`` and ``python -m boostbins``: the command line, which Ctrl-C ends without a word of Python's."""

import sys


def main() -> int:
    """Run a command, and return how it ended."""
    try:
        from boostbins.cli import main as run  # within reach of Ctrl-C: it loads all the rest

        return run()
    except KeyboardInterrupt:
        print("boostbins: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
