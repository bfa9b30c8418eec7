"""The command ``tinytg``: its version, the devices of this machine, the cache on disk, and a conversation."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from tg_runtime import DEV, Context, Device, DeviceError, DeviceFacts, parse_dev
from tg_runtime.cache import content as cachecontent
from tg_runtime.cache import diskcache
from tg_runtime.cache.folder import unusable
from tg_runtime.host.late_interrupts import interrupts_after_finalisers
from tg_runtime.telemetry.counters import human

from . import chat

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


def _unreadable() -> str:
    """What is wrong with the setting ``DEV``; nothing if it can be read."""
    try:
        _ = Device.DEFAULT
    except (DeviceError, ValueError) as error:
        text = _first_line(str(error))
        return text if text.startswith("DEV=") else f"DEV={DEV.value!r}: {text}"
    return ""


def _all() -> tuple[list[str], bool]:
    """Every device that is offered, nothing being opened; and whether those that ``DEV`` names are available."""
    rows: list[Sequence[str]] = [_HEAD]
    notes: list[str] = []
    complaints: list[str] = []
    named = {entry.device or Device.DEFAULT for entry in parse_dev(DEV.value)}
    for row in Device.table():
        state = _first_line(row.problem) if row.problem else "available"
        if row.problem and row.name in named:
            complaints.append(f"DEV={DEV.value!r}: {row.name}: {state}")
            state = "not as DEV asks"
        rows.append(_cells(row.name, row.facts, row.renderers, state, ", ".join(Device.offered_by(row.name))))
        if row.problem is None:
            notes += _reasons(row.name, row.renderers) + _reasons(row.name, row.facts.interfaces)
    return [*complaints, *_table(rows), *notes], not complaints


def _chosen(names: Sequence[str]) -> tuple[list[str], bool]:
    """The devices of these names, opened; and whether all of them could be."""
    rows: list[Sequence[str]] = [_HEAD]
    notes: list[str] = []
    good = True
    for name in names:
        try:
            device = Device[name]
        except (DeviceError, ValueError) as error:
            good = False
            rows.append(_cells(name, DeviceFacts(), {}, _first_line(str(error)), ""))
            notes += str(error).splitlines()[1:]
        else:
            source = ", ".join(Device.offered_by(name))
            rows.append(_cells(device.device, device.opened_facts(), device.renderers(), "open", source))
    return _table(rows) + notes, good


_KINDS = {
    "kernel": "generated kernels", "compile": "compiled kernels", "beam": "what BEAM found",
    "failed": "sources that a compiler rejected", "guest": "programs for other processors",
}  # fmt: skip


def _cache(action: str) -> list[str]:
    """What the cache on disk holds, or how much of it was deleted."""
    path = diskcache.cache_folder()
    if not path:
        return ["There is no cache: neither CACHEDIR nor the home is an absolute path."]
    if action == "clear":
        return [f"{path}: {cachecontent.clear()} entries deleted"]
    limit = f"at most {diskcache.CACHEMB.value} MiB, CACHEMB changes that"
    state = limit if diskcache.CCACHE.value else "off, as CCACHE is 0"
    problem = unusable()
    head = f"{path}: not used, {problem}" if problem else f"{path} ({state})"
    shares = cachecontent.shares()
    total = cachecontent.Share("all", sum(share.entries for share in shares), sum(share.nbytes for share in shares))
    rows: list[Sequence[str]] = [("kind", "entries", "bytes")]
    for share in (*shares, total):
        rows.append((_KINDS.get(share.table, share.table), str(share.entries), human(share.nbytes, "B", 1024)))
    return [head, *_table(rows)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
      arguments: words after the command's name; those of the process when None.

    Returns:
      The exit status: 1 if a device that is named, here or by ``DEV``, cannot be opened, or ``DEV`` be read; for
      ``chat`` see :func:`tinytg.chat.run`.
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
    cache = commands.add_parser(
        "cache",
        help="show or empty the cache on disk",
        description="Show where the cache on disk is and what it holds; or delete all of it.",
    )
    cache.add_argument("action", nargs="?", choices=["show", "clear"], default="show", help="show (default) or clear")
    chat.add(commands)
    options = parser.parse_args(arguments)
    with interrupts_after_finalisers():
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    if options.command == "chat":
        return chat.run(options)
    if options.command == "cache":
        print("\n".join(_cache(options.action)))
        return 0
    problem = _unreadable()
    with Context(**({"DEV": ""} if problem else {})):
        lines, good = _chosen(options.name) if options.name else _all()
    print("\n".join([problem, *lines] if problem else lines))
    return 0 if good and not problem else 1


if __name__ == "__main__":
    sys.exit(main())
