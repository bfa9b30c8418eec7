"""Losses.

A class number out of range is an IndexError where the host knows it (it came in an array). In a tensor it cannot be
checked before it is computed: there it makes the loss of its row NaN, so that it shows.
"""

from __future__ import annotations

import math

from tg_dtype import dtypes

from ..array.array import A
from ..array.axes import counter
from ..array.casts import floating, negatable
from ..array.ingest import value_of
from ..array.movement import stretch
from ..array.operands import as_tensor
from ..array.positions import check_known, signed
from ..host import transfer
from .activation import logsigmoid
from .elementary import log
from .softmax import log_softmax

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_REDUCTIONS = ("mean", "sum", "none")


def checked(what: str, reduction: str, label_smoothing: float = 0.0) -> None:
    """Sees to it that there is such a reduction, and the smoothing is a share.

    Raises:
      ValueError: if not.
    """
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{what}: reduction {reduction!r}; there are {', '.join(_REDUCTIONS)}")
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"{what}: label_smoothing {label_smoothing!r} is not between 0 and 1")


def reduced(x: A, reduction: str) -> A:
    """Losses as the reduction says: their mean, their sum, or each."""
    return x.mean() if reduction == "mean" else x.sum() if reduction == "sum" else x


def same_shape(x: A, target: A, what: str) -> A:
    """The target as a tensor of the shape of x.

    Raises:
      ValueError: if it has another shape.
    """
    target = as_tensor(x, target, what)
    if target.shape != x.shape:
        raise ValueError(f"{what}: shapes {x.shape} and {target.shape} differ")
    return target


def difference(x: A, target: A, what: str) -> A:
    """x - target, of unsigned integers as floats, which are the integers' exact difference rounded once.

    Raises:
      ValueError: if the target has another shape.
    """
    target = same_shape(x, target, what)
    if x.dtype is dtypes.uint64 and target.dtype is dtypes.uint64:  # of which float64 has not all
        above, below = (part.cast(dtypes.float64) for part in (x - target, target - x))
        return (x >= target).where(above, -below)
    return negatable(x) - negatable(target)


def binary_crossentropy(x: A, Y: A, reduction: str = "mean", *, weight: A | None = None) -> A:
    """-Y log(x) - (1 - Y) log(1 - x) of probabilities x, with logarithms of at least -100.

    Args:
      weight: what each element counts, broadcast.

    Raises:
      ValueError: if the shapes differ, or there is no such reduction.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.5, 0.25]).binary_crossentropy(Tensor([1.0, 0.0])).round(4)
      Tensor(0.4904)
    """
    checked("binary_crossentropy", reduction)
    x, y = floating(x), same_shape(x, Y, "binary_crossentropy")
    y = negatable(y)
    return _weighted(-(y * _log(x)) - (1 - y) * _log(1 - x), weight, reduction)


def _log(x: A) -> A:
    """The logarithm, at least -100; no gradient flows where it is that."""
    least = x <= math.exp(-100)
    return least.where(-100, log(least.where(1, x)))


def binary_crossentropy_logits(
    x: A, Y: A, reduction: str = "mean", pos_weight: A | None = None, *, weight: A | None = None
) -> A:
    """:meth:`binary_crossentropy` of sigmoid(x), without overflow.

    Args:
      pos_weight: weight of the positive cases, broadcast.
      weight: what each element counts, broadcast.

    Raises:
      ValueError: if the shapes differ, or there is no such reduction.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1000.0]).binary_crossentropy_logits(Tensor([1.0, 1.0])).round(4)
      Tensor(0.3466)
    """
    checked("binary_crossentropy_logits", reduction)
    x, y = floating(x), negatable(same_shape(x, Y, "binary_crossentropy_logits"))
    positive = y if pos_weight is None else y * pos_weight
    return _weighted(-(positive * logsigmoid(x) + (1 - y) * logsigmoid(-x)), weight, reduction)


def _weighted(loss: A, weight: A | None, reduction: str) -> A:
    return reduced(loss if weight is None else loss * weight, reduction)


def picked(x: A, classes: A, axis: int, what: str) -> A:
    """The element of each row along ``axis`` that a tensor of class numbers names; NaN where there is no class."""
    rest = x.shape[:axis] + x.shape[axis + 1 :]
    if not dtypes.is_int(classes.dtype):
        raise TypeError(f"{what}: classes are integers, got a tensor of {classes.dtype.name}")
    if classes.shape != rest:
        hint = f": the axis of classes is {axis}; .transpose({axis}, -1) the scores, or .flatten both"
        raise ValueError(
            f"{what}: classes of shape {classes.shape} for scores of shape {x.shape}, not {rest}"
            + (hint if classes.shape == x.shape[:-1] else "")
        )
    if classes.device != x.device:
        raise ValueError(f"{what}: classes on {classes.device} for scores on {x.device}; use .to()")
    at = signed(classes, x.shape[axis])
    hit = counter(x, axis).eq(at.unsqueeze(axis))
    outside = (at < 0) | (at >= x.shape[axis])
    return outside.where(math.nan, hit.where(x, 0).sum(axis))


def class_numbers(x: A, Y: Any, axis: int, ignore_index: int | None, what: str) -> tuple[A, A | None]:
    """Class numbers, of any integer type, and which of them count (None: all); what does not is class 0 then.

    Raises:
      IndexError: if one that the host knows, since it came in an array, is out of range.
    """
    classes = as_tensor(x, Y, what)
    n = x.shape[axis]
    if transfer.is_array(Y) and dtypes.is_int(classes.dtype):
        check_known((int(c) for c in Y.flat if c != ignore_index and not 0 <= c < n), 0, what, f"{n} classes")
    if ignore_index is None or not dtypes.is_int(classes.dtype):
        return classes, None
    numbers = signed(classes, n)
    counted = numbers.ne(ignore_index)
    return counted.where(numbers, 0), counted


def sparse_categorical_crossentropy(
    x: A, Y: A, ignore_index: int = -1, label_smoothing: float = 0.0, reduction: str = "mean"
) -> A:
    """-log softmax(x)[Y], the classes lying along the last axis.

    Args:
      Y: class numbers, of this tensor's shape without the last axis.
      ignore_index: class number that does not count.
      label_smoothing: share of the target that is spread over all classes.

    Raises:
      ValueError: if the shapes do not fit, or there is no such reduction.
      TypeError: if the classes are no integers.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0.0, 2.0], [0.0, 0.0]]).sparse_categorical_crossentropy(Tensor([1, 0])).round(4)
      Tensor(0.41)
    """
    what = "sparse_categorical_crossentropy"
    checked(what, reduction, label_smoothing)
    if x.ndim == 0:
        raise ValueError(f"{what}: scores of shape () have no classes")
    return _class_loss(x, Y, x.ndim - 1, ignore_index, label_smoothing, reduction, what)


def _by_class(x: A, weight: A, axis: int, what: str) -> A:
    """A weight of each class, for every score."""
    if weight.shape != (x.shape[axis],):
        raise ValueError(f"{what}: weight of shape {weight.shape} for {x.shape[axis]} classes")
    return stretch(weight.reshape(tuple(-1 if i == axis else 1 for i in range(x.ndim))), x.shape)


def _over_rows(loss: A, weights: A | None, counted: A | None, reduction: str) -> A:
    """Losses of rows, reduced; the mean is over weights, and over those that count."""
    if counted is not None:
        weights = counted.cast(loss.dtype) if weights is None else weights * counted.cast(weights.dtype)
        loss = counted.where(loss, 0)
    if weights is None or reduction != "mean":
        return reduced(loss, reduction)
    return loss.sum() / weights.sum()


def _class_loss(
    x: A, Y: Any, axis: int, ignore_index: int | None, label_smoothing: float, reduction: str, what: str,
    weight: A | None = None,
) -> A:  # fmt: skip
    classes, counted = class_numbers(x, Y, axis, ignore_index, what)
    logs, weights = log_softmax(x, axis), None
    if weight is not None:
        by_class = _by_class(x, weight, axis, what)
        logs, weights = logs * by_class, picked(by_class, classes, axis, what)
    loss = -picked(logs, classes, axis, what)
    if label_smoothing:
        loss = loss * (1 - label_smoothing) - logs.mean(axis) * label_smoothing
    return _over_rows(loss, weights, counted, reduction)


def cross_entropy(
    x: A, Y: A, reduction: str = "mean", label_smoothing: float = 0.0, ignore_index: int | None = -100,
    weight: A | None = None,
) -> A:  # fmt: skip
    """-sum(Y log softmax(x)), the classes lying along axis 1 (or the only axis).

    Args:
      Y: class numbers, of this tensor's shape without the class axis; or probabilities, of this tensor's shape.
      label_smoothing: share of the target that is spread over all classes.
      ignore_index: class number that does not count; None: all do.
      weight: weight of each class; of class numbers the mean is over weights.

    Raises:
      ValueError: if the shapes do not fit, or there is no such reduction.

    Example:
      >>> from tg_frontend import Tensor
      >>> scores = Tensor([[0.0, 2.0], [0.0, 0.0]])
      >>> scores.cross_entropy(Tensor([1, 0]), reduction="none").round(4)
      Tensor([0.1269, 0.6931])
    """
    what = "cross_entropy"
    checked(what, reduction, label_smoothing)
    if x.ndim == 0:
        raise ValueError(f"{what}: scores of shape () have no classes")
    axis, y = min(1, x.ndim - 1), as_tensor(x, Y, what)
    if y.ndim != x.ndim:
        return _class_loss(x, Y, axis, ignore_index, label_smoothing, reduction, what, weight)
    if y.shape != x.shape or ignore_index not in (None, -100):
        raise ValueError(
            f"{what}: probabilities of shape {y.shape} for scores of shape {x.shape}"
            + ("" if ignore_index in (None, -100) else ": ignore_index is for class numbers")
        )
    target = y
    if label_smoothing:
        target = y * (1 - label_smoothing) + label_smoothing / value_of(x.shape[axis], x.shape)
    logs = log_softmax(x, axis)
    logs = logs if weight is None else logs * _by_class(x, weight, axis, what)
    return reduced(-(target * logs).sum(axis), reduction)


def nll_loss(
    x: A, Y: A, weight: A | None = None, ignore_index: int | None = -100, reduction: str = "mean"
) -> A:
    """-x[Y] of logarithms of probabilities x, the classes lying along axis 1 (or the only axis).

    Args:
      Y: class numbers, of this tensor's shape without the class axis.
      weight: weight of each class; the mean is over weights.
      ignore_index: class number that does not count.

    Raises:
      ValueError: if the shapes do not fit, or there is no such reduction.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0.5, 0.5], [0.25, 0.75]]).log().nll_loss(Tensor([0, 1])).round(4)
      Tensor(0.4904)
    """
    what = "nll_loss"
    checked(what, reduction)
    if x.ndim == 0:
        raise ValueError(f"{what}: scores of shape () have no classes")
    axis = min(1, x.ndim - 1)
    y, counted = class_numbers(x, Y, axis, ignore_index, what)
    loss = -picked(x, y, axis, what)
    weights = None if weight is None else picked(_by_class(x, weight, axis, what), y, axis, what)
    return _over_rows(loss if weights is None else loss * weights, weights, counted, reduction)
