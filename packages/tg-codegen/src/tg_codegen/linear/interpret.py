"""The reference interpreter: runs a kernel's UOps on the host, exactly and suspiciously.

Every value is rounded or wrapped to its dtype by :func:`tg_dtype.truncate`. Every access is checked against the size of
what it points to; reading scratch that was never written, a race between the work-items of a group, and a barrier that
some of them never reach are errors. MULACC rounds the product unless ``fused`` is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import cache
from itertools import product

from tg_dtype import AddrSpace, ConstType, DType, PtrDType, from_bits, to_bits, truncate
from tg_lazy import Ops
from tg_shape import Expr, Variable

from ..ir.facts import pointer_base
from ..ir.matrix import MatrixInstruction
from ..ir.scalar import scalar_function
from ..ir.spec import CLOSES, OPENS, POINTERS, REGISTERS
from ..ir.uop import UOp, UOps
from .linearize import linearize

Lanes = tuple[ConstType, ...]
Instruction = Callable[["_Item"], "int | None"]


class KernelFault(RuntimeError):
    """A kernel did what it must not; the message names the node and what it touched."""


def ldexp(x: float, n: float) -> float:
    """``x * 2**n``; infinity where that does not fit."""
    try:
        return math.ldexp(x, int(n))
    except OverflowError:
        return math.copysign(math.inf, x)
    except ValueError:
        return math.nan


class _Memory:
    """Elements behind a pointer: a buffer of the caller's, or scratch."""

    __slots__ = ("dtype", "name", "size")

    def __init__(self, name: str, dtype: DType, size: int) -> None:
        self.name, self.dtype, self.size = name, dtype, size

    def check(self, u: UOp, index: int, count: int) -> None:
        if not (0 <= index and index + count <= self.size):
            what = f"element {index}" if count == 1 else f"elements {index} to {index + count - 1}"
            raise KernelFault(f"{u.op.name} of {u.src[0]!r}: {what} of {self.name}, which has {self.size}")

    def read(self, u: UOp, index: int, item: _Item) -> ConstType:
        raise TypeError(f"{self.name} cannot be read")

    def write(self, u: UOp, index: int, value: ConstType, item: _Item) -> None:
        raise TypeError(f"{self.name} cannot be written")


class _Buffer(_Memory):
    __slots__ = ("_bits", "_view")

    def __init__(self, name: str, dtype: DType, size: int, data: memoryview) -> None:
        held = data.nbytes // dtype.itemsize
        if size > held:
            raise ValueError(f"{name} needs {size} elements of {dtype.name}, the buffer holds {held}")
        super().__init__(name, dtype, held if size < 0 else size)
        plain = dtype.fmt if dtype.fmt not in (None, "e") else None
        self._bits = plain is None
        code = plain or {1: "B", 2: "H"}[dtype.itemsize]
        self._view = data.cast("B")[: held * dtype.itemsize].cast(code)  # type: ignore[call-overload]

    def read(self, u: UOp, index: int, item: _Item) -> ConstType:
        value: ConstType = self._view[index]
        return from_bits(int(value), self.dtype) if self._bits else value

    def write(self, u: UOp, index: int, value: ConstType, item: _Item) -> None:
        self._view[index] = to_bits(value, self.dtype) if self._bits else value


class _Scratch(_Memory):
    __slots__ = ("_values",)

    def __init__(self, name: str, dtype: DType, size: int) -> None:
        super().__init__(name, dtype, size)
        self._values: list[ConstType | None] = [None] * size

    def read(self, u: UOp, index: int, item: _Item) -> ConstType:
        value = self._values[index]
        if value is None:
            raise KernelFault(f"{u.op.name} of {u.src[0]!r}: element {index} of {self.name} was never written")
        return value

    def write(self, u: UOp, index: int, value: ConstType, item: _Item) -> None:
        self._values[index] = value


class _Shared(_Scratch):
    """Scratch of a work-group, with a record of who touched what since the last barrier."""

    __slots__ = ("_readers", "_writers")

    def __init__(self, name: str, dtype: DType, size: int) -> None:
        super().__init__(name, dtype, size)
        self._readers: dict[int, set[int]] = {}
        self._writers: dict[int, int] = {}

    def barrier(self) -> None:
        self._readers.clear()
        self._writers.clear()

    def read(self, u: UOp, index: int, item: _Item) -> ConstType:
        if self._writers.get(index, item.number) != item.number:
            raise KernelFault(
                f"race: work-item {item.number} reads element {index} of {self.name}, which work-item "
                f"{self._writers[index]} writes with no barrier between"
            )
        self._readers.setdefault(index, set()).add(item.number)
        return super().read(u, index, item)

    def write(self, u: UOp, index: int, value: ConstType, item: _Item) -> None:
        others = self._readers.get(index, set()) | {self._writers.get(index, item.number)}
        if others - {item.number} and self._values[index] != value:
            raise KernelFault(
                f"race: work-item {item.number} writes element {index} of {self.name}, which work-item "
                f"{min(others - {item.number})} uses with no barrier between"
            )
        self._writers[index] = item.number
        super().write(u, index, value, item)


class _Item:
    """One work-item: its registers and the memory that it sees."""

    __slots__ = ("memory", "number", "registers", "special")

    def __init__(self, number: int, size: int, special: dict[str, int], memory: dict[UOp, _Memory]) -> None:
        self.number, self.special, self.memory = number, special, memory
        self.registers: list[Lanes] = [()] * size


class _Program:
    """The steps of a linear kernel; each takes a work-item and may say which step comes next."""

    def __init__(self, uops: Sequence[UOp], variables: Mapping[str, int], fused: bool) -> None:
        self.uops = uops
        self.variables = variables
        self.fused = fused
        self.place: dict[UOp, int] = {}
        self.end: dict[int, int] = {}
        open_at: list[int] = []
        for at, u in enumerate(uops):
            if u.op in OPENS:
                open_at.append(at)
            elif u.op in CLOSES:
                if not open_at or uops[open_at[-1]] is not u.src[0]:
                    raise KernelFault(f"{u!r} does not close the innermost region")
                self.end[open_at[-1]] = at
                self.end[at] = open_at.pop()
        if open_at:
            raise KernelFault(f"{uops[open_at[-1]]!r} is not closed")
        self.steps: list[Instruction | None] = []
        for at, u in enumerate(uops):  # a value may stand in several regions: its users mean the one before them
            self.place[u] = at
            self.steps.append(self._step(at, u))

    def run(self, item: _Item) -> Generator[int, None, None]:
        """Executes one work-item; yields the place of each barrier that it reaches."""
        at, steps = 0, self.steps
        while at < len(steps):
            step = steps[at]
            if step is None:
                yield at
                at += 1
                continue
            goto = step(item)
            at = at + 1 if goto is None else goto

    def _step(self, at: int, u: UOp) -> Instruction | None:
        src = [self._operand(u, s) for s in u.src if s.op not in POINTERS]
        count, scalar = u.dtype.count, u.dtype.scalar()
        if isinstance(u.op, Ops):
            return self._alu(at, u, src)
        if u.op is UOps.BARRIER:
            return None
        if u.op in POINTERS:
            return lambda item: None
        if u.op is UOps.CONST:
            return self._set(at, (truncate(u.arg, scalar),) * count)
        if u.op is UOps.VAR:
            if u.arg.name not in self.variables:
                raise ValueError(f"the kernel's variable {u.arg.name} was given no value")
            return self._set(at, (self.variables[u.arg.name],))
        if u.op is UOps.SPECIAL:
            name = u.arg[0]

            def special(item: _Item) -> None:
                item.registers[at] = (item.special[name],)

            return special
        if u.op in (UOps.RANGE, UOps.ENDRANGE):
            return self._loop(at, u, src)
        if u.op is UOps.IF:
            after, condition = self.end[at] + 1, src[0]
            return lambda item: None if item.registers[condition][0] else after
        if u.op is UOps.ENDIF:
            return lambda item: None
        if u.op is UOps.LOAD:
            return self._load(at, u, src)
        if u.op is UOps.STORE:
            return self._store(u, src)
        if u.op is UOps.PREFETCH:
            return lambda item: None
        if u.op in REGISTERS:
            return self._move(src[0], at, tuple(range(count)))
        if u.op is UOps.ASSIGN:
            return self._move(src[1], src[0], tuple(range(u.src[0].dtype.count)))
        if u.op is UOps.BROADCAST:
            return self._move(src[0], at, (0,) * count)
        if u.op is UOps.GEP:
            return self._move(src[0], at, u.arg) if len(src) == 1 else self._shuffle(src, at, u.arg)
        if u.op is UOps.MATRIX:
            return self._matrix(at, u, src)
        if u.op is UOps.SCALE:
            scalar = u.dtype.scalar()

            def scale(item: _Item) -> None:
                values, powers = (item.registers[s] for s in src)
                item.registers[at] = tuple([
                    truncate(ldexp(float(x), float(n)), scalar) for x, n in zip(values, powers, strict=True)])

            return scale
        if u.op is UOps.VECTORIZE:

            def gather(item: _Item) -> None:
                item.registers[at] = tuple([item.registers[s][0] for s in src])

            return gather
        raise KernelFault(f"{u!r} cannot be executed")

    def _operand(self, u: UOp, s: UOp) -> int:
        if s not in self.place:
            raise KernelFault(f"{u!r} uses {s!r}, which does not stand before it")
        return self.place[s]

    def _set(self, at: int, value: Lanes) -> Instruction:
        def step(item: _Item) -> None:
            item.registers[at] = value

        return step

    def _move(self, source: int, target: int, lanes: tuple[int, ...]) -> Instruction:
        def step(item: _Item) -> None:
            value = item.registers[source]
            item.registers[target] = tuple([value[lane] for lane in lanes])

        return step

    def _shuffle(self, sources: list[int], target: int, lanes: tuple[int, ...]) -> Instruction:
        def step(item: _Item) -> None:
            value = [lane for source in sources for lane in item.registers[source]]
            item.registers[target] = tuple([value[lane] for lane in lanes])

        return step

    def _matrix(self, at: int, u: UOp, src: list[int]) -> Instruction:
        instruction = u.arg
        if instruction.threads > 1:
            raise KernelFault(f"{u!r}: {instruction.name} is done by {instruction.threads} threads together")
        formats = [
            None if s.dtype.scalar() is dtype else dtype
            for s, dtype in zip(u.src[1:], (instruction.a, instruction.b), strict=True)
        ]
        products = _products(instruction)
        scalar = u.dtype.scalar()

        def step(item: _Item) -> None:
            left, right = (
                item.registers[s] if dtype is None else tuple([from_bits(int(x), dtype) for x in item.registers[s]])
                for s, dtype in zip(src[1:], formats, strict=True)
            )
            total = item.registers[src[0]]
            item.registers[at] = tuple([
                truncate(value + sum(left[i] * right[j] for i, j in pairs), scalar)
                for value, pairs in zip(total, products, strict=True)])

        return step

    def _loop(self, at: int, u: UOp, src: list[int]) -> Instruction:
        opening = u.op is UOps.RANGE
        counter = u if opening else u.src[0]
        first = at if opening else self.end[at]
        last = self.end[at] if opening else at
        start, end, *rest = [self._operand(counter, s) for s in counter.src]

        def step(item: _Item) -> int:
            registers = item.registers
            by = int(registers[rest[0]][0]) if rest else 1
            value = int(registers[start][0]) if opening else int(registers[first][0]) + by
            if value < int(registers[end][0]):
                registers[first] = (value,)
                return first + 1
            return last + 1

        return step

    def _alu(self, at: int, u: UOp, src: list[int]) -> Instruction:
        function = scalar_function(u, self.fused)
        if len(src) == 1:
            only = src[0]

            def unary(item: _Item) -> None:
                item.registers[at] = tuple([function(x) for x in item.registers[only]])

            return unary

        def step(item: _Item) -> None:
            registers = item.registers
            item.registers[at] = tuple(map(function, *[registers[s] for s in src]))

        return step

    def _load(self, at: int, u: UOp, src: list[int]) -> Instruction:
        base, count = pointer_base(u.src[0]), u.dtype.count
        index, *gated = src

        def load(item: _Item) -> None:
            memory = item.memory[base]
            start = int(item.registers[index][0])
            if not gated:
                memory.check(u, start, count)
                item.registers[at] = tuple([memory.read(u, start + lane, item) for lane in range(count)])
                return
            gate, alt = item.registers[gated[0]], item.registers[gated[1]]
            out = []
            for lane in range(count):
                if gate[lane if len(gate) > 1 else 0]:
                    memory.check(u, start + lane, 1)
                    out.append(memory.read(u, start + lane, item))
                else:
                    out.append(alt[lane])
            item.registers[at] = tuple(out)

        return load

    def _store(self, u: UOp, src: list[int]) -> Instruction:
        base = pointer_base(u.src[0])
        index, value, *gated = src

        def store(item: _Item) -> None:
            memory = item.memory[base]
            start = int(item.registers[index][0])
            gate = item.registers[gated[0]] if gated else (True,)
            for lane, x in enumerate(item.registers[value]):
                if gate[lane if len(gate) > 1 else 0]:
                    memory.check(u, start + lane, 1)
                    memory.write(u, start + lane, x, item)

        return store


def interpret(
    uops: UOp | Sequence[UOp],
    bufs: Sequence[memoryview | bytearray],
    vals: Mapping[Variable | str, int] | None = None,
    global_size: tuple[int, int, int] | None = None,
    local_size: tuple[int, int, int] | None = None,
    threads: int | None = None,
    fused: bool = False,
) -> None:
    """Runs a kernel: a SINK, or linear UOps.

    Args:
      bufs: the memory behind each slot; as many bytes as the PARAM's dtype asks for, or more.
      vals: values of the kernel's variables, by Variable or by name.
      global_size: work-groups along x, y, z; None takes what the kernel's SPECIAL nodes say.
      local_size: work-items in a group along x, y, z; None likewise.
      threads: values that ``core_id`` takes; None likewise.
      fused: whether MULACC rounds once.

    >>> from tg_codegen.ir.uop import const
    >>> from tg_dtype import dtypes
    >>> data = UOp(UOps.PARAM, dtypes.int32.ptr(4), (), 0)
    >>> i = UOp(UOps.RANGE, dtypes.int32, (const(0, dtypes.int32), const(4, dtypes.int32)), "i")
    >>> store = UOp(UOps.STORE, dtypes.void, (data, i, i.alu(Ops.MUL, i)))
    >>> out = bytearray(16)
    >>> interpret(UOp(UOps.SINK, dtypes.void, (UOp(UOps.LOOP, dtypes.void, (i, store)),)), [out])
    >>> memoryview(out).cast("i").tolist()
    [0, 1, 4, 9]

    Raises:
      KernelFault: on an access out of range, a read of scratch that was not written, a race, a barrier not reached by
        all.
      ValueError: if a buffer or a variable is missing, or a buffer is too small.
    """
    linear = linearize(uops) if isinstance(uops, UOp) else list(uops)
    values = {(key if isinstance(key, str) else key.name): value for key, value in (vals or {}).items()}
    program = _Program(linear, values, fused)
    memory: dict[UOp, _Memory] = {}
    sizes = dict.fromkeys(("core_id", *(f"{kind}idx{axis}" for kind in "gl" for axis in range(3))), 1)
    for u in linear:
        if u.op is UOps.PARAM:
            if not 0 <= u.arg < len(bufs):
                raise ValueError(f"the kernel's slot {u.arg} was given no buffer; there are {len(bufs)}")
            assert isinstance(u.dtype, PtrDType)
            memory[u] = _Buffer(f"slot {u.arg}", u.dtype.base, u.dtype.size, memoryview(bufs[u.arg]))
        elif u.op is UOps.SPECIAL:
            size = u.arg[1]
            sizes[u.arg[0]] = int(size.evaluate(values)) if isinstance(size, Expr) else int(size)
    given: dict[str, tuple[int, ...] | None] = {"gidx": global_size, "lidx": local_size}
    for name, triple in given.items():
        sizes.update({f"{name}{axis}": n for axis, n in enumerate(triple or ())})
    if threads is not None:
        sizes["core_id"] = threads
    outer = ["core_id", "gidx2", "gidx1", "gidx0"]
    inner = ["lidx2", "lidx1", "lidx0"]
    for where in product(*[range(sizes[name]) for name in outer]):
        _run_group(program, memory, dict(zip(outer, where, strict=True)), {name: sizes[name] for name in inner})


def _run_group(program: _Program, memory: dict[UOp, _Memory], where: dict[str, int], local: dict[str, int]) -> None:
    shared: dict[UOp, _Shared] = {}
    private = []
    for u in program.uops:
        if u.op is UOps.SCRATCH:
            assert isinstance(u.dtype, PtrDType)
            if u.dtype.space is AddrSpace.LOCAL:
                shared[u] = _Shared(f"scratch {u.arg[0]}", u.dtype.base, u.arg[1])
            else:
                private.append(u)
    running: list[Generator[int, None, None]] = []
    for number, local_index in enumerate(product(*[range(n) for n in local.values()])):
        own: dict[UOp, _Memory] = {u: _Scratch(f"scratch {u.arg[0]}", u.dtype.base, u.arg[1]) for u in private}
        special = {**where, **dict(zip(local, local_index, strict=True))}
        item = _Item(number, len(program.uops), special, {**memory, **shared, **own})
        running.append(program.run(item))
    while True:
        reached = [next(item, None) for item in running]
        for scratch in shared.values():
            scratch.barrier()
        if all(barrier is None for barrier in reached):
            return
        if any(barrier != reached[0] for barrier in reached):
            raise KernelFault("the work-items of a group do not all reach the same barrier")


@cache
def _products(instruction: MatrixInstruction) -> list[list[tuple[int, int]]]:
    """For each element of the sum, the elements of both operands whose products it gets."""
    a, b = ({fragment.place(n): n for n in range(fragment.count)} for fragment in instruction.fragments[:2])
    c = instruction.fragments[2]
    return [[(a[m, k], b[k, n]) for k in range(instruction.shape[2])] for m, n in map(c.place, range(c.count))]
