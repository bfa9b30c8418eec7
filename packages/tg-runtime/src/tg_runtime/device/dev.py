"""The setting ``DEV``: which device is the default, and how each device is to be opened.

Grammar (blanks around an entry are ignored)::

    DEV    = entry (";" entry)*
    entry  = [IFACE [":" IDX] "+"] DEVICE [":" RENDERER [":" ARCH]]
    IDX    = range ("," range)*
    range  = number ["-" number]

IFACE, DEVICE and RENDERER are names, case-insensitive; RENDERER may be empty (``AMD::gfx950``), and so may DEVICE
(``:LLVM`` means the device chosen automatically). ARCH is free text. The first entry names the default device; the
others say how theirs is opened when it is asked for.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tg_lazy import ContextVar

from ..errors import DevSyntaxError

DEV: ContextVar[str] = ContextVar("DEV", "")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?\Z")
_MAX_INDEX = 4096


class DevEntry(NamedTuple):
    """How one device is to be opened.

    Attributes:
      device: name in capitals; empty for the automatic choice.
      renderer: name of the renderer in capitals; empty for the device's own choice.
      arch: architecture and options as the device reads them; empty for what the machine has.
      iface: driver interface in capitals; empty for the first that works.
      indices: which physical devices are numbered 0, 1, …; empty for all.
    """

    device: str = ""
    renderer: str = ""
    arch: str = ""
    iface: str = ""
    indices: tuple[int, ...] = ()

    def __str__(self) -> str:
        indices = ",".join(map(str, self.indices))
        front = f"{self.iface}{':' if indices else ''}{indices}+" if self.iface or indices else ""
        back = f":{self.renderer}:{self.arch}" if self.arch else f":{self.renderer}" if self.renderer else ""
        return f"{front}{self.device}{back}"


def parse_dev(text: str) -> tuple[DevEntry, ...]:
    """The entries of a ``DEV`` setting.

    >>> parse_dev("cpu:llvm")
    (DevEntry(device='CPU', renderer='LLVM', arch='', iface='', indices=()),)
    >>> [str(entry) for entry in parse_dev("KFD:0-1+AMD::gfx950; CL")]
    ['KFD:0,1+AMD::gfx950', 'CL']

    Raises:
      DevSyntaxError: if the text breaks the grammar, or names a device twice; the message shows the entry.
    """
    if not text.strip():
        return ()
    entries = tuple(_entry(part.strip()) for part in text.split(";"))
    seen: set[str] = set()
    for entry in entries:
        if entry.device in seen:
            raise DevSyntaxError(f"DEV={text!r} names {entry.device or 'the automatic device'} twice")
        seen.add(entry.device)
    return entries


def _entry(part: str) -> DevEntry:
    if not part:
        raise DevSyntaxError("DEV has an empty entry; entries are separated by ';'")
    iface = ""
    indices: tuple[int, ...] = ()
    device, *rest = part.split(":", 1)
    # a '+' belongs to the interface only in front of the device: an ARCH may hold one too
    front, plus, back = part.partition("+")
    if plus and front.count(":") <= 1 and (":" not in front or _indices_like(front.split(":", 1)[1])):
        iface, colon, numbers = front.partition(":")
        indices = _indices(numbers, part) if colon else ()
        device, *rest = back.split(":", 1)
    renderer, _, arch = rest[0].partition(":") if rest else ("", "", "")
    device, renderer, iface = device.strip(), renderer.strip(), iface.strip()
    if not (device or renderer or arch):
        raise DevSyntaxError(f"DEV entry {part!r} names no device")
    for what, name in (("interface", iface), ("device", device), ("renderer", renderer)):
        if name and not _NAME.match(name):
            hint = "; a device's number goes before a '+', as in KFD:1+AMD" if name.isdigit() else ""
            raise DevSyntaxError(f"DEV entry {part!r}: {name!r} is not the name of a {what}{hint}")
    return DevEntry(device.upper(), renderer.upper(), arch.strip(), iface.upper(), indices)


def _indices_like(text: str) -> bool:
    return not any(c.isalpha() for c in text)


def _indices(text: str, part: str) -> tuple[int, ...]:
    found: dict[int, None] = {}
    for piece in text.split(","):
        match = _RANGE.match(piece.strip())
        if match is None:
            raise DevSyntaxError(f"DEV entry {part!r}: {piece!r} is not a device number; write 0,2 or 0-3")
        first = int(match[1])
        last = int(match[2]) if match[2] is not None else first
        if last < first or last >= _MAX_INDEX:
            raise DevSyntaxError(f"DEV entry {part!r}: the range {piece!r} is empty or beyond {_MAX_INDEX - 1}")
        found.update(dict.fromkeys(range(first, last + 1)))
    return tuple(found)
