"""Memory of a CUDA device shared with other libraries: addresses, and streams that wait for one another."""

from __future__ import annotations

from ...device.sharing import Sharing
from ...headers.cuda import api
from .context import Context
from .memory import CUDAMemory


class CUDASharing(Sharing):
    """How a device lends and borrows.

    The streams of others are those of the protocol: 1 is the legacy default stream, 2 that of the thread, -1 wants no
    order, and any greater number is a ``CUstream``. 1 and 2 are what the driver calls them as well.

    Args:
      context: of the device.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.place = 2, context.index
        self.stream = context.stream

    def address(self, opaque: CUDAMemory) -> int:
        """The address for the device."""
        return opaque.address

    def lend(self, opaque: CUDAMemory, stream: int | None) -> None:
        """The taker's stream waits for our kernels, and these for copies to the memory.

        Raises:
          BufferError: if there is no such stream.
        """
        theirs = api.STREAM_LEGACY if stream is None else stream
        if not isinstance(theirs, int) or isinstance(theirs, bool) or theirs < -1 or theirs == 0:
            raise BufferError(
                f"__dlpack__: {stream!r} is no stream of CUDA; 1 is the legacy default stream, 2 that of the thread, "
                "-1 none, and others are numbers of streams"
            )
        context = self.context
        context.enter()
        opaque.block.shared = True
        if theirs != -1:
            context.order.before_kernel((opaque.block,))
            self._follow(theirs, context.stream)

    def borrow(self, opaque: CUDAMemory, ordered: bool) -> None:
        """Our kernels, and copies after them, wait for the owner: if it did not see to it, for its default stream."""
        context = self.context
        context.enter()
        if not ordered:
            self._follow(context.stream, api.STREAM_LEGACY)
        context.order.after_kernel((opaque.block,))  # as if a kernel had used it, so that copies wait as well

    def _follow(self, later: int, earlier: int) -> None:
        context, driver = self.context, self.context.driver
        event = context.event()
        try:
            context.record(event, earlier)
            driver.check(driver.cuStreamWaitEvent(later, event, 0), "waiting for another library's stream")
        finally:
            driver.cuEventDestroy_v2(event)  # the driver keeps it while it is used
