"""Differentiation, conversion and replacement of a tensor's content."""

from __future__ import annotations

from tg_dtype import can_safe_cast
from tg_lazy import LazyBuffer, Ops
from tg_lazy.graph.lazybuffer import graph_lock
from tg_lazy.trackers import writes_once
from tg_shape import prod, sint

from ..autograd.differentiation import MODE, Switch, differentiate, free, open_leaves, operands_first
from ..autograd.functions import Cast, Contiguous, Put
from ..host import transfer
from ..host.coerce import to_dtype
from ..memory import disk
from ..memory.home import Bits
from ..memory.realization import Moves
from .core import Core, DTypeLike

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self


class Gradient(Core):
    """Gradients, and the in-place operations."""

    __slots__ = ()

    @classmethod
    def no_grad(cls) -> Switch:
        """A ``with`` block (or decorator) in which nothing is recorded for gradients, in this thread.

        Example:
            >>> from tg_frontend import Tensor
            >>> w = Tensor([1.0], requires_grad=True, device="NUMPY")
            >>> with Tensor.no_grad():
            ...     (w * 2).requires_grad
            False
        """
        return Switch(MODE, "recording", False)

    @classmethod
    def train(cls, mode: bool = True) -> Switch:
        """A ``with`` block (or decorator) in which :attr:`training` is ``mode``: dropout drops, BatchNorm learns."""
        return Switch(cls, "training", mode)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Says whether ``backward`` is to give this tensor a ``grad``. Returns it.

        Raises:
          TypeError: the elements are not floats.
          RuntimeError: False, of what was computed from tensors that require a gradient.
        """
        self.requires_grad = requires_grad
        return self

    def detach(self) -> Self:
        """The same elements, cut off from the graph: no gradient flows through. They share their memory."""
        out = self._wrap(self.lazydata)
        out._home, out._place, out._cut = self._memory(), self._place, True
        return out

    def _seed(self, gradient: Self | None, what: str) -> Self:
        _ = self.lazydata  # and with it the graph of the newest version
        if self.requires_grad is False:
            raise RuntimeError(
                f"{what}: this tensor of shape {self.shape} depends on nothing that requires a gradient; "
                "set requires_grad=True on the leaves before computing, outside of Tensor.no_grad()"
            )
        if gradient is None:
            if self.shape != () and self.numel() != 1:
                raise ValueError(f"{what}: a tensor of shape {self.shape} needs a gradient argument of that shape")
            return self._wrap(self.lazydata.const(1, self.dtype, self.shape, self.device))
        if gradient.shape != self.shape or gradient.device != self.device:
            raise ValueError(
                f"{what}: the gradient has shape {gradient.shape} on {gradient.device}, "
                f"the tensor {self.shape} on {self.device}"
            )
        return self._wrap(gradient.lazydata.cast(self.dtype))

    def backward(self, gradient: Self | None = None, retain_graph: bool = False) -> Self:
        """Adds to ``grad`` of every leaf that requires one the gradient of this tensor. Returns this tensor.

        A ``grad`` that is there is added to in place, as PyTorch does: who holds it sees the sum.

        Where no tensor says that it requires a gradient, the parameters of layers get one. The graph is freed, so that
        intermediate results may go, unless ``retain_graph``.

        Args:
          gradient: weight of each element, of this tensor's shape; 1 if this is a single element.

        Raises:
          RuntimeError: nothing requires a gradient, or the graph was freed already.
          ValueError: ``gradient`` is missing or has another shape.

        Example:
            >>> from tg_frontend import Tensor
            >>> x = Tensor([1.0, 2.0], requires_grad=True, device="NUMPY")
            >>> _ = (x * x).sum().backward()
            >>> x.grad.tolist()
            [2.0, 4.0]
        """
        targets: list[Self] | None = None
        if self.requires_grad is None:
            # nothing requires a gradient, but parameters of layers want one, unless they were told otherwise
            targets = [leaf for leaf in open_leaves(self) if getattr(leaf, "_parameter", False)]  # type: ignore[misc]
            if not targets:
                raise RuntimeError(
                    f"backward: this tensor of shape {self.shape} depends on nothing that requires a gradient; "
                    "set requires_grad=True on the leaves before computing, outside of Tensor.no_grad()"
                )
        seed = self._seed(gradient, "backward")
        order = operands_first(self, targets is not None)
        found = differentiate(self, seed.lazydata, targets, order)
        reached = MODE.reached
        for leaf, grad in found:
            assert isinstance(leaf, type(self))
            if reached is not None:
                reached(leaf)
            if leaf.grad is None:
                leaf.grad = self._value(grad)
            else:
                leaf.grad._accumulate(grad)
        if not retain_graph:
            if targets is None:
                free(order)
            self._let_go()
        return self

    def gradient(
        self, *targets: Self, gradient: Self | None = None, materialize_grads: bool = False
    ) -> list[Self]:
        """The gradient of this tensor at ``targets``, which may be intermediate results. Frees and changes nothing.

        Targets need not require a gradient; they must not refuse one (``requires_grad=False``). From a tensor that
        leaves it open and is realised, no gradient flows to what it was computed from.

        Args:
          gradient: weight of each element, of this tensor's shape; 1 if this is a single element.
          materialize_grads: at a target on which this tensor does not depend the gradient is zeros, not an error.

        Raises:
          RuntimeError: a target refuses a gradient, or this tensor does not depend on it (see ``materialize_grads``).
          ValueError: ``gradient`` is missing or has another shape.

        Example:
            >>> from tg_frontend import Tensor
            >>> x = Tensor(3.0, device="NUMPY")
            >>> y = x * x
            >>> [g.item() for g in (y * y).gradient(x, y)]
            [108.0, 18.0]
        """
        seed = self._seed(gradient, "gradient")
        for position, target in enumerate(targets):
            if target.requires_grad is False or target.dtype.kind != "float":
                raise RuntimeError(
                    f"gradient: target {position}, of shape {target.shape} and {target.dtype.name}, has no gradient"
                )
        order = operands_first(self, True)
        found = {id(node): grad for node, grad in differentiate(self, seed.lazydata, targets, order)}
        for position, target in enumerate(targets):
            if id(target) not in found:
                if not materialize_grads:
                    raise RuntimeError(
                        f"gradient: nothing depends on target {position}, of shape {target.shape}; "
                        "with materialize_grads=True its gradient is zeros"
                    )
                found[id(target)] = LazyBuffer.const(0, target.dtype, target.shape, target.device)
        return [self._value(found[id(target)]) for target in targets]

    # *** types ***

    def cast(self, dtype: DTypeLike) -> Self:
        """The elements converted to ``dtype``: from float to integer truncated toward zero and saturated.

        Raises:
          TypeError: ``dtype`` is no type of elements.
        """
        wanted = to_dtype(dtype)
        if wanted is self.dtype:
            return self
        if wanted.kind == "void" or wanted.count != 1:
            raise TypeError(f"cast: {self.dtype.name} to {wanted.name}: elements are scalars")
        return self._apply(Cast(wanted))

    def bitcast(self, dtype: DTypeLike) -> Self:
        """The bits of the elements taken as ``dtype``. Where the sizes differ, the last axis grows or shrinks.

        Raises:
          TypeError: ``dtype`` is no type of elements; or a gradient would be wanted, and there is none.
          ValueError: the last axis does not hold a whole number of the new elements.
        """
        wanted, lazy = to_dtype(dtype), self.lazydata
        if wanted is self.dtype:
            return self
        if wanted.kind == "void" or wanted.count != 1:
            raise TypeError(f"bitcast: {self.dtype.name} to {wanted.name}: elements are scalars")
        if self.requires_grad and MODE.recording:
            raise TypeError(f"bitcast: {self.dtype.name} to {wanted.name} has no gradient; detach() first")
        old, new = self.dtype.itemsize, wanted.itemsize
        if old != new and (not lazy.shape or lazy.shape[-1] * old % new != 0):
            raise ValueError(
                f"bitcast: {self.dtype.name} ({old} bytes) of shape {self.shape} to {wanted.name} ({new} bytes): "
                "the last axis is no whole number of them"
            )
        home = self._memory()
        seen = (self._place or self.lazydata).st
        if not home.direct:  # bits are taken of memory
            home.settle()
        bits = Bits(home, seen, wanted)
        out = self._wrap(bits.root)
        out._home = bits
        return out

    def _as_value(self, value: Any, what: str) -> Self:
        """``value`` as a tensor like this one: same device and dtype. It is cast only where nothing can be lost."""
        if not isinstance(value, Core):
            if isinstance(value, float) and self.dtype.kind != "float":
                raise TypeError(f"{what}: a float into a tensor of {self.dtype.name}; cast one of them")
            return type(self)(value, device=self.device, dtype=self.dtype)
        if value.device != self.device:
            raise ValueError(f"{what}: a value on {value.device} into a tensor on {self.device}; use .to()")
        if not can_safe_cast(value.dtype, self.dtype):
            raise TypeError(f"{what}: a value of {value.dtype.name} into a tensor of {self.dtype.name}; cast it")
        return value.cast(self.dtype)  # type: ignore[attr-defined, no-any-return]

    # *** replacing ***

    def assign(self, value: Any) -> Self:
        """Gives this tensor new elements, in the same memory. Returns it.

        What was computed from the old elements keeps them; views of the same memory show the new ones, and what is
        assigned to a view shows in the whole. The value is broadcast and cast, as PyTorch's ``copy_`` does. Memory that
        must not be written (that of a loaded file, what a library lends read-only) is left alone: those who see it get
        a copy. A file (DISK) and shared memory (SHM) are written at once, by a copy.

        Args:
          value: a tensor on the same device, or data for one; a number fills. To DISK and SHM, which run no kernels,
            from any device.

        Raises:
          ValueError: the shapes do not broadcast, the devices differ; of a file, this is no contiguous range.
          TypeError: the value is nothing that holds numbers.
          RuntimeError: ``value`` requires a gradient: ``detach()`` it. Or several elements of this tensor are one
            place in memory, as after ``expand``: ``clone()`` it first.
          DeviceError: the file is read-only, or too short.

        Example:
            >>> from tg_frontend import Tensor
            >>> x = Tensor([[1, 2], [3, 4]], device="NUMPY")
            >>> _ = x[0].assign(7.9)
            >>> x.tolist()
            [[7, 7], [3, 4]]
        """
        copied = transfer.runs_nothing(self.device)
        new = self._from_anywhere(value, "assign") if copied else self._fitting(value, "assign")
        if new.shape != self.shape:
            new = new._broadcast_to(self.shape, "assign")
        if new.requires_grad and MODE.recording:
            raise RuntimeError("assign: the value requires a gradient, which cannot flow through memory; detach() it")
        if copied:
            disk.write(self._memory(), self.lazydata, new.lazydata, "assign")
        elif self.requires_grad and self._ctx is not None and MODE.recording:
            self._take_over(new)
        else:
            self._store(new)
        return self

    def _broadcast_to(self, shape: tuple[sint, ...], what: str) -> Self:
        """This value in a shape that it broadcasts to.

        Raises:
          ValueError: it does not.
        """
        old = self.shape
        fits = len(old) <= len(shape) and all(d in (1, n) for d, n in zip(old[::-1], shape[::-1], strict=False))
        if not fits:
            raise ValueError(f"{what}: a value of shape {old} into a tensor of shape {shape}")
        return self._wrap(self.lazydata.reshape((1,) * (len(shape) - len(old)) + old).expand(shape))

    def _fitting(self, value: Any, what: str) -> Self:
        """``value`` as a tensor of this one's dtype and device, cast as numpy casts what is written to a part."""
        if isinstance(value, (int, float)) and not isinstance(value, bool) and self.dtype.kind != "float":
            if isinstance(value, float) or self.dtype.kind == "bool":
                value = type(self)(value, device=self.device).cast(self.dtype)
        elif isinstance(value, Core):
            value = value.cast(self.dtype)  # type: ignore[attr-defined]
        elif not isinstance(value, (bool, int, float)):
            value = type(self)(value, device=self.device).cast(self.dtype)
        return self._as_value(value, what)

    def _from_anywhere(self, value: Any, what: str) -> Self:
        """As :meth:`_as_value`, for a device that runs nothing: on the value's device, or on the host."""
        if not isinstance(value, Core):
            return self._wrap(self._on_host()._as_value(value, what).lazydata)
        new: Self = value  # type: ignore[assignment]
        if not can_safe_cast(new.dtype, self.dtype):
            raise TypeError(f"{what}: a value of {new.dtype.name} into a tensor of {self.dtype.name}; cast it")
        if new.dtype is not self.dtype and transfer.runs_nothing(new.device):
            new = new.to(disk.HOST)
        return new.cast(self.dtype)

    def _on_host(self) -> Self:
        """A tensor of this one's dtype on the host."""
        return self._wrap(LazyBuffer.const(0, self.dtype, (), disk.HOST))

    def _store(self, new: Self) -> None:
        """Writes elements, of this tensor's shape and dtype, to its memory."""
        self._let_go()
        self._write((), new.lazydata)

    def _accumulate(self, value: LazyBuffer) -> None:
        """Adds a value, of this tensor's shape and dtype, in place.

        Raises:
          RuntimeError: several elements of the tensor are one place in memory.
        """
        with graph_lock:
            home = self._memory()
            total = self.lazydata.alu(Ops.ADD, value)
            st = (self._place or self.lazydata).st
            if not writes_once(st):
                raise RuntimeError(_several(self.shape))
            if st.size != 0:
                home.write(st, total, computed=True)

    def _write(self, steps: Sequence[tuple[Any, ...]], value: LazyBuffer) -> None:
        """Writes a value to a part of this tensor.

        Args:
          steps: the part: bounds for ``shrink`` and steps for ``stride``; all of it if there are none.
          value: of the shape of the part.

        Raises:
          RuntimeError: several elements of the tensor are one place in memory.
        """
        with graph_lock:
            home = self._memory()
            st = (self._place or self.lazydata).st
            if not writes_once(st):
                raise RuntimeError(_several(self.shape))
            for bounds, strides in (steps,) if steps else ():
                st = st.shrink(bounds).stride(strides)
            if st.size != 0:
                home.write(st, value)

    def _take_over(self, new: Self) -> None:
        """Gives this tensor new elements, of its shape and dtype, through which a gradient flows if one is required.

        Raises:
          RuntimeError: this tensor is a leaf that requires a gradient, or a view of one.
        """
        if not MODE.recording or not (new.requires_grad or self.requires_grad):
            self._store(new)
            return
        with graph_lock:
            home, st = self._memory(), (self._place or self.lazydata).st
            root = home.root
            if not writes_once(st):
                raise RuntimeError(_several(self.shape))
            old = self._as_root()
            if old.requires_grad and old._ctx is None:
                raise RuntimeError(
                    f"a leaf of shape {old.shape} that requires a gradient, or a view of it, is not written in place; "
                    "do it in Tensor.no_grad(), or compute a new tensor"
                )
            if new.requires_grad and new._ctx is not None and st.contiguous and prod(st.shape) == prod(root.shape):
                made = new if new.shape == root.shape else new.reshape(root.shape)  # type: ignore[attr-defined]
                if not made.lazydata.is_whole:
                    made = made._apply(Contiguous(fresh=True))
            else:
                made = old._apply(Put(st), new)
            node = self._wrap(made.lazydata, True)
            node._ctx = made._ctx
            home.node = node
            home.advance(node._lazy.base)
            self._cut = False

    def _as_root(self) -> Self:
        """The whole memory as a tensor that computes with it, and knows where it comes from."""
        home = self._memory()
        if home.node is not None:
            return home.node  # type: ignore[no-any-return]
        tensor: Self = self
        while tensor._ctx is not None and tensor._ctx.view:
            above: Self = tensor._ctx.parents[0]  # type: ignore[assignment]
            if above._home is not home:
                break
            tensor = above
        whole = tensor.shape == home.root.shape
        root = home.root if home.root.is_whole else home.root.clone()
        out = self._wrap(root, tensor.requires_grad if whole else False)
        out._ctx = tensor._ctx if whole else None
        return out

    def _adopt(self, other: Self) -> None:
        """Takes the elements of ``other``, which are copied when one of the two is written."""
        self._let_go()
        self._lazy = other.lazydata
        self._part()
        Moves.number += 1

    def replace(self, other: Self) -> Self:
        """Makes this tensor another name of what ``other`` is: they share memory. Returns it.

        Raises:
          ValueError: the shapes differ.
          TypeError: the dtypes differ.
        """
        if other.shape != self.shape:
            raise ValueError(f"replace: a tensor of shape {other.shape} for one of shape {self.shape}")
        if other.dtype is not self.dtype:
            raise TypeError(f"replace: a tensor of {other.dtype.name} for one of {self.dtype.name}")
        self._let_go()
        home = other._memory()
        self._lazy, self._home, self._place = other.lazydata, home, other._place
        Moves.number += 1
        return self


def _several(shape: tuple[sint, ...]) -> str:
    return (
        f"assign: in this tensor of shape {shape} several elements are one place in memory, as expand and overlapping "
        "windows have it; clone() it before it is written"
    )
