"""What a tensor holds: its node and its memory, among those that share it, and where it comes from.

The rest of the core are functions of this; :class:`~tg_frontend.array.Array` binds them as methods.
"""

from __future__ import annotations

from typing import TypeVar
from weakref import ref

from tg_dtype import DType
from tg_lazy import LazyBuffer, Ops
from tg_lazy.graph.lazybuffer import graph_lock
from tg_lazy.ops import LEAVES
from tg_lazy.trackers import writes_once
from tg_shape import View, prod, sint

from ..autograd.differentiation import MODE
from ..autograd.functions import Function, RowSparse, Seen
from ..autograd.hooks import Hooks, follow_hooks
from ..host import transfer
from ..host.coerce import to_dtype
from ..memory.home import Clock, Lineage, Memory, proxy
from ..memory.realization import Moves, enlist
from .agreement import agreed
from .ingest import ingest, placed, value_of
from .rows import Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, ClassVar, Self

DTypeLike = DType | str | type
_VIEW = Ops.VIEW


class Base:
    """What a tensor holds, and how functions are applied to it."""

    # _home: the memory, once a view shares it or it was written; _place: how a view sees the memory, while _lazy, whose
    # base is only where the value comes from, does not tell; _cut: where the elements come from, of what was detached
    __slots__ = (
        "__weakref__", "_ctx", "_cut", "_home", "_hooks", "_lazy", "_parameter", "_parts", "_place", "_rows",
        "_severed", "_transient", "_wants_grad", "grad",
    )  # fmt: skip

    _lazy: LazyBuffer
    _wants_grad: bool | None
    _parameter: bool  # a layer made this to be learnt, or it stands for an argument of a loop's function
    grad: Self | None
    _ctx: Function | None
    _home: Memory | None
    _place: LazyBuffer | None
    _cut: Lineage | None
    _transient: bool  # set where a model holds this, but not in its state
    _hooks: Hooks  # set only where somebody asked for it
    _rows: Rows | None  # of what was row-sparse at first
    _severed: int  # set only where the tensor was cut off its graph: the number of the last write then
    _parts: tuple[Self, Self]  # set only where the tensor is complex

    training: ClassVar[bool] = False
    _results: ClassVar[Any] = None  # the class of what is computed with an object of this one, where it is another

    def __init__(
        self, data: Any = None, device: str | None = None, dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
    ) -> None:  # fmt: skip
        """Makes a tensor of ``data``: see the class."""
        wanted = None if dtype is None else to_dtype(dtype)
        made = ingest(data, placed(device), wanted, device is None)
        if isinstance(made, tuple):
            self._become_complex(made, requires_grad)
            return
        self._lazy = made
        self.grad = self._ctx = self._home = self._place = self._cut = self._rows = None
        self._parameter = False
        if requires_grad is not None:
            self._check_wish(requires_grad)
        self._wants_grad = requires_grad
        enlist(self)

    @classmethod
    def _wrap(cls, lazy: LazyBuffer, requires_grad: bool | None = False) -> Self:
        self = object.__new__(cls)
        self._lazy, self._wants_grad = lazy, requires_grad
        self.grad = self._ctx = self._home = self._place = self._cut = self._rows = None
        self._parameter = False
        enlist(self)
        return self

    @classmethod
    def _value(cls, lazy: LazyBuffer | RowSparse) -> Self:
        """A tensor of this value, which may be that of other tensors: it shares no memory with them.

        Args:
          lazy: the value: a node, or a :class:`RowSparse`.
        """
        if isinstance(lazy, RowSparse):
            out = object.__new__(cls)
            out.grad = out._ctx = out._cut = None
            out._wants_grad = out._parameter = False
            out._become_sparse(lazy)
            return out
        out = cls._wrap(lazy)
        out._part()
        return out

    # *** complex numbers ***
    # A complex tensor is of a class of its own, a subclass of this one: it holds two tensors of floats and has no node.
    # What is not defined for it is refused there, and whatever looks for its node fails.

    _complex_class: ClassVar[Any]  # gives the class of complex tensors beside this one

    @classmethod
    def _composed(cls, real: Self, imag: Self) -> Self:
        """A complex tensor of these parts, of one shape, dtype and device, whose memory it takes."""
        out: Self = object.__new__(cls._complex_class())
        out._parts = agreed(real, imag)
        out._parameter = False
        return out

    def _become_complex(self, parts: tuple[LazyBuffer, LazyBuffer], requires_grad: bool | None) -> None:
        """Makes this new object a complex tensor."""
        real, imag = (type(self)(part, part.device, requires_grad=requires_grad) for part in parts)
        self.__class__ = type(self)._complex_class()
        self._parts = real, imag  # type: ignore[assignment]  # whose class is that of this object until now
        self._parameter = False

    def _floats(self) -> tuple[Self, ...]:
        """The tensors of one node each that this one is made of: itself; the parts of a complex one."""
        return (self,)

    def _of_floats(self, parts: Sequence[Self]) -> Self:
        """A tensor like this one, made of other nodes than :meth:`_floats` gave."""
        return parts[0]

    # *** the rows of a sparse tensor ***

    # A row-sparse tensor is like any other, and its node is the dense table, which nothing computes unless somebody
    # asks for it. Its rows are tensors that exist beside it. It is not among those that exist itself: of what is to be
    # overwritten, the rows are kept and not the table.

    def _become_sparse(self, rows: RowSparse) -> None:
        """Gives this tensor other content, of its shape and dtype."""
        self._lazy = rows.dense()
        self._home = self._place = self._cut = None
        self._rows = Rows(self._lazy, self._wrap(rows.index), self._wrap(rows.values), rows.coalesced)
        Moves.number += 1

    def _become_dense(self, lazy: LazyBuffer) -> None:
        """Likewise; the tensor is row-sparse no more."""
        self.lazydata = lazy
        enlist(self)

    def _row_sparse(self) -> RowSparse | None:
        """The rows of a row-sparse tensor; None of others, and of one that was written to since."""
        rows = self._rows
        if rows is None:
            return None
        if self.lazydata is not rows.dense:
            self._rows = None
            return None
        return RowSparse(rows.indices.lazydata, rows.values.lazydata, self.shape, rows.coalesced)

    def _forget_rows(self) -> None:
        """Makes a row-sparse tensor zero."""
        rows = self._row_sparse()
        assert rows is not None
        self._become_sparse(rows.empty())

    def _nodes(self) -> list[LazyBuffer]:
        """What is to be in memory when this tensor is: its rows, if it is sparse."""
        rows = self._row_sparse()
        return [self.lazydata] if rows is None else [rows.index, rows.values]

    def _apply(self, function: Function, *others: Self) -> Self:
        """The result of ``function`` on this tensor and ``others``, recorded if a gradient may be wanted."""
        out: Self = object.__new__(self._results or type(self))
        out.grad = out._ctx = out._home = out._place = out._cut = out._rows = None
        out._parameter = False
        one = self._lazy if self._home is None else self.lazydata
        mine = self._wants_grad  # which a write with a gradient changes when the newest version is looked at
        parents: tuple[Self, ...]
        wants: tuple[bool, ...]
        if len(others) == 1:
            other = others[0]
            two = other._lazy if other._home is None else other.lazydata
            theirs = other._wants_grad
            out._lazy = lazy = function.forward(one, two)
            if lazy.op is _VIEW or lazy is one or lazy is two:
                out._share_with((one, two))
            parents, wants, open_ = (self, other), (mine is True, theirs is True), mine is None or theirs is None
        elif others:
            lazies = (one, *[other.lazydata for other in others])
            out._lazy = lazy = function.forward(*lazies)
            if lazy.op is _VIEW or lazy in lazies:
                out._share_with(lazies)
            every = (mine, *[other._wants_grad for other in others])
            parents, wants, open_ = (self, *others), tuple([wish is True for wish in every]), None in every
        else:
            out._lazy = lazy = function.forward(one)
            if function.view:
                self._show(out, function)
            elif lazy.op is _VIEW or lazy is one or (one.op is _VIEW and lazy is one.srcs[0]):  # flipped back
                out._share_with((one,))
            parents, wants, open_ = (self,), (mine is True,), mine is None
        needs = True in wants
        if (needs or open_) and lazy.dtype.kind == "float" and MODE.recording:
            function.parents = parents
            function.needs = wants
            function.wanted = needs
            function.stamp = Clock.now
            out._ctx, out._wants_grad = function, True if needs else None
            learnt = False
            for parent in parents:
                context = parent._ctx
                if context is None:
                    learnt = learnt or (parent._wants_grad is None and parent._parameter)
                elif context.learnt:
                    learnt = True
                elif not context.wanted:
                    parent._let_go_of_inputs()
            function.learnt = learnt
        else:
            out._wants_grad = None if open_ and not needs else False
        enlist(out)
        return out

    def _let_go(self) -> None:
        """Forgets where the tensor comes from, unless a gradient is required: a chain must not keep all its links."""
        if self._ctx is not None and not self._ctx.wanted:
            self._ctx = None

    def _let_go_of_inputs(self) -> None:
        """Forgets where the tensor comes from if it was computed, and is no view of what it comes from."""
        if self._ctx is None or self._ctx.lasting or self._ctx.learnt:
            return
        if MODE.repeating:  # what is computed again is of a graph that is being gone through
            return
        base = self.lazydata.base
        parents: Any = self._ctx.parents
        if base.is_realized and all(parent.lazydata.base is not base for parent in parents):
            self._ctx = None

    # *** its node and its memory ***

    @property
    def lazydata(self) -> LazyBuffer:
        """The graph of this tensor; of memory that was assigned to, also through a view, the newest version.

        Example:
          >>> from tg_frontend import Tensor
          >>> Tensor([1.0, 2.0]).lazydata.shape
          (2,)
        """
        lazy, home = self._lazy, self._home
        if home is not None and home.base is not (lazy.srcs[0] if lazy.op is _VIEW else lazy):
            return self._follow(home)
        return lazy

    @lazydata.setter
    def lazydata(self, lazy: LazyBuffer) -> None:
        self._lazy = lazy
        self._home = self._place = self._cut = None
        Moves.number += 1

    def _part(self) -> None:
        """Parts this new tensor from those that have the same node."""
        self._home, self._place = Memory.apart(self._lazy, ref(self)), proxy(self._lazy.shape)

    def _share_with(self, operands: Sequence[LazyBuffer]) -> None:
        """Parts this new result from operands, if it is seen in a node of theirs, and from a smaller node of its own.

        Repeated elements are converted before they are repeated, for example: what was computed is no memory of these.
        """
        lazy = self._lazy
        base = lazy.base
        if any(operand.base is base for operand in operands) or not (base.op in LEAVES or writes_once(lazy.st)):
            self._part()

    def _memory(self) -> Memory:
        """The memory of this tensor and its views."""
        home = self._home
        if home is None:
            with graph_lock:
                home = self._home
                if home is None:
                    lazy = self._lazy
                    home = Memory.of(lazy, ref(self))
                    if not home.direct:
                        self._place = proxy(lazy.shape)
                    self._home = home
                    if self._rows is not None:  # others may share the memory of the dense table from now on
                        enlist(self)
        return home

    def _owns(self) -> bool:
        """Whether the memory is there, and may be written where it is."""
        home = self._home
        return (home is None or home.direct) and transfer.is_own(self.lazydata)

    def _lend(self) -> None:
        """Sees to it that the memory is this tensor's alone, which is about to be handed out to be written."""
        home = self._home
        if (home is not None and not home.direct) or self.lazydata.base.shared:
            self._memory().settle()

    def _show(self, out: Self, function: Function) -> None:
        """Makes ``out``, which ``function`` gave, a view of this tensor's memory; or not, if it cannot be one."""
        home, place = self._home or self._memory(), self._place
        if place is not None:
            place = function.forward(place)
        if len((place or out._lazy).st.views) > 1:
            out._part()
        else:
            out._home, out._place, out._cut = home, place, self._cut

    def _show_strided(
        self, out: Self, strides: Callable[[tuple[int, ...]], tuple[int, ...]], offset: Callable[[tuple[int, ...]], int]
    ) -> Self:
        """Makes ``out``, of elements of this tensor, a view of its memory.

        Args:
          strides: from this tensor's strides to those of ``out``.
          offset: from this tensor's strides to how far the first element of ``out`` is from that of this tensor.
        """
        home = self._memory()
        seen = self._place or self.lazydata
        view = seen.st.views[-1]
        if len(seen.st.views) > 1 or view.mask is not None or not seen.st.numeric:
            out._part()
            return out
        steps: Any = view.strides
        out._home, out._cut = home, self._cut
        out._place = seen.seen_through(View(out._lazy.shape, strides(steps), view.offset + offset(steps)))
        return out

    def _follow(self, home: Memory) -> LazyBuffer:
        """Looks at the newest version of the memory."""
        with graph_lock:
            st, base = (self._place or self._lazy).st, home.base
            self._lazy, self._place = base.seen(st), None
        node = (self._cut or home).node
        if node is not None:
            before = object.__new__(type(self))  # of which nothing but the graph is wanted
            before._lazy = LazyBuffer.const(0, self._lazy.dtype, self._lazy.shape, self._lazy.device)
            before.grad = before._home = before._place = before._cut = before._rows = None
            before._parameter = False
            before._ctx, before._wants_grad, before._severed = self._ctx, self._wants_grad, getattr(self, "_severed", 0)
            function, wish = Seen(st), node._wants_grad  # None where a gradient flows to parameters that leave it open
            function.forward(node.lazydata)
            function.parents, function.stamp, function.learnt = (node,), home.written, node._ctx.learnt
            function.wanted, function.needs = wish is True, (wish is True,)
            function.before, function.since, self._ctx, self._wants_grad = before, home.written, function, wish
            follow_hooks(self, before)
        return self._lazy

    # *** what it is ***

    @property
    def _wish(self) -> bool | None:
        """What ``requires_grad`` was set to, here or of what this was computed from; None where nobody said it."""
        _ = self._home is not None and self.lazydata  # and with it the graph of the newest version
        return self._wants_grad

    @_wish.setter
    def _wish(self, value: bool | None) -> None:
        self._check_wish(value)
        if self._ctx is not None and self._ctx.wanted:
            if not value:
                raise RuntimeError(
                    f"requires_grad: a tensor of shape {self.shape} was computed from what requires a gradient; "
                    "detach() gives one that does not"
                )
            return
        if value and not self.is_leaf:  # gradients flow through it to parameters of layers, which leave it open
            return
        self._let_go()
        if value is not self._wants_grad:  # which records look at, as they do at memory
            Moves.number += 1
        self._wants_grad = value

    @property
    def shape(self) -> tuple[sint, ...]:
        """Sizes of the axes; symbolic ones are expressions.

        Example:
          >>> from tg_frontend import Tensor
          >>> Tensor([[1, 2, 3], [4, 5, 6]]).shape
          (2, 3)
        """
        return self._lazy.shape

    @property
    def dtype(self) -> DType:
        """Type of the elements.

        Example:
          >>> from tg_frontend import Tensor
          >>> Tensor([1, 2]).dtype, Tensor([1.0, 2.0]).dtype
          (dtypes.int32, dtypes.float32)
        """
        return self._lazy.dtype

    @property
    def device(self) -> str:
        """Canonical name of the device that holds or will hold the elements.

        Example:
          >>> from tg_frontend import Tensor
          >>> Tensor([1, 2], device="NUMPY").device
          'NUMPY'
        """
        return self._lazy.device

    @property
    def ndim(self) -> int:
        """Number of axes.

        Example:
          >>> from tg_frontend import Tensor
          >>> Tensor([[1, 2, 3], [4, 5, 6]]).ndim
          2
        """
        return len(self._lazy.shape)

    def _check_wish(self, requires_grad: object) -> None:
        if requires_grad is not None and requires_grad not in (True, False):
            raise TypeError(f"requires_grad: True, False or None, got {requires_grad!r}")
        if requires_grad and self.dtype.kind != "float":
            raise TypeError(f"requires_grad: a tensor of {self.dtype.name} has no gradient; only floats have")

    def numel(self) -> sint:
        """Number of elements.

        Example:
          >>> from tg_frontend import Tensor
          >>> Tensor([[1, 2, 3], [4, 5, 6]]).numel()
          6
        """
        return prod(self.shape)

    @property
    def is_sparse(self) -> bool:
        """Whether only some rows are kept, as of the gradient of a table: all others are zero.

        Such a tensor may stand wherever another one may; then the whole table is computed. Written to in place, it is
        dense from then on.

        Example:
          >>> from tg_frontend import Tensor
          >>> table = Tensor.ones(3, 2, requires_grad=True)
          >>> _ = table.embedding(Tensor([1]), sparse=True).sum().backward()
          >>> table.is_sparse, table.grad.is_sparse
          (False, True)
        """
        return self._row_sparse() is not None

    @property
    def is_leaf(self) -> bool:
        """Whether gradients stop here: the tensor was not computed from what requires one.

        Example:
          >>> from tg_frontend import Tensor
          >>> x = Tensor([1.0], requires_grad=True)
          >>> x.is_leaf, (x * 2).is_leaf
          (True, False)
        """
        ctx, wish = self._ctx, self._wants_grad
        return ctx is None or not (wish is True or (wish is None and ctx.learnt))

    def _axis(self, axis: int, what: str, extra: int = 0) -> int:
        """A non-negative axis; ``extra`` counts axes that the result will have more than the operand.

        Raises:
          TypeError: if it is not an integer.
          IndexError: if it is out of range.
        """
        ndim = len(self._lazy.shape) + extra
        if not isinstance(axis, int) or isinstance(axis, bool):
            raise TypeError(f"{what}: an axis is an integer, got {axis!r}")
        limit = ndim or 1
        if not -limit <= axis < limit:
            raise IndexError(f"{what}: axis {axis} is out of range for shape {self.shape} ({-limit} to {limit - 1})")
        return axis + limit if axis < 0 else axis

    def _ints(self) -> tuple[int, ...]:
        """The shape, where every size is a number.

        Raises:
          ValueError: if a size is symbolic and bound to no value.
        """
        shape = self._lazy.shape
        for dim in shape:
            if type(dim) is not int:
                return tuple(value_of(dim, shape) for dim in shape)
        return shape  # type: ignore[return-value]

    def __hash__(self) -> int:
        return id(self)


B = TypeVar("B", bound=Base)
