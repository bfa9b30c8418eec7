"""Losses.

A class number out of range is an IndexError where the host knows it (it came in an array). In a tensor it cannot be
checked before it is computed: there it makes the loss of its row NaN, so that it shows.
"""

from __future__ import annotations

import math

from tg_dtype import dtypes

from ..array.ingest import value_of
from ..array.positions import check_known, signed
from ..host import transfer
from .random import Random

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

_REDUCTIONS = ("mean", "sum", "none")


def _checked(what: str, reduction: str, label_smoothing: float = 0.0) -> None:
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{what}: reduction {reduction!r}; there are {', '.join(_REDUCTIONS)}")
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"{what}: label_smoothing {label_smoothing!r} is not between 0 and 1")


class Loss(Random):
    """Losses. ``reduction`` is ``"mean"``, ``"sum"`` or ``"none"``."""

    __slots__ = ()

    def _reduced(self, reduction: str) -> Self:
        return self.mean() if reduction == "mean" else self.sum() if reduction == "sum" else self

    def _same_shape(self, target: Self, what: str) -> Self:
        target = self._tensor(target, what)
        if target.shape != self.shape:
            raise ValueError(f"{what}: shapes {self.shape} and {target.shape} differ")
        return target

    def binary_crossentropy(self, Y: Self, reduction: str = "mean") -> Self:
        """-Y log(x) - (1 - Y) log(1 - x) of probabilities x.

        Raises:
          ValueError: the shapes differ, or there is no such reduction.
        """
        _checked("binary_crossentropy", reduction)
        y = self._same_shape(Y, "binary_crossentropy")
        return (-(y * self.log()) - (1 - y) * (1 - self).log())._reduced(reduction)

    def binary_crossentropy_logits(self, Y: Self, reduction: str = "mean", pos_weight: Self | None = None) -> Self:
        """:meth:`binary_crossentropy` of sigmoid(x), without overflow.

        Args:
          pos_weight: weight of the positive cases, broadcast.

        Raises:
          ValueError: the shapes differ, or there is no such reduction.
        """
        _checked("binary_crossentropy_logits", reduction)
        y = self._same_shape(Y, "binary_crossentropy_logits")
        positive = y if pos_weight is None else y * pos_weight
        return -(positive * self.logsigmoid() + (1 - y) * (-self).logsigmoid())._reduced(reduction)

    def _picked(self, classes: Self, axis: int, what: str) -> Self:
        """The element of each row along ``axis`` that a tensor of class numbers names; NaN where there is no class."""
        rest = self.shape[:axis] + self.shape[axis + 1 :]
        if not dtypes.is_int(classes.dtype):
            raise TypeError(f"{what}: classes are integers, got a tensor of {classes.dtype.name}")
        if classes.shape != rest:
            hint = f": the axis of classes is {axis}; .transpose({axis}, -1) the scores, or .flatten both"
            raise ValueError(
                f"{what}: classes of shape {classes.shape} for scores of shape {self.shape}, not {rest}"
                + (hint if classes.shape == self.shape[:-1] else "")
            )
        if classes.device != self.device:
            raise ValueError(f"{what}: classes on {classes.device} for scores on {self.device}; use .to()")
        at = signed(classes, self.shape[axis])
        hit = self._counter(axis).eq(at.unsqueeze(axis))
        outside = (at < 0) | (at >= self.shape[axis])
        return outside.where(math.nan, hit.where(self, 0).sum(axis))

    def _classes(self, Y: Any, axis: int, ignore_index: int | None, what: str) -> tuple[Self, Self | None]:
        """Class numbers, of any integer type, and which of them count (None: all); what does not is class 0 then.

        Raises:
          IndexError: one that the host knows, since it came in an array, is out of range.
        """
        classes = self._tensor(Y, what)
        n = self.shape[axis]
        if transfer.is_array(Y) and dtypes.is_int(classes.dtype):
            check_known((int(c) for c in Y.flat if c != ignore_index and not 0 <= c < n), 0, what, f"{n} classes")
        if ignore_index is None or not dtypes.is_int(classes.dtype):
            return classes, None
        numbers = signed(classes, n)
        counted = numbers.ne(ignore_index)
        return counted.where(numbers, 0), counted

    def _weighted(self, weight: Self, reduction: str) -> Self:
        """This loss, its mean being over weights."""
        if reduction == "mean":
            return (self * weight).sum() / weight.sum()
        return (self * weight)._reduced(reduction)

    def sparse_categorical_crossentropy(
        self, Y: Self, ignore_index: int = -1, label_smoothing: float = 0.0, reduction: str = "mean"
    ) -> Self:
        """-log softmax(x)[Y], the classes lying along the last axis.

        Args:
          Y: class numbers, of this tensor's shape without the last axis.
          ignore_index: class number that does not count.
          label_smoothing: share of the target that is spread over all classes.

        Raises:
          ValueError: the shapes do not fit, or there is no such reduction.
          TypeError: the classes are no integers.
        """
        what = "sparse_categorical_crossentropy"
        _checked(what, reduction, label_smoothing)
        if self.ndim == 0:
            raise ValueError(f"{what}: scores of shape () have no classes")
        return self._class_loss(Y, self.ndim - 1, ignore_index, label_smoothing, reduction, what)

    def _class_loss(
        self, Y: Any, axis: int, ignore_index: int | None, label_smoothing: float, reduction: str, what: str
    ) -> Self:
        classes, counted = self._classes(Y, axis, ignore_index, what)
        logs = self.log_softmax(axis)
        loss = -logs._picked(classes, axis, what)
        if label_smoothing:
            loss = loss * (1 - label_smoothing) - logs.mean(axis) * label_smoothing
        return loss._reduced(reduction) if counted is None else loss._weighted(counted.cast(loss.dtype), reduction)

    def cross_entropy(
        self, Y: Self, reduction: str = "mean", label_smoothing: float = 0.0, ignore_index: int | None = -100
    ) -> Self:
        """-sum(Y log softmax(x)), the classes lying along axis 1 (or the only axis).

        Args:
          Y: class numbers, of this tensor's shape without the class axis; or probabilities, of this tensor's shape.
          label_smoothing: share of the target that is spread over all classes.
          ignore_index: class number that does not count; None: all do.

        Raises:
          ValueError: the shapes do not fit, or there is no such reduction.
        """
        what = "cross_entropy"
        _checked(what, reduction, label_smoothing)
        if self.ndim == 0:
            raise ValueError(f"{what}: scores of shape () have no classes")
        axis, y = min(1, self.ndim - 1), self._tensor(Y, what)
        if y.ndim != self.ndim:
            return self._class_loss(Y, axis, ignore_index, label_smoothing, reduction, what)
        if y.shape != self.shape or ignore_index not in (None, -100):
            raise ValueError(
                f"{what}: probabilities of shape {y.shape} for scores of shape {self.shape}"
                + ("" if ignore_index in (None, -100) else ": ignore_index is for class numbers")
            )
        target = y
        if label_smoothing:
            target = y * (1 - label_smoothing) + label_smoothing / value_of(self.shape[axis], self.shape)
        return (-(target * self.log_softmax(axis)).sum(axis))._reduced(reduction)

    def nll_loss(
        self, Y: Self, weight: Self | None = None, ignore_index: int | None = -100, reduction: str = "mean"
    ) -> Self:
        """-x[Y] of logarithms of probabilities x, the classes lying along axis 1 (or the only axis).

        Args:
          Y: class numbers, of this tensor's shape without the class axis.
          weight: weight of each class; the mean is over weights.
          ignore_index: class number that does not count.

        Raises:
          ValueError: the shapes do not fit, or there is no such reduction.
        """
        what = "nll_loss"
        _checked(what, reduction)
        if self.ndim == 0:
            raise ValueError(f"{what}: scores of shape () have no classes")
        axis = min(1, self.ndim - 1)
        y, counted = self._classes(Y, axis, ignore_index, what)
        loss = -self._picked(y, axis, what)
        if weight is None and counted is None:
            return loss._reduced(reduction)
        weights = loss.detach().ones_like()
        if weight is not None:
            if weight.shape != (self.shape[axis],):
                raise ValueError(f"{what}: weight of shape {weight.shape} for {self.shape[axis]} classes")
            rows = weight.reshape(tuple(-1 if i == axis else 1 for i in range(self.ndim)))
            weights = rows._stretch(self.shape)._picked(y, axis, what)
        if counted is not None:
            weights = weights * counted.cast(weights.dtype)
        return loss._weighted(weights, reduction)
