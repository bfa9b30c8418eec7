"""Memory: copies of every size, parts of buffers, and other devices."""

from __future__ import annotations

from tg_dtype import dtypes
from tg_lazy import Ops, ast
from tg_shape import ShapeTracker

from ..device.registry import Device
from ..execution.engine import realize
from ..execution.item import ExecItem
from ..kernels.programs import get_runner
from ..memory.buffer import Buffer
from .base import Group
from .kernels import buffer_with, kernel, pack, unpack


class Copies(Group):
    """Copies from and to the host, and through another device."""

    group = "copies"

    def test_copies(self) -> None:
        """What goes in comes out, for every odd size."""
        self.need(self.opened.executes, "memory")
        for size in (0, 1, 3, 64, 1027, 100_003):
            data = self.random.randbytes(size)
            buffer = Buffer(self.device, size, dtypes.uint8).allocate()
            buffer.copyin(memoryview(data))
            assert buffer.tobytes() == data
            assert bytes(buffer.as_buffer()) == data

    def test_copies_between_devices(self) -> None:
        """Data goes to another device and back through the graph."""
        self.need(self.opened.executes, "memory")
        values = [float(i) for i in range(33)]
        there = self.lazy(values, dtypes.float32, (33,)).copy_to("NUMPY")
        back = there.copy_to(self.device) if self.device != "NUMPY" else there
        doubled = back.alu(Ops.ADD, back)
        realize([doubled])
        self.check("copy there and back", self.read(doubled), [2 * v for v in values])


class SubBuffers(Group):
    """Parts of buffers."""

    group = "sub-buffers"

    def test_sub_buffers(self) -> None:
        """A view shares the memory of its base, and keeps it alive."""
        self.need(self.opened.executes, "memory")
        self.need(self.opened.allocator.supports_offset, "sub-buffers")
        base = Buffer(self.device, 4096, dtypes.uint8).allocate()
        base.copyin(memoryview(bytes(4096)))
        part = base.view(256, dtypes.float32, 1024)
        part.copyin(pack([float(i) for i in range(256)], dtypes.float32))
        whole = base.tobytes()
        assert unpack(memoryview(whole)[1024:2048], dtypes.float32) == [float(i) for i in range(256)]
        assert whole[:1024] == bytes(1024)
        assert whole[2048:] == bytes(2048)
        del base
        again = part.view(1, dtypes.float32, 4 * 17)
        assert unpack(again.copyout(memoryview(bytearray(4))), dtypes.float32) == [17.0]

    def test_kernels_on_sub_buffers(self) -> None:
        """A kernel reads and writes views of one buffer."""
        self.need(self.opened.allocator.supports_offset, "sub-buffers")
        base = buffer_with(self.device, [float(i) for i in range(2048)], dtypes.float32)
        source, target = base.view(64, dtypes.float32, 4096), base.view(64, dtypes.float32, 0)
        x = ast.load(1, dtypes.float32, ShapeTracker.from_shape((64,)))
        sink = kernel([(ast.alu(Ops.ADD, x, x), 64)], [(dtypes.float32, 64)])
        ExecItem(get_runner(Device[self.device], sink), [target, source]).run()
        out = unpack(base.copyout(memoryview(bytearray(base.nbytes))), dtypes.float32)
        self.check("kernel on views", out[:64], [2.0 * (1024 + i) for i in range(64)])
        self.check("kernel on views, the rest", out[64:], [float(i) for i in range(64, 2048)])
