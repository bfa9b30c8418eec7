"""Gradients under TinyJit: a replay finds, adds to and leaves what a call of the function would."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from tg_frontend import JitError, Tensor, TinyJit, nn

pytestmark = pytest.mark.usefixtures("no_warning")


def real(*values: float) -> Tensor:
    return Tensor(list(values)).contiguous().realize()


def test_the_gradient_of_an_argument(backend: str) -> None:
    def step(w: Tensor, x: Tensor) -> Tensor:
        w.grad = None
        loss = (w * w * x).sum().backward()
        assert w.grad is not None
        w.grad.realize()
        return loss

    function = TinyJit(step)
    w, v = real(3.0).requires_grad_(), real(5.0).requires_grad_()
    for i in range(4):
        function(w, real(float(i)))
        assert w.grad is not None and w.grad.item() == 6.0 * i
    for i in range(4):
        function(v, real(float(i)))
        assert v.grad is not None and v.grad.item() == 10.0 * i


@pytest.mark.parametrize("zeroed", ["inside", "outside", "by turns", "never"])
@pytest.mark.parametrize("returned", [False, True], ids=["kept", "returned"])
def test_gradients_that_are_left_at_parameters(zeroed: str, returned: bool) -> None:
    """Recorded or not, ``grad`` is what ``backward`` makes of the ``grad`` of before."""

    def run(jit: Any) -> list[list[float]]:
        w = Tensor([1.0, 2.0], requires_grad=True).realize()
        v = Tensor([3.0, 4.0], requires_grad=True).realize()

        def step(x: Tensor) -> Tensor:
            if zeroed == "inside":
                w.grad = v.grad = None
            (w * x + v).sum().backward()  # the gradient of v is a constant
            assert w.grad is not None and v.grad is not None
            Tensor.realize(w.grad, v.grad)
            return w.grad if returned else x + 1

        function = jit(step)
        seen = []
        for i in range(6):
            if zeroed == "outside" or (zeroed == "by turns" and i % 3 == 0):
                w.grad = v.grad = None
            out = function(real(float(i), i + 1.0))
            assert w.grad is not None and v.grad is not None
            seen += [w.grad.tolist(), v.grad.tolist(), out.tolist()]
            if i % 2:  # as clipping does
                w.grad *= 0.5
                v.grad *= 0.5
        return seen

    with warnings.catch_warnings():
        if zeroed in ("never", "by turns"):
            warnings.simplefilter("ignore", RuntimeWarning)  # a sum that goes on in other memory is recorded anew
        assert run(TinyJit) == run(lambda function: lambda *args: _apart(function(*args)))


def _apart(result: Tensor) -> Tensor:
    return result.clone().realize()


def test_a_gradient_that_is_read_may_be_another_one(backend: str) -> None:
    w = Tensor([1.0, 2.0], requires_grad=True).realize()
    x = real(1.0, 1.0)

    @TinyJit
    def make(scale: Tensor) -> None:
        w.grad = None
        (w * scale).sum().backward()
        assert w.grad is not None
        w.grad.realize()

    @TinyJit
    def use() -> Tensor:
        assert w.grad is not None
        return w.grad * x

    for i in range(5):
        make(real(float(i), float(i)))
        assert use().tolist() == [float(i), float(i)]
    w.grad = real(7.0, 7.0)
    assert use().tolist() == [7.0, 7.0]
    make(real(8.0, 8.0))
    assert use().tolist() == [8.0, 8.0]


def leaf(*values: float) -> Tensor:
    return Tensor(list(values), requires_grad=True).realize()


def test_a_gradient_that_an_argument_brings(backend: str) -> None:
    """The gradient is read of the tensor that is passed, and of no other."""
    w, v = real(1.0, 2.0), real(3.0, 4.0)
    w.grad, v.grad = real(1.0, 1.0), real(5.0, 5.0)

    def doubled(t: Tensor) -> Tensor:
        assert t.grad is not None
        return (t.grad * 2).realize() + t

    function = TinyJit(doubled)
    for _ in range(4):
        assert function(w).tolist() == [3.0, 4.0]
    record = function.captured
    assert function(w).tolist() == [3.0, 4.0] and function.captured is record
    for _ in range(2):
        assert function(v).tolist() == [13.0, 14.0]
    kept = v.grad
    v.grad = real(9.0, 9.0)  # the old one is there still
    assert function(v).tolist() == [21.0, 22.0]
    assert kept.tolist() == [5.0, 5.0]
    v.grad += 1
    assert function(v).tolist() == [23.0, 24.0]
    pairs = TinyJit(lambda pair: doubled(pair[0]) + pair[1])
    for t in (w, w, w, v, v, w):
        assert t.grad is not None
        assert pairs([t, real(1.0, 1.0)]).tolist() == (t.grad * 2 + t + 1).tolist()


def test_the_gradient_of_a_part_is_refused(backend: str) -> None:
    whole = real(1.0, 2.0, 3.0)

    def read(t: Tensor) -> Tensor:
        assert t.grad is not None
        return t + t.grad

    def make(t: Tensor) -> Tensor:
        return (t * t).sum().backward()

    for function in (read, make):
        jitted, part = TinyJit(function), whole[1:].detach()
        part.requires_grad = True
        part.grad = real(1.0, 1.0)
        jitted(part)
        with pytest.raises(JitError, match="uses the gradient of argument 0"):
            jitted(part)


def test_a_gradient_made_and_cleared_inside(backend: str) -> None:
    """``backward`` looks for a gradient though none is there before and after the call."""
    w = leaf(1.0, 2.0)

    def step(x: Tensor) -> Tensor:
        (w * x).sum().backward()
        found, w.grad = w.grad, None
        assert found is not None
        return found

    function = TinyJit(step)
    for i in range(4):
        assert function(real(float(i), 1.0)).tolist() == [float(i), 1.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # each of these calls is another function
        for i in range(3):
            w.grad = real(10.0, 20.0)
            assert function(real(float(i), 1.0)).tolist() == [10.0 + i, 21.0]
            assert w.grad is None
            assert function(real(float(i), 1.0)).tolist() == [float(i), 1.0]


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_the_optimiser_outside(kind: str, backend: str) -> None:
    """Forward and backward are recorded, the step is not."""

    def train(jit: bool) -> list[Any]:
        Tensor.manual_seed(1)
        layer = nn.Linear(2, 1)
        parameters = nn.state.get_parameters(layer)
        optimizer = nn.optim.SGD(parameters, lr=0.1) if kind == "SGD" else nn.optim.Adam(parameters, lr=0.1)

        def step(x: Tensor) -> Tensor:
            return layer(x).square().mean().backward()

        function: Any = TinyJit(step) if jit else step
        out, records = [], []
        for i in range(6):
            optimizer.zero_grad()
            out.append(function(Tensor([[float(i), 1.0], [1.0, 2.0]]).realize()).item())
            out += [parameter.grad.tolist() for parameter in parameters if parameter.grad is not None]
            optimizer.step()
            records.append(function.captured if jit else None)
        assert not jit or records[2] is records[-1] is not None
        return out

    got, want = train(True), train(False)
    assert len(got) == 18
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("cleared", ["never", "to zero", "inside"])
def test_gradients_that_add_up_are_replayed(cleared: str, backend: str) -> None:
    """Over several calls gradients add up in place: one record is enough, and who holds a gradient sees the sum."""
    w = leaf(1.0, 2.0)
    optimizer = nn.optim.SGD([w], lr=0.0)

    def step(x: Tensor) -> None:
        if cleared == "inside":
            optimizer.zero_grad()
        (w * x).sum().backward()
        (w * w).sum().backward()

    function = TinyJit(step)
    total, records, held = np.zeros(2), [], None
    for i in range(7):
        if cleared == "to zero" and i % 3 == 0:
            optimizer.zero_grad(set_to_none=False)
        if cleared == "inside" or (cleared == "to zero" and i % 3 == 0):
            total[:] = 0
        if cleared == "inside" and i == 4:
            w.grad = None  # makes no difference
        function(real(float(i), 1.0))
        total += [i + 2.0, 5.0]
        assert w.grad is not None and w.grad.tolist() == total.tolist()
        if i == 2:
            held = w.grad
        records.append(function.captured)
    assert records[1] is records[-1] is not None
    assert held is not None and held.tolist() == total.tolist()


def test_a_gradient_that_waits_is_computed_before_it_is_added_to(backend: str) -> None:
    w = leaf(1.0, 2.0)
    function = TinyJit(lambda x: (w * x).sum().backward())
    (w * w).sum().backward()  # left uncomputed
    for i in range(4):
        function(real(1.0, 1.0))
        assert w.grad is not None
        if i == 3:
            assert w.grad.tolist() == [6.0, 8.0]


def test_a_gradient_that_is_replaced_was_there(backend: str) -> None:
    """Where the function puts another gradient in the place of one that it does not read, it finds one each time."""
    w = leaf(1.0, 2.0)
    w.grad = real(0.0, 0.0)

    def step(x: Tensor) -> None:
        if w.grad is not None:
            w.grad = (x * 2).realize()

    function = TinyJit(step)
    for i in range(4):
        function(real(float(i), 1.0))
        assert w.grad is not None and w.grad.tolist() == [2.0 * i, 2.0]
    w.grad = None
    with pytest.raises(JitError, match="executed nothing"):
        function(real(1.0, 1.0))


@pytest.mark.parametrize("read", [False, True])
def test_a_gradient_that_is_no_result_is_never_that_of_another_call(read: bool) -> None:
    """Also where the one of the recorded call was read, which computes it then."""
    w = Tensor([1.0, 2.0, 3.0], requires_grad=True)

    def step(x: Tensor) -> Tensor:
        w.grad = None
        loss = (x * w + w.detach().cumsum(0)).tanh().sum().backward()
        assert w.grad is not None
        with Tensor.no_grad():
            w.assign(w - w.grad * 0.125)
        return loss

    record = TinyJit(step)
    for call in range(4):
        record(Tensor([0.5, -0.25, 0.125 * call]).realize())
        assert w.grad is not None
        if call > 1:
            with pytest.raises(RuntimeError, match="is not left by replays"):
                w.grad.tolist()
        elif read:
            assert len(w.grad.tolist()) == 3


def _several(x: Tensor) -> tuple[Tensor, ...]:
    """Results that share memory: new, detached, a view of each, detached twice."""
    y = (x * 2).contiguous()
    d = y.detach()
    return y, d, y[1:], d[1:], y.detach(), d.detach()


def _of_the_argument(x: Tensor) -> tuple[Tensor, ...]:
    x += 1
    d = x.detach()
    return x, d, x[1:], d[1:], x.detach(), d.detach()


@pytest.mark.parametrize("results", [_several, _of_the_argument])
@pytest.mark.parametrize("written", range(6))
def test_results_that_were_detached_have_gradients_of_their_own(results: Any, written: int, backend: str) -> None:
    def flows(function: Any) -> list[list[float] | None]:
        """What flows from each result to what was written to one of them."""
        found: list[list[float] | None] = []
        for read in range(6):
            given = real(1.0, 2.0, 3.0)
            out = function(given)
            w = Tensor([5.0, 6.0, 7.0][: out[written].shape[0]], requires_grad=True)
            out[written].mul_(w)
            flowing = out[read]
            if flowing.requires_grad:
                flowing.sum().backward()
            found.append(None if w.grad is None else w.grad.tolist())
        return found

    recorded = TinyJit(results)
    assert flows(recorded) == flows(results) == flows(recorded)
