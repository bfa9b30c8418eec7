"""Probes of the machine model for GPUs: what planners weigh, as the times of kernels that differ in it alone.

    python -m bench.gpu DEVICE [PROBE …] [--side N]

Each kernel's actions are stated, so that what planners propose has no part in what is measured. The numbers of the
model, with their sources, are in ``docs/machine-model.md``; those of the CPU have :mod:`bench.hardware`.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from statistics import linear_regression

import numpy as np

from tg_codegen import ActionError, EmitError, compile_ast
from tg_codegen.nest.spec import Kind
from tg_codegen.plan.actions import Action, Mark, Share, Split
from tg_dtype import DType, dtypes
from tg_lazy import LazyOp
from tg_runtime import Device
from tinytg import Tensor

from .hardware import Measured
from .search import filled, kernels, runner

SIDE = 1024
"""Rows, columns and depth of a product."""
TURNS = 5
"""Runs of a kernel, of which the fastest counts."""
GROUP_SIDE = 16
"""Work-items of a group along a side."""
ITEM_TILES = tuple(product((1, 2, 4, 8), repeat=2))
"""Rows and columns of a work-item's tile."""
WARP_TILES = tuple(product((1, 2), (1, 2), (1, 2, 4), (1, 2, 4)))
"""Warps of a group down and across, and matrix instructions of each down and across."""
WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Work-items that a reduction is divided among."""


class Probes:
    """The probes, by name.

    Args:
      device: whose kernels are timed.
      side: rows, columns and depth of the products; 1024 keeps a large GPU busy.
    """

    def __init__(self, device: str, side: int = SIDE) -> None:
        self.device, self.side = Device[device], side
        renderer = self.device.renderer
        if renderer is None or not renderer.target.local_max or not renderer.target.shared_bytes:
            raise ValueError(f"{device} has no work-groups with shared memory: these are probes of GPUs")
        self.renderer, self.target = renderer, renderer.target
        self.gpu, self.items = renderer.target.gpu, min(renderer.target.local_max, renderer.target.gpu.group_items)

    def kernel(self, make: Callable[..., Tensor], *shapes: tuple[int, ...], dtype: DType = dtypes.float32) -> LazyOp:
        """The kernel of what is made of tensors in memory."""
        name = self.device.device
        return kernels(make(*(Tensor.empty(*shape, dtype=dtype, device=name).realize() for shape in shapes)))[0]

    def seconds(self, ast: LazyOp, *actions: Action) -> float:
        """The fewest seconds of a kernel with these actions; endless where they do not fit it."""
        try:
            spec = compile_ast(ast, self.renderer, actions=actions)
        except (ActionError, EmitError):
            return math.inf
        run = runner(self.device, spec, filled(self.device, ast))
        return min(run() for _ in range(TURNS))

    def tile(self, ast: LazyOp, each: int, wide: int) -> float:
        """Seconds of a product from shared memory whose items have tiles of so many rows and columns."""
        vector = min(wide, 4)
        return self.seconds(
            ast, *cut("i1", (vector, Kind.VECTOR), (wide // vector, Kind.UPCAST), (GROUP_SIDE, Kind.LOCAL)),
            *cut("i0", (each, Kind.UPCAST), (self.items // GROUP_SIDE, Kind.LOCAL)), *cut("r0", (16, Kind.REDUCE)),
            Share(0, "r0"), Share(1, "r0"), Mark("i0", Kind.GLOBAL), Mark("i1", Kind.GLOBAL))  # fmt: skip

    def tiles(self) -> Iterator[Measured]:
        """A product whose items have tiles of 1 by 1 to 8 by 8: what a read takes beside a multiply-add."""
        ast = self.kernel(Tensor.matmul, (self.side, self.side), (self.side, self.side))
        took = {tile: self.tile(ast, *tile) for tile in ITEM_TILES}
        few = [(r, c) for r, c in ITEM_TILES if r * c <= self.target.registers // 4]
        (read,) = weights([((1 / r + 1 / c,), took[r, c]) for r, c in few])
        yield Measured("tiles: reads", read, "multiply-adds", self.gpu.item_read)
        columns = min(took, key=took.__getitem__)[1]
        yield Measured("tiles: columns", columns, "columns", self.gpu.item_columns)

    def warps(self) -> Iterator[Measured]:
        """The same with matrix instructions; nothing where there are none of float16."""
        found = next((m for m in self.target.matrices if m.a is dtypes.float16 and m.threads == self.target.warp), None)
        if found is None:
            return
        m, n, k = found.shape
        ast = self.kernel(Tensor.matmul, (self.side, self.side), (self.side, self.side), dtype=dtypes.float16)
        took = {
            (r, c, each, wide): self.seconds(
                ast, *cut("i1", (n, Kind.FRAGMENT_COLUMNS), (wide, Kind.UPCAST), (c, Kind.LOCAL)),
                *cut("i0", (m, Kind.FRAGMENT_ROWS), (each, Kind.UPCAST), (r, Kind.LOCAL)),
                *cut("r0", (k, Kind.CONTRACT), (2, Kind.REDUCE)), Share(0, "r0"), Share(1, "r0"),
                Mark("i0", Kind.GLOBAL), Mark("i1", Kind.GLOBAL))
            for r, c, each, wide in WARP_TILES
        }  # fmt: skip

        def reads(r: int, c: int, each: int, wide: int) -> tuple[float, float]:
            own = 1 / (each * m) + 1 / (wide * n)
            return own, 1 / (r * each * m) + 1 / (c * wide * n)

        warp, group = weights([(reads(*tile), seconds) for tile, seconds in took.items()])
        yield Measured("warps: reads", warp, "multiply-adds", self.gpu.warp_read)
        yield Measured("warps: reads of the group", group, "multiply-adds", self.gpu.group_read)
        _, _, each, wide = min(took, key=took.__getitem__)
        yield Measured("warps: results", each * wide, "results", self.gpu.warp_results)

    def far(self) -> Iterator[Measured]:
        """Copies of a transposed matrix whose writes are of neighbours, and whose reads are, beside a plain copy."""
        shape = (2 * self.side, 2 * self.side)

        def along(ast: LazyOp, near: str, other: str) -> float:
            return self.seconds(ast, *cut(near, (self.items, Kind.LOCAL)), Mark(other, Kind.GLOBAL),
                                Mark(near, Kind.GLOBAL))  # fmt: skip

        plain = self.seconds(self.kernel(lambda x: x + 1, shape), *cut("i0", (self.items, Kind.LOCAL)),
                             Mark("i0", Kind.GLOBAL))  # fmt: skip
        crossed = self.kernel(lambda x: x.transpose(0, 1) + 1, shape)
        reads, writes = along(crossed, "i1", "i0") - plain, along(crossed, "i0", "i1") - plain
        yield Measured("far", writes / reads if min(reads, writes) > 0 else math.nan, "loads", self.gpu.far_store)

    def sums(self) -> Iterator[Measured]:
        """Sums along columns: from how many on one item each is as fast as a part of a group each."""
        results, depth = 1 << 10, self.side // 4
        while results < 1 << 16:
            ast = self.kernel(lambda x: x.sum(0), (depth, results))
            across = (*cut("i0", (self.target.warp, Kind.LOCAL)), Mark("i0", Kind.GLOBAL))
            lone = self.seconds(ast, *across)
            if lone <= self.seconds(ast, *cut("r0", (8, Kind.GROUP)), *across):
                break
            results *= 2
        yield Measured("sums", results, "results", self.gpu.lone_results)

    def terms(self) -> Iterator[Measured]:
        """Sums along rows, divided among 1 to 256 items: how many terms each has where that is fastest."""
        for depth in (self.side // 4, self.side, 4 * self.side):
            ast = self.kernel(lambda x: x.sum(1), (64, depth))
            took = {width: self.seconds(ast, *cut("r0", (width, Kind.GROUP)), Mark("i0", Kind.GLOBAL))
                    for width in WIDTHS if width <= min(self.items, depth)}  # fmt: skip
            best = min(took, key=took.__getitem__)
            yield Measured(f"terms: of {depth}", depth / best, "terms", self.gpu.item_terms)

    def idle(self) -> Iterator[Measured]:
        """Products in 1, 2, 4 … groups of one size: the power of the idle share by which a result takes longer."""
        each, idle, took = 4 * GROUP_SIDE, list[float](), list[float]()
        counts = [1 << n for n in range(self.gpu.groups.bit_length()) if 1 << n <= self.gpu.groups]
        for groups in counts:
            ast = self.kernel(Tensor.matmul, (groups * self.items // GROUP_SIDE * 4, self.side), (self.side, each))
            idle.append(math.log(self.gpu.groups / groups))
            took.append(math.log(self.tile(ast, 4, 4) / groups))
        yield Measured("idle", linear_regression(idle, took).slope, "power", self.gpu.idle_loss)


def cut(axis: str, *parts: tuple[int, Kind]) -> tuple[Action, ...]:
    """Splits a loop again and again, leaving out parts of one iteration."""
    return tuple(Split(axis, factor, kind) for factor, kind in parts if factor > 1)


def weights(points: Sequence[tuple[tuple[float, ...], float]]) -> tuple[float, ...]:
    """What each of several things takes, where one multiply-add takes 1, by least squares of relative errors.

    Args:
      points: how often each is done for a multiply-add, and the seconds; endless ones are left out.

    Raises:
      ValueError: if fewer are left than there are unknowns.

    >>> weights([((x,), 3 * (1 + 2 * x)) for x in (0.25, 0.5, 1.0, 2.0)])
    (2.0,)
    """
    found = [(often, seconds) for often, seconds in points if math.isfinite(seconds)]
    unknowns = 1 + len(points[0][0])
    if len(found) < unknowns:
        raise ValueError(f"{len(found)} of {len(points)} kernels can be rendered: too few for {unknowns} unknowns")
    rows = np.array([(1.0, *often) for often, _ in found]) / np.array([[seconds] for _, seconds in found])
    solved = np.linalg.lstsq(rows, np.ones(len(found)), rcond=None)[0]
    return tuple(round(float(weight / solved[0]), 6) for weight in solved[1:])


PROBES: dict[str, Callable[[Probes], Iterator[Measured]]] = {
    name: getattr(Probes, name) for name in ("tiles", "warps", "far", "sums", "terms", "idle")
}


def main(argv: Sequence[str] | None = None) -> int:
    """Prints what the probes find, beside the model."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description="Probes of the machine model for GPUs.")
    parser.add_argument("device", help="CUDA, for one")
    parser.add_argument("probe", nargs="*", help=f"which; all by default: {', '.join(PROBES)}")
    parser.add_argument("--side", type=int, default=SIDE, help="rows, columns and depth of products")
    args = parser.parse_intermixed_args(argv)
    if unknown := [name for name in args.probe if name not in PROBES]:
        parser.error(f"no probe is called {unknown[0]!r}; there are {', '.join(PROBES)}")
    try:
        probes = Probes(args.device, args.side)
    except (ValueError, RuntimeError) as problem:
        parser.error(str(problem))
    for name in args.probe or PROBES:
        for found in PROBES[name](probes):
            print(f"{found.probe:28s} {found.value:10.2f} {found.unit}   model: {found.model:g}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
