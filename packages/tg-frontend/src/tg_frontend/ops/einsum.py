"""Sums of products over named axes."""

from __future__ import annotations

from tg_dtype import sum_acc_dtype
from tg_shape import sint

from ..array.array import A, Array
from ..array.base import DTypeLike
from ..array.movement import stretch
from ..autograd.functions import Sum
from .linear import contract, promoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def einsum(cls: type[A], formula: str, *operands: Any, dtype: DTypeLike | None = None) -> A:
    """A sum of products over named axes, as numpy has it: ``"ij,jk->ik"``, ``"...ii->...i"``, ``"bij,bjk"``.

    Raises:
      ValueError: if the formula is malformed or does not fit the operands.

    Example:
      >>> from tg_frontend import Tensor
      >>> a = Tensor([[1, 2], [3, 4]])
      >>> Tensor.einsum("ij,kj->ik", a, a).tolist()
      [[5, 11], [11, 25]]
    """
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    terms, output = _parse(formula, operands)
    tensors: list[A] = [_diagonals(x, letters, formula) for x, letters in zip(operands, terms, strict=True)]
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
    aligned: list[A] = [_aligned(x, letters, order) for x, letters in zip(tensors, terms, strict=True)]
    first, *rest = (stretch(x, full) for x in aligned)
    summed = tuple(range(len(output), len(order)))
    for position, x in enumerate(rest):
        a, b = promoted(first, x, "einsum")
        if position == len(rest) - 1:
            return contract(a, b, summed, dtype).reshape(tuple(full[: len(output)]))
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
        if not isinstance(x, Array):
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
