"""Images: texels of four channels, read and written by kernels."""

from __future__ import annotations

from tg_dtype import ConstType, ImageDType, dtypes, truncate
from tg_lazy import LazyBuffer, LazyOp, Ops, Storage, ast
from tg_shape import ShapeTracker

from ..execution.engine import realize
from ..execution.item import ExecItem
from ..kernels.programs import get_runner
from ..memory.buffer import Buffer
from .base import Group
from .kernels import buffer_with, pack, unpack


class Images(Group):
    """Kernels that read and write images."""

    group = "images"

    def image(self, dtype: ImageDType, values: list[ConstType] | None = None) -> Buffer:
        """An image, with these values in its channels."""
        made = Buffer(self.device, dtype.size, dtype).allocate()
        return made if values is None else made.copyin(pack(values, dtype.base))

    def images_there(self) -> None:
        """Ends the test on devices without images."""
        renderer = self.opened.renderer
        self.need(renderer is not None and renderer.images, "images")

    def channels(self, dtype: ImageDType) -> list[ConstType]:
        """Values that the channels hold exactly."""
        return [truncate((i * 7 % 61 - 30) / 4, dtype.base) for i in range(dtype.size)]

    def kinds(self) -> list[ImageDType]:
        """Images of odd sizes."""
        return [dtypes.imagef((3, 5, 4)), dtypes.imageh((3, 5, 4)), dtypes.imagef((1, 1, 4)), dtypes.imageh((17, 2, 4))]

    def run_on(self, sink: LazyOp, *buffers: Buffer) -> None:
        """Runs a kernel."""
        ast.verify(sink)
        ExecItem(get_runner(self.opened, sink), list(buffers)).run(wait=True)

    def test_image_copies(self) -> None:
        """What goes into an image comes out, also by way of another image and of a buffer of the device."""
        self.images_there()
        for dtype in self.kinds():
            values = self.channels(dtype)
            image = self.image(dtype, values)
            self.check(f"copy of {dtype.name}", unpack(memoryview(image.tobytes()), dtype.base), values)
            other, plain = self.image(dtype), Buffer(self.device, dtype.size, dtype.base).allocate()
            allocator = image.allocator
            if allocator.transfer(other.opaque, image.opaque, image.nbytes, allocator):
                self.check(f"{dtype.name} to an image", unpack(memoryview(other.tobytes()), dtype.base), values)
            if allocator.transfer(plain.opaque, image.opaque, image.nbytes, allocator):
                self.check(f"{dtype.name} to a buffer", unpack(memoryview(plain.tobytes()), dtype.base), values)
                assert allocator.transfer(other.opaque, plain.opaque, image.nbytes, allocator)
                self.check(f"a buffer to {dtype.name}", unpack(memoryview(other.tobytes()), dtype.base), values)

    def test_reading_images(self) -> None:
        """Single channels in any order, through pads and flips, and sums of them."""
        self.images_there()
        for dtype in self.kinds():
            values = self.channels(dtype)
            image, size = self.image(dtype, values), dtype.size
            whole = ShapeTracker.from_shape((size,))
            x = ast.load(1, dtypes.float32, whole)
            ways: list[tuple[LazyOp, list[ConstType]]] = [
                (ast.load(1, dtypes.float32, whole.flip((0,))), values[::-1]),
                (ast.load(1, dtypes.float32, whole.pad(((3, 2),))), [0.0] * 3 + values + [0.0] * 2),
                (ast.reduce(x, Ops.ADD, (0,)), [sum(values)]),
            ]
            for value, want in ways:
                out = Buffer(self.device, len(want), dtypes.float32).allocate()
                arguments = (ast.BufferArg(dtypes.float32, len(want)), ast.BufferArg(dtype, size))
                store = ast.store(0, ShapeTracker.from_shape(value.shape), value)
                self.run_on(ast.sink((store,), arguments), out, image)
                self.check(f"{value!r} of {dtype.name}", unpack(out.as_buffer(), dtypes.float32), want)

    def test_writing_images(self) -> None:
        """Texels are written whole: from a buffer, from another image, and from a computed row."""
        self.images_there()
        for dtype in self.kinds():
            values = self.channels(dtype)
            height, width, _ = dtype.shape
            st = ShapeTracker.from_shape((height, width * 4))
            x = ast.load(1, dtypes.float32, st)
            doubled = ast.sink(
                (ast.store(0, st, ast.alu(Ops.ADD, x, x)),),
                (ast.BufferArg(dtype, dtype.size), ast.BufferArg(dtypes.float32, dtype.size)),
            )
            image = self.image(dtype)
            self.run_on(doubled, image, buffer_with(self.device, values, dtypes.float32))
            twice: list[ConstType] = [2 * v for v in values]
            self.check(f"writing {dtype.name}", unpack(memoryview(image.tobytes()), dtype.base), twice)
            argument = ast.BufferArg(dtype, dtype.size)
            flip = ast.sink((ast.store(0, st, ast.load(1, dtypes.float32, st.flip((0,)))),), (argument, argument))
            other = self.image(dtype)
            self.run_on(flip, other, image)
            rows = [twice[i * width * 4 : (i + 1) * width * 4] for i in range(height)]
            want = [v for row in reversed(rows) for v in row]
            self.check(f"{dtype.name} to {dtype.name}", unpack(memoryview(other.tobytes()), dtype.base), want)

    def test_images_in_graphs(self) -> None:
        """A LazyBuffer over an image is read as float32, and what is assigned to it is written to the image."""
        self.images_there()
        for dtype in self.kinds():
            values = self.channels(dtype)
            height, width, _ = dtype.shape
            shape = (height, width, 4)
            source = LazyBuffer.from_storage(Storage(self.device, dtype.size, dtype, self.image(dtype, values)), shape)
            into = LazyBuffer.from_storage(Storage(self.device, dtype.size, dtype, self.image(dtype)), shape)
            half = LazyBuffer.const(0.5, dtypes.float32, shape, self.device)
            written = into.assign(source.alu(Ops.MUL, half))
            total = written.alu(Ops.ADD, source).reduce(Ops.ADD, (0, 1, 2))
            there = written.copy_to("NUMPY")
            realize([written, total, there])
            halves = [truncate(v / 2, dtype.base) for v in values]
            self.check(f"sum over {dtype.name}", self.read(total), [sum(values) + sum(halves)])
            self.check(f"copy of {dtype.name}", self.read(there), halves)

