"""`python -m paper`."""

import sys

if __name__ == "__main__":  # its worker processes import this too
    try:
        from paper.cli import main

        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
