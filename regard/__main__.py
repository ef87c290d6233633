"""`python -m regard` and the `regard` command: run the command line, turn mistakes into one line and an exit code."""

import sys

from regard.cli import main

if __name__ == "__main__":
    sys.exit(main())
