"""Gradients that are made smaller where they are too large: between ``backward`` and an optimiser's step."""

from __future__ import annotations

from math import inf, isfinite

from tg_dtype import DType, dtypes
from tg_shape import prod

from ..autograd.differentiation import MODE, Switch
from ..autograd.functions import RowSparse
from ..ops.row_sparse import merged
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_LITTLE = 1e-6  # added to the norm that is divided by, as PyTorch does


def get_total_norm(
    tensors: Iterable[Tensor] | Tensor, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """The norm of the elements of several tensors together, gradients for instance.

    Args:
      tensors: the tensors; row-sparse ones count what they hold for one row together, complex ones their magnitudes.
      norm_type: the power of the norm; ``inf`` for the largest magnitude.
      error_if_nonfinite: raise an error if the norm is infinite or NaN, for which it is computed now.
      foreach: of no effect.

    Raises:
      ValueError: if ``norm_type`` is not positive.
      RuntimeError: if the norm is infinite or NaN, with ``error_if_nonfinite``.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.utils.get_total_norm([Tensor([3.0]), Tensor([[4.0]])])
      Tensor(5.)
    """
    if not norm_type > 0:
        raise ValueError(f"get_total_norm: norm_type {norm_type} is not positive")
    given = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    with Switch(MODE, "recording", False):
        sizes = [size for one in given if (size := _size(one, norm_type)) is not None]
        if not sizes:
            return Tensor(0.0)
        total = Tensor.stack(*[size.to(sizes[0].device).cast(sizes[0].dtype) for size in sizes])
        norm: Tensor = total.max() if norm_type == inf else total.sum() ** (1 / norm_type)
        if error_if_nonfinite and not isfinite(float(norm.item())):
            raise RuntimeError(f"get_total_norm: the norm of order {norm_type} is {norm.item()}, which is not finite")
        return norm


def clip_grads_with_norm_(
    parameters: Iterable[Tensor] | Tensor, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scales the gradients so that a norm of all together that is known becomes ``max_norm`` at most; in place.

    Args:
      parameters: tensors; those without a gradient are left out.
      max_norm: the bound.
      total_norm: the norm, see :func:`get_total_norm`.
      foreach: of no effect.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([3.0, 4.0], requires_grad=True)
      >>> _ = (weight * weight).sum().backward()
      >>> nn.utils.clip_grads_with_norm_([weight], 1.0, nn.utils.get_total_norm([weight.grad]))
      >>> weight.grad.round(4)
      Tensor([0.6, 0.8])
    """
    with Switch(MODE, "recording", False):
        scale = (max_norm / (total_norm + _LITTLE)).minimum(1.0)
        for grad in _gradients(parameters):
            factor, rows = scale.to(grad.device), grad._row_sparse()
            if rows is None:
                for part in grad._floats():
                    part.assign((part.detach().cast(factor.dtype) * factor).cast(part.dtype))
            else:
                values = (grad.values().cast(factor.dtype) * factor).cast(grad.dtype)
                grad._become_sparse(RowSparse(rows.index, values.lazydata, rows.shape, rows.coalesced))


def clip_grad_norm_(
    parameters: Iterable[Tensor] | Tensor, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """Scales the gradients so that the norm of all their elements together is at most ``max_norm``; in place.

    Row-sparse gradients stay row-sparse; what they hold for one row is added up for the norm.

    Args:
      parameters: tensors; those without a gradient are left out.
      max_norm: the bound.
      norm_type: the power of the norm; ``inf`` for the largest magnitude.
      error_if_nonfinite: raise an error, and scale nothing, if the norm is infinite or NaN.
      foreach: of no effect.

    Returns:
      The norm before, shape ().

    Raises:
      ValueError: if ``max_norm`` is negative, or ``norm_type`` is not positive.
      RuntimeError: if the norm is infinite or NaN, with ``error_if_nonfinite``.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([3.0, 4.0], requires_grad=True)
      >>> _ = (weight * weight).sum().backward()
      >>> nn.clip_grad_norm_([weight], 1.0)
      Tensor(10.)
      >>> weight.grad.round(4)
      Tensor([0.6, 0.8])
    """
    if not max_norm >= 0 or not norm_type > 0:
        raise ValueError(f"clip_grad_norm_: max_norm {max_norm}, norm_type {norm_type}")
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    norm = get_total_norm(_gradients(given), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(given, max_norm, norm)
    return norm


def clip_grad_value_(
    parameters: Iterable[Tensor] | Tensor, clip_value: float, foreach: bool | None = None
) -> None:
    """Brings every element of the gradients between ``-clip_value`` and ``clip_value``; in place.

    Row-sparse gradients stay row-sparse; what they hold for one row is added up before.

    Args:
      parameters: tensors; those without a gradient are left out.
      clip_value: the bound.
      foreach: of no effect.

    Raises:
      ValueError: if ``clip_value`` is negative.
      TypeError: if a gradient is complex, of which none is greater than another.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([0.25, -4.0], requires_grad=True)
      >>> _ = (weight * weight).sum().backward()
      >>> nn.clip_grad_value_([weight], 1.0)
      >>> weight.grad
      Tensor([ 0.5, -1. ])
    """
    if not clip_value >= 0:
        raise ValueError(f"clip_grad_value_: clip_value {clip_value}")
    with Switch(MODE, "recording", False):
        given = _gradients(parameters)
        if any(grad.is_complex() for grad in given):
            raise TypeError("clip_grad_value_: a gradient is complex; clip that of its parameter's .real and .imag")
        for grad in given:
            rows = grad._row_sparse()
            if rows is None:
                grad.assign(grad.detach().clip(-clip_value, clip_value))
            else:
                index, values = merged(grad, _wide(grad))
                kept = values.clip(-clip_value, clip_value).cast(grad.dtype)
                grad._become_sparse(RowSparse(index.lazydata, kept.lazydata, rows.shape, rows.coalesced))


def _gradients(parameters: Iterable[Tensor] | Tensor) -> list[Tensor]:
    """The gradients that there are, each once."""
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return list({id(grad): grad for param in given if (grad := param.grad) is not None}.values())


def _wide(grad: Tensor) -> DType:
    """Of the gradient's elements, at least float32."""
    return grad.dtype if grad.dtype.itemsize >= 4 else dtypes.float32


def _size(grad: Tensor, power: float) -> Tensor | None:
    """The largest magnitude of a gradient, or the sum of powers of all; None if it has no elements."""
    if grad.is_complex():
        return _size(grad.detach().abs(), power)
    values = grad.detach().cast(_wide(grad))
    if grad.is_sparse:
        index, sums = merged(grad, _wide(grad))
        there = (index >= 0).reshape((index.shape[0], *(1 for _ in sums.shape[1:])))
        values = there.where(sums, 0)
    if prod(values.shape) == 0:
        return None
    if power == inf:
        return values.abs().max()
    return values.square().sum() if power == 2 else (values.abs() ** power).sum()
