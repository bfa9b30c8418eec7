"""Operators, and joining tensors."""

from __future__ import annotations

from tg_dtype import least_upper_dtype
from tg_lazy import Ops

from ..autograd.differentiation import MODE
from ..autograd.functions import Abs, Cat
from .core import Core
from .elementwise import Elementwise
from .ufuncs import apply_ufunc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self


def _listed(tensors: Any, others: Any, what: str) -> Any:
    """The tensors of ``Tensor.cat([a, b])``, where the list came as ``self``; a position may follow it.

    Raises:
      ValueError: it is empty, or more than the list was given.
      TypeError: it holds something else.
    """
    if not tensors or others:
        raise ValueError(f"{what}: one list of at least one tensor is wanted; the axis is dim=…")
    for tensor in tensors:
        if not isinstance(tensor, Core):
            raise TypeError(f"{what}: the list holds a {type(tensor).__name__}, which is no tensor")
    return tensors


class Operators(Elementwise):
    """What Python's operators mean. In-place ones write to the same memory; a gradient flows through."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """For numpy: ``array + tensor`` is a tensor, ``np.sin(tensor)`` an array."""
        return apply_ufunc(ufunc, method, inputs, kwargs)

    # *** joining: the parts are promoted like operands ***

    def cat(self, *others: Any, dim: int = 0) -> Self:
        """This tensor and ``others`` one after another along an axis. Also ``Tensor.cat(a, b, c, dim=0)``, or a list.

        Raises:
          ValueError: sizes other than that of the axis, or devices, differ.
        """
        if isinstance(self, (list, tuple)):
            tensors = _listed(self, others, "cat")
            out: Self = tensors[0].cat(*tensors[1:], dim=dim)
            return out
        axis = self._axis(dim, "cat")
        parts: list[Self] = [self, *(self._tensor(other, "cat") for other in others)]
        for part in parts:
            same = part.ndim == self.ndim and all(
                i == axis or a == b for i, (a, b) in enumerate(zip(part.shape, self.shape, strict=True))
            )
            if not same or self.ndim == 0:
                shapes = " and ".join(str(p.shape) for p in parts)
                raise ValueError(f"cat: the shapes {shapes} do not join along axis {dim}")
            if part.device != self.device:
                raise ValueError(f"cat: tensors on {self.device} and {part.device}; use .to()")
        dtype = least_upper_dtype(*(part.dtype for part in parts))
        first, *rest = (part.cast(dtype) for part in parts)
        return first._apply(Cat(axis), *rest) if rest else first._copied()

    def stack(self, *others: Any, dim: int = 0) -> Self:
        """Tensors of one shape along a new axis. Also ``Tensor.stack(a, b, c, dim=0)``, or a list.

        Raises:
          ValueError: the shapes or devices differ.
        """
        if isinstance(self, (list, tuple)):
            tensors = _listed(self, others, "stack")
            out: Self = tensors[0].stack(*tensors[1:], dim=dim)
            return out
        for other in others:
            if self._tensor(other, "stack").shape != self.shape:
                raise ValueError(f"stack: the shapes {self.shape} and {other.shape} differ")
        axis = self._axis(dim, "stack", extra=1)
        return self.unsqueeze(axis).cat(*(other.unsqueeze(axis) for other in others), dim=axis)

    # *** operators ***

    def _in_place(self, result: Self, what: str) -> Self:
        kinds = ("bool", "uint", "int", "float")
        narrower = kinds.index(result.dtype.kind) > kinds.index(self.dtype.kind)
        if result.shape != self.shape or (narrower and {result.dtype.kind, self.dtype.kind} != {"int", "uint"}):
            raise ValueError(
                f"{what}: a result of shape {result.shape} and dtype {result.dtype.name} does not fit in place "
                f"into {self.shape} and {self.dtype.name}"
            )
        self._take_over(result.cast(self.dtype))
        return self

    def _kept_for(self, other: Any, always: bool = False) -> tuple[Self, Any]:
        """The operands of what is to be written to this tensor: where a gradient is made of the old elements, a copy.

        Args:
          other: the other operand, whose gradient is made of them if it wants one.
          always: whether the gradient of this one is, too.
        """
        if not (self.requires_grad and MODE.recording) or self._ctx is None:
            return self, other
        if not (always or (isinstance(other, Core) and other.requires_grad)):
            return self, other
        kept = self.clone()
        return kept, kept if other is self else other

    def __neg__(self) -> Self:
        return self.neg()

    def __invert__(self) -> Self:
        return self.bitwise_not()

    def __abs__(self) -> Self:
        if self.dtype.kind == "float":
            return self._apply(Abs())
        return self._copied() if self.dtype.kind in ("uint", "bool") else self.maximum(-self)

    # The methods themselves, so that an operator costs no call more. They take ``reverse``, too, which in-place
    # operators do not: hence their ignores.
    __add__ = Elementwise.add
    __sub__ = Elementwise.sub
    __mul__ = Elementwise.mul
    __truediv__ = Elementwise.div
    __mod__ = Elementwise.mod
    __pow__ = Elementwise.pow
    __and__ = Elementwise.bitwise_and
    __or__ = Elementwise.bitwise_or
    __xor__ = Elementwise.bitwise_xor
    __lshift__ = Elementwise.lshift
    __rshift__ = Elementwise.rshift

    def __floordiv__(self, x: Any) -> Self:
        return self.div(x, rounding_mode="floor")

    def __divmod__(self, x: Any) -> tuple[Self, Self]:
        return self.divmod(x)

    def __rdivmod__(self, x: Any) -> tuple[Self, Self]:
        return self.divmod(x, True)

    def __radd__(self, x: Any) -> Self:
        return self.add(x, True)

    def __rsub__(self, x: Any) -> Self:
        return self.sub(x, True)

    def __rmul__(self, x: Any) -> Self:
        return self.mul(x, True)

    def __rtruediv__(self, x: Any) -> Self:
        return self.div(x, True)

    def __rfloordiv__(self, x: Any) -> Self:
        return self.div(x, True, rounding_mode="floor")

    def __rmod__(self, x: Any) -> Self:
        return self.mod(x, True)

    def __rpow__(self, x: Any) -> Self:
        return self.pow(x, True)

    def __rand__(self, x: Any) -> Self:
        return self.bitwise_and(x, True)

    def __ror__(self, x: Any) -> Self:
        return self.bitwise_or(x, True)

    def __rxor__(self, x: Any) -> Self:
        return self.bitwise_xor(x, True)

    def __rlshift__(self, x: Any) -> Self:
        return self.lshift(x, True)

    def __rrshift__(self, x: Any) -> Self:
        return self.rshift(x, True)

    def __lt__(self, x: Any) -> Self:
        return self._compare(Ops.CMPLT, x, "lt")

    def __gt__(self, x: Any) -> Self:
        return self._compare(Ops.CMPLT, x, "gt", reverse=True)

    def __ge__(self, x: Any) -> Self:
        return self._at_least(x, "ge", reverse=False)

    def __le__(self, x: Any) -> Self:
        return self._at_least(x, "le", reverse=True)

    def __eq__(self, x: Any) -> Self:  # type: ignore[override]
        return self.eq(x)

    def __ne__(self, x: Any) -> Self:  # type: ignore[override]
        return self.ne(x)

    __hash__ = Core.__hash__

    def __iadd__(self, x: Any) -> Self:  # type: ignore[misc]
        return self._in_place(self.add(x), "+=")

    def __isub__(self, x: Any) -> Self:  # type: ignore[misc]
        return self._in_place(self.sub(x), "-=")

    def __imul__(self, x: Any) -> Self:  # type: ignore[misc]
        kept, x = self._kept_for(x)
        return self._in_place(kept.mul(x), "*=")

    def __itruediv__(self, x: Any) -> Self:  # type: ignore[misc]
        kept, x = self._kept_for(x)
        return self._in_place(kept.div(x), "/=")

    def __ifloordiv__(self, x: Any) -> Self:
        return self._in_place(self.div(x, rounding_mode="floor"), "//=")

    def __imod__(self, x: Any) -> Self:  # type: ignore[misc]
        kept, x = self._kept_for(x)
        return self._in_place(kept.mod(x), "%=")

    def __ipow__(self, x: Any) -> Self:  # type: ignore[misc]
        kept, x = self._kept_for(x, always=True)
        return self._in_place(kept.pow(x), "**=")

    def __iand__(self, x: Any) -> Self:  # type: ignore[misc]
        return self._in_place(self.bitwise_and(x), "&=")

    def __ior__(self, x: Any) -> Self:  # type: ignore[misc]
        return self._in_place(self.bitwise_or(x), "|=")

    def __ixor__(self, x: Any) -> Self:  # type: ignore[misc]
        return self._in_place(self.bitwise_xor(x), "^=")

    def __ilshift__(self, x: Any) -> Self:  # type: ignore[misc]
        return self._in_place(self.lshift(x), "<<=")

    def __irshift__(self, x: Any) -> Self:  # type: ignore[misc]
        return self._in_place(self.rshift(x), ">>=")
