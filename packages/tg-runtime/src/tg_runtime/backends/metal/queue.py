"""The command queue of a device: launches are recorded together, command buffers are committed and waited for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from ...host.locks import fork_safe_lock
from ...telemetry.profiler import DeviceClock
from . import api
from .context import Context

_RECORDED = 32  # launches of one command buffer
_SHOWN = 8  # of their names in a message


class Committed(NamedTuple):
    """A command buffer that the device has.

    Attributes:
      number: its place among all of the queue.
      handle: the object, retained.
      what: what it does, for messages.
      kept: objects that must live until it is done.
    """

    number: int
    handle: int
    what: list[str]
    kept: list[object]


class Queue:
    """The one queue of a device, in order.

    A command buffer is committed when the device has nothing else to do, when it is full, and when somebody waits.

    Args:
      context: the device.

    Attributes:
      handle: ``MTLCommandQueue``.
      clock: the device's clock, as far as profiles have told it.
    """

    def __init__(self, context: Context) -> None:
        self.context, self.objc = context, context.objc
        self.handle = self.objc.send(context.handle, "newCommandQueue")
        if not self.handle:
            raise api.MetalError(f"Metal: {context.name} gives no command queue")
        self.lock = fork_safe_lock()
        self.clock = DeviceClock()
        self._number = 1  # of the command buffer that is being recorded, or will be
        self._done = 0
        self._held = False  # only the holder may commit
        self._buffer = self._encoder = 0
        self._what: list[str] = []
        self._kept: list[object] = []
        self._flying: deque[Committed] = deque()

    @property
    def number(self) -> int:
        """The number of the command buffer into which the next launch goes."""
        return self._number

    def encoder(self) -> int:
        """The compute encoder that is open, a new one if none is. Call with the lock, inside a pool."""
        if not self._encoder:
            self.context.enter()
            self._begin()
            self._encoder = self._made("computeCommandEncoder")
        return self._encoder

    def _begin(self) -> None:
        if not self._buffer:
            found = self.objc.send(self.handle, "commandBuffer")
            if not found:
                raise api.MetalError(f"Metal: {self.context.name} gives no command buffer")
            self._buffer = self.objc.send(found, "retain")

    def _made(self, selector: str) -> int:
        found = self.objc.send(self._buffer, selector)
        if not found:
            raise api.MetalError(f"Metal: {self.context.name} gives no encoder")
        retained: int = self.objc.send(found, "retain")
        return retained

    def seal(self) -> None:
        """Ends the encoder that is open: what another encodes waits for what this one did."""
        if self._encoder:
            encoder, self._encoder = self._encoder, 0
            self.objc.send(encoder, "endEncoding")
            self.objc.send(encoder, "release")

    def recorded(self, what: str, kept: object = None) -> None:
        """Notes that a launch was recorded; commits if enough of them are, or if the device is idle."""
        self._what.append(what)
        if kept is not None:
            self._kept.append(kept)
        if not self._held and (len(self._what) >= _RECORDED or self._idle()):
            self.commit()

    def _idle(self) -> bool:
        if not self._flying:
            return True
        return bool(self.objc.send(self._flying[-1].handle, "status") >= api.STATUS_COMPLETED)

    def copy(self, dest: tuple[int, int], src: tuple[int, int], nbytes: int) -> None:
        """Records a copy between buffers of the device, each an object and a first byte."""
        with self.lock, self.objc.pool():
            self.context.enter()
            self.seal()
            self._begin()
            blit = self._made("blitCommandEncoder")
            selector = "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:"
            self.objc.send(blit, selector, *src, *dest, nbytes)
            self.objc.send(blit, "endEncoding")
            self.objc.send(blit, "release")
            self.recorded(f"copy {nbytes} B")

    def commit(self) -> int:
        """Gives what is recorded to the device; returns the number of the last command buffer that it has."""
        with self.lock:
            if self._buffer:
                self.seal()
                self._collect()
                self.objc.send(self._buffer, "commit")
                self._flying.append(Committed(self._number, self._buffer, self._what, self._kept))
                self._buffer, self._what, self._kept = 0, [], []
                self._number += 1
            return self._number - 1

    def alone(self, record: Callable[[], None]) -> int:
        """Commits what ``record`` records as a command buffer of its own, and returns it, retained once more."""
        with self.lock:
            self.commit()
            self._held = True
            try:
                record()
            finally:
                self._held = False
            retained: int = self.objc.send(self._buffer, "retain")
            self.commit()
            return retained

    def times(self, buffer: int) -> tuple[float, float]:
        """Waits for a command buffer that :meth:`alone` gave, and releases it; when it began and ended, in seconds."""
        self.objc.send(buffer, "waitUntilCompleted")
        with self.lock:
            try:
                self._collect()
                return self.objc.send(buffer, "GPUStartTime"), self.objc.send(buffer, "GPUEndTime")
            finally:
                self.objc.send(buffer, "release")

    def wait(self, number: int) -> None:
        """Waits until a command buffer and all before it are done.

        Raises:
          MetalError: if one of them failed; the message says what it did.
        """
        if number <= self._done:
            return
        self.context.enter()
        with self.lock:
            if number >= self._number:
                self.commit()
            last = next((flight for flight in reversed(self._flying) if flight.number <= number), None)
            if last is None:
                return
            handle = self.objc.send(last.handle, "retain")
        self.objc.send(handle, "waitUntilCompleted")
        with self.lock:
            self.objc.send(handle, "release")
            self._collect()

    def finish(self) -> None:
        """Waits until all that was recorded is done.

        Raises:
          MetalError: if some of it failed.
        """
        with self.lock:
            number = self.commit()
        self.wait(number)

    def _collect(self) -> None:
        """Releases the command buffers that are done."""
        failure = ""
        while self._flying:
            first = self._flying[0]
            status = self.objc.send(first.handle, "status")
            if status < api.STATUS_COMPLETED:
                break
            self._flying.popleft()
            self._done = first.number
            if status == api.STATUS_ERROR and not failure:
                failure = self._failure(first)
            self.objc.send(first.handle, "release")
        if failure:
            raise api.MetalError(failure)

    def _failure(self, flight: Committed) -> str:
        with self.objc.pool():
            error = self.objc.send(flight.handle, "error")
            reason = self.objc.reason(error) or "it does not say why"
            code = self.objc.send(error, "code") if error else 0
        names = list(dict.fromkeys(flight.what))
        shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        return f"Metal: {self.context.name}: {shown}: {reason} (code {code})"

    def __del__(self) -> None:
        if not getattr(self, "handle", 0) or not self.context.mine:
            return
        if self._encoder:
            self.objc.send(self._encoder, "endEncoding")
        for handle in (self._encoder, self._buffer, *(flight.handle for flight in self._flying), self.handle):
            self.objc.send(handle, "release")
