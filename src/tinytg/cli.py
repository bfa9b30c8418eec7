"""The command ``tinytg``: its version, and the devices of this machine."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version

from tg_runtime import Device


def _devices() -> list[str]:
    rows = [("device", "state", "offered by")]
    for row in Device.table():
        rows.append((row.name, row.problem or "available", row.source))
        for name, problem in row.renderers.items():
            rows.append((f"  {row.name}:{name}", problem or "available", ""))
    widths = [max(len(row[column].splitlines()[0]) for row in rows) for column in (0, 1)]
    return [
        f"{name:<{widths[0]}}  {state.splitlines()[0]:<{widths[1]}}  {source}".rstrip() for name, state, source in rows
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: words after the command's name; those of the process when None.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(prog="tinytg", description="A tensor compiler.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('tinytg')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("devices", help="list the devices, and why each that is not available is not; opens none")
    parser.parse_args(arguments)
    print("\n".join(_devices()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
