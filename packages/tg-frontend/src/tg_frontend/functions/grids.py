"""Grids, rows and columns that are written with brackets: ``mgrid[0:3, 0:2]``, ``r_[1:4, 0]``; and indices of them."""

from __future__ import annotations

from ..array.numpy_calls import tensors_of
from ..array.operands import beside
from ..host.coerce import is_arraylike
from ..plain_numbers import without_numpy
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _range(part: slice) -> Tensor:
    """The numbers of a slice: every step, or so many as an imaginary step says, the end among them.

    Raises:
      TypeError: if it has no end.
    """
    start, stop, step = part.start or 0, part.stop, 1 if part.step is None else part.step
    if stop is None:
        raise TypeError(f"a range wants an end, got {start}:")
    step = without_numpy(step)
    if isinstance(step, complex):
        return Tensor.linspace(start, stop, int(abs(step)))
    return Tensor.arange(start, stop, step)


class Grid:
    """Coordinates of the places of a grid, as numpy's ``mgrid`` and ``ogrid`` have them.

    Args:
      dense: whether every coordinate is told for every place, or once along its axis.

    Example:
      >>> from tg_frontend.functions.grids import mgrid, ogrid
      >>> mgrid[0:2, 0:3][1]
      Tensor([[0, 1, 2],
              [0, 1, 2]])
      >>> [part.shape for part in ogrid[0:2, 0:1:3j]]
      [(2, 1), (1, 3)]
    """

    def __init__(self, dense: bool) -> None:
        self.dense = dense

    def __getitem__(self, key: slice | tuple[slice, ...]) -> Tensor | tuple[Tensor, ...]:
        """The coordinates along each axis: stacked, if ``dense``; of a single slice its numbers."""
        if isinstance(key, slice):
            return _range(key)
        rows = [_range(part) for part in key]
        if self.dense:
            return Tensor.stack(*Tensor.meshgrid(*rows, indexing="ij"))
        return tuple(row.reshape([-1 if i == axis else 1 for i in range(len(rows))]) for axis, row in enumerate(rows))


class Joined:
    """Numbers, ranges and tensors behind one another, as numpy's ``r_`` and ``c_`` have them.

    Args:
      columns: whether rows of numbers are columns, which stand beside one another.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions.grids import c_, r_
      >>> r_[1:4, 0, Tensor([7, 8])]
      Tensor([1, 2, 3, 0, 7, 8])
      >>> c_[Tensor([1, 2]), Tensor([3, 4])]
      Tensor([[1, 3],
              [2, 4]])
    """

    def __init__(self, columns: bool) -> None:
        self.columns = columns

    def __getitem__(self, key: Any) -> Tensor:
        """What is told, joined along the first axis, or the last one.

        Raises:
          NotImplementedError: for numpy's directives, which are text.
          TypeError: if a range has no end.
        """
        parts = []
        for one in key if isinstance(key, tuple) else (key,):
            if isinstance(one, str):
                raise NotImplementedError(f"what is joined is said by cat() and stack(), not by {one!r}")
            part = _range(one) if isinstance(one, slice) else one if isinstance(one, Tensor) else Tensor(one)
            parts.append(part.reshape(-1, 1) if self.columns and part.ndim < 2 else part.reshape(-1) if part.ndim < 1
                         else part)  # fmt: skip
        return parts[0].cat(*parts[1:], dim=-1 if self.columns else 0)


class Index:
    """What stands in brackets, as numpy's ``s_`` and ``index_exp`` give it.

    Args:
      tuples: whether a single index is a tuple, too.

    Example:
      >>> from tg_frontend.functions.grids import index_exp, s_
      >>> s_[2::2], index_exp[1]
      (slice(2, None, 2), (1,))
    """

    def __init__(self, tuples: bool) -> None:
        self.tuples = tuples

    def __getitem__(self, key: Any) -> Any:
        """The index."""
        return (key,) if self.tuples and not isinstance(key, tuple) else key


mgrid, ogrid, r_, c_, s_, index_exp = Grid(True), Grid(False), Joined(False), Joined(True), Index(False), Index(True)
INDEXED = {"mgrid": mgrid, "ogrid": ogrid, "r_": r_, "c_": c_, "s_": s_, "index_exp": index_exp}
"""What is not called, by its name at the top of numpy."""


def ix_(*args: Tensor) -> tuple[Tensor, ...]:
    """Rows of indices so that they choose every pair: each along an axis of its own.

    Args:
      args: rows of integers; or of bools, whose true places are meant, and which are computed now.

    Raises:
      ValueError: if one is no row.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import ix_
      >>> Tensor([[0, 1, 2], [3, 4, 5]])[ix_(Tensor([0, 1]), Tensor([True, False, True]))]
      Tensor([[0, 2],
              [3, 5]])
    """
    out = []
    for axis, given in enumerate(args):
        row = given if isinstance(given, Tensor) else Tensor(given)
        if row.ndim != 1:
            raise ValueError(f"ix_: rows of indices are wanted, got shape {row.shape}")
        row = row.nonzero().reshape(-1) if row.dtype.kind == "bool" else row
        out.append(row.reshape([-1 if i == axis else 1 for i in range(len(args))]))
    return tuple(out)


def block(arrays: Any) -> Tensor:
    """A tensor of blocks: those of the innermost lists stand beside one another along the last axis, and so on.

    Args:
      arrays: lists of lists, all of one depth, of tensors and numbers.

    Raises:
      ValueError: if lists are of several depths, or empty; if blocks do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import block
      >>> block([[Tensor([[1, 2]]), Tensor([[3]])], [Tensor([[4]]), Tensor([[5, 6]])]])
      Tensor([[1, 2, 3],
              [4, 5, 6]])
    """
    depth, most = _depth(arrays)
    return _joined(arrays, depth, max(depth, most), list(tensors_of(arrays)))


def _depth(given: Any) -> tuple[int, int]:
    """How deep lists are, and how many axes a block has at most."""
    if not isinstance(given, list):
        return 0, given.ndim if is_arraylike(given) or isinstance(given, Tensor) else 0
    if not given:
        raise ValueError("block: an empty list")
    found = [_depth(part) for part in given]
    if len({depth for depth, _ in found}) > 1:
        raise ValueError("block: lists are of several depths")
    return found[0][0] + 1, max(most for _, most in found)


def _joined(given: Any, depth: int, axes: int, tensors: list[Tensor]) -> Tensor:
    if not isinstance(given, list):
        part = given if isinstance(given, Tensor) else beside(Tensor, given, tensors)
        return part.reshape((1,) * (axes - part.ndim) + part.shape)
    parts = [_joined(part, depth - 1, axes, tensors) for part in given]
    return parts[0].cat(*parts[1:], dim=-depth)
