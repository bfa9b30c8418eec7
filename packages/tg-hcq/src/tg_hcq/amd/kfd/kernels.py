"""Kernels: which version of Linux a card's architecture wants."""

from __future__ import annotations

from typing import Final, NamedTuple

from ...headers.amd import linux

Version = tuple[int, int]

OLDEST_LINUX: Final[Version] = (6, 1)
"""The kernel that brought the oldest KFD that the driver uses."""


class Known(NamedTuple):
    """Between which kernels an architecture came.

    Attributes:
      absent: the newest that was seen without it; None if all have it.
      present: the oldest that was seen with it.
    """

    absent: Version | None
    present: Version


def known(number: int) -> Known:
    """Between which kernels the architecture came that KFD numbers so.

    Example:
      >>> known(100300)
      Known(absent=None, present=(6, 1))
    """
    graphics, compute = linux.GRAPHICS[number], linux.COMPUTE[number]
    present = min(version for version in linux.COMPUTE_SEEN if version >= max(graphics, compute))
    without = [version for version in linux.GRAPHICS_SEEN if version < graphics]
    without += [version for version in linux.COMPUTE_SEEN if version < compute]
    return Known(max(without, default=None), present)


def text_of(version: Version) -> str:
    """A version as it is written."""
    return ".".join(map(str, version))


def too_old(release: Version, names: dict[str, int]) -> str | None:
    """Why a kernel may list no card of these architectures, each with KFD's number; None if it has all of them."""
    wanted: dict[Known, list[str]] = {}
    for name, number in names.items():
        span = known(number)
        if release < span.present:
            wanted.setdefault(span, []).append(name)
    if not wanted:
        return None
    rows = []
    for span, found in sorted(wanted.items(), key=lambda row: (row[0].present, row[0].absent or (0, 0))):
        absent = f", not yet in {text_of(span.absent)}" if span.absent else ""
        rows.append(f"{', '.join(found)} in Linux {text_of(span.present)}{absent}")
    return f"this is Linux {text_of(release)}, which may be too old: KFD was seen with {'; '.join(rows)}"
