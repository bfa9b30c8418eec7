"""LinearBuilder: kernels written by hand, one UOp at a time."""

from __future__ import annotations

from collections.abc import Sequence

from tg_dtype import AddrSpace, ConstType, DType, dtypes
from tg_lazy import Ops, result_dtype
from tg_shape import Variable

from .statements import Statements
from .uop import KOp, UOp, UOps, const


class LinearBuilder:
    """Writes a kernel in the linear form by hand: every method appends one UOp and returns it.

    Example:
      >>> from tg_dtype import dtypes
      >>> from tg_lazy import Ops
      >>> k = LinearBuilder()
      >>> out, a = k.param(0, dtypes.float32), k.param(1, dtypes.float32)
      >>> with k.range(16) as i:
      ...     _ = k.store(out, i, k.alu(Ops.SQRT, k.load(a, i)))
      >>> [u.op.name for u in k.uops if u.op is not UOps.CONST]
      ['PARAM', 'PARAM', 'RANGE', 'LOAD', 'SQRT', 'STORE', 'ENDRANGE']
    """

    def __init__(self) -> None:
        self._statements = Statements()
        self._numbers = 0

    @property
    def uops(self) -> list[UOp]:
        """The kernel so far."""
        return self._statements.uops

    def add(self, op: KOp, dtype: DType = dtypes.void, src: Sequence[UOp] = (), arg: object = None) -> UOp:
        """Any UOp; effects are appended again if repeated, values are not."""
        return self._statements.add(UOp(op, dtype, tuple(src), arg))

    def const(self, value: ConstType, dtype: DType = dtypes.int32) -> UOp:
        u = const(value, dtype)
        return self.add(u.op, u.dtype, (), u.arg)

    def param(self, slot: int, dtype: DType) -> UOp:
        return self.add(UOps.PARAM, dtype.ptr(), (), slot)

    def variable(self, name: str, low: int, high: int) -> UOp:
        return self.add(UOps.VAR, dtypes.int32, (), Variable(name, low, high))

    def special(self, name: str, size: int) -> UOp:
        return self.add(UOps.SPECIAL, dtypes.int32, (), (name, size))

    def scratch(self, name: str, dtype: DType, size: int, space: AddrSpace = AddrSpace.REG) -> UOp:
        return self.add(UOps.SCRATCH, dtype.ptr(size, space), (), (name, size))

    def range(self, end: int | UOp, start: int | UOp = 0, step: int = 1, name: str = "i") -> _Open:
        low, high = (self.const(bound) if isinstance(bound, int) else bound for bound in (start, end))
        tail = () if step == 1 else (self.const(step),)
        return _Open(self, self.add(UOps.RANGE, dtypes.int32, (low, high, *tail), name))

    def iff(self, condition: UOp) -> _Open:
        self._numbers += 1
        return _Open(self, self.add(UOps.IF, dtypes.void, (condition,), self._numbers))

    def acc(self, init: UOp) -> UOp:
        self._numbers += 1
        return self.add(UOps.ACC, init.dtype, (init,), self._numbers)

    def assign(self, acc: UOp, value: UOp) -> UOp:
        return self.add(UOps.ASSIGN, dtypes.void, (acc, value))

    def read(self, acc: UOp) -> UOp:
        """The register's value after the effect appended last."""
        return self.add(UOps.READ, acc.dtype, (acc, self.uops[-1]))

    def after(self, pointer: UOp) -> UOp:
        """The pointer, once the effect appended last has run."""
        return self.add(UOps.AFTER, pointer.dtype, (pointer, self.uops[-1]))

    def barrier(self) -> UOp:
        return self.add(UOps.BARRIER)

    def load(self, pointer: UOp, index: UOp, lanes: int = 1, gate: UOp | None = None, alt: UOp | None = None) -> UOp:
        tail = () if gate is None else (gate,) if alt is None else (gate, alt)
        return self.add(UOps.LOAD, pointer.dtype.element.vec(lanes), (pointer, index, *tail))

    def store(self, pointer: UOp, index: UOp, value: UOp, gate: UOp | None = None) -> UOp:
        return self.add(UOps.STORE, dtypes.void, (pointer, index, value, *(() if gate is None else (gate,))))

    def alu(self, op: Ops, *src: UOp) -> UOp:
        return self.add(op, result_dtype(op, *(s.dtype for s in src)), src)

    def cast(self, x: UOp, dtype: DType) -> UOp:
        return self.add(Ops.CAST, dtype.vec(x.dtype.count), (x,))

    def bitcast(self, x: UOp, dtype: DType) -> UOp:
        return self.add(Ops.BITCAST, dtype.vec(x.dtype.count), (x,))

    def broadcast(self, x: UOp, lanes: int) -> UOp:
        return self.add(UOps.BROADCAST, x.dtype.vec(lanes), (x,))

    def vectorize(self, *lanes: UOp) -> UOp:
        return self.add(UOps.VECTORIZE, lanes[0].dtype.vec(len(lanes)), lanes)

    def gep(self, x: UOp, *lanes: int) -> UOp:
        return self.add(UOps.GEP, x.dtype.scalar().vec(len(lanes)), (x,), lanes)

    def shuffle(self, x: UOp, y: UOp, *lanes: int) -> UOp:
        return self.add(UOps.GEP, x.dtype.scalar().vec(len(lanes)), (x, y), lanes)


class _Open:
    """A RANGE or IF that a ``with`` statement closes."""

    def __init__(self, kernel: LinearBuilder, opened: UOp) -> None:
        self.kernel, self.opened = kernel, opened

    def __enter__(self) -> UOp:
        return self.opened

    def __exit__(self, *_: object) -> None:
        close = UOps.ENDRANGE if self.opened.op is UOps.RANGE else UOps.ENDIF
        self.kernel.add(close, dtypes.void, (self.opened,))
