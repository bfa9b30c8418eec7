"""A physical device: what it is, and what it can do."""

from __future__ import annotations

import os

from tg_codegen import Target

from ...errors import DeviceError
from . import api
from .objc import ObjC, Version


class Context:
    """An ``MTLDevice``.

    Args:
      objc: the runtime.
      device: the object.

    Attributes:
      handle: the object.
      name: what Metal calls it.
      bfloat: whether its kernels can compute with bfloat16.
      simdgroup: whether its kernels can multiply matrices of a SIMD-group.
      unified: whether its memory is the host's.
      icb_resident: whether a kernel of an indirect command buffer is found by the device with no other use of it.
    """

    def __init__(self, objc: ObjC, device: int) -> None:
        self.objc, self.handle = objc, device
        self._process = os.getpid()
        with objc.pool():
            self.name = objc.text(objc.send(device, "name"))
            process = objc.send(objc.cls("NSProcessInfo"), "processInfo")
            recent = objc.send(process, "isOperatingSystemAtLeastVersion:", Version(*api.BFLOAT_SYSTEM))
        self.bfloat = bool(recent) and self.supports(api.APPLE6)
        self.simdgroup = self.supports(api.APPLE7)
        self.unified = bool(objc.send(device, "hasUnifiedMemory"))
        # Other programs report that M1 and M2 do not.
        self.icb_resident = self.supports(api.APPLE9) or not self.supports(api.APPLE7)

    def supports(self, family: int) -> bool:
        """Whether the device belongs to a family (``MTLGPUFamily``)."""
        return bool(self.objc.send(self.handle, "supportsFamily:", family))

    @property
    def memory_bytes(self) -> int:
        """Memory that can be used without loss of speed."""
        return int(self.objc.send(self.handle, "recommendedMaxWorkingSetSize"))

    @property
    def largest_bytes(self) -> int:
        """The largest buffer."""
        return int(self.objc.send(self.handle, "maxBufferLength"))

    def target(self) -> Target:
        """The device as the code generator sees it."""
        return Target(
            kind="gpu",
            vector_bytes=16,
            registers=128,
            shared_bytes=int(self.objc.send(self.handle, "maxThreadgroupMemoryLength")),
            # A kernel declares the size of its groups, and the compiler makes them fit.
            local_max=1024,
            global_max=(2**31 - 1, 2**31 - 1, 2**31 - 1),
            max_params=31,
        )

    def enter(self) -> None:
        """Does nothing in the process that opened the device.

        Raises:
          DeviceError: if the process was forked since.
        """
        if os.getpid() != self._process:
            raise DeviceError(
                f"Metal: {self.name} was opened before this process was forked, and is lost in the child; "
                "start processes by spawning"
            )

    @property
    def mine(self) -> bool:
        """Whether this process opened the device, and its objects may be given back."""
        return os.getpid() == self._process

    def __repr__(self) -> str:
        return f"<Context {self.name}>"
