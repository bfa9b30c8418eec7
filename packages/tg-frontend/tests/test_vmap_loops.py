"""vmap over loops, and loops over vmap, beside a loop in Python; with gradients inside and outside, to second order."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tg_frontend import (
    Tensor,
    TinyJit,
    associative_scan,
    cond,
    grad,
    hessian,
    hvp,
    jacobian,
    jvp,
    nn,
    scan,
    vmap,
    while_loop,
)
from tg_frontend.transform import batching, loop
from tg_shape import Variable

RNG = np.random.default_rng(0)
ROWS, STATES = RNG.standard_normal((3, 5, 7)), RNG.standard_normal((3, 7))
BYTES = RNG.integers(0, 255, (3, 5)).astype(np.uint8)
NUMBERS = RNG.standard_normal((7, 7)) * 0.3


OUTSIDE: list[Tensor] = []


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    OUTSIDE.clear()


def weights() -> Tensor:
    """A tensor that functions use beside their arguments, and that wants a gradient."""
    if not OUTSIDE:
        OUTSIDE.append(Tensor(NUMBERS, requires_grad=True))
    return OUTSIDE[0]


def zero() -> Tensor:
    return Tensor(0.0, dtype="float64")


def recurrent(rows: Tensor, state: Tensor, reverse: bool = False) -> Any:
    return scan(lambda c, r: ((c @ weights() + r).tanh(), c.sum()), state, rows, reverse=reverse)


def loss(rows: Tensor, state: Tensor) -> Tensor:
    last, sums = recurrent(rows, state)
    return (last.square().sum() + sums.sin().sum()) * 0.5  # type: ignore[no-any-return]


def doubled_until(state: Tensor) -> Any:
    return while_loop(lambda s: s[0].abs().sum() < 50, lambda s: (s[0] * 1.5, s[1] + 1), (state, Tensor(0)))


def bent(state: Tensor) -> Tensor:
    return cond(state.sum() > 0, lambda s: s.square(), lambda s: (s @ weights()).sin(), state)  # type: ignore[no-any-return]


def safe_root(x: Tensor) -> Tensor:
    """The way that is not taken has a NaN in its gradient."""
    return cond((x > 0).all(), lambda x: x.sqrt().log(), lambda x: x * 3, x).sum()  # type: ignore[no-any-return]


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "scan": (recurrent, (ROWS, STATES)),
    "scan from the end": (lambda x, h: recurrent(x, h, reverse=True), (ROWS, STATES)),
    "scan of what is outside": (
        lambda h: scan(lambda c, r: (c * h[0] + r, c.sum()), Tensor(STATES[0]), Tensor(ROWS[0])), (STATES,)),
    "scan with a length": (lambda h: scan(lambda c, _: (c.sin() + h, None), h, length=4)[0], (STATES,)),
    "scan of no steps": (lambda h: scan(lambda c, x: (c, x), h, Tensor.zeros(0, 2)), (STATES,)),
    "scan of one step": (recurrent, (ROWS[:, :1], STATES)),
    "a counter beside": (
        lambda x: scan(lambda c, r: ((c[0] + 1, c[1] * c[0] + r), c[0]), (Tensor(0), x[0]), x), (ROWS,)),
    "late values": (
        lambda x: scan(lambda c, r: ((c[1], c[2], c[0] + r), c), (zero(), zero(), zero()), x[:, 0]), (ROWS,)),
    "bytes": (lambda x: scan(lambda c, r: (c + r, c), Tensor(0, dtype="uint8"), x), (BYTES,)),
    "flags": (lambda x: scan(lambda c, r: (c ^ (r > 0), ~c), x[0] > 0, x), (ROWS,)),
    "an empty carry, which is a part of memory": (lambda x: scan(lambda c, r: (c * 2, r), x[:, :0], x), (ROWS,)),
    "while_loop": (doubled_until, (STATES,)),
    "while_loop of none and many": (
        lambda n: while_loop(lambda s: s[0] > 0, lambda s: (s[0] - 1, s[1] * 2), (n, Tensor(1))), (np.arange(4),)),
    "while_loop with a counter": (
        lambda h: while_loop(lambda s: s[1] < 4, lambda s: (s[0] * 1.5, s[1] + 1), (h, Tensor(0))), (STATES,)),
    "while_loop up to what is outside": (
        lambda h: while_loop(lambda n: n < h[0].abs() * 9, lambda n: n + 1, Tensor(0)), (STATES,)),
    "cond": (bent, (STATES,)),
    "cond of what is the same": (
        lambda h: cond(Tensor(STATES[0].sum()) > 0, lambda h: h * 2, lambda h: -h @ weights(), h), (STATES,)),
    "cond of another choice": (
        lambda h: cond(h.sum() > 0, lambda x: x * 2, lambda x: x - 1, Tensor(STATES[0])), (STATES,)),
    "associative_scan": (lambda x: associative_scan(lambda a, b: a * b, x), (ROWS,)),
    "scan in scan": (
        lambda x: scan(lambda c, r: scan(lambda d, q: (d * 0.9 + q, d * q), c, r), zero(), x), (ROWS,)),
    "cond in scan": (
        lambda x: scan(lambda c, r: (cond(r[0] > c, lambda c: c * 2 + r.sum(), Tensor.sin, c), c), zero(), x), (ROWS,)),
    "while_loop in scan": (
        lambda x: scan(lambda c, r: (while_loop(lambda s: s < 4, lambda s: s * 2 + r.square().sum(), c) / 3, c),
                       zero() + 0.1, x), (ROWS,)),
    "scan in while_loop": (
        lambda x: while_loop(lambda s: s < 9, lambda s: scan(lambda c, r: (c + r[0].abs(), None), s, x)[0] + 1, zero()),
        (ROWS,)),
    "scan in cond": (
        lambda x, h: cond(h[0] > 0, lambda x: scan(lambda c, r: (c + r, c), h, x)[1], lambda x: x * 2, x),
        (ROWS, STATES)),
    "vmap": (vmap(lambda r: scan(lambda c, q: (c * 0.5 + q, c), zero(), r)), (ROWS,)),
    "vmap in scan": (
        lambda x: scan(lambda c, r: (vmap(lambda a, b: (a * b).sin())(c, r), c), x[0], x), (ROWS,)),
    "vmap of cond in scan": (
        lambda x: scan(lambda c, r: (vmap(lambda a, b: cond(a > b, lambda: a - b, lambda: a * 2))(c, r), c), x[0], x),
        (ROWS,)),
    "grad": (grad(loss), (ROWS, STATES)),
    "grad of grad": (grad(lambda x, h: grad(loss)(x, h).square().sum()), (ROWS, STATES)),
    "grad of scan in scan": (
        grad(lambda x: scan(lambda c, r: scan(lambda d, q: ((d + q).sin(), d), c, r), zero(), x)[0]), (ROWS,)),
    "grad of a cond": (grad(safe_root), (STATES,)),
    "hessian of a cond": (hessian(lambda h: bent(h).square().sum()), (STATES,)),
    "jacobian": (jacobian(lambda h: recurrent(Tensor(ROWS[0]), h)[0]), (STATES,)),
    "jvp": (lambda h: jvp(lambda h: recurrent(Tensor(ROWS[0]), h)[0], (h,), (h * 2,))[1], (STATES,)),
    "hvp": (lambda h: hvp(lambda h: loss(Tensor(ROWS[0]), h), (h,), (h * 2,))[1], (STATES,)),
    "scan of grad": (
        lambda x: scan(lambda c, r: (grad(lambda c: (c * r).sin().sum())(c), c.sum()), x[0], x), (ROWS,)),
}  # fmt: skip


def parts(result: Any) -> list[Tensor]:
    return [t for part in result for t in parts(part)] if isinstance(result, tuple) else [result]


@pytest.mark.drawn(12)
@pytest.mark.parametrize("name", CASES)
def test_a_loop_in_python(name: str, backend: str) -> None:
    function, arrays = CASES[name]
    found = parts(vmap(function)(*[Tensor(array) for array in arrays]))
    for i in range(len(arrays[0])):
        each = parts(function(*[Tensor(array[i]) for array in arrays]))
        for all_, one in zip(found, each, strict=True):
            assert all_.dtype is one.dtype and all_[i].shape == one.shape
            np.testing.assert_allclose(all_[i].numpy(), one.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent_layers(kind: str, backend: str) -> None:
    layer: Any = getattr(nn, kind)(7, 3, num_layers=2, bidirectional=True)
    x = Tensor(ROWS.astype(np.float32))
    functions: list[Callable[[Tensor], Tensor]] = [
        lambda row: layer(row)[0], grad(lambda row: layer(row)[0].square().sum()),
    ]  # fmt: skip
    for function in functions:
        found = vmap(function)(x)
        for i in range(3):
            np.testing.assert_allclose(found[i].numpy(), function(x[i]).numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("wanted", [True, False])
def test_gradients_from_outside(wanted: bool, backend: str) -> None:
    """Of the values, if they want one; of a weight that the body alone uses; and of these again."""
    arrays = (ROWS, STATES)

    def function(row: Tensor, state: Tensor) -> Tensor:
        last, rest = scan(lambda c, _: ((c @ weights() + row[0] * state[0]).tanh(), c), Tensor(STATES[1]), length=3)
        return last.square().sum() + rest.sum()  # type: ignore[no-any-return]

    def slopes(outs: Callable[..., Tensor]) -> list[Any]:
        tensors = [Tensor(array, requires_grad=wanted) for array in arrays]
        targets = [weights(), *tensors] if wanted else [weights()]
        first = outs(*tensors).gradient(*targets)
        second = sum((slope.square().sum() for slope in first), zero()).gradient(*targets)
        return [one.numpy() for one in (*first, *second)]

    found = slopes(lambda x, h: vmap(function)(x, h).sin().sum())
    each = slopes(lambda x, h: sum((function(x[i], h[i]).sin() for i in range(3)), zero()))
    for one, other in zip(found, each, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


def test_other_axes_and_what_is_the_same(backend: str) -> None:
    x, h = Tensor(ROWS.transpose(1, 2, 0)), Tensor(STATES[0])
    last, sums = vmap(recurrent, in_axes=(2, None), out_axes=(1, 0))(x, h)
    for i in range(3):
        one, other = recurrent(Tensor(ROWS[i]), h)
        np.testing.assert_allclose(last[:, i].numpy(), one.numpy(), rtol=1e-9)
        np.testing.assert_allclose(sums[i].numpy(), other.numpy(), rtol=1e-9)


def test_one_value_and_none(backend: str) -> None:
    for count in (0, 1):
        last, sums = vmap(recurrent)(Tensor(ROWS[:count]), Tensor(STATES[:count]))
        assert last.shape == (count, 7) and sums.shape == (count, 5)
        assert vmap(doubled_until)(Tensor(STATES[:count]))[1].tolist() == [11] * 0 + [
            doubled_until(Tensor(STATES[i]))[1].item() for i in range(count)
        ]
        assert vmap(grad(loss))(Tensor(ROWS[:count]), Tensor(STATES[:count])).numpy().shape == (count, 5, 7)


def test_what_is_the_same_for_all_values_is_carried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The body of a loop over 1,000 values has a counter of one number."""
    sizes = []
    run = loop.run

    def step(carry: Any, row: Tensor) -> Any:
        return (carry[0] + 1, carry[1] * carry[0] + row), carry[0]

    def observed(what: str, steps: loop.Steps, *rest: Any) -> loop.Results:
        sizes.append([node.size for node in steps.carry_in])
        return run(what, steps, *rest)

    monkeypatch.setattr(loop, "run", observed)
    vmap(lambda x: scan(step, (Tensor(0), x[0]), x)[0][1])(Tensor.ones(1000, 3)).realize()
    assert sizes == [[1, 1], [1, 1000]]


def test_a_record() -> None:
    jitted = TinyJit(lambda x, h: vmap(grad(loss))(x, h).realize())
    for i in range(5):
        x, h = Tensor(ROWS * i).realize(), Tensor(STATES + i).realize()
        want = [grad(loss)(x[n], h[n]).numpy() for n in range(3)]
        np.testing.assert_allclose(jitted(x, h).numpy(), np.stack(want), rtol=1e-9, atol=1e-12)


def test_nothing_is_remembered_of_loops_that_are_gone() -> None:
    gc.collect()
    before = len(batching._RESULTS), len(batching._WHOLES)
    vmap(grad(loss))(Tensor(ROWS), Tensor(STATES)).realize()
    vmap(doubled_until)(Tensor(STATES))[0].realize()
    vmap(bent)(Tensor(STATES)).realize()
    held = recurrent(Tensor(ROWS[0]), Tensor(STATES[0]))
    gc.collect()
    assert (len(batching._RESULTS), len(batching._WHOLES)) == before
    del held


def test_a_symbolic_number_of_values_is_told() -> None:
    n = Variable("n", 1, 3).bind(2)
    values = Tensor(STATES).shrink(((0, n), (0, 7)))
    with pytest.raises(ValueError, match="vmap: scan in a function of n.* values: their number must be no symbol"):
        vmap(lambda h: scan(lambda c, _: (c * 2, None), h, length=3)[0])(values)


def test_an_element_cannot_be_read_in_a_loop_either() -> None:
    with pytest.raises(RuntimeError, match="the function asks for the value"):
        vmap(lambda h: scan(lambda c, _: (c * c.sum().item(), None), h, length=3)[0])(Tensor(STATES))
