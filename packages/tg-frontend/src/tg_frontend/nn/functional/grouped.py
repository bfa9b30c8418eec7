"""Products of matrices in groups."""

from __future__ import annotations

from tg_dtype import dtypes

from ...tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _ends(offs: Tensor, groups: int | None, length: int) -> list[int]:
    """Where the groups of an axis of this length end.

    Raises:
      TypeError: if ``offs`` holds no integers.
      ValueError: if it is no vector of ``groups`` places that grow.
    """
    if not dtypes.is_int(offs.dtype):
        raise TypeError(f"grouped_mm: offs are integers, got a tensor of {offs.dtype.name}")
    if offs.ndim != 1 or groups not in (None, offs.shape[0]):
        raise ValueError(f"grouped_mm: offs of shape {offs.shape} for {groups or 'some'} groups; one end for each fits")
    ends: list[int] = offs.tolist()
    if any(end < start for start, end in zip([0, *ends], [*ends, length], strict=True)):
        raise ValueError(f"grouped_mm: offs are {ends}; they are to grow from 0 to {length} at most")
    return ends


def _pieces(x: Tensor, ends: list[int], axis: int) -> list[Tensor]:
    """The groups along an axis; what lies behind the last is left out."""
    return [x.narrow(axis, start, end - start) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """Products of several pairs of matrices, whose sizes along one axis may differ from pair to pair.

    Args:
      mat_a: shape (groups, M, K); or (M, K), of which the rows are divided among the groups where ``mat_b`` has three
        axes, and the columns where it has two.
      mat_b: shape (groups, K, N); or (K, N), of which the columns are divided where ``mat_a`` has three axes, and the
        rows where it has two.
      offs: integers, where each group of what is divided ends; what lies behind the last is in none. They are read at
        once. None if both have three axes.
      bias: added to the products.
      out_dtype: what the operands are cast to before.

    Returns:
      shape (groups, M, N) if both have three axes or both have two, else (M, N), with zeros for what is in no group.

    Raises:
      ValueError: if the shapes do not fit, ``offs`` do not grow, or they are given or missing where they should not be.
      TypeError: if ``offs`` holds no integers.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> experts = Tensor([[[1.0]], [[10.0]]])
      >>> F.grouped_mm(Tensor([[1.0], [2.0], [3.0]]), experts, offs=Tensor([1, 3])).flatten()
      Tensor([ 1., 20., 30.])
    """
    what, ranks = "grouped_mm", (mat_a.ndim, mat_b.ndim)
    if not set(ranks) <= {2, 3} or mat_a.shape[-1] != mat_b.shape[-2]:
        raise ValueError(f"{what}: shapes {mat_a.shape} and {mat_b.shape}; matrices, or batches of them, fit")
    if (offs is None) != (ranks == (3, 3)):
        raise ValueError(f"{what}: offs say where groups end in what has two axes; got shapes {mat_a.shape} and "
                         f"{mat_b.shape} with{'out' if offs is None else ''} offs")  # fmt: skip
    if out_dtype is not None:
        mat_a, mat_b = mat_a.cast(out_dtype), mat_b.cast(out_dtype)
    if offs is None:
        if mat_a.shape[0] != mat_b.shape[0]:
            raise ValueError(f"{what}: {mat_a.shape[0]} matrices and {mat_b.shape[0]}")
        out = mat_a.matmul(mat_b)
        return out if bias is None else out + bias
    (rows, inner), columns = mat_a._ints()[-2:], mat_b._ints()[-1]
    if ranks == (2, 2):
        ends = _ends(offs, None, inner)
        parts = zip(_pieces(mat_a, ends, 1), _pieces(mat_b, ends, 0), strict=True)
        out = Tensor.stack(*[a.matmul(b) for a, b in parts])
        return out if bias is None else out + bias
    axis, length = (0, rows) if ranks == (2, 3) else (1, columns)
    ends = _ends(offs, int(mat_b.shape[0] if axis == 0 else mat_a.shape[0]), length)
    if axis == 0:
        products = [a.matmul(mat_b[n]) for n, a in enumerate(_pieces(mat_a, ends, 0))]
    else:
        products = [mat_a[n].matmul(b) for n, b in enumerate(_pieces(mat_b, ends, 1))]
    out = products[0].cat(*products[1:], dim=axis)
    behind = length - ends[-1]
    out = out.pad(((0, behind), None) if axis == 0 else (None, (0, behind))) if behind else out
    return out if bias is None else out + bias
