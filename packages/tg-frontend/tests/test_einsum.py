"""Formulas of einsum, drawn and mistyped: numpy's result, or an error that names einsum."""

from __future__ import annotations

import importlib
import random
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor
from tg_frontend.ops import contraction_order as orders
from tg_frontend.ops.contraction_order import EXACT, LEAST, contraction_order, left_over
from tg_lazy import Context
from tg_runtime import GlobalCounters

SIZES = {"a": 2, "b": 3, "A": 4, "B": 2, "i": 3}
TYPOS = ["α", "é", " ", ".", "..", "...", "-", ">", "->", ",", "a", "1", "_", "ª", "ı", "\t"]
T: Any = Tensor  # of which mypy asks nothing


def _term(pick: random.Random) -> str:
    letters = "".join(pick.choice("abABi") for _ in range(pick.randint(0, 3)))
    if pick.random() < 0.3:
        place = pick.randint(0, len(letters))
        letters = f"{letters[:place]}...{letters[place:]}"
    return letters


def _formula(pick: random.Random) -> tuple[str, list[np.ndarray[Any, Any]]]:
    terms = [_term(pick) for _ in range(pick.randint(1, 3))]
    formula = ",".join(terms)
    if pick.random() < 0.6:
        known = sorted({letter for term in terms for letter in term if letter != "."})
        output = "".join(pick.sample(known, pick.randint(0, len(known))))
        if "." in formula or pick.random() < 0.1:
            place = pick.randint(0, len(output))
            output = f"{output[:place]}...{output[place:]}"
        formula += f"->{output}"
    arrays: list[np.ndarray[Any, Any]] = []
    for term in terms:
        more = [2, 3][pick.randint(0, 2) :]
        left, dots, right = term.partition("...")
        sizes = [[1 if pick.random() < 0.05 else SIZES[letter] for letter in part] for part in (left, right)]
        shape = (*sizes[0], *(more if dots else ()), *sizes[1])
        arrays.append(np.random.default_rng(len(arrays)).integers(-4, 5, shape).astype(np.float64))
    if pick.random() < 0.5:
        place = pick.randint(0, len(formula))
        formula = formula[:place] + pick.choice(TYPOS) + formula[place + pick.randint(0, 1) :]
    return formula, arrays


@pytest.mark.parametrize("seed", range(4))
def test_formulas(seed: int) -> None:
    pick, right, wrong = random.Random(seed), 0, 0
    with Context(DEV="NUMPY"):
        for _ in range(80):
            formula, arrays = _formula(pick)
            try:
                want: Any = np.einsum(formula, *arrays)
            except (ValueError, TypeError) as error:
                want = error
            try:
                got = Tensor.einsum(formula, *map(Tensor, arrays))
            except (ValueError, TypeError) as error:
                assert "einsum" in str(error), (formula, error)
                assert isinstance(want, Exception), (formula, [a.shape for a in arrays], error)
                wrong += 1
                continue
            right += 1
            if isinstance(want, Exception):  # the axes of "..." are summed, as in PyTorch; spaces may stand anywhere
                left, arrow, output = formula.partition("->")
                assert " " in formula or (arrow and "..." in left and "..." not in output), (formula, want)
                continue
            assert got.shape == want.shape, formula
            np.testing.assert_array_equal(got.numpy(), want, err_msg=formula)
    assert right > 20 and wrong > 10


@pytest.mark.parametrize(
    ("formula", "shapes"),
    [
        ("αβ,βγ->αγ", [(2, 3), (3, 4)]), ("a...,α->a...", [(2, 3), (3,)]), ("ij->i...j...", [(2, 3)]),
        ("...i...->i", [(2, 3)]), ("ij->ii", [(2, 3)]), ("ij->k", [(2, 3)]), ("i->i->i", [(2,)]), ("ij->i..", [(2, 3)]),
        ("ij", [(2,)]), ("...ijk", [(2,)]), ("i,j", [(2,)]), ("i1", [(2, 3)]), ("ij,jk", [(2, 3), (4, 5)]), ("", []),
        ("ii", [(2, 3)]), ("i->I", [(2,)]),
    ],
)  # fmt: skip
def test_what_is_no_formula_is_refused(formula: str, shapes: list[tuple[int, ...]]) -> None:
    with pytest.raises(ValueError, match="einsum"):
        Tensor.einsum(formula, *(Tensor.ones(*shape) for shape in shapes))


def test_lists_of_axes() -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    z = x + 1j
    calls: list[tuple[Any, ...]] = [
        (x, [0, 1], y, [1, 2], [0, 2]), (x, [0, 1], y, [1, 2]), (x, [1, 0]), (x, [..., 1], [1, ...]), (x, [51, 7], []),
        (x, [30, 3], y, [3, 0]), (z, [0, 1], y, [1, 2], [2, 0]),
    ]  # fmt: skip
    for args in calls:
        got = T.einsum(*(Tensor(arg) if isinstance(arg, np.ndarray) else arg for arg in args))
        np.testing.assert_allclose(got.numpy(), np.einsum(*args), rtol=1e-12)
    t = Tensor(x)
    for wrong in ((t, [0, 52]), (t, [0, -1]), (t, [0, "j"]), (t, [0])):
        with pytest.raises(ValueError, match="einsum"):
            T.einsum(*wrong)
    for odd in ((t,), (t, t), (t, 3), (3, t)):
        with pytest.raises(TypeError, match="einsum"):
            T.einsum(*odd)


def test_many_axes_behind_the_dots() -> None:
    x = Tensor.ones(*(1 for _ in range(27)), 2)
    assert Tensor.einsum("...i,i->...", x, Tensor.ones(2)).shape == (1,) * 27


def test_numpy_asks_a_tensor() -> None:
    x = np.arange(6.0).reshape(2, 3)
    ask: Any = np.einsum
    assert ask("ij,kj", Tensor(x), x, optimize=True).tolist() == np.einsum("ij,kj", x, x).tolist()


def _network(seed: int) -> tuple[list[str], str, dict[str, int]]:
    """Operands of up to three axes, the axes of the result, and all sizes."""
    pick = random.Random(seed)
    terms = ["".join(pick.sample("abcdefg", pick.randint(0, 3))) for _ in range(pick.randint(2, 8))]
    named = sorted(set("".join(terms)))
    output = "".join(pick.sample(named, pick.randint(0, min(3, len(named)))))
    return terms, output, {letter: pick.choice([1, 2, 3, 5]) for letter in named}


@pytest.mark.parametrize("dtype", ["float64", "int8", "uint32", "bool"])
def test_products_of_many(dtype: str) -> None:
    with Context(DEV="NUMPY"):
        for seed in range(16):
            terms, output, sizes = _network(seed)
            rng = np.random.default_rng(seed)
            shapes = [[1 if rng.random() < 0.1 else sizes[letter] for letter in term] for term in terms]
            arrays = [rng.integers(-3, 4, shape).astype(dtype) for shape in shapes]
            formula = f"{','.join(terms)}->{output}"
            want = np.einsum(formula, *arrays)
            got = T.einsum(formula, *map(Tensor, arrays))
            assert got.dtype.name == dtype and got.shape == want.shape, formula
            np.testing.assert_array_equal(got.numpy(), want, err_msg=formula)


def test_steps_take_the_fewest_products(monkeypatch: pytest.MonkeyPatch) -> None:
    joined = 0
    for seed in range(60):
        terms, output, sizes = _network(seed)
        output += "".join(letter for letter in sizes if sum(letter in term for term in terms) == 1)
        output = "".join(dict.fromkeys(output))
        named = tuple(map(frozenset, terms))
        asked = named, frozenset(output), tuple(sizes[letter] for letter in sorted(sizes))
        steps = contraction_order(*asked)
        with monkeypatch.context() as patch:
            patch.setattr(orders, "LEAST", 0)  # no step is of three
            pairs = contraction_order.__wrapped__(*asked)
        assert len(pairs) == len(terms) - 1
        arrays = [np.zeros([sizes[letter] for letter in term]) for term in terms]
        exact = len(terms) <= 5  # of more numpy takes seconds
        path, _ = np.einsum_path(f"{','.join(terms)}->{output}", *arrays, optimize="optimal" if exact else "greedy")
        (least, _), (products, two), (_, took) = (
            _counted(list(named), frozenset(output), sizes, order) for order in (path[1:], pairs, steps)
        )
        assert products <= least * (1 if len(terms) <= EXACT else 4), (terms, output, sizes)
        assert took < two * LEAST, (terms, output, sizes)
        joined += len(steps) < len(pairs)
    assert joined > 10


def _counted(left: list[frozenset[str]], output: frozenset[str], sizes: dict[str, int], order: Any) -> tuple[int, int]:
    """Products, and combinations of axes that loops go through."""
    products = combinations = 0
    for places in order:
        taken = [left[place] for place in places]
        left = [term for place, term in enumerate(left) if place not in places]
        both = frozenset[str]().union(*taken)
        left.append(left_over(both, left, output))
        combinations += int(np.prod([sizes[letter] for letter in both]))
        products += max(len(taken) - 1, 1) * int(np.prod([sizes[letter] for letter in both]))
    return products, combinations


@pytest.mark.parametrize(
    ("formula", "shapes"),
    [
        ("ai,bi,ci,di->abcd", [(3, 50)] * 4), ("bi,oij,bj->bo", [(4, 5), (6, 5, 7), (4, 7)]),
        ("ir,jr,kr->ijk", [(8, 2)] * 3),
    ],
)
def test_what_sums_nothing_is_not_written(formula: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [np.random.default_rng(n).normal(size=shape) for n, shape in enumerate(shapes)]
    out = T.einsum(formula, *(Tensor(array).realize() for array in arrays))
    assert len(out.schedule()) == 1
    np.testing.assert_allclose(out.numpy(), np.einsum(formula, *arrays), rtol=1e-9, atol=1e-9)


def test_two_operands_ask_for_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("tg_frontend.ops.einsum"), "contraction_order", None)
    a, b = Tensor.ones(2, 3), Tensor.ones(3, 4)
    assert T.einsum("ij,jk->ik", a, b).tolist() == [[3.0] * 4] * 2
    with pytest.raises(TypeError):
        T.einsum("ij,jk->k", a, b)  # i is summed first


def test_a_chain_is_summed_as_it_goes() -> None:
    a, b, c = (Tensor.zeros(2, *shape).contiguous().realize() for shape in ((31, 37), (37, 29), (29, 3)))
    before = GlobalCounters.global_ops
    T.einsum("bij,bjk,bkl->bil", a, b, c).realize()
    assert GlobalCounters.global_ops - before <= 2 * 2 * (37 * 29 * 3 + 31 * 37 * 3) * 1.2
    before = GlobalCounters.global_ops
    T.einsum("bij,bjk->bk", a, b).realize()
    assert GlobalCounters.global_ops - before <= 2 * (31 * 37 + 2 * 37 * 29) * 1.2
