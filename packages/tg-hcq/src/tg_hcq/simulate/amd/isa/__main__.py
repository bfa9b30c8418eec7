"""Print the machine code of code objects: ``python -m tg_hcq.simulate.amd.isa FILE.o``."""

from __future__ import annotations

import sys
from pathlib import Path

from tg_runtime.host.elf import ELFError

from .listing import listing


def main(arguments: list[str]) -> int:
    """Prints the listing of each file; the exit status tells whether all of them are code objects."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m tg_hcq.simulate.amd.isa FILE.o ...", file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    status = 0
    for path in arguments:
        try:
            print(f"{path}:")
            for line in listing(Path(path).read_bytes()):
                print(line)
        except (OSError, ELFError, ValueError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
