"""Products: matrices, vectors, and sums over named axes."""

from __future__ import annotations

from tg_dtype import least_upper_dtype, sum_acc_dtype
from tg_shape import sint

from ..array.core import Core, DTypeLike
from ..array.shapes import broadcast_shape
from ..autograd.functions import Mul, Reshape, Sum
from ..host.coerce import to_dtype
from .gather_scatter import Placement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self


class Linear(Placement):
    """Matrix products."""

    __slots__ = ()

    def _contract(self, other: Self, axes: tuple[int, ...], dtype: DTypeLike | None = None) -> Self:
        """Operands of one shape, multiplied and summed along ``axes``, which stay with size 1.

        Products and sums are made in at least 32 bits, and rounded once.
        """
        wide = to_dtype(dtype) if dtype is not None else sum_acc_dtype(self.dtype)
        out = self.cast(wide)._apply(Mul(), other.cast(wide))._apply(Sum(axes))
        return out if dtype is not None else out.cast(self.dtype)

    def _operands(self, other: Any, what: str) -> tuple[Self, Self]:
        w = self._tensor(other, what)
        if self.device != w.device:
            raise ValueError(f"{what}: operands on {self.device} and {w.device}; use .to()")
        dtype = least_upper_dtype(self.dtype, w.dtype)
        return self.cast(dtype), w.cast(dtype)

    def dot(self, w: Any, dtype: DTypeLike | None = None) -> Self:
        """The product of matrices, stacks of them (which broadcast), or vectors, as numpy's ``matmul``.

        Args:
          w: shape (…, K, N), or (K,).
          dtype: accumulate and return in this dtype. If not given, narrow floats are accumulated in float32.

        Returns:
          shape (…, M, N) for this tensor of shape (…, M, K); a vector's own axis is left out.

        Raises:
          ValueError: the K of the two differ, the other axes do not broadcast, or an operand is a number.
        """
        x, y = self._operands(w, "matmul")
        if x.ndim == 0 or y.ndim == 0:
            raise ValueError(f"matmul: shapes {x.shape} and {y.shape}: vectors or matrices are wanted, not numbers")
        a = x.reshape((1, *x.shape)) if x.ndim == 1 else x
        b = y.reshape((*y.shape, 1)) if y.ndim == 1 else y
        if a.shape[-1] != b.shape[-2]:
            raise ValueError(f"matmul: shapes {x.shape} and {y.shape}: {a.shape[-1]} columns for {b.shape[-2]} rows")
        m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
        lead = broadcast_shape("matmul", a.shape[:-2] or (1,), b.shape[:-2] or (1,)) if a.ndim + b.ndim > 4 else ()
        full = (*lead, m, n, k)
        # these fit: nothing has to be looked at again
        a = a._apply(Reshape((*a.shape[:-1], 1, k)))._stretch(full)
        b = b.transpose(-1, -2)
        b = b._apply(Reshape((*b.shape[:-2], 1, n, k)))._stretch(full)
        out = a._contract(b, (len(lead) + 2,), dtype)
        return out._apply(Reshape((*lead, *(() if x.ndim == 1 else (m,)), *(() if y.ndim == 1 else (n,)))))

    def matmul(self, x: Any, reverse: bool = False, dtype: DTypeLike | None = None) -> Self:
        """The same as :meth:`dot`; ``reverse`` exchanges the operands."""
        return self._tensor(x, "matmul").dot(self, dtype) if reverse else self.dot(x, dtype)

    def __matmul__(self, x: Any) -> Self:
        return self.dot(x)

    def __rmatmul__(self, x: Any) -> Self:
        return self.matmul(x, reverse=True)

    def __imatmul__(self, x: Any) -> Self:
        return self._in_place(self.dot(x), "@=")

    def linear(self, weight: Self, bias: Self | None = None, dtype: DTypeLike | None = None) -> Self:
        """x @ weight + bias; a weight of one axis is multiplied element by element.

        Args:
          weight: shape (K, N), not transposed.
          bias: shape (N,).
          dtype: multiply, accumulate and return in this dtype (that of the sum with a bias, if there is one).

        Raises:
          ValueError: the shapes do not fit.
        """
        if weight.ndim == 1:
            out = self.mul(weight) if dtype is None else self.cast(dtype).mul(weight.cast(dtype))
        else:
            out = self.dot(weight, dtype)
        return out if bias is None else out + bias

    def sequential(self, layers: list[Any]) -> Self:
        """This tensor through callables, one after another."""
        out = self
        for layer in layers:
            out = layer(out)
        return out

    @classmethod
    def einsum(cls, formula: str, *operands: Any, dtype: DTypeLike | None = None) -> Self:
        """A sum of products over named axes, as numpy has it: ``"ij,jk->ik"``, ``"...ii->...i"``, ``"bij,bjk"``.

        Raises:
          ValueError: the formula is malformed or does not fit the operands.

        Example:
            >>> from tg_frontend import Tensor
            >>> a = Tensor([[1, 2], [3, 4]], device="NUMPY")
            >>> Tensor.einsum("ij,kj->ik", a, a).tolist()
            [[5, 11], [11, 25]]
        """
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = tuple(operands[0])
        terms, output = _parse(formula, operands)
        tensors: list[Self] = [_diagonals(x, letters, formula) for x, letters in zip(operands, terms, strict=True)]
        terms = ["".join(dict.fromkeys(letters)) for letters in terms]
        sizes: dict[str, sint] = {}
        for x, letters in zip(tensors, terms, strict=True):
            for letter, dim in zip(letters, x.shape, strict=True):
                known = sizes.setdefault(letter, dim)
                if known == 1:
                    sizes[letter] = dim
                elif dim not in (1, known):
                    raise ValueError(
                        f"einsum: {formula!r}: the axis {letter!r} has sizes {known} and {dim} in shapes "
                        f"{' and '.join(str(o.shape) for o in operands)}"
                    )
        order = [*output, *sorted(set(sizes) - set(output))]
        full = tuple(sizes[letter] for letter in order)
        aligned: list[Self] = [_aligned(x, letters, order) for x, letters in zip(tensors, terms, strict=True)]
        first, *rest = (x._stretch(full) for x in aligned)
        summed = tuple(range(len(output), len(order)))
        for position, x in enumerate(rest):
            a, b = first._operands(x, "einsum")
            if position == len(rest) - 1:
                return a._contract(b, summed, dtype).reshape(tuple(full[: len(output)]))
            first = a * b
        if dtype is not None:
            first = first.cast(dtype)
        out = first.cast(sum_acc_dtype(first.dtype))._apply(Sum(summed)).cast(first.dtype) if summed else first
        return out.reshape(tuple(full[: len(output)]))


def _parse(formula: str, operands: tuple[Any, ...]) -> tuple[list[str], str]:
    text = formula.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise ValueError(f"einsum: {formula!r} names {len(terms)} operands, got {len(operands)}")
    for x in operands:
        if not isinstance(x, Core):
            raise TypeError(f"einsum: operands are tensors, got a {type(x).__name__}")
    # letters that nobody types stand for the axes of "..."
    spare = [chr(code) for code in range(0x3B1, 0x3B1 + 24)]
    widest = 0
    for i, (letters, x) in enumerate(zip(terms, operands, strict=True)):
        if letters.count("...") > 1 or (not letters.replace("...", "").isalpha() and letters.replace("...", "")):
            raise ValueError(f"einsum: {letters!r} in {formula!r} is not made of letters and one '...'")
        if "..." in letters:
            extra = x.ndim - len(letters) + 3
            if extra < 0:
                raise ValueError(f"einsum: {letters!r} in {formula!r} does not fit shape {x.shape}")
            widest = max(widest, extra)
            terms[i] = letters.replace("...", "".join(spare[-extra:]) if extra else "")
        if len(terms[i]) != x.ndim:
            raise ValueError(f"einsum: {letters!r} in {formula!r} does not fit shape {x.shape}")
    dots = "".join(spare[-widest:]) if widest else ""
    if arrow:
        output = right.replace("...", dots)
    else:
        once = "".join(terms)
        output = dots + "".join(sorted(c for c in set(once) - set(dots) if once.count(c) == 1))
    if len(set(output)) != len(output) or not set(output) <= set("".join(terms)):
        raise ValueError(f"einsum: the output {right!r} of {formula!r} repeats an axis or names an unknown one")
    return terms, output


def _diagonals(x: Any, letters: str, formula: str) -> Any:
    """Axes of one name taken together."""
    while len(set(letters)) != len(letters):
        letter = next(c for c in letters if letters.count(c) > 1)
        i = letters.index(letter)
        j = letters.index(letter, i + 1)
        n = x.shape[i]
        if x.shape[j] != n:
            raise ValueError(f"einsum: {formula!r}: the axis {letter!r} has sizes {n} and {x.shape[j]} in {x.shape}")
        rest = [k for k in range(x.ndim) if k not in (i, j)]
        moved = x.permute(*rest, i, j)
        lead = moved.shape[:-2]
        moved = moved.reshape((*lead, n * n)).pad(((0, 0),) * len(lead) + ((0, n),))
        moved = moved.reshape((*lead, n, n + 1)).shrink([*(None for _ in lead), None, (0, 1)]).reshape((*lead, n))
        back = list(range(len(lead)))
        back.insert(i, len(lead))
        x, letters = moved.permute(*back), letters[:j] + letters[j + 1 :]
    return x


def _aligned(x: Any, letters: str, order: list[str]) -> Any:
    """Axes in the given order, size 1 where there is none."""
    have = [letter for letter in order if letter in letters]
    moved = x.permute(*(letters.index(letter) for letter in have)) if have else x
    dims = iter(moved.shape)
    return moved.reshape(tuple(next(dims) if letter in letters else 1 for letter in order))
