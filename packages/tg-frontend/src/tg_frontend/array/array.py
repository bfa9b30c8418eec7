"""Array: the core of Tensor, from storage over movement and arithmetic to reductions."""

from __future__ import annotations

from typing import TypeVar

from tg_dtype import dtypes
from tg_shape import sint

from . import (
    arithmetic,
    attributes,
    becoming,
    bits,
    casts,
    comparison,
    computing,
    division,
    elements,
    gradients,
    joining,
    movement,
    power,
    printing,
    reading,
    reduction,
    selection,
    writing,
)
from .base import Base
from .ingest import value_of
from .lending import check_lendable
from .ufuncs import apply_ufunc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self


class Array(Base):
    """What operations are made of.

    Each method is a function of the module whose name stands before it. Operations in ``tg_frontend.ops`` call these as
    methods, and one another as functions.
    """

    __slots__ = ()

    # *** storage ***

    schedule_with_vars = computing.schedule_with_vars
    schedule = computing.schedule
    realize = computing.realize
    contiguous = computing.contiguous
    clone = computing.clone
    contiguous_backward = computing.contiguous_backward
    assign = writing.assign
    replace = becoming.replace
    _elements = reading._elements
    numpy = reading.numpy
    tolist = reading.tolist
    item = reading.item
    __array__ = reading.__array__
    __reduce__ = reading.__reduce__

    @property
    def data(self) -> Any:
        """The same elements, in the same memory, cut off from the graph; called, a memoryview of them.

        Writing to it writes to this tensor, whatever its gradient: ``x.data.zero_()``. A tensor that is assigned to it
        is what this one is from then on, see :meth:`replace`; an array is copied first.

        The memoryview that ``x.data()`` gives is of this shape (of bytes, flat, where Python has no such format). It
        shares the device's memory where the host can address that: take what you need before computing on.

        Example:
          >>> from tg_frontend import Tensor
          >>> x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
          >>> _ = x[:2].data.zero_()
          >>> x.data().tolist()
          [0.0, 0.0, 3.0]
        """
        return elements.data(self)

    @data.setter
    def data(self, value: Any) -> None:
        elements.put(self, value)

    @property
    def is_realized(self) -> bool:
        """Whether the elements (of the whole that this is a view of) are in memory.

        Example:
          >>> from tg_frontend import Tensor
          >>> x = Tensor([1.0, 2.0]) + 1
          >>> x.is_realized, x.realize().is_realized
          (False, True)
        """
        return self.lazydata.base.is_realized

    def element_size(self) -> int:
        """Bytes of one element.

        Example:
          >>> from tg_frontend import Tensor
          >>> Tensor([1.0], dtype="float16").element_size()
          2
        """
        return self.dtype.itemsize

    def nbytes(self) -> sint:
        """Bytes of all elements.

        Example:
          >>> from tg_frontend import Tensor
          >>> Tensor([1.0, 2.0, 3.0]).nbytes()
          12
        """
        return self.numel() * self.dtype.itemsize

    # *** gradients ***

    no_grad = classmethod(gradients.no_grad)
    enable_grad = classmethod(gradients.enable_grad)
    set_grad_enabled = classmethod(gradients.set_grad_enabled)
    train = classmethod(gradients.train)
    requires_grad_ = gradients.requires_grad_
    detach = gradients.detach
    register_hook = gradients.register_hook
    register_post_accumulate_grad_hook = gradients.register_post_accumulate_grad_hook
    retain_grad = gradients.retain_grad
    backward = gradients.backward
    gradient = gradients.gradient

    # *** conversion ***

    cast = casts.cast
    bitcast = casts.bitcast
    to = casts.to
    to_ = becoming.to_

    # *** movement ***

    reshape = movement.reshape
    view = movement.view
    expand = movement.expand
    permute = movement.permute
    transpose = movement.transpose
    flip = movement.flip
    shrink = movement.shrink
    shrink_to = movement.shrink_to
    pad = movement.pad
    pad_to = movement.pad_to
    squeeze = movement.squeeze
    unsqueeze = movement.unsqueeze
    flatten = movement.flatten
    unflatten = movement.unflatten
    cat = joining.cat
    stack = joining.stack
    split = joining.split
    chunk = joining.chunk
    unbind = joining.unbind

    # *** what a tensor says of itself ***

    itemsize = property(attributes.itemsize)
    size = attributes.size
    grad_fn = property(attributes.grad_fn)
    requires_grad = property(attributes.requires_grad, attributes.set_requires_grad)
    retains_grad = property(attributes.retains_grad)
    is_cuda = property(attributes.is_cuda)
    is_mps = property(attributes.is_mps)
    is_cpu = property(attributes.is_cpu)
    is_meta = property(attributes.is_meta)
    is_nested = property(attributes.is_nested)
    is_quantized = property(attributes.is_quantized)

    @property
    def T(self) -> Self:
        """The axes in reverse order.

        Example:
          >>> from tg_frontend import Tensor
          >>> Tensor([[1, 2], [3, 4]]).T
          Tensor([[1, 3],
                  [2, 4]])
        """
        return movement.permute(self, *range(self.ndim - 1, -1, -1))

    @property
    def mT(self) -> Self:
        """The last two axes exchanged.

        Raises:
          ValueError: if there are fewer.

        Example:
          >>> from tg_frontend import Tensor
          >>> Tensor.zeros(2, 3, 4).mT.shape
          (2, 4, 3)
        """
        if self.ndim < 2:
            raise ValueError(f"mT: a matrix is wanted, got shape {self.shape}")
        return movement.transpose(self, -1, -2)

    @property
    def H(self) -> Self:
        """The two axes of a matrix exchanged, and complex elements conjugated.

        Raises:
          ValueError: if this is no matrix, and not of shape () either.

        Example:
          >>> from tg_frontend import Tensor
          >>> Tensor([[1, 2j]]).H
          Tensor([[1.-0.j],
                  [0.-2.j]])
        """
        if self.ndim not in (0, 2):
            raise ValueError(f"H: a matrix is wanted, got shape {self.shape}; see mH")
        return self.T

    @property
    def mH(self) -> Self:
        """The last two axes exchanged, and complex elements conjugated.

        Raises:
          ValueError: if there are fewer.

        Example:
          >>> from tg_frontend import Tensor
          >>> Tensor.zeros(2, 3, 4, dtype="complex64").mH.shape
          (2, 4, 3)
        """
        return self.mT

    # *** the parts of complex numbers ***

    @property
    def real(self) -> Self:
        """The real part, as a view; of a tensor that is not complex itself.

        Example:
          >>> from tg_frontend import Tensor
          >>> Tensor([1 + 2j, 3 - 4j]).real
          Tensor([1., 3.])
        """
        return self

    @property
    def imag(self) -> Self:
        """The imaginary part, as a view.

        Raises:
          TypeError: if the elements are not complex.

        Example:
          >>> from tg_frontend import Tensor
          >>> Tensor([1 + 2j, 3 - 4j]).imag
          Tensor([ 2., -4.])
        """
        raise TypeError(f"imag: complex numbers are wanted, got a tensor of {self.dtype.name}")

    # *** arithmetic ***

    add = arithmetic.add
    sub = arithmetic.sub
    mul = arithmetic.mul
    neg = arithmetic.neg
    abs = arithmetic.abs
    reciprocal = arithmetic.reciprocal
    div = division.div
    idiv = division.idiv
    mod = division.mod
    fmod = division.fmod
    remainder = division.remainder
    floor_divide = division.floor_divide
    divmod = division.divmod
    trunc = division.trunc
    floor = division.floor
    pow = power.pow
    where = selection.where
    masked_fill = selection.masked_fill
    maximum = selection.maximum
    minimum = selection.minimum
    eq = comparison.eq
    ne = comparison.ne
    lt = comparison.lt
    gt = comparison.gt
    le = comparison.le
    ge = comparison.ge
    bitwise_and = bits.bitwise_and
    bitwise_or = bits.bitwise_or
    bitwise_xor = bits.bitwise_xor
    bitwise_not = bits.bitwise_not
    logical_not = bits.logical_not
    logical_and = bits.logical_and
    logical_or = bits.logical_or
    logical_xor = bits.logical_xor
    lshift = bits.lshift
    rshift = bits.rshift

    # *** reductions ***

    sum = reduction.sum
    prod = reduction.prod
    max = reduction.max
    min = reduction.min
    any = reduction.any
    all = reduction.all
    mean = reduction.mean
    argmax = reduction.argmax
    argmin = reduction.argmin

    # *** operators: the functions themselves, so that one costs no call more. They take ``reverse``, too, which
    # in-place operators do not: hence their ignores. ***

    __add__ = arithmetic.add
    __sub__ = arithmetic.sub
    __mul__ = arithmetic.mul
    __truediv__ = division.div
    __mod__ = division.mod
    __pow__ = power.pow
    __lt__ = comparison.lt
    __gt__ = comparison.gt
    __ge__ = comparison.ge
    __le__ = comparison.le
    __and__ = bits.bitwise_and
    __or__ = bits.bitwise_or
    __xor__ = bits.bitwise_xor
    __lshift__ = bits.lshift
    __rshift__ = bits.rshift

    def __neg__(self) -> Self:
        return self.neg()

    def __invert__(self) -> Self:
        return self.bitwise_not()

    def __abs__(self) -> Self:
        return self.abs()

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

    def __eq__(self, x: Any) -> Self:  # type: ignore[override]
        return self.eq(x)

    def __ne__(self, x: Any) -> Self:  # type: ignore[override]
        return self.ne(x)

    __hash__ = Base.__hash__

    def __iadd__(self, x: Any) -> Self:  # type: ignore[misc]
        return writing.in_place(self, self.add(x), "+=")

    def __isub__(self, x: Any) -> Self:  # type: ignore[misc]
        return writing.in_place(self, self.sub(x), "-=")

    def __imul__(self, x: Any) -> Self:  # type: ignore[misc]
        kept, x = writing.kept_for(self, x)
        return writing.in_place(self, kept.mul(x), "*=")

    def __itruediv__(self, x: Any) -> Self:  # type: ignore[misc]
        kept, x = writing.kept_for(self, x)
        return writing.in_place(self, kept.div(x), "/=")

    def __ifloordiv__(self, x: Any) -> Self:
        return writing.in_place(self, self.div(x, rounding_mode="floor"), "//=")

    def __imod__(self, x: Any) -> Self:  # type: ignore[misc]
        kept, x = writing.kept_for(self, x)
        return writing.in_place(self, kept.mod(x), "%=")

    def __ipow__(self, x: Any) -> Self:  # type: ignore[misc]
        kept, x = writing.kept_for(self, x, always=True)
        return writing.in_place(self, kept.pow(x), "**=")

    def __iand__(self, x: Any) -> Self:  # type: ignore[misc]
        return writing.in_place(self, self.bitwise_and(x), "&=")

    def __ior__(self, x: Any) -> Self:  # type: ignore[misc]
        return writing.in_place(self, self.bitwise_or(x), "|=")

    def __ixor__(self, x: Any) -> Self:  # type: ignore[misc]
        return writing.in_place(self, self.bitwise_xor(x), "^=")

    def __ilshift__(self, x: Any) -> Self:  # type: ignore[misc]
        return writing.in_place(self, self.lshift(x), "<<=")

    def __irshift__(self, x: Any) -> Self:  # type: ignore[misc]
        return writing.in_place(self, self.rshift(x), ">>=")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """For numpy: ``array + tensor`` and ``np.sin(tensor)`` are tensors."""
        return apply_ufunc(ufunc, method, inputs, kwargs)

    # *** one element as a number, the text ***

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len: a tensor of shape () has no length")
        return value_of(self.shape[0], self.shape)

    def __bool__(self) -> bool:
        """Whether the only element is not 0: it is computed now.

        Raises:
          TypeError: if there is not exactly one element.
        """
        if self.numel() != 1:
            raise TypeError(
                f"bool: a tensor of shape {self.shape} has no truth value; use .any() or .all(), or compare with None"
            )
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        """For ``range(t)``, ``list[t]``, ``bin(t)``: the only element, of an integer dtype.

        Raises:
          TypeError: if there is not exactly one element, or it is no integer.
        """
        if self.numel() != 1 or not dtypes.is_int(self.dtype):
            raise TypeError(
                f"index: a tensor of shape {self.shape} and {self.dtype.name} is no integer; "
                "only one element of an integer dtype is"
            )
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __buffer__(self, flags: int) -> memoryview:
        """For ``memoryview(tensor)``, since Python 3.12: see :meth:`data`.

        Raises:
          BufferError: if the tensor requires a gradient, which would be lost: ``detach()`` it.
        """
        check_lendable(self, "__buffer__", BufferError)
        return self._elements()

    def __repr__(self) -> str:
        return printing.text_of(self)

    def _repr_html_(self) -> str:
        """For notebooks."""
        return printing.html_of(self)

    def __format__(self, spec: str) -> str:
        """The text; of a single element the number in the given format, as ``f"{loss:.3f}"``.

        Raises:
          TypeError: if a format is given for more than one element.
        """
        if not spec:
            return repr(self)
        if self.numel() != 1:
            raise TypeError(f"format: {spec!r} formats a number, not a tensor of shape {self.shape}; use .tolist()")
        return format(self.item(), spec)


A = TypeVar("A", bound=Array)
