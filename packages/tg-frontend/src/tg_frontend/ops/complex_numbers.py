"""Complex numbers: their parts, and tensors made of parts. A real tensor is its own real part."""

from __future__ import annotations

import math

from tg_dtype import complex_dtype, dtypes, part_dtype

from ..array.array import A, Array
from ..array.computing import copied
from ..array.operands import pair
from ..array.selection import where
from .creation import full_like
from .elementary import cos, sign, sin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def complex(re: A, im: Any) -> A:
    """The complex numbers ``re + im * i``: complex128 of float64, else complex64. Shapes broadcast.

    Raises:
      TypeError: if a part is no float.
      ValueError: if the shapes do not broadcast, or the devices differ.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.complex(Tensor([1.0, 2.0]), Tensor([3.0, -4.0]))
      Tensor([1.+3.j, 2.-4.j])
    """
    a, b = pair(re, im, "complex")
    if a.dtype.kind != "float":
        raise TypeError(f"complex: the parts are floats, got {a.dtype.name}")
    kind = part_dtype(complex_dtype(a.dtype))
    return a._composed(copied(a.cast(kind)), copied(b.cast(kind)))


def polar(size: A, angle: Any) -> A:
    """The complex numbers of these absolute values and angles in radians. Shapes broadcast.

    Raises:
      TypeError: if an argument is no float.
      ValueError: if the shapes do not broadcast, or the devices differ.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.polar(Tensor([2.0]), Tensor([0.0]))
      Tensor([2.+0.j])
    """
    a, b = pair(size, angle, "polar")
    if a.dtype.kind != "float":
        raise TypeError(f"polar: absolute values and angles are floats, got {a.dtype.name}")
    kind = part_dtype(complex_dtype(a.dtype))
    a, b = a.cast(kind), b.cast(kind)
    return a._composed(a * cos(b), a * sin(b))


def view_as_real(x: A) -> A:
    """The parts of complex numbers along a new last axis of size 2: a copy; ``.real`` and ``.imag`` are no copies.

    Raises:
      TypeError: if the elements are not complex.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1 + 2j, 3 + 4j]).view_as_real()
      Tensor([[1., 2.],
              [3., 4.]])
    """
    raise TypeError(f"view_as_real: complex numbers are wanted, got {x.dtype.name}")


def is_complex(x: A) -> bool:
    """Whether the elements are complex numbers.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1j]).is_complex(), Tensor([1.0]).is_complex()
      (True, False)
    """
    return dtypes.is_complex(x.dtype)


def is_conj(x: A) -> bool:
    """Whether a conjugation is still to be done, as PyTorch may put it off: never.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1j]).conj().is_conj()
      False
    """
    return False


def isreal(x: A) -> A:
    """Where the imaginary part is 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1 + 0j, 1j]).isreal()
      Tensor([ True, False])
    """
    return full_like(x, True, dtype=dtypes.bool)


def conj(x: A) -> A:
    """The complex conjugate; of real numbers the tensor itself.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1 + 2j]).conj()
      Tensor([1.-2.j])
    """
    return x


def conj_physical(x: A) -> A:
    """The same as :meth:`conj`.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1 + 2j]).conj_physical()
      Tensor([1.-2.j])
    """
    return x


def resolve_conj(x: A) -> A:
    """The tensor itself: conjugation is not put off here.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1 + 2j]).conj().resolve_conj()
      Tensor([1.-2.j])
    """
    if not isinstance(x, Array):
        raise TypeError(f"resolve_conj: a tensor is wanted, got a {type(x).__name__}")
    return x


def is_neg(x: A) -> bool:
    """False: a negation is never put off here, as PyTorch puts off that of the imaginary part of a conjugate.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1 + 2j]).conj().imag.is_neg()
      False
    """
    return False


def resolve_neg(x: A) -> A:
    """The tensor itself: negation is not put off here.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0]).resolve_neg()
      Tensor([1.])
    """
    if not isinstance(x, Array):
        raise TypeError(f"resolve_neg: a tensor is wanted, got a {type(x).__name__}")
    return x


def angle(x: A, deg: bool = False) -> A:
    """The angle in radians, from -pi to pi: of real numbers 0, or pi below 0.

    Args:
      deg: in degrees.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1j, 2 + 0j]).angle().round(4)
      Tensor([1.5708, 0.    ])
      >>> Tensor([1.0, -1.0]).angle().round(4)
      Tensor([0.    , 3.1416])
    """
    floats = x if x.dtype.kind == "float" else x.cast(dtypes.default_float)
    turned = where(floats < 0, full_like(floats, 180.0 if deg else math.pi), full_like(floats, 0))
    return where(floats != floats, floats, turned)


def sgn(x: A) -> A:
    """The sign; of a complex number the one of absolute value 1 in its direction, 0 of 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([3 + 4j, 0j]).sgn()
      Tensor([0.6+0.8j, 0. +0.j ])
    """
    return sign(x)


def cfloat(x: A) -> A:
    """Cast to complex64.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0]).cfloat()
      Tensor([1.+0.j, 2.+0.j])
    """
    return x.cast(dtypes.complex64)


def cdouble(x: A) -> A:
    """Cast to complex128.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0]).cdouble().dtype
      dtypes.complex128
    """
    return x.cast(dtypes.complex128)
