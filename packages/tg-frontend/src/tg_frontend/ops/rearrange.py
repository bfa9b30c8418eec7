"""Formulas of axes, as einops writes them."""

from __future__ import annotations

from tg_shape import prod, sint

from ..array.array import A


def rearrange(x: A, formula: str, **sizes: int) -> A:
    """Reshape and permute by names, as einops has it: ``"b (h w) c -> b c h w"`` with ``h=2``.

    ``...`` stands for the axes that are not named, also in parentheses on the right.

    Raises:
      ValueError: if the formula does not fit the shape.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2, 3, 4]]).rearrange("b (h w) -> b w h", h=2)
      Tensor([[[1, 3],
               [2, 4]]])
    """
    left, arrow, right = formula.partition("->")
    if not arrow:
        raise ValueError(f"rearrange: {formula!r} has no '->'")
    if "..." in (left := left.replace("…", "...")):
        unnamed = x.ndim - len(_axis_groups(left, formula)) + 1
        dots = " ".join(f"...{i}" for i in range(unnamed))
        left, right = (side.replace("...", f" {dots} ") for side in (left, right.replace("…", "...")))
    before, after = _axis_groups(left, formula), _axis_groups(right, formula)
    if len(before) != x.ndim:
        raise ValueError(f"rearrange: {formula!r} names {len(before)} axes, shape {x.shape} has {x.ndim}")
    known: dict[str, sint] = dict(sizes)
    for names, dim in zip(before, x.shape, strict=True):
        unknown = [name for name in names if name not in known]
        have = prod(known[name] for name in names if name in known)
        if len(unknown) > 1 or (unknown and (have == 0 or dim % have != 0)) or (not unknown and have != dim):
            raise ValueError(f"rearrange: ({' '.join(names)}) is not an axis of size {dim}, in {formula!r}")
        if unknown:
            known[unknown[0]] = dim // have
    flat, wanted = [n for names in before for n in names], [n for names in after for n in names]
    if sorted(flat) != sorted(wanted) or len(set(flat)) != len(flat):
        raise ValueError(f"rearrange: the two sides of {formula!r} do not name the same axes once each")
    out = x.reshape(tuple(known[name] for name in flat)).permute(*(flat.index(name) for name in wanted))
    return out.reshape(tuple(prod(known[name] for name in names) for names in after))


def _axis_groups(text: str, formula: str) -> list[list[str]]:
    """One side of a formula as the names of each axis.

    Raises:
      ValueError: if the parentheses do not match.
    """
    groups: list[list[str]] = []
    inside = False
    for token in text.replace("(", " ( ").replace(")", " ) ").split():
        if token in "()":
            if (token == "(") == inside:
                raise ValueError(f"rearrange: unbalanced parentheses in {formula!r}")
            inside = token == "("
            if inside:
                groups.append([])
        elif token == "1":
            if not inside:
                groups.append([])
        elif inside:
            groups[-1].append(token)
        else:
            groups.append([token])
    if inside:
        raise ValueError(f"rearrange: unbalanced parentheses in {formula!r}")
    return groups
