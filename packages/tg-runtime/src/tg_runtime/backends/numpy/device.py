"""NUMPY: kernel ASTs executed op by op with numpy. Slow, simple, and the reference for the other devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tg_lazy import LazyOp
from tg_lazy.cost import LIMITS, Limits
from tg_shape import Variable

from ...device.allocator import Allocator, BufferOptions
from ...device.compiled import DeviceFacts, Interpreted
from ...device.dev import DevEntry
from ...memory.host import physical_memory

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class NumpyAllocator(Allocator["NDArray[np.uint8]"]):
    """Memory as numpy arrays of bytes."""

    supports_offset = True

    def _alloc(self, nbytes: int, options: BufferOptions) -> NDArray[np.uint8]:
        import numpy as np

        if options.external_ptr is not None:
            import ctypes

            outside = (ctypes.c_uint8 * nbytes).from_address(options.external_ptr)
            outside._options = options  # type: ignore[attr-defined]  # with the owner, as long as any view
            return np.frombuffer(memoryview(outside).cast("B"), np.uint8)
        try:
            return np.empty(nbytes, np.uint8)
        except (ValueError, MemoryError) as error:
            raise MemoryError(str(error)) from None

    def copyin(self, dest: NDArray[np.uint8], src: memoryview) -> None:
        """Copies host memory in."""
        dest[: src.nbytes].data[:] = src

    def copyout(self, dest: memoryview, src: NDArray[np.uint8]) -> None:
        """Copies to host memory."""
        dest[:] = src[: dest.nbytes].data

    def as_buffer(self, opaque: NDArray[np.uint8], nbytes: int) -> memoryview:
        """The array's own memory."""
        return opaque[:nbytes].data

    def offset(self, opaque: NDArray[np.uint8], nbytes: int, byte_offset: int) -> NDArray[np.uint8]:
        """A slice."""
        return opaque[byte_offset : byte_offset + nbytes]


class NumpyDevice(Interpreted):
    """The interpreted device."""

    architectures = False

    def __init__(self, device: str, entry: DevEntry) -> None:
        from .ops import fxn_for_op

        LIMITS["NUMPY"] = Limits().of_threads(1)
        super().__init__(device, NumpyAllocator(device), fxn_for_op)

    def interpret(self, ast: LazyOp) -> Callable[[Sequence[Any], Mapping[Variable, int]], None]:
        """A function that executes ``ast`` on arrays of bytes."""
        from .executor import Executor

        return Executor(ast, self.fxn_for_op)

    @classmethod
    def unavailable(cls, entry: DevEntry) -> str | None:
        """Needs numpy."""
        return None if find_spec("numpy") else "numpy is not installed; pip install 'tg-runtime[numpy]'"

    @classmethod
    def facts(cls, entry: DevEntry) -> DeviceFacts:
        """It has the memory of the machine."""
        return DeviceFacts("interpreted", physical_memory())
