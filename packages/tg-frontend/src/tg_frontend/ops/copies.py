"""Views by names that promise a copy: in memory of their own."""

from __future__ import annotations

from ..array import joining, movement
from ..array.array import A
from ..array.computing import clone
from .axes import narrow, t
from .diagonal import diagonal
from .windows import unfold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def diagonal_copy(x: A, offset: int = 0, dim1: int = 0, dim2: int = 1) -> A:
    """What :meth:`diagonal` gives, as a copy.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).diagonal_copy()
      Tensor([1, 4])
    """
    return clone(diagonal(x, offset, dim1, dim2))


def expand_copy(x: A, *shape: Any) -> A:
    """What :meth:`expand` gives, as a copy.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1], [2]]).expand_copy(2, 2)
      Tensor([[1, 1],
              [2, 2]])
    """
    return clone(movement.expand(x, *shape))


def narrow_copy(x: A, dim: int, start: int, length: int) -> A:
    """What :meth:`narrow` gives, as a copy.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).narrow_copy(0, 1, 2)
      Tensor([2, 3])
    """
    return clone(narrow(x, dim, start, length))


def permute_copy(x: A, *order: Any) -> A:
    """What :meth:`permute` gives, as a copy.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2]]).permute_copy(1, 0)
      Tensor([[1],
              [2]])
    """
    return clone(movement.permute(x, *order))


def squeeze_copy(x: A, dim: Any = None) -> A:
    """What :meth:`squeeze` gives, as a copy.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2]]).squeeze_copy()
      Tensor([1, 2])
    """
    return clone(movement.squeeze(x, dim))


def t_copy(x: A) -> A:
    """What :meth:`t` gives, as a copy.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2]]).t_copy()
      Tensor([[1],
              [2]])
    """
    return clone(t(x))


def transpose_copy(x: A, dim0: int = 1, dim1: int = 0) -> A:
    """What :meth:`transpose` gives, as a copy.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2]]).transpose_copy(0, 1)
      Tensor([[1],
              [2]])
    """
    return clone(movement.transpose(x, dim0, dim1))


def unfold_copy(x: A, dim: int, size: int, step: int) -> A:
    """What :meth:`unfold` gives, as a copy.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).unfold_copy(0, 2, 1)
      Tensor([[1, 2],
              [2, 3]])
    """
    return clone(unfold(x, dim, size, step))


def unsqueeze_copy(x: A, dim: int) -> A:
    """What :meth:`unsqueeze` gives, as a copy.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).unsqueeze_copy(0)
      Tensor([[1, 2]])
    """
    return clone(movement.unsqueeze(x, dim))


def view_copy(x: A, *shape: Any) -> A:
    """What :meth:`view` gives, as a copy.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).view_copy(2, 1)
      Tensor([[1],
              [2]])
    """
    return clone(movement.view(x, *shape))


def unbind_copy(x: A, dim: int = 0) -> tuple[A, ...]:
    """What :meth:`unbind` gives, as copies.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).unbind_copy()
      (Tensor([1, 2]), Tensor([3, 4]))
    """
    return tuple(clone(part) for part in joining.unbind(x, dim))


def split_with_sizes_copy(x: A, sizes: Sequence[int], dim: int = 0) -> tuple[A, ...]:
    """What :meth:`split` gives, as copies.

    Raises:
      ValueError: if the sizes do not add up to the axis.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).split_with_sizes_copy([1, 2])
      (Tensor([1]), Tensor([2, 3]))
    """
    return tuple(clone(part) for part in joining.split(x, sizes, dim))
