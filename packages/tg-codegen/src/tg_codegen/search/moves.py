"""Moves of a search: what may be tried next on a kernel, in the vocabulary of actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product, zip_longest

from tg_shape import sint

from ..machine.target import Target
from ..nest.interior import interior
from ..nest.kernel import Kernel
from ..nest.launch_shape import foreign
from ..nest.matrix_products import instruction_for
from ..nest.nest import Nest
from ..nest.spec import ITEMS, ONCE, Kind, NodeOp
from ..plan import row_blocks, trim_rows
from ..plan.actions import (
    Action,
    Convert,
    In,
    KernelAction,
    LoopAction,
    Mark,
    Outermost,
    Pack,
    Prefetch,
    PrefetchIndirect,
    Share,
    Split,
    SplitReduction,
    Stream,
    loads_of,
    reductions_of,
)
from ..plan.code_copies import RIM, Partition, Roll, idle_copies, partitionable
from ..plan.cpu.registers import TILE_ROWS
from ..plan.cut_dimension import CutDimension, cuts
from ..plan.pipeline_rows import DelayStores, JoinWalks
from ..plan.reuse_row_values import ReuseRowValues
from ..plan.row_blocks import RowBlocks
from ..plan.split_concat import SplitConcat
from ..plan.unsigned_products import UnsignedProducts, signed_product
from ..plan.widened_rows import WidenRows, byte_rows

PIECE = 256
"""Iterations of a piece of a long reduction, whose operands stay in a cache."""
SHARED_PIECE = 16
"""The same where the operands of a piece may be in shared memory."""
VECTORS_AT_ONCE = (2, 4, 8)
"""Vectors that one iteration processes, to try for all loops along a row."""
BLOCK_SIZES = (16, 64)
"""Rows of a block, or iterations of one of another loop, to begin a search with."""
AHEAD = (256, 1024, 4096)
"""Elements ahead of a load to try telling the cache of."""
DEEPEST = 4
"""Loops that a dimension is cut into at the most."""
RESULTS = (6, 32)
"""Results of a register tile, vectors of a CPU: fewer wait for one another, more than this no CPU has registers for."""
SMALL = 16
"""Iterations of a reduction that is tried wholly unrolled."""


def modelled_moves(kernel: Kernel, target: Target) -> Iterator[KernelAction]:
    """Actions that change which instructions a kernel has, and how many: a cost model without caches can judge them."""
    if kernel.untouched:
        yield from parting_moves(kernel, target)
    if target.threads > 1:
        yield from (Mark(axis.name, Kind.THREAD) for axis in kernel.shared)
    yield from trim_rows.proposed(kernel, target)
    for number, part in enumerate(kernel.every_part):
        for action in loop_moves(part, target):
            yield action if kernel.single else In(number, action)


def parting_moves(kernel: Kernel, target: Target) -> Iterator[KernelAction]:
    """Actions that change what the dimensions and the parts of a kernel are."""
    if kernel.as_stated:
        yield from cuts(kernel.whole)
    if kernel.single:
        yield SplitConcat()
    if target.keeps_rows:
        if kernel.single:
            yield ReuseRowValues()
        if kernel.scratch:
            planned = [action.rows for action in row_blocks.proposed(kernel, target)]
            yield from (RowBlocks(rows) for rows in dict.fromkeys((*planned, *BLOCK_SIZES)))


def loop_moves(nest: Nest, target: Target) -> Iterator[LoopAction]:
    """Actions that may be worth a try on the loops of a nest."""
    none, items = foreign(target), any(axis.kind in ITEMS for axis in nest.axes)
    if target.shared_bytes and items:
        yield from (Share(number, None) for number in range(len(loads_of(nest))))
    if signed_product(nest) is not None:
        yield UnsignedProducts()
    if byte_rows(nest) is not None:
        yield WidenRows()
    yield from (Roll(axis.name) for axis in idle_copies(nest) if axis.name not in nest.rolled)
    if not nest.partitions:
        padded = [axis for axis in partitionable(nest) if interior(nest, axis.root) is not None]
        yield from (Partition(axis.name, copies) for axis in padded for copies in (0, RIM))
    for axis in nest.axes:
        there = {a.kind for a in nest.of_root(axis.root)} & ONCE  # cutting it again is cutting it by the product
        if len(nest.of_root(axis.root)) >= DEEPEST:
            continue
        if axis.kind in (Kind.LOOP, Kind.THREAD, Kind.GLOBAL):
            lanes = (Kind.VECTOR, Kind.ROWS) if any(a.kind is Kind.LANES for a in nest.axes) else (Kind.VECTOR,)
            kinds = tuple(kind for kind in (Kind.UPCAST, *lanes, Kind.LOCAL) if kind not in there | none)
            yield from (Split(axis.name, factor, kind) for kind in kinds for factor in split_factors(axis.extent, kind))
            if axis.kind is Kind.LOOP and isinstance(axis.extent, int):
                yield from (Mark(axis.name, kind) for kind in kinds if axis.extent in (*split_factors(0, kind), SMALL))
        if axis.kind is Kind.LOOP:
            yield from (Mark(axis.name, kind) for kind in (Kind.GLOBAL, Kind.THREAD) if kind not in none)
            if target.threads > 1:
                yield Split(axis.name, target.threads, Kind.THREAD)
            if not target.walks_memory:  # else it is for what a measure alone can judge
                yield Outermost(axis.name)
        if axis.kind is Kind.REDUCE:
            reordering = () if target.strict else (Kind.SPREAD, Kind.LANES, Kind.GROUP)
            kinds = tuple(kind for kind in (Kind.UNROLL, *reordering) if kind not in there | none)
            yield from (Split(axis.name, factor, kind) for kind in kinds for factor in split_factors(axis.extent, kind))
            deep = sorted({m.shape[2] for m in target.matrices if not m.tiled and not target.strict})
            yield from (Split(axis.name, k, Kind.CONTRACT) for k in deep)
            if isinstance(axis.extent, int) and axis.extent <= SMALL:
                yield Mark(axis.name, Kind.UNROLL)
            piece = SHARED_PIECE if target.shared_bytes else PIECE
            if isinstance(axis.extent, int) and axis.extent >= 2 * piece:
                yield Split(axis.name, piece, Kind.REDUCE)
            if target.shared_bytes:
                yield from (Share(number, axis.name) for number in range(len(loads_of(nest))))


def measured_moves(kernel: Kernel, target: Target) -> Iterator[tuple[KernelAction, ...]]:
    """Actions, or groups of them, that only a measure can judge: what caches gain by, and products by warps."""
    for number, part in enumerate(kernel.every_part):
        for actions in warp_moves(part, target):
            yield tuple(action if kernel.single else In(number, action) for action in actions)
    if target.walks_memory:
        parts = list(enumerate(kernel.every_part))
        hints = [(number, action) for number, part in parts for action in cache_hints(part)]
        past = [entry for entry in hints if isinstance(entry[1], Stream)]
        # a row that is fetched ahead gains little while its memory is also read for what is written
        told = [*((entry,) for entry in hints), *(
            (first, then) for first in past for then in hints if isinstance(then[1], Prefetch))]
        orders = [tuple((number, action) for action in actions) for number, part in parts
                  for actions in (*((action,) for action in memory_moves(part)), *joint_moves(part))]
        # in turns, for a search measures no more than so many, and a kernel of many loads has many hints
        for entries in (entry for pair in zip_longest(orders, told) for entry in pair if entry is not None):
            yield tuple(action if kernel.single else In(number, action) for number, action in entries)


def cache_hints(nest: Nest) -> Iterator[LoopAction]:
    """Hints for the caches: what is written past them, and what is fetched ahead."""
    loads = range(len(loads_of(nest)))
    yield from (Stream(slot) for slot in sorted({store.slot for store in nest.stores}))
    yield from (Prefetch(number, ahead) for number in loads for ahead in AHEAD)
    if any(node.op is NodeOp.GATHER for node in nest.nodes()):
        yield from (PrefetchIndirect(axis.name, 4) for axis in nest.axes if axis.kind is Kind.LOOP)


def memory_moves(nest: Nest) -> Iterator[LoopAction]:
    """Actions that change in which order memory is read, and what of it is copied to scratch."""
    loads = range(len(loads_of(nest)))
    yield from (Pack(number, None) for number in loads)
    for axis in (a for a in nest.axes if a.kind is Kind.LOOP):
        yield Outermost(axis.name)
        yield from (Pack(number, axis.name) for number in loads)
        yield from (Convert(number, axis.name) for number in loads)
        for number, node in enumerate(reductions_of(nest)):
            if sum(a.kind is Kind.REDUCE and a.root in node.arg[1] for a in nest.axes) > 1:
                yield SplitReduction(number, axis.name)


def joint_moves(nest: Nest) -> Iterator[tuple[LoopAction, ...]]:
    """Groups of actions of which each alone gains nothing.

    An operand is packed for a loop that runs outside of those that read it again, or all loops run over a block of
    one; partial results want a reduction in pieces.
    """
    for axis in nest.axes:
        if axis.kind is Kind.LOOP:
            for size in (n for n in BLOCK_SIZES if isinstance(axis.extent, int) and axis.extent >= 2 * n):
                yield Split(axis.name, size, Kind.LOOP), Outermost(axis.name)
            yield from ((Outermost(axis.name), Pack(number, axis.name)) for number in range(len(loads_of(nest))))
        if axis.kind is Kind.REDUCE and isinstance(axis.extent, int) and axis.extent >= 2 * PIECE:
            for number, node in enumerate(reductions_of(nest)):
                if axis.root in node.arg[1]:
                    yield Split(axis.name, PIECE, Kind.REDUCE), SplitReduction(number, None)


def warp_moves(nest: Nest, target: Target) -> Iterator[tuple[LoopAction, ...]]:
    """Splits that give a product to an instruction with rows and columns, of a warp or of tile registers.

    Tile registers read what is packed: a block of rows at a time, and all columns.
    """
    loops = [a for a in nest.axes if a.kind in (Kind.LOOP, Kind.GLOBAL)]
    for node, rows, columns in product(reductions_of(nest), loops, loops):
        found = None if rows.root is columns.root else instruction_for(node, columns.root, rows.root, target.matrices)
        if found is not None:
            instruction, *operands = found
            m, n, k = instruction.shape
            near = instruction.together if instruction.tiled else k
            packs: tuple[LoopAction, ...] = ()
            if instruction.tiled:
                loads = loads_of(nest)
                if not all(operand in loads for operand in operands):
                    continue
                first, second = map(loads.index, operands)
                packs = Pack(first, rows.name), Pack(second, None)
            for depth in (a for a in nest.axes if a.kind is Kind.REDUCE and a.root in node.arg[1]):
                yield (Split(rows.name, m, Kind.FRAGMENT_ROWS), Split(columns.name, n, Kind.FRAGMENT_COLUMNS),
                       Split(depth.name, near, Kind.CONTRACT),
                       *([Split(depth.name, k // near, Kind.DEPTH)] if near < k else []), *packs)


def split_factors(extent: sint, kind: Kind) -> tuple[int, ...]:
    """Sizes to try for the inner part of a split."""
    sizes: tuple[int, ...] = {
        Kind.VECTOR: (4, 8, 16), Kind.ROWS: (4, 8, 16), Kind.LANES: (4, 8, 16),
        Kind.LOCAL: (8, 16, 32, 64), Kind.GROUP: (8, 16, 32, 64),
    }.get(kind, (2, 3, 4, 6, 8))
    return tuple(f for f in sizes if not isinstance(extent, int) or not extent or f < extent)


def alterations(actions: Sequence[KernelAction]) -> Iterator[tuple[KernelAction, ...]]:
    """Lists that refuse one of the actions, take it with another number or before the one that it follows.

    Or lists with other numbers for two that make a register tile.
    """
    for at, action in enumerate(actions):
        before, after = tuple(actions[:at]), tuple(actions[at + 1 :])
        yield before + after
        yield from ((*before, other, *after) for other in other_numbers(action))
        if after and _part(action) == _part(after[0]):  # those of different parts change nothing for each other
            yield (*before, after[0], action, *after[1:])
    sides = [(at, number, split) for at, action in enumerate(actions)
             for number, split in [(action.number, action.action) if isinstance(action, In) else (0, action)]
             if isinstance(split, Split) and split.kind is Kind.UPCAST]
    for one, other in combinations(sides, 2):
        if one[1] == other[1]:
            yield from other_tiles(actions, one[0], other[0])


def _part(action: KernelAction) -> int | None:
    """The part whose loops an action changes; None for what concerns all."""
    return action.number if isinstance(action, In) else None


def other_tiles(actions: Sequence[KernelAction], one: int, other: int) -> Iterator[tuple[KernelAction, ...]]:
    """Lists in which the splits at two places cut a register tile of another size."""
    for rows, vectors in product(TILE_ROWS, TILE_ROWS):
        if RESULTS[0] <= rows * vectors <= RESULTS[1]:
            changed = [with_factor(action, rows if at == one else vectors) if at in (one, other) else action
                       for at, action in enumerate(actions)]
            yield tuple(action for action in changed if action is not None)


def with_factor(action: KernelAction, factor: int) -> KernelAction | None:
    """A split by another number, which may be one of a part; None for a split by 1."""
    if isinstance(action, In):
        inner = with_factor(action.action, factor)
        return In(action.number, inner) if isinstance(inner, LoopAction) else None
    assert isinstance(action, Split)
    return replace(action, factor=factor) if factor > 1 else None


def other_numbers(action: KernelAction) -> Iterator[KernelAction]:
    """The action with other numbers."""
    if isinstance(action, In):
        yield from (In(action.number, other) for other in other_numbers(action.action) if isinstance(other, LoopAction))
    elif isinstance(action, Split):
        near = {action.factor * 2, action.factor // 2, action.factor + 1, action.factor - 1}
        if action.kind is Kind.UPCAST:
            near |= {*TILE_ROWS} - {action.factor}
        lanes = action.kind in (Kind.VECTOR, Kind.LANES, Kind.ROWS)
        yield from (replace(action, factor=n) for n in sorted(near) if n > 1 and (not lanes or n & (n - 1) == 0))
    elif isinstance(action, CutDimension):
        yield from (replace(action, width=n) for n in (action.width * 2, action.width // 2) if n > 1)
    elif isinstance(action, Partition):
        yield replace(action, copies=0 if action.copies else RIM)
    elif isinstance(action, RowBlocks):
        yield from (RowBlocks(rows) for rows in (action.rows * 2, action.rows // 2) if rows)
    elif isinstance(action, Prefetch):
        yield from (replace(action, distance=n) for n in (action.distance * 2, action.distance // 2) if n)


def even_walks(actions: Sequence[KernelAction]) -> Iterator[tuple[Action, ...]]:
    """Lists in which all parts take as many vectors of a row in each iteration, and their walks overlap.

    Walks that are alike can be one loop, and wait for one another: that one of them is a little faster by itself is
    worth less.
    """
    if not any(isinstance(action, In) for action in actions):
        return
    for count in VECTORS_AT_ONCE:
        evened: list[KernelAction] = []
        for action in actions:
            inner = action.action if isinstance(action, In) else None
            if isinstance(inner, (Split, Mark)) and inner.kind is Kind.UNROLL:
                continue
            if isinstance(action, In) and isinstance(inner, Split) and inner.kind in (Kind.SPREAD, Kind.UPCAST):
                action = In(action.number, replace(inner, factor=count))
            evened.append(action)
        yield from ((*evened, *walks) for walks in other_walks(()))


def other_walks(walks: Sequence[Action]) -> Iterator[tuple[Action, ...]]:
    """Other choices of which walks over a row are joined, and whether stores wait for the next row's."""
    choices: tuple[tuple[Action, ...], ...] = ((), (JoinWalks(),), (DelayStores(),), (JoinWalks(), DelayStores()))
    yield from (choice for choice in choices if choice != tuple(walks))
