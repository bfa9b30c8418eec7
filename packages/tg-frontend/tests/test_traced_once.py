"""Functions that are traced once: for which arguments the trace is good, and what is computed with it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit, linalg, scan, vmap
from tg_frontend.transform import traced_once as once
from tg_frontend.transform.traced_once import traced_once
from tg_lazy import STRICT, Context
from tg_runtime.kernels import compile_ahead


class Counted:
    """A function that tells how often it was called."""

    def __init__(self) -> None:
        self.calls = 0

        def total(x: Tensor, factor: float) -> tuple[Tensor, Tensor]:
            self.calls += 1
            sums, _ = scan(lambda c, row: (c + row * factor, None), x[0] * 0, x)
            return sums, x @ x.transpose(0, 1)

        self.total = traced_once(total)


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def test_each_kind_of_arguments_is_traced_once() -> None:
    counted = Counted()
    with Tensor.no_grad():
        for seed in range(3):
            for shape in ((5, 3), (1, 7)):
                for factor in (2.0, -0.5):
                    x = drawn(*shape, seed=seed)
                    sums, square = counted.total(Tensor(x), factor)
                    np.testing.assert_allclose(sums.numpy(), x.sum(0) * factor, rtol=1e-5, atol=1e-5)
                    np.testing.assert_allclose(square.numpy(), x @ x.T, rtol=1e-5, atol=1e-5)
        assert counted.calls == 4
        counted.total(Tensor(drawn(5, 3).astype(np.float64)), 2.0)
        assert counted.calls == 5
        counted.total(Tensor(drawn(5, 3)), 2)  # another type of number, which promotes otherwise
        assert counted.calls == 6


def test_results_stay_when_the_trace_is_used_again() -> None:
    counted = Counted()
    with Tensor.no_grad():
        values = [drawn(4, 3, seed=seed) for seed in range(4)]
        found = [counted.total(Tensor(x), 1.0) for x in values]  # all of them before one is computed
        for x, (sums, square) in zip(values, found, strict=True):
            np.testing.assert_allclose(sums.numpy(), x.sum(0), rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(square.numpy(), x @ x.T, rtol=1e-5, atol=1e-5)
        again = counted.total(counted.total(Tensor(values[0]), 1.0)[1][:, :3], 1.0)[0]  # one of the other's result
        np.testing.assert_allclose(again.numpy(), (values[0] @ values[0].T)[:, :3].sum(0), rtol=1e-4, atol=1e-4)


def test_other_settings_are_another_trace() -> None:
    counted = Counted()
    with Tensor.no_grad():
        x = Tensor(drawn(6, 3))
        counted.total(x, 1.0)
        with Context(STRICT=1):
            assert STRICT.value == 1
            counted.total(x, 1.0)
        assert counted.calls == 2
        with Tensor.autocast(dtype="bfloat16"):
            counted.total(x, 1.0)
        assert counted.calls == 3


def test_what_is_given_by_name_counts() -> None:
    counted = Counted()
    x = drawn(4, 3)
    with Tensor.no_grad():
        for factor in (2.0, -3.0):
            sums, _ = counted.total(Tensor(x), factor=factor)
            np.testing.assert_allclose(sums.numpy(), x.sum(0) * factor, rtol=1e-5, atol=1e-5)


def test_what_is_recorded_is_not_kept() -> None:
    counted = Counted()
    for _ in range(2):
        x = Tensor(drawn(4, 3), requires_grad=True)
        counted.total(x, 3.0)[0].sum().backward()
        assert x.grad is not None
        np.testing.assert_array_equal(x.grad.numpy(), np.full((4, 3), 3.0, np.float32))
    assert counted.calls == 2


def test_old_traces_make_room() -> None:
    counted = Counted()
    with Tensor.no_grad():
        for _ in range(2):
            for n in range(1, 20):
                sums, _ = counted.total(Tensor.ones(n, 2), 1.0)
                assert sums.tolist() == [n, n]
    assert counted.calls > 19


def test_traces_of_large_arguments_make_room_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are kept have no more elements together than is allowed; what has more by itself is not kept."""
    monkeypatch.setattr(once, "_ELEMENTS", 100)
    monkeypatch.setattr(once, "_ELEMENTS_KEPT", 150)
    counted = Counted()
    with Tensor.no_grad():
        for n, calls in ((7, 1), (5, 2), (7, 2), (9, 3), (7, 4), (51, 5), (51, 6)):
            sums, _ = counted.total(Tensor.ones(n, 10 if n < 50 else 2), 1.0)
            assert (sums.numpy() == n).all()
            assert counted.calls == calls, n


@pytest.mark.parametrize("shared", [False, True])
def test_for_many_values(shared: bool) -> None:
    a, b = drawn(3, 5, 5) + 4 * np.eye(5, dtype=np.float32), drawn(3, 5, 2, seed=1)
    if shared:
        found = vmap(lambda b: linalg.solve(Tensor(a[0]), b))(Tensor(b))
        wanted = np.linalg.solve(a[:1], b)
    else:
        found = vmap(linalg.solve)(Tensor(a), Tensor(b))
        wanted = np.linalg.solve(a, b)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_in_records_and_loops() -> None:
    a = drawn(7, 5, 5) + 4 * np.eye(5, dtype=np.float32)
    inverse = TinyJit(lambda x: linalg.inv(x).realize())
    for x in a:
        np.testing.assert_allclose(inverse(Tensor(x)).numpy(), np.linalg.inv(x), rtol=1e-4, atol=1e-5)
    _, found = scan(lambda c, x: (c, linalg.inv(x)), Tensor(0.0), Tensor(a))
    np.testing.assert_allclose(found.numpy(), np.linalg.inv(a), rtol=1e-4, atol=1e-5)


def test_threads_do_not_disturb_one_another() -> None:
    a = drawn(8, 6, 6) + 4 * np.eye(6, dtype=np.float32)
    solve = TinyJit(lambda x: linalg.inv(x).realize())
    for x in a[:3]:
        solve(Tensor(x).realize())

    device = Tensor(0.0).device

    def one(n: int) -> bool:
        x = Tensor(a[n], device=device).realize()
        found = solve(x).numpy().copy() if n % 2 else linalg.inv(x).numpy()
        return bool(np.allclose(found, np.linalg.inv(a[n]), rtol=1e-3, atol=1e-4))

    with ThreadPoolExecutor(1) as recorded, ThreadPoolExecutor(3) as others:
        jobs = [(recorded if n % 2 else others).submit(one, n) for n in [*range(8)] * 8]
        assert all(job.result() for job in jobs)


def test_kernels_are_foreseen_where_the_arguments_have_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of values under vmap, and of what is traced within a loop, other kernels are wanted than those of the trace."""
    asked: list[str] = []

    def in_order() -> bool:
        asked.append("whether the order matters")
        return True

    monkeypatch.setattr(compile_ahead, "_in_order", in_order)
    with Tensor.no_grad():
        Counted().total(Tensor(drawn(5, 3)), 1.0)
        assert asked, "what is computed anyway"
        asked.clear()
        vmap(lambda x: Counted().total(x, 1.0)[0])(Tensor(drawn(2, 5, 3)))
        scan(lambda c, x: (c + Counted().total(x, 1.0)[0], None), Tensor(drawn(3)), Tensor(drawn(2, 5, 3)))
        assert not asked
