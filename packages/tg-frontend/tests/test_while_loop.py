"""while_loop, cond, associative_scan: as Python's own, lazily, recorded, and one within another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit, associative_scan, cond, scan, while_loop
from tg_shape import Variable

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 20, 1000])
def test_as_many_steps_as_the_condition_says(count: int, backend: str) -> None:
    n, total = while_loop(
        lambda s: s[0] < count, lambda s: (s[0] + 1, s[1] * 0.5 + s[0]), (Tensor(0), Tensor([1.0, 2.0]))
    )
    want = np.array([1.0, 2.0])
    for i in range(count):
        want = want * 0.5 + i
    assert n.item() == count
    np.testing.assert_allclose(total.numpy(), want, rtol=1e-5)


def test_values_go_around(backend: str) -> None:
    a, b = while_loop(lambda s: s[1] != 0, lambda s: (s[1], s[0] % s[1]), (Tensor(270), Tensor(192)))
    assert (a.item(), b.item()) == (6, 0)
    empty, n = while_loop(lambda s: s[1] < 3, lambda s: (s[0] * 2, s[1] + 1), (Tensor.zeros(0, 2), Tensor(0)))
    assert empty.shape == (0, 2) and n.item() == 3


def test_the_functions_of_a_while_loop_are_called_once(recorded: Callable[..., Any]) -> None:
    calls = []

    def double(x: Tensor) -> Tensor:
        calls.append(1)
        return x * 2

    jitted = recorded(lambda x: while_loop(lambda x: x.sum() < 100, double, x), lambda: Tensor([1.0, 1.0]))
    assert len(calls) == 2
    for first, last in ((3.0, 96.0), (200.0, 200.0), (60.0, 60.0), (0.5, 64.0)):
        assert jitted(Tensor([first, first])).tolist() == [last, last]
    assert len(calls) == 2


def test_the_way_back_through_a_while_loop_is_refused() -> None:
    last = while_loop(lambda x: x < 100, lambda x: x * 2, Tensor(3.0, requires_grad=True))
    with pytest.raises(RuntimeError, match="while_loop: there is no gradient"):
        last.backward()
    assert not while_loop(lambda x: x < 100, lambda x: x * 2, Tensor(3.0, requires_grad=False)).requires_grad


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_cond_is_the_way_that_is_taken_and_its_gradient(sign: float, backend: str) -> None:
    data = RNG.standard_normal((2, 5)).astype(np.float32)

    def grads(choose: Callable[..., Any]) -> list[Any]:
        x, w = (Tensor(row, requires_grad=True) for row in data)
        y = choose(x.abs().sum() * sign > 0, lambda x: (x * w).exp(), lambda x: x * x * 3, x)
        (y * y).sum().backward()
        found = [y, *(Tensor.zeros(5) if t.grad is None else t.grad for t in (x, w))]
        return [t.numpy() for t in found]

    def plain(pred: Tensor, a: Any, b: Any, x: Tensor) -> Any:
        return a(x) if pred.item() else b(x)

    for a, b in zip(grads(cond), grads(plain), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_cond_has_no_part_of_the_other_way() -> None:
    """A NaN of the way that is not taken reaches no gradient."""
    x = Tensor([0.0], requires_grad=True)
    y = cond(x.sum() > 0, lambda x: x.log().sqrt(), lambda x: x * 2, x)
    y.backward()
    assert x.grad is not None and x.grad.tolist() == [2.0]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_gradients_of_gradients_through_cond(sign: float, backend: str) -> None:
    def penalised(choose: Callable[..., Any]) -> list[Any]:
        x, w = (Tensor(row, requires_grad=True) for row in ([0.5, -2.0], [1.5, 0.25]))
        y = choose(x.abs().sum() * sign > 0, lambda x: (x * w).exp(), lambda x: x * x * x * 3, x)
        (y * y).sum().backward(create_graph=True)
        assert x.grad is not None
        return [g.numpy() for g in (x.grad * x.grad).sum().gradient(x, w, materialize_grads=True)]

    def plain(pred: Tensor, a: Any, b: Any, x: Tensor) -> Any:
        return a(x) if pred.item() else b(x)

    for a, b in zip(penalised(cond), penalised(plain), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_cond_in_a_record(recorded: Callable[..., Any]) -> None:
    jitted = recorded(lambda x: cond(x.sum() > 0, lambda x: x * 2, lambda x: -x, x), lambda: Tensor([1.0, 2.0]))
    assert [jitted(Tensor([a, a])).tolist() for a in (1.0, -1.0, 3.0)] == [[2.0, 2.0], [1.0, 1.0], [6.0, 6.0]]


def test_a_python_bool_chooses_at_once() -> None:
    assert cond(True, lambda: 1, lambda: 2) == 1
    assert cond(False, lambda x: "a", lambda x: "b", 3) == "b"


def test_one_within_another(backend: str) -> None:
    last, _ = scan(
        lambda c, x: (cond(x > 0, lambda c: c * 2, lambda c: c - 1.0, c), None), Tensor(1.0),
        Tensor([1.0, -1.0, 2.0, -2.0, 3.0]),
    )  # fmt: skip
    assert last.item() == 2.0
    last, ys = scan(
        lambda c, x: (while_loop(lambda v: v < x, lambda v: v + 1, c), c), Tensor(0.0), Tensor([1.5, -1.0, 4.0])
    )
    assert last.item() == 4.0 and ys.tolist() == [0.0, 2.0, 2.0]
    rows = while_loop(lambda s: s.sum() < 50, lambda s: scan(lambda c, x: (c + x, c + x), s[0], s)[1], Tensor([1, 2]))
    assert rows.sum().item() >= 50


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 8, 13, 101])
def test_associative_scans(n: int, reverse: bool, backend: str) -> None:
    data = RNG.standard_normal((n, 3)).astype(np.float32)
    order = slice(None, None, -1) if reverse else slice(None)
    got = associative_scan(lambda a, b: a + b, Tensor(data), reverse=reverse)
    np.testing.assert_allclose(got.numpy(), np.cumsum(data[order], 0)[order], rtol=1e-4, atol=1e-5)
    got = associative_scan(lambda a, b: a + b, Tensor(data.T.copy()), axis=-1, reverse=reverse)
    np.testing.assert_allclose(got.numpy().T, np.cumsum(data[order], 0)[order], rtol=1e-4, atol=1e-5)


def test_a_linear_recurrence_is_associative() -> None:
    """h[t] = a[t] h[t-1] + b[t]: pairs (a, b) combine, in order."""
    a, b = (RNG.standard_normal((37, 2)).astype(np.float32) * 0.5 for _ in range(2))

    def both(left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return left[0] * right[0], left[1] * right[0] + right[1]

    ta, tb = Tensor(a, requires_grad=True), Tensor(b, requires_grad=True)
    _, got = associative_scan(both, (ta, tb))
    _, want = scan(lambda h, ab: (h * ab[0] + ab[1],) * 2, Tensor.zeros(2), (Tensor(a), Tensor(b)))
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-5)
    got.sum().backward()
    sa, sb = Tensor(a, requires_grad=True), Tensor(b, requires_grad=True)
    scan(lambda h, ab: (h * ab[0] + ab[1],) * 2, Tensor.zeros(2), (sa, sb))[1].sum().backward()
    for one, other in ((ta, sa), (tb, sb)):
        assert one.grad is not None and other.grad is not None
        np.testing.assert_allclose(one.grad.numpy(), other.grad.numpy(), rtol=1e-4, atol=1e-5)


def symbolic() -> Tensor:
    return Tensor.zeros(4, 1).contiguous()[: Variable("loop_n", 1, 4).bind(2)]


def yes() -> Tensor:
    return Tensor(1.0) > 0


BAD: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    (TypeError, "one bool, got a tensor of int32", lambda: while_loop(lambda x: x, lambda x: x, Tensor(3))),
    (TypeError, "one bool, got a int", lambda: while_loop(lambda x: 1, lambda x: x, Tensor(3))),
    (ValueError, r"one bool, got one of shape \(2,\)", lambda: while_loop(
        lambda x: x > 0, lambda x: x, Tensor([3, 1]))),
    (ValueError, r"carry has shape \(1,\), and the function returns it with shape \(1, 1\)", lambda: while_loop(
        lambda x: x > 2, lambda x: x.reshape(1, -1), Tensor([3]))),
    (TypeError, "carry is int32, and the function returns it as float32", lambda: while_loop(
        lambda x: x > 2, lambda x: x * 0.5, Tensor([3]))),
    (ValueError, "the state has no tensors", lambda: while_loop(lambda x: True, lambda x: x, None)),
    (ValueError, "symbolic shape", lambda: while_loop(lambda x: x.sum() > 0, lambda x: x, symbolic())),
    (RuntimeError, "asks for the value", lambda: while_loop(lambda x: x > 2, lambda x: x + x.item(), Tensor(3))),
    (TypeError, "pred is a tensor of one bool, got a tensor of float32", lambda: cond(Tensor(1.0), abs, abs, 1)),
    (TypeError, "pred is a tensor of one bool, got a float", lambda: cond(1.0, abs, abs, 1)),
    (ValueError, r"got one of shape \(2,\)", lambda: cond(Tensor([True, False]), abs, abs, 1)),
    (TypeError, "result is int32 from true_fn, float32 from false_fn", lambda: cond(
        yes(), lambda: Tensor(1), lambda: Tensor(1.0))),
    (ValueError, r"result\[0\] has shape \(\) from true_fn, \(1,\) from false_fn", lambda: cond(
        yes(), lambda x: (x,), lambda x: (x.reshape(1),), Tensor(1.0))),
    (TypeError, r"true_fn returns the form \., false_fn \(\.,\)", lambda: cond(
        yes(), lambda x: x, lambda x: (x,), Tensor(1.0))),
    (ValueError, "symbolic shape", lambda: cond(yes(), lambda x: x, lambda x: x, symbolic())),
    (RuntimeError, "writes in place", lambda: cond(yes(), lambda x: x.assign(x + 1), lambda x: x, Tensor([1.0]))),
    (TypeError, "xs is a tensor, got a int", lambda: associative_scan(max, 3)),
    (ValueError, r"xs\[0\] has length 2, xs\[1\] 3", lambda: associative_scan(
        lambda a, b: a, (Tensor.zeros(2), Tensor.zeros(3)))),
    (TypeError, "takes result as int32, and returns float32", lambda: associative_scan(
        lambda a, b: (a + b) * 0.5, Tensor([1, 2]))),
    (ValueError, r"takes result of shape \(1,\), and returns \(\)", lambda: associative_scan(
        lambda a, b: (a + b).sum(), Tensor([1.0, 2.0]))),
    (TypeError, "takes the form", lambda: associative_scan(lambda a, b: (a, b), Tensor([1.0, 2.0]))),
    (IndexError, "axis 1 is out of range", lambda: associative_scan(lambda a, b: a, Tensor([1.0]), axis=1)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "match", "bad"), BAD)
def test_what_is_wrong_is_named(kind: type[Exception], match: str, bad: Callable[[], Any]) -> None:
    with pytest.raises(kind, match=match):
        bad()


def test_a_replay_whose_loops_lie_in_one_block_of_memory(backend: str) -> None:
    """What is recorded shares one block: the memory of a loop begins somewhere in it."""
    rng = np.random.default_rng(5)

    def roots(x: Tensor) -> Tensor:
        wide = (x * 3).contiguous()
        first = while_loop(lambda r: (r * r - wide).abs().max() > 1e-4, lambda r: (r + wide / r) * 0.5, wide)
        other = while_loop(lambda r: (r * r - x).abs().max() > 1e-4, lambda r: (r + x / r) * 0.5, first + 1)
        out: Tensor = first * other + wide
        return out

    replayed = TinyJit(roots)
    for _ in range(5):
        values = rng.uniform(1, 2, 1009).astype(np.float32)
        got = replayed(Tensor(values)).numpy()
        np.testing.assert_allclose(got, np.sqrt(3 * values) * np.sqrt(values) + 3 * values, rtol=1e-3)


def test_the_result_of_a_replay_is_where_the_last_step_leaves_it(backend: str) -> None:
    """After an even number of steps and after an odd one, and after none; no kernel copies it, nor the next replay."""
    replayed = TinyJit(lambda x: while_loop(lambda x: x.max() < 100, lambda x: x * 2, x))
    firsts = [200.0, 3.0, 60.0, 30.0, 2.0, 1.0, 150.0, 7.0]
    results = [replayed(Tensor([first, *[1.0] * 400]).realize()) for first in firsts]
    for first, result in zip(firsts, results, strict=True):
        times = next(n for n in range(9) if first * 2**n >= 100)
        assert result.tolist() == [first * 2**times, *[2.0**times] * 400]
    record = replayed.captured
    assert record is not None
    kernels = [step for step in record.executed.items if "while_loop" not in step.prg.name]
    assert all(step.bufs[0].nbytes == 1 for step in kernels if step.bufs[0]), "only whether there is a first step"
