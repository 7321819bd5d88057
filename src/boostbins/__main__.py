"""``python -m boostbins``: the command line."""

import sys

from boostbins.cli import main

sys.exit(main())
