"""Loops in loops, drawn at random: their values, gradients, gradients of these, and vmap of all, beside Python's loops.

The functions use what the loops around them carry and go through, look up and write at computed positions, sort, and
write in place to memory of their own.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, cond, scan, vmap, while_loop

N, STEPS = 3, 2
Code = tuple[Any, ...]
"""A program: what is done, then on what. Each computes a tensor of N numbers from tensors of such."""
Scope = list[Tensor]


def zeros() -> Tensor:
    return Tensor.zeros(N, dtype="float64")


def written(a: Tensor, b: Tensor) -> Tensor:
    """Memory of its own, written in place: first with what is known, then with what is not."""
    memory = zeros()
    memory[0] = 0.5
    memory[1:] = a[1:]
    memory += b
    return memory


SIMPLE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "wave": lambda a, b: (a + b * 0.5).sin(),
    "product": lambda a, b: (a * b).tanh(),
    "total": lambda a, b: a * b.sum().tanh(),
    "looked up": lambda a, b: a[b.argsort()],
    "added": lambda a, b: zeros().scatter_add(0, b.argsort() // 2, a),
    "scattered": lambda a, b: a.scatter(0, b.argmax().reshape(1), b[:1]),
    "sorted": lambda a, b: a.sort()[0] - b,
    "written": written,
}
LOOPS = ("scan", "scan from the end", "cond", "while_loop")


def drawn(rng: random.Random, depth: int, names: int) -> Code:
    """A program of loops as deep, on as many tensors."""
    if depth == 0:
        kind = rng.choice(list(SIMPLE))
        return kind, rng.randrange(names), rng.randrange(names)
    kind = rng.choice(LOOPS)
    more = {"cond": 1, "while_loop": 1}.get(kind, 2)
    inner = drawn(rng, depth - 1, names + more)
    other = drawn(rng, rng.randrange(depth), names + more)
    return kind, rng.randrange(names), rng.randrange(names), inner, other


def compiled(code: Code, scope: Scope) -> Tensor:
    """What a program computes, with loops that are compiled."""
    kind, a, b, *inner = code
    x, y = scope[a], scope[b]
    if kind in SIMPLE:
        return SIMPLE[kind](x, y)
    one, two = inner
    if kind == "cond":
        found: Tensor = cond(
            (x - y).sum() > 0, lambda z: compiled(one, [*scope, z]), lambda z: compiled(two, [*scope, z]) * 0.5,
            y * 0.75,
        )  # fmt: skip
        return found
    if kind == "while_loop":  # which has no gradient: what it gives counts as a number
        end = while_loop(
            lambda s: s[1] < s[0].abs().sum().cast("int32") % 3,
            lambda s: (compiled(one, [*scope, s[0]]).detach(), s[1] + 1), (x.detach(), Tensor(0)),
        )[0]  # fmt: skip
        return compiled(two, [*scope, (end.detach() * y).sin()])
    last, kept = scan(
        lambda c, r: (compiled(one, [*scope, c, r]), compiled(two, [*scope, c, r])), x, Tensor.stack(x, y),
        reverse=kind == "scan from the end",
    )  # fmt: skip
    return (last + kept[0] - kept[1] * 0.5).tanh()  # type: ignore[no-any-return]


def unrolled(code: Code, scope: Scope) -> Tensor:
    """The same with loops of Python."""
    kind, a, b, *inner = code
    x, y = scope[a], scope[b]
    if kind in SIMPLE:
        return SIMPLE[kind](x, y)
    one, two = inner
    if kind == "cond":
        z = y * 0.75
        return unrolled(one, [*scope, z]) if (x - y).sum().item() > 0 else unrolled(two, [*scope, z]) * 0.5
    if kind == "while_loop":
        end, count = x.detach(), 0
        while count < int(end.abs().sum().item()) % 3:
            end, count = unrolled(one, [*scope, end]).detach(), count + 1
        return unrolled(two, [*scope, (end * y).sin()])
    parts, kept = [x, y], {}
    for n in reversed(range(STEPS)) if kind == "scan from the end" else range(STEPS):
        kept[n], x = unrolled(two, [*scope, x, parts[n]]), unrolled(one, [*scope, x, parts[n]])
    return (x + kept[0] - kept[1] * 0.5).tanh()


def value_and_slopes(run: Callable[[Code, Scope], Tensor], code: Code, *arguments: Tensor) -> list[Tensor]:
    """The value, its gradients, and those of the sum of all squares."""
    value = run(code, list(arguments))
    weights = Tensor(np.arange(1.0, N + 1))
    first = (value * weights).sum().gradient(*arguments, materialize_grads=True)
    total = sum(((one * one).sum() for one in first), (value * value).sum())
    return [value, *first, *total.gradient(*arguments, materialize_grads=True)]


CASES = [(seed, depth) for depth in (1, 2, 3) for seed in range(8)]


@pytest.mark.drawn(4)
@pytest.mark.parametrize(("seed", "depth"), CASES)
def test_to_second_order_beside_loops_of_python(seed: int, depth: int, backend: str) -> None:
    code = drawn(random.Random(f"{seed} {depth}"), depth, 2)
    arrays = [np.random.default_rng((seed, number)).standard_normal(N) for number in range(2)]
    found, wanted = (
        value_and_slopes(run, code, *(Tensor(array, requires_grad=True) for array in arrays))
        for run in (compiled, unrolled)
    )  # fmt: skip
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9, atol=1e-9, err_msg=str(code))


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("seed", "depth"), CASES)
def test_of_many_values_at_once(seed: int, depth: int, backend: str) -> None:
    code = drawn(random.Random(f"{seed} {depth}"), depth, 2)
    rows = np.random.default_rng(seed).standard_normal((2, N))
    same = np.random.default_rng((seed, 1)).standard_normal(N)

    def function(row: Tensor) -> Any:
        return tuple(value_and_slopes(compiled, code, row, Tensor(same)))

    found = vmap(function)(Tensor(rows))
    for number, row in enumerate(rows):
        for one, other in zip(found, function(Tensor(row)), strict=True):
            np.testing.assert_allclose(one[number].numpy(), other.numpy(), rtol=1e-9, atol=1e-9, err_msg=str(code))
