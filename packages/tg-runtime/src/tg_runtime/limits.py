"""What a device's work-groups can hold, checked before a kernel is launched: drivers answer with a number at best."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tg_dtype import AddrSpace, PtrDType

from .errors import DeviceError

if TYPE_CHECKING:
    from tg_codegen import ProgramSpec, Target


def check_limits(spec: ProgramSpec, target: Target, device: str) -> None:
    """Does nothing if the kernel's work-groups fit the device.

    A kernel without UOps, from the disk for instance, was checked when it was made.

    Raises:
      DeviceError: they have too many work-items, or share too much memory; the message says how much there is.
    """
    items = prod(spec.local_size)
    if target.local_max and items > target.local_max:
        raise DeviceError(
            f"kernel {spec.name}: a work-group of {' x '.join(map(str, spec.local_size))} = {items} work-items; "
            f"{device} runs at most {target.local_max}"
        )
    if not target.shared_bytes:
        return
    wanted = sum(
        u.dtype.base.itemsize * u.arg[1]
        for u in spec.uops
        if isinstance(u.dtype, PtrDType) and u.dtype.space is AddrSpace.LOCAL and u.op.name == "SCRATCH"
    )
    if wanted > target.shared_bytes:
        raise DeviceError(
            f"kernel {spec.name}: its work-groups share {wanted} bytes of local memory; "
            f"{device} has {target.shared_bytes}"
        )
