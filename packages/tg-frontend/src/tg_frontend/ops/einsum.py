"""Sums of products over named axes."""

from __future__ import annotations

import re

from tg_dtype import sum_acc_dtype
from tg_shape import sint, upper

from ..array.array import A, Array
from ..array.base import DTypeLike
from ..array.movement import stretch
from ..autograd.functions import Mul, Sum
from ..host.coerce import to_dtype
from .contraction_order import contraction_order, left_over
from .linear import contract, promoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TERM = re.compile(r"[A-Za-z]*(?:…[A-Za-z]*)?", re.ASCII)
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SPARE = 0xE000  # of characters that no formula has, from here on: the axes of "..."


def einsum(cls: type[A], formula: str | A, *operands: Any, dtype: DTypeLike | None = None) -> A:
    """A sum of products over named axes, as numpy has it: ``"ij,jk->ik"``, ``"...ii->...i"``, ``"bij,bjk"``.

    Axes of size 1 broadcast. Those of ``"..."`` are summed where the output does not name them, as in PyTorch.

    Args:
      formula: letters, a to z and A to Z, for the axes of each operand, and after ``->`` for those of the result;
        without ``->``, those that occur once, in the order of the alphabet with capitals first. Or, as in numpy and
        PyTorch, each operand followed by a list of integers from 0 to 51 and ``...``, and a last list for the result.
      operands: tensors, as many as the formula has terms.
      dtype: to sum in, and of the result.

    Raises:
      ValueError: if the formula is malformed or does not fit the operands.
      TypeError: if an operand is no tensor.

    Example:
      >>> from tg_frontend import Tensor
      >>> a = Tensor([[1, 2], [3, 4]])
      >>> Tensor.einsum("ij,kj->ik", a, a).tolist()
      [[5, 11], [11, 25]]
    """
    text, operands = spelled(formula, operands)
    terms, output = _parse(text, operands)
    tensors: list[A] = [_diagonals(x, letters, text) for x, letters in zip(operands, terms, strict=True)]
    terms = ["".join(dict.fromkeys(letters)) for letters in terms]
    sizes: dict[str, sint] = {}
    for x, letters in zip(tensors, terms, strict=True):
        for letter, dim in zip(letters, x.shape, strict=True):
            known = sizes.setdefault(letter, dim)
            if known == 1:
                sizes[letter] = dim
            elif dim not in (1, known):
                raise ValueError(
                    f"einsum: {text!r}: the axis {letter!r} has sizes {known} and {dim} in shapes "
                    f"{' and '.join(str(o.shape) for o in operands)}"
                )
    if len(tensors) == 2 and _shared(tensors, terms, output, sizes):
        a, b = promoted(tensors[0], tensors[1], "einsum")
        return _product([(a, terms[0]), (b, terms[1])], output, sizes, dtype)
    common = tensors[0].dtype
    for x in tensors[1:]:
        common = promoted(tensors[0].cast(common), x, "einsum")[0].dtype
    result = common if dtype is None else to_dtype(dtype)
    wide = result if dtype is not None and len(tensors) > 1 else sum_acc_dtype(result)
    left = [_own(x.cast(common), letters, sizes) for x, letters in zip(tensors, terms, strict=True)]
    axes = frozenset().union(*(letters for _, letters in left))
    if len(left) == 1 and axes == frozenset(output):  # it may stay a view
        view: A = _aligned(*left[0], list(output))
        return view.cast(result)
    for place, (x, letters) in enumerate(left):  # what one operand alone names is summed first of all
        others = [frozenset(named) for at, (_, named) in enumerate(left) if at != place]
        named = left_over(axes, others, frozenset(output))
        left[place] = _summed(x.cast(wide), letters, named), "".join(c for c in letters if c in named)
    axes = frozenset().union(*(letters for _, letters in left))
    order = contraction_order(
        tuple(frozenset(letters) for _, letters in left), frozenset(output),
        tuple(upper(sizes[letter]) for letter in sorted(axes)),
    )  # fmt: skip
    for places in order:
        factors = [left[place] for place in places]
        left = [pair for place, pair in enumerate(left) if place not in places]
        both = "".join(dict.fromkeys("".join(letters for _, letters in factors)))
        kept = left_over(frozenset(both), [frozenset(named) for _, named in left], frozenset(output))
        inside = "".join(letter for letter in (both if left else output) if letter in kept)
        left.append((_product(factors, inside, sizes, wide), inside))
    out: A = _aligned(*left[0], list(output))
    return out.cast(result)


def _shared(tensors: list[A], terms: list[str], output: str, sizes: dict[str, sint]) -> bool:
    """Whether each axis that is summed is an axis of both operands."""
    for letter, size in sizes.items():
        if letter not in output:
            for x, letters in zip(tensors, terms, strict=True):
                place = letters.find(letter)
                if place < 0 or (x.shape[place] == 1 and size != 1):
                    return False
    return True


def _product(factors: list[tuple[A, str]], kept: str, sizes: dict[str, sint], dtype: DTypeLike | None) -> A:
    """The product of several operands of one dtype, summed along the axes that are not kept."""
    loops = [*kept, *sorted(set().union(*(letters for _, letters in factors)) - set(kept))]
    full = tuple(sizes[letter] for letter in loops)
    first, *between, last = (stretch(_aligned(x, letters, loops), full) for x, letters in factors)
    for x in between:
        first = first._apply(Mul(), x)
    out: A = contract(first, last, tuple(range(len(kept), len(loops))), dtype)
    return out.reshape(full[: len(kept)])


def _own(x: A, letters: str, sizes: dict[str, sint]) -> tuple[A, str]:
    """An operand without the axes along which it is only repeated."""
    have = [place for place, letter in enumerate(letters) if x.shape[place] != 1 or sizes[letter] == 1]
    return x.reshape(tuple(x.shape[place] for place in have)), "".join(letters[place] for place in have)


def _summed(x: A, letters: str, kept: frozenset[str]) -> A:
    """The sum along the axes that are not kept."""
    axes = tuple(place for place, letter in enumerate(letters) if letter not in kept)
    if not axes:
        return x
    return x._apply(Sum(axes)).reshape(tuple(dim for place, dim in enumerate(x.shape) if place not in axes))


def spelled(formula: Any, operands: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """A formula as text, and the operands, which may have come in lists or with lists of axes.

    Raises:
      ValueError: if a list holds what names no axis.
      TypeError: if the formula is no text, and no operand.
    """
    if isinstance(formula, str):
        listed = len(operands) == 1 and isinstance(operands[0], (list, tuple))
        return formula, tuple(operands[0]) if listed else operands
    if not isinstance(formula, Array):
        raise TypeError(f"einsum: a formula, or operands with lists of axes, is wanted, got a {type(formula).__name__}")
    given = (formula, *operands)
    text = ",".join(map(_named, given[1::2][: len(given) // 2]))
    if len(given) % 2:
        text = f"{text}->{_named(given[-1])}"
    return text, given[: len(given) // 2 * 2 : 2]


def _named(axes: Any) -> str:
    """A list of axes as letters."""
    if not isinstance(axes, (list, tuple)):
        raise TypeError(f"einsum: after each operand a list of its axes is wanted, got a {type(axes).__name__}")
    for axis in axes:
        if axis is not ... and not (isinstance(axis, int) and 0 <= axis < len(_LETTERS)):
            raise ValueError(f"einsum: an axis is an integer from 0 to {len(_LETTERS) - 1}, or ..., got {axis!r}")
    return "".join("..." if axis is ... else _LETTERS[axis] for axis in axes)


def _halves(formula: str) -> tuple[str, str, str]:
    """What stands before the arrow, the arrow, and what stands behind it."""
    if "…" in formula or re.search(r"\. +\.", formula):
        raise ValueError(f"einsum: in {formula!r} three points, one behind another, are wanted for axes without a name")
    return formula.partition("->")


def _parse(formula: str, operands: tuple[Any, ...]) -> tuple[list[str], str]:
    left, arrow, right = (part.replace(" ", "").replace("...", "…") for part in _halves(formula))
    terms = left.split(",")
    if len(terms) != len(operands):
        raise ValueError(f"einsum: {formula!r} names {len(terms)} operands, got {len(operands)}")
    for x in operands:
        if not isinstance(x, Array):
            raise TypeError(f"einsum: operands are tensors, got a {type(x).__name__}")
    for letters in (*terms, right):
        if not _TERM.fullmatch(letters):
            shown = letters.replace("…", "...")
            raise ValueError(f"einsum: {shown!r} in {formula!r} is not made of letters (a to z, A to Z) and one '...'")
    widest = 0
    for i, (letters, x) in enumerate(zip(terms, operands, strict=True)):
        if "…" in letters:
            extra = x.ndim - len(letters) + 1
            if extra < 0:
                raise ValueError(f"einsum: {letters!r} in {formula!r} does not fit shape {x.shape}")
            widest = max(widest, extra)
            terms[i] = letters.replace("…", _spare(extra))
        if len(terms[i]) != x.ndim:
            raise ValueError(f"einsum: {letters!r} in {formula!r} does not fit shape {x.shape}")
    dots = _spare(widest)
    if arrow:
        output = right.replace("…", dots)
    else:
        once = "".join(terms)
        output = dots + "".join(sorted(c for c in set(once) - set(dots) if once.count(c) == 1))
    if len(set(output)) != len(output) or not set(output) <= set("".join(terms)):
        raise ValueError(f"einsum: the output {right!r} of {formula!r} repeats an axis or names an unknown one")
    return terms, output


def _spare(count: int) -> str:
    """Names of the last axes of "...": the last one of all has the first."""
    return "".join(chr(_SPARE + place) for place in reversed(range(count)))


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
