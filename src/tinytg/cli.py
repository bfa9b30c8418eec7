"""The command ``tinytg``: the version, and the devices of this machine."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status.

    >>> main(["--version"])
    tinytg ...
    0
    """
    parser = argparse.ArgumentParser(prog="tinytg", description=__doc__)
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    options = parser.parse_args(arguments)
    if options.version:
        from importlib.metadata import version

        print(f"tinytg {version('tinytg')}")
        return 0
    parser.print_help()
    return 2


if __name__ == "__main__":
    sys.exit(main())
