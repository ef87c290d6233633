"""`python -m regard` and the `regard` command."""

import os
import sys

from regard import cli
from regard.allocator import settle_allocator


def main() -> int:
    settle_allocator(sys.argv[1:], os.environ)
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
