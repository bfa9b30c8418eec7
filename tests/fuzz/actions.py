"""Random actions on random kernels: whatever is accepted must compute what the plain loops compute.

A kernel is drawn (elementwise work, reductions, matrix products, softmax, convolution, concatenation, scans, gathers;
of every dtype, with sizes around those of vectors and tiles, fixed and symbolic), and a sequence of actions with
arguments from all over, sensible or not. Each action is either refused with ActionError or applied; the kernel is then
rendered, which EmitError may refuse, and run in the reference interpreter, whose own checks (bounds, races, scratch
that was never written) count as failures too. Inputs are small integers, so that sums are exact in whatever order they
are taken.

    hatch run fuzz actions [--seconds 60] [--seed 0]
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite, prod

import numpy as np

from tg_codegen import ActionError, EmitError, Target, compile_ast, interpret, parse_action
from tg_codegen.ir.matrix import AMX_TILES, AVX2_DOTS, AVX512_DOTS
from tg_codegen.ir.uop import UOps
from tg_codegen.machine.renderer import Renderer
from tg_codegen.nest.interior import masks
from tg_codegen.nest.kernel import Kernel
from tg_codegen.nest.lower import lower
from tg_codegen.nest.nest import Nest
from tg_codegen.nest.parts import stated
from tg_codegen.nest.spec import REDUCING, Kind, NodeOp
from tg_codegen.plan.actions import KernelAction, loads_of, reductions_of
from tg_codegen.plan.code_copies import idle_copies
from tg_codegen.plan.draft import in_order
from tg_codegen.plan.heuristic import applied
from tg_codegen.render.c.opencl import OpenCLRenderer
from tg_codegen.render.llvm import LLVMRenderer
from tg_dtype import DType, dtypes, from_bits, to_bits, truncate
from tg_frontend import Tensor
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker, Variable

ST = ShapeTracker.from_shape
MOST_UOPS = 1200
MOST_ITEMS = 64
MOST_STEPS = 25_000  # of the interpreter, about: larger kernels are not drawn

FLOATS = ("float32", "float32", "float64", "float16", "bfloat16")
INTS = ("int32", "int8", "uint8", "int16", "uint16", "uint32", "int64", "uint64")
SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 33)

TILED = "cpu with tile registers"
"""The target of :mod:`tests.fuzz.tiles` alone."""
TARGETS: dict[str, Renderer] = {
    "cpu": LLVMRenderer(Target(
        vector_bytes=32, registers=16, threads=2, l1_bytes=1 << 15, l2_bytes=1 << 18, matrices=AVX2_DOTS)),
    "small cpu": LLVMRenderer(Target(vector_bytes=16, registers=16, threads=3)),
    "cpu with matrices": LLVMRenderer(Target(
        vector_bytes=64, registers=32, threads=2,
        matrices=AVX512_DOTS)),
    TILED: LLVMRenderer(Target(vector_bytes=64, registers=32, threads=2, matrices=(*AMX_TILES, *AVX512_DOTS))),
    "gpu": OpenCLRenderer(target=Target(
        kind="gpu", vector_bytes=16, registers=64, local_max=64, shared_bytes=1 << 14)),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """A sequence of actions that is accepted and wrong, or refused with the wrong kind of error.

    Attributes:
      seed: gives the same kernel, target and actions again, with :func:`check`.
      kernel: what it computes.
      target: what it is rendered for.
      actions: the fewest actions found with which it fails.
      problem: what is wrong.
    """

    seed: int
    kernel: str
    target: str
    actions: tuple[str, ...]
    problem: str

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.kernel} on {self.target}: {'; '.join(self.actions)}: {self.problem}"


@dataclass(frozen=True, slots=True)
class Subject:
    """A kernel with its inputs.

    Attributes:
      name: what it computes, with shapes and dtypes.
      ast: the kernel.
      memory: the bytes of each buffer before the run.
      values: of its variables.
      tolerance: how much results may differ; 0 for kernels that are exact in any order.
    """

    name: str
    ast: LazyOp
    memory: tuple[bytes, ...]
    values: dict[Variable | str, int]
    tolerance: float


Draw = random.Random
Make = Callable[[Draw, str], tuple[str, Tensor]]


def empty(*shape: int | Variable, dtype: str) -> Tensor:
    """A tensor that nothing computes: a kernel's input."""
    return Tensor.empty(*shape, dtype=dtype, device="NULL").realize()


def size(draw: Draw, most: int = 40) -> int:
    """A length, often near those of vectors and tiles."""
    return min(most, draw.choice(SIZES) if draw.random() < 0.8 else draw.randint(1, most))


def elementwise(draw: Draw, dtype: str) -> tuple[str, Tensor]:
    n, m = size(draw), size(draw)
    x, row = empty(n, m, dtype=dtype), empty(m, dtype=dtype)
    kind = draw.choice(("add", "across", "padded", "flipped", "converted"))
    if kind == "across":
        return f"({n},{m}) + its transpose", x + empty(m, n, dtype=dtype).permute(1, 0)
    if kind == "padded":
        return f"({n},{m}) padded + row", x.pad(((1, 2), (0, 3))) + empty(m + 3, dtype=dtype)
    if kind == "flipped":
        return f"({n},{m}) flipped * row", x.flip(1) * row
    if kind == "converted":
        other = draw.choice((*FLOATS, *INTS, "bool"))
        return f"({n},{m}) as {other}", x.cast(other).contiguous()
    return f"({n},{m}) + row", x + row


def reduction(draw: Draw, dtype: str) -> tuple[str, Tensor]:
    n, m = size(draw, 12), size(draw, 200 if draw.random() < 0.2 else 70)
    axis = draw.choice((0, 1, None))
    x = empty(n, m, dtype=dtype)
    kind = draw.choice(("sum", "max", "sum", "both", "masked"))
    if kind == "max":
        return f"max of ({n},{m}) over {axis}", x.max(axis)
    if kind == "both":
        return f"sum + max of ({n},{m}) over {axis}", x.sum(axis).cast(dtype) + x.max(axis)
    if kind == "masked":
        return f"sum of padded ({n},{m}) over {axis}", x.pad(((2, 1), (3, 2))).sum(axis)
    return f"sum of ({n},{m}) over {axis}", x.sum(axis)


def product(draw: Draw, dtype: str) -> tuple[str, Tensor]:
    m, n, k = size(draw, 17), size(draw, 17), size(draw)
    left, right = draw.random() < 0.3, draw.random() < 0.3
    a = empty(k, m, dtype=dtype).permute(1, 0) if left else empty(m, k, dtype=dtype)
    b = empty(n, k, dtype=dtype).permute(1, 0) if right else empty(k, n, dtype=dtype)
    wide = {"bfloat16": "float32", "float16": "float32", "int8": "int32", "uint8": "int32"}.get(dtype)
    out = (a.cast(wide) @ b.cast(wide)) if wide and draw.random() < 0.7 else a @ b
    name = f"({m},{k}){'T' if left else ''} @ ({k},{n}){'T' if right else ''}"
    if draw.random() < 0.3:
        return f"{name} + row", out + empty(n, dtype=out.dtype.name)
    return name, out


def mixed_product(draw: Draw, dtype: str) -> tuple[str, Tensor]:
    m, n, k = size(draw, 9), draw.choice((16, 17, 32, 33)), size(draw)
    kind = draw.choice(("uint8", "int8"))
    a, b = empty(m, k, dtype=kind).cast("int32"), empty(n, k, dtype="int8").cast("int32")
    return f"{kind} ({m},{k}) @ int8 ({k},{n})", (a @ b.permute(1, 0)) if draw.random() < 0.5 else (b @ a.permute(1, 0))


def softmax(draw: Draw, dtype: str) -> tuple[str, Tensor]:
    n, m = size(draw, 8), size(draw)
    x = empty(n, m, dtype="float32")
    return draw.choice((
        (f"softmax of ({n},{m})", x.softmax(1)), (f"softmax of ({n},{m}) down", x.softmax(0)),
        (f"normalise ({n},{m})", x / (x.sum(1, keepdim=True) * x.sum(1, keepdim=True) + 1)),
        (f"spread of ({n},{m})", (x - x.mean(1, keepdim=True)).square().sum(1)),
    ))  # fmt: skip


def dear_rows(draw: Draw, dtype: str) -> tuple[str, Tensor]:
    """Rows whose values an output and a reduction have in common, each of them worth keeping."""
    b, n, m = draw.choice((1, 2)), size(draw, 6), 1 + size(draw, 33)
    x = empty(b, n, m, dtype="float32")
    value = draw.choice((x.exp2(), x.sigmoid(), x.exp2() * empty(m, dtype="float32"), (x + 4).log2()))
    total = draw.choice((value.sum(2, keepdim=True), value.max(2, keepdim=True)))
    if draw.random() < 0.2:
        fewer = draw.randint(1, m)
        return f"{fewer} of dear rows of ({b},{n},{m})", value[:, :, :fewer] - total
    return f"dear rows of ({b},{n},{m})", draw.choice((value - total, value * total, value + total * x))


def convolution(draw: Draw, dtype: str) -> tuple[str, Tensor]:
    b, c, o, h, k = draw.choice((1, 2)), draw.choice((1, 2, 3)), draw.choice((1, 3, 8)), draw.randint(3, 8), 3
    out = empty(b, c, h, h, dtype=dtype).conv2d(empty(o, c, k, k, dtype=dtype), padding=draw.choice((0, 1)))
    return f"convolution of ({b},{c},{h},{h}) with ({o},{c},{k},{k})", out


def joined(draw: Draw, dtype: str) -> tuple[str, Tensor]:
    n, m, k = size(draw, 12), size(draw), size(draw)
    if draw.random() < 0.5:
        return f"({n},{m}) beside ({n},{k})", empty(n, m, dtype=dtype).cat(empty(n, k, dtype=dtype), dim=1)
    return f"sum of ({m},{n}) on ({k},{n})", empty(m, n, dtype=dtype).cat(empty(k, n, dtype=dtype), dim=0).sum(0)


def scan(draw: Draw, dtype: str) -> tuple[str, Tensor]:
    n, m = size(draw, 5), size(draw)
    return f"running sum of ({n},{m})", empty(n, m, dtype=dtype).cumsum(1)


def gather(draw: Draw, dtype: str) -> tuple[str, Tensor]:
    n, rows, width = size(draw, 12), size(draw, 9), size(draw)
    return f"{n} rows of ({rows},{width})", empty(rows, width, dtype=dtype)[empty(n, dtype="int32")]


def symbolic(draw: Draw, dtype: str) -> tuple[str, Tensor]:
    n, m = Variable("n", 1, draw.choice((4, 9, 17, 33))), size(draw)
    x = empty(m, n.vmax, dtype=dtype)[:, : n.bind(draw.randint(1, n.vmax))]
    if draw.random() < 0.5:
        return f"sum of ({m},n<={n.vmax})", x.sum(1)
    return f"({m},n<={n.vmax}) + 1", x + 1


KERNELS: tuple[Make, ...] = (
    elementwise, reduction, reduction, product, product, mixed_product, softmax, softmax, dear_rows, dear_rows,
    convolution, joined, joined, scan, gather, symbolic,
)  # fmt: skip


def rows_between(draw: Draw, masked: bool = False) -> tuple[str, LazyOp]:
    """A kernel that hands rows from one store to the next.

    They are products of rows with keys, then a sum with the squares of each row or of its first elements, and perhaps a
    sum of values, weighted by it.

    Args:
      masked: whether each row has keys up to a diagonal alone, and is 0 behind.
    """
    batch, rows, keys, width = draw.choice((1, 2)), 1 + size(draw, 19), size(draw, 12), draw.choice((1, 2, 4))
    full, sheet, values = (batch, rows, keys, width), (batch, rows, keys), (batch, rows, width, keys)
    f32, weighted = dtypes.float32, draw.random() < 0.5
    left = A.load(1, f32, ST((batch, rows, width)).reshape((batch, rows, 1, width)).expand(full))
    right = A.load(2, f32, ST((batch, keys, width)).reshape((batch, 1, keys, width)).expand(full))
    products = A.reduce(A.alu(Ops.MUL, left, right), Ops.ADD, (3,))
    first, second = (4, 5) if weighted else (3, 0)
    seen = A.load(first, f32, ST(sheet))
    some = keys if draw.random() < 0.5 else draw.randint(1, keys)
    within = ST(sheet).shrink(((0, batch), (0, rows), (0, some)))
    part = A.load(first, f32, within.pad(((0, 0), (0, 0), (0, keys - some))) if draw.random() < 0.5 else within)
    total = A.reduce(A.alu(Ops.MUL, part, part), draw.choice((Ops.ADD, Ops.MAX)), (2,))
    result = A.alu(Ops.ADD, seen, A.view(total, ST((batch, rows, 1)).expand(sheet)))
    if masked:
        row, key = (A.iota(ST(one).expand(sheet)) for one in ((1, rows, 1), (1, 1, keys)))
        end = A.alu(Ops.ADD, row, A.const(draw.randint(-2, 6), dtypes.int32, sheet))
        before, nothing = A.alu(Ops.CMPLT, key, end), A.const(0, f32, sheet)
        products = A.alu(Ops.WHERE, before, A.view(products, ST((*sheet, 1)).reshape(sheet)), nothing)
        result = A.alu(Ops.WHERE, before, result, nothing)
    stores = [A.store(first, ST(products.shape), products), A.store(second, ST(sheet), result)]
    between, operands = BufferArg(f32, batch * rows * keys, internal=True), [batch * rows * width, batch * keys * width]
    name = f"rows of ({batch},{rows},{width}) @ ({batch},{width},{keys}){' masked' * masked} and their squares"
    if not weighted:
        sizes = [BufferArg(f32, n) for n in (batch * rows * keys, *operands)]
        return name, A.sink(tuple(stores), (*sizes, between))
    share = A.load(5, f32, ST(sheet).reshape((batch, rows, 1, keys)).expand(values))
    value = ST((batch, keys, width)).permute((0, 2, 1)).reshape((batch, 1, width, keys)).expand(values)
    mixed = A.reduce(A.alu(Ops.MUL, share, A.load(3, f32, value)), Ops.ADD, (3,))
    stores.append(A.store(0, ST((*values[:3], 1)), mixed))
    sizes = [BufferArg(f32, n) for n in (operands[0], *operands, operands[1])]
    return f"{name}, weights of values", A.sink(tuple(stores), (*sizes, between, between))


def content(draw: Draw, dtype: DType, count: int) -> bytes:
    """Small integers of a dtype."""
    low, high = (0, 3) if dtypes.is_unsigned(dtype) or dtypes.is_bool(dtype) else (-3, 3)
    if dtypes.is_bool(dtype):
        high = 1
    numbers = [draw.randint(low, high) for _ in range(count)]
    bits = {n: to_bits(truncate(n, dtype), dtype).to_bytes(dtype.itemsize, "little") for n in range(low, high + 1)}
    return b"".join(bits[n] for n in numbers)


def subject(draw: Draw) -> Subject:
    """A kernel with inputs."""
    while True:
        dtype = draw.choice(FLOATS if draw.random() < 0.6 else INTS)
        name, tensor = draw.choice(KERNELS)(draw, dtype)
        items, _ = tensor.schedule_with_vars()
        kernels = [item.ast for item in items if item.ast.op is Ops.SINK]
        if not kernels:
            continue
        ast = draw.choice(kernels)
        if (chance := draw.random()) < 0.25:
            dtype, name, ast = "float32", *rows_between(draw, chance >= 0.15)
        nest = lower(ast)
        if not nest.axes or work(nest) > MOST_STEPS:
            continue
        values: dict[Variable | str, int] = {
            v: draw.randint(v.vmin, v.vmax) for v in sorted(ast.variables(), key=lambda v: v.name)}
        memory = tuple(content(draw, b.dtype, b.size) for b in ast.arg if not b.internal)
        return Subject(f"{dtype} {name}", ast, memory, values, tolerance(nest))


def work(nest: Nest) -> int:
    """How many values the plain loops compute, at the most."""
    def extent(root: Variable) -> int:
        return root.vmax + 1

    return sum(prod(extent(r) for r in node.free | (set(node.arg[1]) if node.op is NodeOp.REDUCE else set()))
               for node in nest.nodes())


def tolerance(nest: Nest) -> float:
    """How much the order of operations may change results: not at all where there are small integers alone."""
    exact = {Ops.ADD, Ops.SUB, Ops.MUL, Ops.MULACC, Ops.NEG, Ops.MAX, Ops.WHERE, Ops.CAST, *NodeOp}
    floats = [n for n in nest.nodes() if dtypes.is_float(n.dtype)]
    narrow = any(n.dtype.itemsize < 4 for n in floats)
    broken = any(n.op is NodeOp.CONST and isfinite(n.arg) and n.arg % 1 for n in floats)
    if narrow:
        return 0.05
    return 1e-4 if broken or any(n.op not in exact for n in floats) else 0.0


def some_action(kernel: Kernel, draw: Draw, gpu: bool) -> str:
    """The text of an action, which may be for this kernel."""
    if draw.random() < (0.4 if kernel.untouched else 0.04):
        blocks = f"row_blocks({draw.choice((1, 2, 3, 4, 8, 0, 99))})"
        marks = [f"mark({axis.name}, {draw.choice(('THREAD', 'THREAD', 'UPCAST'))})" for axis in kernel.shared]
        reduced = [axis.name for axis in kernel.whole.axes if axis.kind is Kind.REDUCE]
        cut = [f"cut_dimension({name}, {draw.choice((2, 3, 4, 8, 99))})" for name in reduced]
        likely = [blocks, *cut, *marks] if kernel.scratch else ["reuse_row_values()", "split_concat()", *cut, *marks]
        return draw.choice(likely if draw.random() < 0.9 else ["reuse_row_values()", "split_concat()", blocks])
    if kernel.scratch and any(node.op is Ops.CMPLT for node in kernel.whole.nodes()) and draw.random() < 0.2:
        return f"trim_rows({draw.choice((1, 2, 3, 4, 8, 64, 0))})"
    number = draw.randrange(len(kernel.every_part))
    text = loop_action(kernel.every_part[number], draw, gpu)
    named = draw.random() < (0.03 if kernel.single else 0.97)
    return f"{number if draw.random() < 0.97 else 99}: {text}" if named else text


def loop_action(nest: Nest, draw: Draw, gpu: bool) -> str:
    """The text of an action on loops, which may be for this nest."""
    if not nest.axes:
        return "outermost(i0)"
    axis = draw.choice(nest.axes)
    reduce = nest.roots[axis.root].reduce
    name = axis.name if draw.random() < 0.97 else draw.choice(("i9", "r0.7", "", "data0"))
    reducing = [k.name for k in Kind if k in REDUCING]
    foreign = ("THREAD",) if gpu else ("GLOBAL", "LOCAL", "GROUP")
    fitting = [k.name for k in Kind if (k.name in reducing) is reduce and k.name not in foreign]
    if gpu and not reduce and draw.random() < 0.3:
        fitting = ["LOCAL"]
    kind = draw.choice(fitting) if draw.random() < 0.97 else draw.choice([*(k.name for k in Kind), "FLAT"])
    place = draw.choice((name, "-", draw.choice(nest.axes).name))
    number = draw.randrange(len(loads_of(nest)) + 1)
    gathers = any(node.op is NodeOp.GATHER for node in nest.nodes())
    pieces = sum(axis.kind is Kind.REDUCE for axis in nest.axes) > 1
    partial = any(stage.node.op is NodeOp.REDUCE for stage in nest.stages)
    rollable = [axis.name for axis in idle_copies(nest)]
    factor = draw.choice((2, 3, 4, 4, 5, 8, 8, 16, 16, 32, 0, -2))
    narrow = any(load.dtype in (dtypes.int8, dtypes.uint8) for load in loads_of(nest))
    chosen: str = draw.choice((
        *(("unsigned_products()", "widen_rows()") * (20 if any(a.kind is Kind.VECTOR for a in nest.axes) else 1)
          if narrow and reductions_of(nest) else ()),
        *(f"split({name}, {factor}, {kind})",) * 7, *(f"mark({name}, {kind})",) * 2, f"outermost({name})",
        f"pack({number}, {place})", f"pack({number}, {place})", f"convert({number}, {place})",
        *(f"share({number}, {place})",) * (8 if any(a.kind is Kind.LOCAL for a in nest.axes) else 1),
        *(f"split_reduction({draw.randrange(len(reductions_of(nest)) + 1)}, {place})",) * (3 if pieces else 1),
        f"stream({draw.randint(-1, len(nest.buffers))})", f"prefetch({number}, {draw.choice((1, 16, 64, -5))})",
        *(f"prefetch_indirect({name}, {draw.choice((1, 3, 0, -2))})",) * (6 if gathers else 1),
        *(f"partition({name}, {draw.choice((0, 4, 99, -1))})",) * (4 if next(masks(nest), None) is not None else 1),
        *((f"mark({name}, UPCAST)",) * 6 if partial else ()),
        *(f"roll({draw.choice(rollable) if rollable else name})",) * (20 if rollable else 1),
    ))  # fmt: skip
    return chosen


def result(made: Subject, uops: Sequence[object]) -> list[bytearray]:
    """The buffers after the run of a kernel."""
    memory = [bytearray(data) for data in made.memory]
    interpret(uops, memory, made.values)  # type: ignore[arg-type]
    return memory


def numbers(data: bytearray, dtype: DType) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Elements as float64."""
    if dtype.fmt is None or dtype.fmt == "e":
        width = dtype.itemsize
        found = [from_bits(int.from_bytes(data[at : at + width], "little"), dtype) for at in range(0, len(data), width)]
        return np.array(found, np.float64)
    return np.array(memoryview(data).cast(dtype.fmt).tolist(), np.float64)  # type: ignore[call-overload]


def difference(made: Subject, got: list[bytearray], want: list[bytearray]) -> str | None:
    """Where results differ; None if they agree."""
    for slot, (mine, other) in enumerate(zip(got, want, strict=True)):
        if mine == other:
            continue
        dtype = made.ast.arg[slot].dtype
        a, b = numbers(mine, dtype), numbers(other, dtype)
        bound = made.tolerance if dtypes.is_float(dtype) else 0
        bad = np.flatnonzero(~np.isclose(a, b, rtol=bound, atol=bound, equal_nan=True))
        if len(bad):
            return f"slot {slot}: {len(bad)} of {len(a)} are wrong, element {bad[0]} is {a[bad[0]]}, not {b[bad[0]]}"
    return None


def runnable(nest: Nest, uops: Sequence[object]) -> bool:
    """Whether the interpreter can run it in reasonable time."""
    items = prod(a.extent for a in nest.axes if a.kind in (Kind.LOCAL, Kind.GROUP) and isinstance(a.extent, int))
    warp = any(u.op is UOps.MATRIX and u.arg.threads > 1 for u in uops)  # type: ignore[attr-defined]
    return items <= MOST_ITEMS and len(uops) <= MOST_UOPS and not warp


def outcome(made: Subject, target: str, actions: Sequence[str], want: list[bytearray]) -> str | None:
    """What is wrong with a kernel under some actions; None if nothing is, or if they are refused as they should be."""
    renderer = TARGETS[target]
    try:
        parsed = [parse_action(text) for text in actions]
        kernel = applied(stated(lower(made.ast)), in_order(parsed)[0])
        spec = compile_ast(made.ast, renderer, actions=parsed)
    except (ActionError, EmitError):
        return None
    except Exception as error:  # that nothing else comes out is what is looked at
        return f"{type(error).__name__}: {error}"
    if not runnable(kernel.outline, spec.uops):
        return None
    try:
        return difference(made, result(made, spec.uops), want)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def rendered(made: Subject, target: str, actions: Sequence[str]) -> bool:
    """Whether the kernel can be rendered with these actions."""
    try:
        compile_ast(made.ast, TARGETS[target], actions=[parse_action(text) for text in actions])
    except EmitError:
        return False
    return True


def check(seed: int) -> tuple[Finding | None, tuple[str, ...]]:
    """One kernel with one sequence of actions. Returns what is wrong, and the actions that were accepted."""
    draw = random.Random(seed)
    made, target = subject(draw), draw.choice([name for name in TARGETS if name != TILED])
    want = result(made, compile_ast(made.ast, TARGETS[target], actions=()).uops)
    return explored(seed, draw, made, target, want, [""] * draw.randint(1, 12))


def explored(
    seed: int, draw: Draw, made: Subject, target: str, want: list[bytearray], turns: Sequence[str]
) -> tuple[Finding | None, tuple[str, ...]]:
    """Tries actions on a kernel.

    Args:
      seed: of the kernel, for the finding.
      draw: chooses actions.
      made: the kernel.
      target: what it is rendered for.
      want: the buffers after the run.
      turns: actions in the order in which they are taken; an empty one is drawn, and taken if the rest may follow.

    Returns:
      What is wrong, and the actions that were accepted.
    """
    kernel, taken = stated(lower(made.ast)), list[str]()
    for number, given in enumerate(turns):
        text = given or some_action(kernel, draw, TARGETS[target].target.grid)
        try:
            action = parse_action(text)
            assert isinstance(action, KernelAction)
            changed = action.on(kernel)
            assert str(action) == text
            if given or rendered(made, target, [*taken, text, *filter(None, turns[number:])]):
                kernel, taken = changed, [*taken, text]
        except ActionError:
            continue
        except Exception as error:  # that nothing else comes out is what is looked at
            return Finding(seed, made.name, target, (*taken, text), f"{type(error).__name__}: {error}"), tuple(taken)
    for text in ("join_walks()", "delay_stores()"):
        try:
            if draw.random() < 0.7 and rendered(made, target, [*taken, text]):
                taken.append(text)
        except ActionError:
            continue
        except Exception as error:
            return Finding(seed, made.name, target, (*taken, text), f"{type(error).__name__}: {error}"), tuple(taken)
    problem = outcome(made, target, taken, want)
    if problem is None:
        return None, tuple(taken)
    accepted, at = tuple(taken), 0
    while at < len(taken):  # without each action in turn
        fewer = taken[:at] + taken[at + 1 :]
        found = outcome(made, target, fewer, want)
        if found is None:
            at += 1
        else:
            taken, problem, at = fewer, found, 0
    return Finding(seed, made.name, target, tuple(taken), problem), accepted


def attempt(seed: int) -> Finding | None:
    """What is wrong with the sequence of a seed."""
    return check(seed)[0]
