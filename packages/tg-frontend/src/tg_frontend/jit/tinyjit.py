"""TinyJit: a function's kernels recorded once and replayed without Python.

The first call runs the function as it is, the second records what it executes, later ones replay the record on the
inputs of the call. What a replay changes is plain data: the memory of inputs and outputs, the values of variables,
and the streams of random numbers. Python code of the function is not run again: a value that it computed in Python
is what it was when the record was made.
"""

from __future__ import annotations

import warnings
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar
from weakref import WeakSet, ref

from tg_lazy import DEBUG, LazyBuffer, Ops, Storage
from tg_lazy.ops import LEAVES
from tg_runtime import Usage, capture, capturing
from tg_runtime.host.late_interrupts import finaliser
from tg_runtime.memory.buffer import spoiled

from ..autograd.differentiation import MODE
from ..memory.realization import ASSIGNS, Moves, finish_assigns, realize_all, unfinished_assigns
from ..ops.streams import RECORDING
from ..tensor import Tensor
from .call import Call, JitError, OtherMemory
from .made import Made
from .reach import Reached
from .record import Record
from .results import rebuilt, tensors_in
from .steps import JIT

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")

_PATIENCE = 3
"""Calls that are recorded anew, each soon after the one before, until a warning says so."""
_SOON = 16
"""Replays from which on a record for some tensors, before others came, was worth making: it takes about as long."""


_functions: WeakSet[TinyJit[Any, Any]] = WeakSet()


@spoiled.append
def _forget() -> None:
    """A record holds addresses: where some of that memory was left half written, the functions are recorded anew."""
    for function in list(_functions):
        function.reset()


class TinyJit(Generic[P, R]):
    """Records the kernels that a function executes in its second call, and replays them from the third on.

    Tensors are recognised as arguments, and in lists, tuples and dicts that are arguments; so are bound variables,
    whose values may change between calls. Shapes, dtypes, devices and other arguments must stay the same. Results may
    be nested lists, tuples, dicts and dataclasses; their tensors are realised, and have memory of their own for every
    call, which those share that share it without TinyJit. Objects that the function reads from outside (a model, an
    optimiser) are used in place: what is written to them between calls is seen, and where the function would find
    other tensors there it is recorded again. The rules are in ``docs/jit.md``.

    Args:
      fxn: the function. It is called in the first two calls, and whenever it is to be recorded again.

    Raises:
      JitError: if the arguments do not fit the record, or the function cannot be recorded.

    Example:
      >>> from tg_frontend import Tensor, TinyJit
      >>> double = TinyJit(lambda x: x * 2)
      >>> [double(Tensor([i])).item() for i in range(4)]
      [0, 2, 4, 6]
    """

    leads_to = ("fxn",)

    def __init__(self, fxn: Callable[P, R]) -> None:
        self.fxn = fxn
        self._lock = RLock()
        self._methods: dict[int, tuple[Any, TinyJit[..., R]]] = {}
        self.reset()
        _functions.add(self)

    def reset(self) -> None:
        """Forgets the record: the next two calls run the function again.

        Example:
          >>> from tg_frontend import Tensor, TinyJit
          >>> double = TinyJit(lambda x: x * 2)
          >>> _ = [double(Tensor([i])) for i in range(3)]
          >>> double.reset()
          >>> double.captured is None
          True
        """
        self.cnt = 0
        self.captured: Record | None = None
        self._anew = self._replays = 0

    @property
    def memory(self) -> Usage | None:
        """What the memory between the kernels of the record takes; None while nothing is recorded.

        Example:
          >>> from tg_frontend import Tensor, TinyJit
          >>> grow = TinyJit(lambda x: (x + 1).contiguous() * 2)
          >>> _ = [grow(Tensor([i])) for i in range(3)]
          >>> grow.memory is not None
          True
        """
        return None if self.captured is None else self.captured.memory

    def __get__(self, obj: Any, owner: type | None = None) -> Any:
        return self if obj is None else BoundJit(self._of(obj), obj)

    def _of(self, obj: Any) -> TinyJit[..., R]:
        """The TinyJit of an instance on which this one is a method; it is forgotten with the instance."""
        number = id(obj)
        with self._lock:
            known = self._methods.get(number)
            if known is not None and known[0]() is obj:
                return known[1]
            methods = self._methods

            @finaliser
            def forget(gone: Any) -> None:
                if methods.get(number, (None,))[0] is gone:
                    del methods[number]

            try:
                weak: Any = ref(obj, forget)
            except TypeError:
                raise JitError(
                    f"TinyJit: a {type(obj).__name__} has no weak references, so that no record can be kept for it: "
                    "add __weakref__ to its __slots__"
                ) from None
            own: TinyJit[..., R] = TinyJit(self.fxn)
            methods[number] = weak, own
            return own

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function, records it, or replays the record.

        Raises:
          JitError: if the arguments do not fit the record, or the function cannot be recorded.
        """
        if JIT.value == 0 or capturing():
            # inside of another recording, this one is a plain function
            before = [] if capturing() else finish_assigns()
            return self._finished(self.fxn(*args, **kwargs), before)
        with self._lock:
            record = self.captured
            if record is not None:
                if ASSIGNS:
                    finish_assigns()
                why = record.changed() if record.looks or record.outside.moves != Moves.number else ""
                if not why:
                    try:
                        out: R = NotImplemented if kwargs else record.again(args)
                        if out is NotImplemented:
                            out = record.replay(Call(args, kwargs, record.call.pins))
                        self._replays += 1
                        return out
                    except OtherMemory as error:
                        return self._record_anew(record, str(error), args, kwargs, _SOON)
                return self._record_anew(record, why, args, kwargs)
            if self.cnt == 0:
                Call(args, kwargs)  # what could not be recorded is told at once
                before = finish_assigns()
                result = self._finished(self.fxn(*args, **kwargs), before)
            else:
                result = self._record(args, kwargs)
            self.cnt += 1
            return result

    def _record_anew(
        self, record: Record, why: str, args: tuple[Any, ...], kwargs: dict[str, Any], soon: int = 1
    ) -> R:
        self.captured = None
        self._not_again(why, soon)
        return self._record(args, kwargs, record.outside.roots | record.own)

    def _not_again(self, why: str, soon: int = 1) -> None:
        """Counts records that were replayed less than ``soon`` times, and warns when that does not end."""
        always = self._replays == 0
        self._anew = self._anew + 1 if self._replays < soon else 1
        self._replays = 0
        name = getattr(self.fxn, "__qualname__", type(self.fxn).__name__)
        if DEBUG.value:
            print(f"recorded anew: {name}: {why}")
        if self._anew == _PATIENCE:
            warnings.warn(
                f"TinyJit: {name} is recorded anew in every {'call' if always else 'few calls'}, which is slow: {why}. "
                "Keep state in tensors that are changed by assign, or pass it as an argument and return it; choose "
                "among tensors that the function knows by an index.", RuntimeWarning, stacklevel=5,
            )  # fmt: skip

    @staticmethod
    def _finished(
        result: R, before: list[LazyBuffer], more: Callable[[list[LazyBuffer]], list[LazyBuffer]] | None = None
    ) -> R:
        """The result, realised together with every assignment that is still to be made, cut off from the graph.

        Args:
          result: what the function returned.
          before: assignments from before the call that cannot be made.
          more: gives what is to be realised, too, if these assignments are made.
        """
        tensors = tensors_in(result)
        for tensor in tensors:
            tensor._let_go()
        wanted = []
        for tensor in tensors:
            lazy = tensor.lazydata
            if lazy.base.op in LEAVES and (lazy.base.op is Ops.SYM or not lazy.st.numeric or not lazy.base.st.numeric):
                tensor._memory().settle()
                lazy = tensor.lazydata  # the value of a variable, which is another one in each call
            wanted.append(lazy)
        pending = [node for node in unfinished_assigns() if node not in before]
        realize_all([*wanted, *pending, *(more(pending) if more is not None else ())])
        cut = {id(tensor): tensor.detach() for tensor in tensors if tensor._ctx is not None}
        if not cut:
            return result
        return rebuilt(result, lambda tensor: cut.get(id(tensor), tensor))  # type: ignore[no-any-return]

    def _record(self, args: tuple[Any, ...], kwargs: dict[str, Any], known: frozenset[Storage] = frozenset()) -> R:
        before = finish_assigns()  # what was assigned before the call is no part of the record
        objects = [value for value in (*args, *kwargs.values()) if not isinstance(value, Tensor)]
        reached = Reached([self.fxn, *(value for value in objects if not isinstance(value, (list, tuple, dict)))])

        def find_known() -> set[Storage]:
            return {*known, *(s.root for t in reached.tensors.values() if (s := t.lazydata.storage) is not None)}

        call = Call(args, kwargs, find_known=find_known)
        made = Made(call, None if kwargs else args, reached, origin_of(self.fxn))
        handed, named = call.handed_on((args, kwargs))
        RECORDING.into, MODE.reached = made.streams, made.seen.reach
        try:
            with capture(made.items, made.ended, made.seen.look):
                result = made.apart(self._finished(self.fxn(*handed, **named), before, made.left_gradients))
        finally:
            RECORDING.into = MODE.reached = None
        made.check(result)
        record = Record(made, result)
        result = record.first(call)
        if record.unsettled:
            self._not_again(record.unsettled)
        else:
            self.captured = record
        return result


class BoundJit(Generic[R]):
    """A TinyJit as a method of an instance, which has a record of its own.

    Args:
      jit: the instance's.
      obj: the instance.
    """

    __slots__ = ("__self__", "_jit")

    def __init__(self, jit: TinyJit[..., R], obj: Any) -> None:
        self._jit, self.__self__ = jit, obj

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        """Calls the method, records it, or replays the record."""
        return self._jit(self.__self__, *args, **kwargs)

    @property
    def __func__(self) -> Callable[..., R]:
        return self._jit.fxn

    @property
    def captured(self) -> Record | None:
        """The record; None while there is none."""
        return self._jit.captured

    @property
    def cnt(self) -> int:
        """How often the function was called without a record."""
        return self._jit.cnt

    @property
    def memory(self) -> Usage | None:
        """What the memory between the kernels of the record takes; None while nothing is recorded."""
        return self._jit.memory

    def reset(self) -> None:
        """Forgets the instance's record: the next two calls run the method again."""
        self._jit.reset()


def origin_of(function: Any) -> tuple[str, int]:
    """File and line of a function, for messages."""
    function = getattr(function, "__func__", getattr(function, "func", function))
    code = getattr(function, "__code__", None)
    return ("a function that TinyJit replays", 0) if code is None else (code.co_filename, code.co_firstlineno)
