"""Random programs: fused and compiled, optimised or not, they give what numpy gives step by step."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tg_frontend import Tensor, TinyJit
from tg_lazy import Context

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
Step = tuple[Callable[..., Any], Callable[..., Any], tuple[int, ...]]
"""The same operation on tensors and on arrays, and the numbers of its operands."""


def drawn(first: int, slow: int, end: int) -> list[Any]:
    """Seeds of programs; those from ``slow`` on are run with ``-m slow``."""
    return [*range(first, slow), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(slow, end))]


def softmax(x: Array, axis: int) -> Array:
    powers = np.exp(x - x.max(axis, keepdims=True))
    shares: Array = powers / powers.sum(axis, keepdims=True)
    return shares


def movement(rng: random.Random, shape: Shape) -> tuple[Callable[..., Any], Callable[..., Any]]:
    n = len(shape)
    kind = rng.choice(["permute", "pad", "shrink", "flip", "stride", "reshape", "unsqueeze", "row", "expand", "roll"])
    if kind == "permute":
        order = rng.sample(range(n), n)
        return lambda t: t.permute(order), lambda x: x.transpose(order)
    if kind == "pad":
        widths, value = [(rng.randrange(3), rng.randrange(3)) for _ in shape], rng.choice([0, 0, 1])
        return lambda t: t.pad(widths, value=value), lambda x: np.pad(x, widths, constant_values=value)
    if kind == "shrink":
        starts = [rng.randrange(max(1, d // 2)) for d in shape]
        bounds = [(a, rng.randint(a + 1, d)) for a, d in zip(starts, shape, strict=True)]
        return lambda t: t.shrink(bounds), lambda x: x[tuple(slice(a, b) for a, b in bounds)]
    if kind == "flip":
        axes = rng.sample(range(n), rng.randint(1, n))
        return lambda t: t.flip(*axes), lambda x: np.flip(x, tuple(axes))
    if kind == "stride":
        steps = tuple(slice(None, None, rng.choice([1, 2, -1, 3])) for _ in shape)
        return lambda t: t[steps], lambda x: x[steps]
    if kind == "reshape":
        size = int(np.prod(shape))
        sizes: list[int] = []
        while size > 1 and len(sizes) < 3:
            sizes.append(rng.choice([d for d in range(1, size + 1) if size % d == 0]))
            size //= sizes[-1]
        new = (*sizes, size)
        return lambda t: t.reshape(new), lambda x: x.reshape(new)
    if kind == "unsqueeze":
        place = rng.randint(0, n)
        return lambda t: t.unsqueeze(place), lambda x: np.expand_dims(x, place)
    if kind == "row":
        place = rng.randrange(-shape[0], shape[0])
        return lambda t: t[place], lambda x: x[place]
    if kind == "roll":
        shift, axis = rng.randint(-3, 3), rng.randrange(n)
        return lambda t: t.roll(shift, axis), lambda x: np.roll(x, shift, axis)
    count = rng.choice([2, 3])
    return lambda t: t.expand(count, *t.shape), lambda x: np.broadcast_to(x, (count, *x.shape)).copy()


def step(rng: random.Random, values: list[Array]) -> Step:
    """An operation on some of the values, all of which are float64 within reasonable bounds."""
    i = rng.randrange(max(0, len(values) - 4), len(values))
    x = values[i]
    kind = rng.random()
    if x.ndim and kind < 0.35:
        return *movement(rng, x.shape), (i,)
    if x.ndim and kind < 0.5:
        axes = tuple(sorted(rng.sample(range(x.ndim), rng.randint(1, x.ndim))))
        name, keep = rng.choice(["sum", "max", "min", "mean"]), rng.random() < 0.5
        return (
            lambda t: getattr(t, name)(axes, keep),
            lambda a: np.asarray(getattr(np, name)(a, axis=axes, keepdims=keep)), (i,),
        )  # fmt: skip
    if x.ndim and kind < 0.6:
        axis = rng.randrange(x.ndim)
        return rng.choice([
            (lambda t: t.softmax(axis), lambda a: softmax(a, axis), (i,)),
            (lambda t: t.cumsum(axis), lambda a: a.cumsum(axis), (i,)),
            (lambda t: t - t.mean(axis, keepdim=True), lambda a: a - a.mean(axis, keepdims=True), (i,)),
            (lambda t: t.cat(t * 2, dim=axis), lambda a: np.concatenate([a, a * 2], axis), (i,)),
        ])  # fmt: skip
    partners = [j for j, y in enumerate(values) if fits(x.shape, y.shape)]
    j = rng.choice(partners)
    if kind < 0.8:
        binary: list[Step] = [
            (lambda s, t: s + t, lambda a, b: a + b, (i, j)), (lambda s, t: s - t, lambda a, b: a - b, (i, j)),
            (lambda s, t: s.maximum(t), np.maximum, (i, j)),
            (lambda s, t: (s * t).tanh(), lambda a, b: np.tanh(a * b), (i, j)),
            (lambda s, t: s / (t.abs() + 1), lambda a, b: a / (np.abs(b) + 1), (i, j)),
            (lambda s, t: (s < t).where(s, t * 0.5), lambda a, b: np.where(a < b, a, b * 0.5), (i, j)),
        ]  # fmt: skip
        return rng.choice(binary)
    unary: list[Step] = [
        (lambda t: t.sin(), np.sin, (i,)), (lambda t: t.relu(), lambda a: np.maximum(a, 0), (i,)),
        (lambda t: t.clip(-2, 1).exp(), lambda a: np.exp(np.clip(a, -2, 1)), (i,)),
        (lambda t: (t.abs() + 0.5).sqrt(), lambda a: np.sqrt(np.abs(a) + 0.5), (i,)),
        (lambda t: t.contiguous(), lambda a: a, (i,)), (lambda t: t.sigmoid(), lambda a: 1 / (1 + np.exp(-a)), (i,)),
    ]  # fmt: skip
    return rng.choice(unary)


def fits(a: Shape, b: Shape) -> bool:
    try:
        return bool(np.prod(np.broadcast_shapes(a, b)) < 5000)
    except ValueError:
        return False


def program(seed: int, length: int) -> tuple[list[Array], list[Step], list[Array]]:
    """Inputs, steps, and all values as numpy has them."""
    rng = random.Random(seed)
    generator = np.random.default_rng(seed)
    inputs = [
        generator.uniform(-2, 2, shape) for shape in ((rng.randint(1, 9), rng.choice([1, 4, 5, 16, 33])), (3, 1, 4), ())
    ]
    values = list(inputs)
    steps: list[Step] = []
    while len(steps) < length:
        made = step(rng, values)
        result = np.asarray(made[1](*(values[i] for i in made[2])))
        if 0 < result.size < 20000 and np.abs(result).max() < 1e6:
            steps.append(made)
            values.append(result)
    return inputs, steps, values


def run(steps: list[Step], inputs: list[Tensor]) -> list[Tensor]:
    tensors = list(inputs)
    for ours, _, operands in steps:
        tensors.append(ours(*(tensors[i] for i in operands)))
    return tensors


def unused(steps: list[Step], inputs: int) -> list[int]:
    read = {i for _, _, operands in steps for i in operands}
    return [i for i in range(inputs, inputs + len(steps)) if i not in read]


@pytest.mark.parametrize(("noopt", "backend"), [(0, "NUMPY"), (0, "CPU"), (1, "CPU")], indirect=["backend"])
@pytest.mark.parametrize("seed", drawn(0, 10, 24))
def test_values(seed: int, noopt: int, backend: str) -> None:
    inputs, steps, values = program(seed, 12)
    with Context(NOOPT=noopt):
        tensors = run(steps, [Tensor(x) for x in inputs])
        outputs = unused(steps, len(inputs))
        tensors[outputs[0]].realize(*(tensors[i] for i in outputs))
        for i in outputs:
            np.testing.assert_allclose(tensors[i].numpy(), values[i], rtol=1e-7, atol=1e-7)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("seed", drawn(100, 107, 115))
def test_gradients_do_not_depend_on_fusion(seed: int, backend: str) -> None:
    inputs, steps, _ = program(seed, 10)
    grads: list[list[Array]] = []
    for eager in (False, True):
        leaves = [Tensor(x, requires_grad=True) for x in inputs]
        tensors = list(leaves)
        for ours, _, operands in steps:
            made = ours(*(tensors[i] for i in operands))
            tensors.append(made.realize() if eager else made)
        loss = sum(((tensors[i] * tensors[i]).mean() for i in unused(steps, len(inputs))), start=tensors[0].sum() * 0)
        loss.backward()
        grads.append([leaf.grad.numpy() for leaf in leaves if leaf.grad is not None])
    assert len(grads[0]) == len(grads[1]) > 0
    for a, b in zip(*grads, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("seed", drawn(200, 206, 212))
def test_recorded_programs(seed: int, backend: str) -> None:
    inputs, steps, _ = program(seed, 10)
    outputs = unused(steps, len(inputs))
    function = TinyJit(lambda *leaves: [run(steps, list(leaves))[i] * 1 for i in outputs])
    for turn in range(4):
        arrays = [x * (1 + turn / 4) for x in inputs]
        values = list(arrays)
        for _, theirs, operands in steps:
            values.append(np.asarray(theirs(*(values[i] for i in operands))))
        for got, i in zip(function(*(Tensor(x) for x in arrays)), outputs, strict=True):
            np.testing.assert_allclose(got.numpy(), values[i], rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("seed", drawn(0, 10, 20))
def test_reads_and_writes_in_any_order(seed: int, backend: str) -> None:
    """What is computed before a write has the old elements, what is computed after it the new ones."""
    rng = random.Random(seed)
    mine = [np.arange(24.0).reshape(4, 6) + 100 * i for i in range(2)]
    ours = [Tensor(x.copy()).contiguous().realize() for x in mine]
    pending: list[tuple[Tensor, Array]] = []
    for _ in range(12):
        i, j = rng.randrange(2), rng.randrange(2)
        box = (slice(a := rng.randrange(4), rng.randint(a + 1, 4)), slice(b := rng.randrange(6), rng.randint(b + 1, 6)))
        kind = rng.random()
        if kind < 0.3:
            value = rng.randrange(1000)
            mine[i][box] = value
            ours[i][box] = value
        elif kind < 0.5:
            part = mine[j].T.reshape(4, 6)[box].copy() * 2
            mine[i][box] = part
            ours[i][box] = ours[j].T.reshape(4, 6)[box] * 2
        elif kind < 0.65:
            mine[i] = mine[i] + mine[j].sum(0, keepdims=True) / 64
            ours[i].assign(ours[i] + ours[j].sum(0, keepdim=True) / 64)
        elif kind < 0.75:
            at = np.array([rng.randrange(4) for _ in range(2)])
            mine[i][at[0], ::2] = mine[i][at[1], 1::2]
            ours[i][Tensor(at[:1]), ::2] = ours[i][int(at[1]), 1::2]
        elif kind < 0.9:
            pending.append((ours[i] * 2 + ours[j].max(), mine[i] * 2 + mine[j].max()))
        else:
            rng.choice([*ours, *(t for t, _ in pending)]).realize()
    rng.shuffle(pending)
    for got, want in [*pending, *zip(ours, mine, strict=True)]:
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-9)


def read_only(array: Array) -> Array:
    """The same memory, which nobody may write."""
    view = array.view()
    view.flags.writeable = False
    return view


def seen(rng: random.Random, ours: Tensor, mine: Array) -> tuple[Tensor, Array]:
    """A view of both that shares their memory."""
    for _ in range(rng.randint(1, 3)):
        n = mine.ndim
        kind = rng.choice(["slice", "slice", "row", "permute", "flip", "newaxis", "detach"]) if n else "detach"
        if kind == "slice":
            bounds = []
            for d in mine.shape:
                a = rng.randrange(d)
                bounds.append(slice(a, rng.randint(a + 1, d), rng.choice([1, 1, 2])))
            ours, mine = ours[tuple(bounds)], mine[tuple(bounds)]
        elif kind == "row" and n > 1:
            i = rng.randrange(-mine.shape[0], mine.shape[0])
            ours, mine = ours[i], mine[i]
        elif kind == "permute":
            order = rng.sample(range(n), n)
            ours, mine = ours.permute(order), mine.transpose(order)
        elif kind == "flip":
            axis = rng.randrange(n)
            back = tuple(slice(None, None, -1 if i == axis else 1) for i in range(n))
            ours, mine = ours[back], mine[back]
        elif kind == "newaxis":
            ours, mine = ours.unsqueeze(0), mine[None]
        else:
            ours = ours.detach()
    return ours, mine


@pytest.mark.parametrize("borrowed", [False, True], ids=["owned", "borrowed"])
@pytest.mark.parametrize("seed", drawn(0, 8, 20))
def test_views_share_their_memory(seed: int, borrowed: bool, backend: str) -> None:
    """What is written through one view shows in all of them, as in numpy; what was computed does not change."""
    rng = random.Random(seed)
    mine = np.arange(60.0).reshape(5, 4, 3)
    source = mine.copy()
    ours = Tensor.from_dlpack(read_only(source)) if borrowed else Tensor(source).clone().realize()
    views = [(ours, mine)]
    computed: list[tuple[Tensor, Array]] = []
    for turn in range(14):
        t, x = seen(rng, *rng.choice(views))
        kind = rng.random()
        if kind < 0.3:
            views.append((t, x))
        elif kind < 0.45:
            computed.append((t * 2 + 1, x * 2 + 1))
        elif kind < 0.6:
            x[...] = x + turn
            t += turn
        elif kind < 0.75 and x.ndim:
            x[0] = -turn
            t[0] = -turn
        elif kind < 0.9:
            other = rng.choice(views)
            value = float(np.asarray(other[1]).sum()) % 97
            x[...] = value
            t.assign(other[0].sum() % 97)
        else:
            rng.choice(views)[0].realize()
    rng.shuffle(computed)
    for got, want in [*computed, *views]:
        np.testing.assert_allclose(got.numpy(), want)
    if borrowed:
        np.testing.assert_array_equal(source, np.arange(60.0).reshape(5, 4, 3))


def test_what_is_written_through_a_view_that_nobody_keeps(backend: str) -> None:
    t = Tensor.zeros(3, 3).contiguous()
    t[1][2] = 5
    t.T[0, 1] = 7
    t[2:].assign(9)
    t.detach()[0, 0] = 1
    assert t.tolist() == [[1, 0, 0], [7, 0, 5], [9, 9, 9]]
    cache = Tensor.zeros(4, 2).contiguous().realize()
    total = cache.sum()
    cache.shrink(((1, 3), None)).assign(Tensor.ones(2, 2)).realize()
    assert total.item() == 0 and cache.sum().item() == 4


def test_results_are_copied_when_written(backend: str) -> None:
    x = Tensor([1.0, 2.0]).contiguous().realize()
    wide = x.reshape(1, 2).repeat(3, 1)
    wide[0] = 9
    padded = x.pad(((1, 1),))
    padded[0] = 5
    made = x + 1
    part = made[:1]
    part[0] = 7
    assert wide.tolist() == [[9, 9], [1, 2], [1, 2]] and padded.tolist() == [5, 1, 2, 0] and part.tolist() == [7]
    assert x.tolist() == [1, 2] and made.tolist() == [7, 3]
