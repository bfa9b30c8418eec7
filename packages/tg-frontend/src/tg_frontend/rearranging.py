"""Formulas of axes, as einops writes them."""

from __future__ import annotations


def axis_groups(text: str, formula: str) -> list[list[str]]:
    """One side of a formula as the names of each axis.

    Raises:
      ValueError: the parentheses do not match.
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
