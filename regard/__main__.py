"""`python -m regard` and the `regard` command."""

import os
import sys

from regard.allocator import settle_allocator
from regard.cli.main import main as run


def main() -> int:
    settle_allocator(sys.argv[1:], os.environ)
    return run()


if __name__ == "__main__":
    sys.exit(main())
