"""Differentiation, conversion and replacement of a tensor's content."""

from __future__ import annotations

from tg_dtype import can_safe_cast
from tg_lazy import LazyBuffer, Ops

from . import files, host
from .autograd import MODE, Switch, differentiate, free, open_leaves
from .bits import recut
from .coerce import to_dtype
from .core import Core, DTypeLike
from .function import Cast
from .realization import note_assign, succeed

TYPE_CHECKING = False
if TYPE_CHECKING:
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
        """The same elements, cut off from the graph: no gradient flows through."""
        return self._wrap(self.lazydata)

    def _seed(self, gradient: Self | None, what: str) -> Self:
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
        found = differentiate(self, seed.lazydata, targets)
        for leaf, grad in found:
            assert isinstance(leaf, type(self))
            before = leaf.grad
            leaf.grad = self._wrap(grad if before is None else before.lazydata.alu(Ops.ADD, grad))
        if not retain_graph:
            free(self)
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
        found = {id(node): grad for node, grad in differentiate(self, seed.lazydata, targets)}
        for position, target in enumerate(targets):
            if id(target) not in found:
                if not materialize_grads:
                    raise RuntimeError(
                        f"gradient: nothing depends on target {position}, of shape {target.shape}; "
                        "with materialize_grads=True its gradient is zeros"
                    )
                found[id(target)] = LazyBuffer.const(0, target.dtype, target.shape, target.device)
        return [self._wrap(found[id(target)]) for target in targets]

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
        if old == new:
            return self._wrap(lazy.bitcast(wanted))
        if not lazy.shape or lazy.shape[-1] * old % new != 0:
            raise ValueError(
                f"bitcast: {self.dtype.name} ({old} bytes) of shape {self.shape} to {wanted.name} ({new} bytes): "
                "the last axis is no whole number of them"
            )
        return self._wrap(recut(lazy, wanted))

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
        """Gives this tensor new elements, in the same memory where it has some. Returns it.

        What was computed from the old elements keeps them; views of the same memory show the new ones, and what is
        assigned to a view shows in the whole. Memory borrowed from a numpy array or a loaded file is never written:
        those who see it get a copy. A file (DISK) and shared memory (SHM) are written at once, by a copy.

        Args:
          value: a tensor of the same shape and device, or data for one; a number fills. To DISK and SHM, which run no
            kernels, from any device.

        Raises:
          ValueError: the shapes or devices differ; of a file, this is no contiguous range.
          TypeError: not every value of the new dtype is one of this tensor's.
          RuntimeError: ``value`` requires a gradient: ``detach()`` it.
          DeviceError: the file is read-only, or too short.
        """
        copied = files.runs_nothing(self.device)
        new = self._from_anywhere(value, "assign") if copied else self._as_value(value, "assign")
        if new.shape != self.shape:
            if new.shape != ():
                raise ValueError(f"assign: a value of shape {new.shape} into a tensor of shape {self.shape}")
            new = self._wrap(new.lazydata.reshape((1,) * self.ndim).expand(self.shape))
        if new.requires_grad and MODE.recording:
            raise RuntimeError("assign: the value requires a gradient, which cannot flow through memory; detach() it")
        if copied:
            files.write(self.lazydata, new.lazydata, "assign")
        else:
            self._store(new)
        return self

    def _from_anywhere(self, value: Any, what: str) -> Self:
        """As :meth:`_as_value`, for a device that runs nothing: on the value's device, or on the host."""
        if not isinstance(value, Core):
            return self._wrap(self._on_host()._as_value(value, what).lazydata)
        new: Self = value  # type: ignore[assignment]
        if not can_safe_cast(new.dtype, self.dtype):
            raise TypeError(f"{what}: a value of {new.dtype.name} into a tensor of {self.dtype.name}; cast it")
        if new.dtype is not self.dtype and files.runs_nothing(new.device):
            new = new.to(files.HOST)
        return new.cast(self.dtype)

    def _on_host(self) -> Self:
        """A tensor of this one's dtype on the host."""
        return self._wrap(LazyBuffer.const(0, self.dtype, (), files.HOST))

    def _store(self, new: Self) -> None:
        self._let_go()
        memory = self._memory(new.lazydata)
        if memory is not None:
            note_assign(memory, memory.assign(new.lazydata))

    def _memory(self, whole: LazyBuffer | None = None) -> LazyBuffer | None:
        """The memory that this tensor sees, ready to be written.

        Where it sees none (a result that is not realised, a constant, a repetition) it gets memory of its own. Memory
        that is borrowed is left alone: all who see it get a copy together.

        Args:
          whole: what this tensor will be; if it is known, memory that would be new is made of it.

        Returns:
          The memory; None if that is what ``whole`` says already.
        """
        lazy = self.lazydata
        if not lazy.is_writable:
            self.lazydata = lazy = (lazy if whole is None else whole).clone()
            return lazy if whole is None else None
        base = lazy.base
        if base.storage is None or not host.is_borrowed(base.storage):
            return lazy
        if whole is not None and lazy.is_whole:
            succeed(base, whole.reshape(base.shape).clone())
            return None
        succeed(base, base.clone())
        return self.lazydata

    def replace(self, other: Self) -> Self:
        """Makes this tensor refer to what ``other`` refers to. Returns it.

        Raises:
          ValueError: the shapes differ.
          TypeError: the dtypes differ.
        """
        if other.shape != self.shape:
            raise ValueError(f"replace: a tensor of shape {other.shape} for one of shape {self.shape}")
        if other.dtype is not self.dtype:
            raise TypeError(f"replace: a tensor of {other.dtype.name} for one of {self.dtype.name}")
        self._let_go()
        self.lazydata = other.lazydata
        return self
