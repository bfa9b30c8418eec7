"""What operations demand of their operands, and the errors that say which operand does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from tg_dtype import DType, dtypes
from tg_shape import ShapeTracker, View

from ..ops import REDUCIBLE, Ops
from ..trackers import Shape


class Operand(Protocol):
    """What a node shows of itself to an operation that takes it."""

    @property
    def shape(self) -> Shape:
        """Sizes."""

    @property
    def dtype(self) -> DType:
        """Element dtype."""

    @property
    def device(self) -> str:
        """Canonical name of the device."""


def shapes_and_dtypes(operands: Sequence[Operand]) -> str:
    """Shapes and dtypes, for an error message."""
    return ", ".join(f"{x.shape} {x.dtype.name}" for x in operands)


def check_alike(op: Ops, operands: Sequence[Operand]) -> None:
    """Does nothing if the operands of an elementwise op have one shape and one device.

    Raises:
      ValueError: if they do not.
    """
    first = operands[0]
    for other in operands[1:]:
        if other.shape != first.shape:
            raise ValueError(f"{op.name}: operands differ in shape: {shapes_and_dtypes(operands)}")
        if other.device != first.device:
            devices = ", ".join(x.device for x in operands)
            raise ValueError(f"{op.name}: operands are on different devices: {devices}")


@lru_cache(maxsize=4096)
def reduced_shape(op: Ops, shape: Shape, axes: tuple[int, ...]) -> tuple[Shape, tuple[int, ...], bool]:
    """Of a reduction: the shape of the result, the axes with more than one element, and whether one has none.

    Raises:
      ValueError: if an axis is out of range or given twice.
    """
    rank = len(shape)
    if any(not -rank <= axis < rank for axis in axes):
        raise ValueError(f"REDUCE {op.name}: axes {axes} do not fit the shape {shape}")
    wanted = sorted(axis % rank for axis in axes)
    if len(set(wanted)) != len(wanted):
        raise ValueError(f"REDUCE {op.name}: an axis is given twice in {axes}, shape {shape}")
    sizes = [shape[axis] for axis in wanted]
    empty = any(isinstance(size, int) and size == 0 for size in sizes)
    done = tuple(axis for axis in wanted if not (isinstance(shape[axis], int) and shape[axis] == 1))
    return tuple(1 if i in wanted else dim for i, dim in enumerate(shape)), done, empty


def check_assigned(target: Operand, value: Operand) -> None:
    """Does nothing if ``value`` may be assigned to ``target``.

    Raises:
      ValueError: if their shapes or devices differ.
      TypeError: if their dtypes differ.
    """
    if value.shape != target.shape:
        raise ValueError(f"ASSIGN: a value of shape {value.shape} to a target of shape {target.shape}")
    if value.dtype is not target.dtype:
        what = f"a value of {value.dtype.name} to a target of {target.dtype.name}"
        raise TypeError(f"ASSIGN: {what}, shape {target.shape}")
    if value.device != target.device:
        raise ValueError(f"ASSIGN: a value on {value.device} to a target on {target.device}, shape {target.shape}")


def check_updated(
    target: Operand, value: Operand, index: Operand, where: ShapeTracker, op: Ops | None, found: ShapeTracker | None
) -> None:
    """Does nothing if ``value`` may be combined with elements of ``target`` at ``index``.

    Raises:
      ValueError: if shapes or devices do not fit together, or ``op`` cannot combine.
      TypeError: if the dtypes differ, or the index is no integer.
    """
    if not dtypes.is_int(index.dtype):
        raise TypeError(f"UPDATE takes an integer index, got {index.dtype.name} of shape {index.shape}")
    if value.dtype is not target.dtype:
        raise TypeError(f"UPDATE: a value of {value.dtype.name} to a target of {target.dtype.name}")
    if op is not None and op not in REDUCIBLE:
        raise ValueError(f"UPDATE: {op.name} cannot combine")
    if index.shape != value.shape or where.shape[:-1] != value.shape or len(where.shape) != len(value.shape) + 1:
        raise ValueError(f"UPDATE: values of {value.shape} at indices of {index.shape}, through a view {where.shape}")
    if found is not None and found.shape != value.shape:
        raise ValueError(f"UPDATE: values of {value.shape}, and a view {found.shape} for what is found")
    if len({target.device, value.device, index.device}) > 1:
        raise ValueError(f"UPDATE: target on {target.device}, value on {value.device}, index on {index.device}")


def check_inside(view: View, size: object, what: object) -> None:
    """Does nothing if a view stays inside ``size`` elements, all of it numbers.

    Args:
      view: from indices to positions, with strides of any kind.
      size: elements that there are.
      what: whose elements they are, for the message.

    Raises:
      ValueError: if the view has a mask or symbols, or reaches outside.
    """
    numbers = (*view.shape, *view.strides, view.offset, size)
    if view.mask is not None or not all(isinstance(number, int) for number in numbers) or not isinstance(size, int):
        raise ValueError(f"seen_through: {view!r} on {what!r}: a mask or a symbol")
    ends = [(int(dim) - 1) * int(stride) for dim, stride in zip(view.shape, view.strides, strict=True)]
    low, high = (int(view.offset) + sum(pick(end, 0) for end in ends) for pick in (min, max))
    if view.size != 0 and not 0 <= low <= high < size:
        raise ValueError(f"seen_through: {view!r} leaves the {size} elements of {what!r}")
