"""The command ``tinytg``: its version, and the devices of this machine."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from tg_runtime import Device, DeviceError, DeviceFacts
from tg_runtime.counters import human

_HEAD = ("device", "interface", "renderers", "arch", "memory", "offered by", "state")


def _first_line(text: str) -> str:
    return text.splitlines()[0] if text else ""


def _names(found: Mapping[str, str | None]) -> str:
    """Names in order; those that cannot be used in brackets."""
    return " ".join(f"({name})" if problem else name for name, problem in found.items()) or "-"


def _cells(name: str, facts: DeviceFacts, renderers: Mapping[str, str | None], state: str, source: str) -> list[str]:
    memory = "-" if facts.memory is None else human(facts.memory, "B", 1024)
    return [name, _names(facts.interfaces), _names(renderers), facts.arch or "-", memory, source or "-", state]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _reasons(name: str, found: Mapping[str, str | None]) -> list[str]:
    return [f"({name}:{key}: {_first_line(problem)})" for key, problem in found.items() if problem]


def _all() -> list[str]:
    """Every device that is offered; nothing is opened."""
    rows: list[Sequence[str]] = [_HEAD]
    notes: list[str] = []
    for row in Device.table():
        state = _first_line(row.problem) if row.problem else "available"
        rows.append(_cells(row.name, row.facts, row.renderers, state, row.source))
        if row.problem is None:
            notes += _reasons(row.name, row.renderers) + _reasons(row.name, row.facts.interfaces)
    return _table(rows) + notes


def _chosen(names: Sequence[str]) -> tuple[list[str], bool]:
    """The devices of these names, opened; and whether all of them could be."""
    rows: list[Sequence[str]] = [_HEAD]
    notes: list[str] = []
    good = True
    for name in names:
        try:
            device = Device[name]
        except DeviceError as error:
            good = False
            rows.append(_cells(name, DeviceFacts(), {}, _first_line(str(error)), ""))
            notes += str(error).splitlines()[1:]
        else:
            source = f"{type(device).__module__}:{type(device).__name__}"
            rows.append(_cells(device.device, device.opened_facts(), device.renderers(), "open", source))
    return _table(rows) + notes, good


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
    devices = commands.add_parser(
        "devices",
        help="list the devices, and why each that is not available is not",
        description="List every device that an installed package offers, and open none; or open those that are named.",
    )
    devices.add_argument("name", nargs="*", help="a device to open and describe, as CPU or CL:1")
    options = parser.parse_args(arguments)
    if options.name:
        lines, good = _chosen(options.name)
    else:
        lines, good = _all(), True
    print("\n".join(lines))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
