"""Writing to the memory of a tensor."""

from __future__ import annotations

from tg_dtype import DType, can_safe_cast
from tg_lazy import LazyBuffer, Ops
from tg_lazy.graph.lazybuffer import graph_lock
from tg_lazy.trackers import writes_once
from tg_shape import ShapeTracker, prod, sint

from ..autograd.differentiation import MODE
from ..autograd.functions import UNRECORDED, Contiguous, Put, RowSparse
from ..autograd.functions.row_sparse import stretched
from ..autograd.functions.updating import places
from ..autograd.hooks import leave_hooks, share_hooks
from ..host import transfer
from ..keywords import ArgumentError
from ..memory import disk
from .base import B, Base
from .casts import cast, to
from .computing import clone
from .movement import reshape, stretch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..memory.home import Lineage


def assign(x: B, value: Any) -> B:
    """Gives this tensor new elements, in the same memory. Returns it.

    What was computed from the old elements keeps them; views of the same memory show the new ones, and what is
    assigned to a view shows in the whole. The value is broadcast and cast, as PyTorch's ``copy_`` does. Memory that
    must not be written (that of a loaded file, what a library lends read-only) is left alone: those who see it get
    a copy. A file (DISK) and shared memory (SHM) are written at once, by a copy.

    Args:
      value: a tensor on the same device, or data for one; a number fills. To DISK and SHM, which run no kernels,
        from any device.

    Raises:
      ValueError: if the shapes do not broadcast, the devices differ; of a file, this is no contiguous range.
      TypeError: if the value is nothing that holds numbers.
      RuntimeError: if ``value`` requires a gradient: ``detach()`` it. Or several elements of this tensor are one
        place in memory, as after ``expand``: ``clone()`` it first.
      DeviceError: if the file is read-only, or too short.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([[1, 2], [3, 4]])
      >>> _ = x[0].assign(7.9)
      >>> x.tolist()
      [[7, 7], [3, 4]]
    """
    copied = transfer.runs_nothing(x.device)
    new = _from_anywhere(x, value, "assign") if copied else fitting(x, value, "assign")
    if new.shape != x.shape:
        if not _fits(new.shape, x.shape):
            raise ValueError(f"assign: a value of shape {new.shape} into a tensor of shape {x.shape}")
        new = stretch(new, x.shape)
    if new._wish and MODE.recording:
        raise RuntimeError("assign: the value requires a gradient, which cannot flow through memory; detach() it")
    _check_view(x)
    if copied:
        disk.write(x._memory(), x.lazydata, new.lazydata, "assign")
    elif x._ctx is not None and flows(x):
        take_over(x, new)
    else:
        store(x, new)
    return x


def as_value(x: B, value: Any, what: str) -> B:
    """``value`` as a tensor like this one: same device and dtype. It is cast only where nothing can be lost."""
    if value is None:
        raise TypeError(f"{what}: None is no value for a tensor of shape {x.shape}")
    if not isinstance(value, Base):
        value = transfer.number_of(value)
        if isinstance(value, complex) or (transfer.is_array(value) and value.dtype.kind == "c"):
            raise TypeError(f"{what}: complex numbers into a tensor of {x.dtype.name}; cast them")
        if isinstance(value, float) and x.dtype.kind != "float":
            raise TypeError(f"{what}: a float into a tensor of {x.dtype.name}; cast one of them")
        return type(x)(value, device=x.device, dtype=x.dtype)
    if value.device != x.device:
        raise ValueError(f"{what}: a value on {value.device} into a tensor on {x.device}; use .to()")
    if not can_safe_cast(value.dtype, x.dtype):
        raise TypeError(f"{what}: a value of {value.dtype.name} into a tensor of {x.dtype.name}; cast it")
    new: B = cast(value, x.dtype)  # type: ignore[assignment]
    return new


def _fits(old: tuple[sint, ...], shape: tuple[sint, ...]) -> bool:
    """Whether a value of a shape broadcasts to another one."""
    return len(old) <= len(shape) and all(d in (1, n) for d, n in zip(old[::-1], shape[::-1], strict=False))


def fitting(x: B, value: Any, what: str) -> B:
    """``value`` as a tensor of this one's dtype and device, cast as numpy casts what is written to a part."""
    value = transfer.number_of(value)
    several = isinstance(value, (list, tuple, range))
    known = value is None or isinstance(value, (Base, bool, int, float, complex))
    if not known and (x.dtype.kind == "bool" or not several):
        value = type(x)(value, device=x.device)  # of an array, whose numbers wrap as those of tensors do
    if isinstance(value, complex) or (isinstance(value, Base) and value.dtype.kind == "complex"):
        raise TypeError(f"{what}: complex numbers into a tensor of {x.dtype.name}; cast them")
    if isinstance(value, Base):
        value = cast(value, x.dtype)
    elif isinstance(value, float):  # the integer toward 0
        value = type(x)(value, device=x.device, dtype=x.dtype)
    return as_value(x, value, what)


def _from_anywhere(x: B, value: Any, what: str) -> B:
    """As :func:`as_value`, for a device that runs nothing: on the value's device, or on the host."""
    if not isinstance(value, Base):
        return x._wrap(as_value(_on_host(x), value, what).lazydata)
    new: B = value  # type: ignore[assignment]
    if not can_safe_cast(new.dtype, x.dtype):
        raise TypeError(f"{what}: a value of {new.dtype.name} into a tensor of {x.dtype.name}; cast it")
    if new.dtype is not x.dtype and transfer.runs_nothing(new.device):
        new = to(new, disk.HOST)
    return cast(new, x.dtype)


def _on_host(x: B) -> B:
    """A tensor of this one's dtype on the host."""
    return x._wrap(LazyBuffer.const(0, x.dtype, (), disk.HOST))


def store(x: B, new: B) -> None:
    """Writes elements, of this tensor's shape and dtype, to its memory."""
    _written(x, None, new)
    line = lineage(x)
    node = line.node
    if node is not None and node._ctx is UNRECORDED and prod(x.shape) == prod(node.shape):  # nothing is left of it
        line.node = x._ctx = None


def _written(x: B, part: ShapeTracker | None, new: B) -> None:
    """:func:`write`, of a tensor that nothing is to be known of any more but what its memory knows."""
    value = new.lazydata
    _ = x.lazydata
    if lineage(x).node is None:
        x._let_go()
    write(x, part, value)


def accumulate(x: B, value: LazyBuffer | RowSparse) -> None:
    """Adds a value, of this tensor's shape and dtype, in place. Rows that are added to a row-sparse tensor join it.

    Raises:
      RuntimeError: if several elements of the tensor are one place in memory.
    """
    rows = x._row_sparse()
    if isinstance(value, RowSparse):
        if rows is not None:
            x._become_sparse(rows.alu(Ops.ADD, value))  # type: ignore[arg-type]
            return
        if x.dtype.itemsize >= 4:
            update_rows(x, value.index, value.values, Ops.ADD)
            return
        value = value.dense()  # rounded once
    elif rows is not None and x._home is None:
        x._become_dense(rows.added_to(value))
        return
    with graph_lock:
        home = x._memory()
        total = x.lazydata.alu(Ops.ADD, value)
        st = (x._place or x.lazydata).st
        if not writes_once(st):
            raise RuntimeError(f"assign: {several_places(x.shape)}")
        if st.size != 0:
            home.write(st, total, computed=True)


def update_rows(
    x: B, index: LazyBuffer, values: LazyBuffer, op: Ops | None = None, distinct: bool = False
) -> None:
    """Combines rows of this tensor with values, in their order and in the tensor's memory: no other row is touched.

    Args:
      index: which rows, shape (m,); nothing is written for those out of range.
      values: shape (m, …), of this tensor's dtype.
      op: ADD, MUL or MAX; None to replace the rows.
      distinct: no row is named twice, which is not checked: they may be written in any order.

    Raises:
      RuntimeError: if several elements of the tensor are one place in memory.
    """
    if 0 in values.shape or 0 in x.shape:
        return
    x._let_go()
    with graph_lock:
        home = x._memory()
        st = (x._place or x.lazydata).st
        if not writes_once(st):
            raise RuntimeError(f"assign: {several_places(x.shape)}")
        home.update(places(st, 0, values.shape), stretched(index, values.shape), values, op, distinct)


def write(x: B, part: ShapeTracker | None, value: LazyBuffer) -> None:
    """Writes a value to a part of this tensor.

    Args:
      part: where in memory; where all of this tensor is if it is None.
      value: of the shape of the part.

    Raises:
      RuntimeError: if several elements of the tensor are one place in memory.
    """
    with graph_lock:
        st = place_of(x)
        if not writes_once(st):
            raise RuntimeError(f"assign: {several_places(x.shape)}")
        if part is not None:
            st = part
        if st.size != 0:
            x._memory().write(st, value)


def place_of(x: B) -> ShapeTracker:
    """Where this tensor lies in its memory."""
    with graph_lock:
        x._memory()
        return (x._place or x.lazydata).st


def flows(x: B) -> bool:
    """Whether a gradient may be wanted of what is written to this tensor.

    It is if one is required, or flows to parameters of layers. A parameter that leaves it open, and a view of one, is
    written as data.
    """
    if not MODE.recording:
        return False
    _ = x.lazydata  # and with it the graph of the newest version
    if x._wants_grad is True:
        return True
    return x._ctx is not None and x._ctx.learnt and _viewed(x)._ctx is not None


def recorded(x: B, value: B, part: ShapeTracker | None = None) -> bool:
    """Whether a gradient may be wanted of this tensor or of ``value``, which is written to it.

    Not of a part with symbolic bounds of what is kept from step to step (a cache that one graph fills), as long as it
    is parameters of layers alone that may want one: the next step would then have to compute this one, of another
    value of the variable, once more.

    Args:
      value: what is written.
      part: where to in memory, if not to all of this tensor.
    """
    return _may_want(x, value) and not _moves_on(x, value, part)


def _may_want(x: B, value: B) -> bool:
    return flows(x) or (brings(value) and not _viewed(x)._parameter)


def _moves_on(x: B, value: B, part: ShapeTracker | None) -> bool:
    """Whether the part has symbolic bounds in what is kept, and nothing says that it requires a gradient."""
    st = part or place_of(x)
    if st.numeric or x._wants_grad is True or value._wants_grad is True:
        return False
    home = x._memory()
    if st.contiguous and prod(st.shape) == prod(home.root.shape):
        return False
    line = lineage(x)
    return not (flows(x) if line.node is None else line.computed)


def write_as_data(x: B, value: B, part: ShapeTracker | None = None, whole: bool = False) -> None:
    """Writes a value through which no gradient flows: to a part with symbolic bounds, or where none is wanted.

    If one may be wanted, whoever asks for it later gets an error.

    Args:
      value: of the shape of the part.
      part: where to in memory, if not to all of this tensor.
      whole: whether all of this tensor is written nevertheless, by a value that differs from it in this part.
    """
    lost = _may_want(x, value) and _moves_on(x, value, part)
    if part is None:
        store(x, value)
    else:
        _written(x, None if whole else part, value)
    if lost:
        node = x._wrap(LazyBuffer.const(0, x.dtype, x._memory().root.shape, x.device), None)
        node._ctx = UNRECORDED
        lineage(x).node = node


def brings(value: B) -> bool:
    """Whether a gradient may be wanted of ``value``: one is required, or it depends on parameters of layers."""
    return MODE.recording and (value._wants_grad is True or brings_to_layers(value))


def brings_to_layers(value: B) -> bool:
    """Whether ``value`` is a parameter of a layer or depends on one, and nobody said whether a gradient is wanted."""
    return value._wants_grad is None and (value._parameter if value._ctx is None else value._ctx.learnt)


def take_over(x: B, new: B, part: ShapeTracker | None = None, *, apart: bool = False) -> None:
    """Gives this tensor new elements, of its shape and dtype, through which a gradient flows if one may be wanted.

    Args:
      new: the elements.
      part: where in memory they differ from the old ones, if not everywhere in this tensor.
      apart: whether they are computed without the old ones, whose gradient is zero then, and not None.

    Raises:
      RuntimeError: if this tensor is a leaf that requires a gradient, or a view of one; or a view that was made in
        ``no_grad`` of what requires one.
    """
    _check_view(x)
    if not recorded(x, new, part):
        write_as_data(x, new, part, whole=True)
        return
    with graph_lock:
        home, st = x._memory(), (x._place or x.lazydata).st
        root = home.root
        if not writes_once(st):
            raise RuntimeError(f"assign: {several_places(x.shape)}")
        line, whole = lineage(x), _viewed(x)
        if line.node is None and whole._wants_grad is True and whole._ctx is None:
            raise RuntimeError(
                f"a leaf of shape {whole.shape} that requires a gradient, or a view of it, is not written in place; "
                "do it in Tensor.no_grad(), or compute a new tensor"
            )
        hooked = leave_hooks(whole)
        if whole is not x:
            leave_hooks(x)
        old = _as_root(x, line, whole, hooked)
        replaces = st.contiguous and prod(st.shape) == prod(root.shape) and not (apart and brings(old))
        if replaces and new._ctx is not None and brings(new):
            made = new if new.shape == root.shape else reshape(new, root.shape)
            others = made._home is not None and not made._home.direct  # a node of theirs, who may write to it
            if others or not made.lazydata.is_whole or made.lazydata.base is home.base:
                made = made._apply(Contiguous(fresh=True))
        else:
            made = old._apply(Put(st), new)
        node = x._wrap(made.lazydata, made._wants_grad)
        node._ctx = made._ctx
        if line.node is None:
            line.computed = flows(x)
        line.node = node
        home.take(node._lazy)
        share_hooks(whole)


def _check_view(x: B) -> None:
    """Raises a RuntimeError for a view without a graph of what requires a gradient: what its gradient is, is open."""
    if MODE.recording and x._home is not None and x._ctx is None and x._wants_grad is False:
        whole = _viewed(x)
        if whole._wants_grad is True and lineage(x).node is None:
            raise RuntimeError(
                f"a view of shape {x.shape}, made in Tensor.no_grad(), of what requires a gradient is not written in "
                "place; make it outside of that, or write in Tensor.no_grad()"
            )


def lineage(x: B) -> Lineage:
    """Where the elements of this tensor come from."""
    return x._cut or x._memory()


def _covers(x: B, root: LazyBuffer) -> bool:
    """Whether a tensor shows all elements of its memory, in their order."""
    st = place_of(x)
    return st.contiguous and prod(st.shape) == prod(root.shape)


def _as_root(x: B, line: Lineage, whole: B, hooked: bool) -> B:
    """The whole memory as a tensor that computes with it, and knows where it comes from.

    Args:
      line: of this tensor.
      whole: what it is a view of.
      hooked: whether there are hooks of ``whole`` that see its gradient as of now.
    """
    home, node = x._memory(), line.node
    covers = x._cut is None and _covers(whole, home.root)
    if hooked and covers and whole.shape == home.root.shape:
        node = whole
    elif node is not None and node._lazy.base is home.base:
        return node  # type: ignore[no-any-return]
    origin: B | None = node  # written as data since, perhaps through others: the elements are the newest ones
    if node is None and covers:
        origin = whole
    out = x._wrap(home.root if home.root.is_whole else home.root.clone())
    if origin is not None:
        out._ctx, out._wants_grad = origin._ctx, origin._wants_grad
    return out


def _viewed(x: B) -> B:
    """The tensor of which this one is a view, of a view, and so on; or itself."""
    home, line = x._memory(), lineage(x)
    whole: B | None = None if line.owner is None else line.owner()
    if whole is not None and whole._home is home and lineage(whole) is line:
        return whole
    while x._ctx is not None and x._ctx.view:
        above: B = x._ctx.parents[0]  # type: ignore[assignment]
        if above._home is not home or lineage(above) is not line:
            break
        x = above
    return x


def check_kinds(written: DType, result: DType, what: str) -> None:
    """Raises an error if a result is of a kind of number that does not fit into what is written."""
    kinds = ("bool", "uint", "int", "float", "complex")
    narrower = kinds.index(result.kind) > kinds.index(written.kind)
    if narrower and {result.kind, written.kind} != {"int", "uint"}:
        raise ArgumentError(
            f"{what}: the result type {result.name} can't be cast to {written.name}, the type of what is written"
        )


def in_place(x: B, result: B, what: str) -> B:
    """Writes the result of an operator to the memory of its first operand.

    Raises:
      ValueError: if it has another shape, or a kind of number that does not fit.
    """
    check_kinds(x.dtype, result.dtype, what)
    if result.shape != x.shape:
        raise ArgumentError(f"{what}: a result of shape {result.shape} does not fit in place into {x.shape}")
    take_over(x, cast(result, x.dtype))
    return x


def kept_for(x: B, other: Any, always: bool = False) -> tuple[B, Any]:
    """The operands of what is to be written to this tensor: where a gradient is made of the old elements, a copy.

    Args:
      other: the other operand, whose gradient is made of them if it wants one.
      always: whether the gradient of this one is, too.
    """
    brought = isinstance(other, Base) and brings(other)
    if not (brought or (always and flows(x))) or not recorded(x, other if brought else x):
        return x, other
    kept = clone(x)
    return kept, kept if other is x else other


def several_places(shape: tuple[sint, ...]) -> str:
    """Why a tensor is not written."""
    return (
        f"in this tensor of shape {shape} several elements are one place in memory, as expand and overlapping "
        "windows have it; clone() it before it is written"
    )
