"""What a device can hold of one kernel, checked before it is launched: drivers answer with a number at best."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import DeviceError

if TYPE_CHECKING:
    from tg_codegen import ProgramSpec, Renderer


def check_limits(spec: ProgramSpec, renderer: Renderer, device: str) -> None:
    """Raises unless the kernel fits the device (:func:`tg_codegen.machine.limits.broken_limits`).

    A kernel without UOps, from the disk for instance, was checked when it was made.

    Raises:
      DeviceError: if it has too many work-items or work-groups, or too much memory of its own; the message says how
        much there is.
    """
    from tg_codegen.machine.limits import broken_limits  # who only interprets never needs the code generator

    broken = broken_limits(spec, renderer)
    if broken:
        raise DeviceError(f"kernel {spec.name} on {device}: {'; '.join(broken)}")


MAX_THREADS = 65535
"""Threads that one launch on a CPU may ask for: a job of the worker pool counts its parts in 16 bits."""

Sizes = tuple[int, int, int]
ONE: Sizes = (1, 1, 1)


def runs_at_all(what: str, groups: Sizes, items: Sizes) -> bool:
    """Whether a launch has any work-groups; drivers take a negative size for a huge one.

    Args:
      what: begins the message: the device and the kernel.
      groups: work-groups along x, y, z.
      items: work-items of a group along x, y, z.

    Raises:
      DeviceError: if a size is negative, a group has no items, or there are not three sizes of each.
    """
    if len(groups) != 3 or len(items) != 3 or min(groups) < 0 or min(items) < 1:
        raise DeviceError(f"{what}: launch of {tuple(groups)} groups of {tuple(items)}, which is no size")
    return 0 not in groups


def threads_of(what: str, groups: Sizes, items: Sizes, most: int) -> int:
    """How many threads of a CPU a launch asks for; 0 if it does nothing.

    Raises:
      DeviceError: if it asks for more than ``most``, for groups along y or z, or for groups of several work-items.
    """
    if not runs_at_all(what, groups, items):
        return 0
    if tuple(groups[1:]) != (1, 1) or tuple(items) != ONE or groups[0] > most:
        raise DeviceError(
            f"{what}: launch of {tuple(groups)} groups of {tuple(items)}; "
            f"a CPU has {most} threads at most, along x alone"
        )
    return groups[0]
