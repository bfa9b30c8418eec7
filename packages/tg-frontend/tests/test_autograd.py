"""The graph of differentiation: what is recorded, kept, freed and refused."""

from __future__ import annotations

import gc
import pickle
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit, nn


def grad_of(tensor: Tensor) -> Any:
    assert tensor.grad is not None
    return tensor.grad.tolist()


def test_gradients_add_up_at_leaves_only() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    assert (y * y).sum().backward().item() == 45.0
    assert grad_of(x) == [18.0, 36.0] and y.grad is None
    (x * 2).sum().backward()
    assert grad_of(x) == [20.0, 38.0]
    x.grad = None
    x.sum().backward()
    assert grad_of(x) == [1.0, 1.0]


def test_a_tensor_used_twice_and_a_diamond() -> None:
    x = Tensor(3.0, requires_grad=True)
    a, b = x * 2, x + 1
    (a * b + a).backward()
    assert grad_of(x) == 2 * 4 + 6 + 2


def test_a_leaf_by_itself() -> None:
    x = Tensor(3.0, requires_grad=True)
    x.backward()
    assert grad_of(x) == 1.0


def test_the_weight_of_each_element() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    (x * x).backward(Tensor([1.0, 10.0]))
    assert grad_of(x) == [2.0, 40.0]
    with pytest.raises(ValueError, match=r"shape \(2,\) needs a gradient"):
        (x * x).backward()
    with pytest.raises(ValueError, match=r"gradient has shape \(3,\)"):
        (x * x).backward(Tensor([1.0, 2.0, 3.0]))


def test_gradient_returns_and_changes_nothing() -> None:
    x, w = Tensor([2.0], requires_grad=True), Tensor([5.0], requires_grad=True)
    y = x * w
    z = (y * y).sum()
    for _ in range(2):
        assert [g.tolist() for g in z.gradient(x, w, y)] == [[100.0], [40.0], [20.0]]
    assert x.grad is None
    with pytest.raises(RuntimeError, match="target 1, of shape"):
        z.gradient(x, Tensor([1.0], requires_grad=True))
    with pytest.raises(RuntimeError, match="nothing depends on target 0"):
        z.gradient(Tensor([1.0]))
    with pytest.raises(RuntimeError, match=r"target 0, of shape .* has no gradient"):
        z.gradient(Tensor([1.0], requires_grad=False))


def test_who_requires_a_gradient() -> None:
    yes, no, open_ = Tensor([1.0], requires_grad=True), Tensor([1.0], requires_grad=False), Tensor([1.0])
    assert (yes + no).requires_grad is True and (yes + open_).requires_grad is True
    assert (no + no).requires_grad is False and (no + open_).requires_grad is None
    assert (yes < no).requires_grad is False and yes.detach().requires_grad is False
    assert yes.cast("int32").requires_grad is False and yes.cast("float64").requires_grad is True
    assert open_.requires_grad_() is open_ and open_.requires_grad is True


def test_no_grad_is_a_block_and_a_decorator() -> None:
    x = Tensor([1.0], requires_grad=True)

    @Tensor.no_grad()
    def double(t: Tensor) -> Tensor:
        return t * 2

    with Tensor.no_grad():
        assert (x * 2).requires_grad is False
        with Tensor.no_grad():
            pass
        assert (x * 2).requires_grad is False
    assert double(x).requires_grad is False and (x * 2).requires_grad is True
    with pytest.raises(ZeroDivisionError), Tensor.no_grad():
        raise ZeroDivisionError
    assert (x * 2).requires_grad is True


def test_no_grad_does_not_reach_other_threads() -> None:
    x, seen = Tensor([1.0], requires_grad=True), []
    with Tensor.no_grad():
        thread = threading.Thread(target=lambda: seen.append((x * 2).requires_grad))
        thread.start()
        thread.join()
    assert seen == [True]


def test_training_is_a_block_a_decorator_and_an_attribute() -> None:
    assert not Tensor.training
    with Tensor.train():
        assert Tensor.training
        with Tensor.train(False):
            assert not Tensor.training
        assert Tensor.training
    assert not Tensor.training
    assert Tensor.train()(lambda: Tensor.training)() and not Tensor.training
    Tensor.training = True
    try:
        assert Tensor.ones(3).dropout(1).sum().item() == 0
    finally:
        Tensor.training = False


def test_the_graph_is_freed_and_said_to_be() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    z = (y * y).sum()
    activation = weakref.ref((kept := (y * 2)).lazydata)
    del kept
    z.backward()
    assert activation() is None
    with pytest.raises(RuntimeError, match="freed by an earlier backward"):
        z.backward()
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        (y * 3).sum().backward()
    (y.detach() * x).sum().backward()


def test_the_graph_can_be_kept() -> None:
    x = Tensor(2.0, requires_grad=True)
    z = x * x
    z.backward(retain_graph=True)
    z.backward()
    assert grad_of(x) == 8.0


def test_intermediate_memory_goes_with_the_graph() -> None:
    from tg_runtime import GlobalCounters

    gc.collect()
    x = Tensor.ones(1000, requires_grad=True).contiguous().realize()
    x = Tensor(x.lazydata, requires_grad=True)
    before = GlobalCounters.mem_used
    loss = x.exp().contiguous().sin().contiguous().sum()
    loss.realize()
    loss.backward()
    assert x.grad is not None
    x.grad.realize()
    assert GlobalCounters.mem_used - before <= 3 * 4000 + 64  # the gradient, the loss, and nothing of the middle


def test_nothing_to_differentiate_is_named() -> None:
    with pytest.raises(RuntimeError, match="depends on nothing that requires a gradient"):
        Tensor([1.0]).sum().backward()
    x = Tensor([1.0], requires_grad=True)
    with Tensor.no_grad():
        y = x * 2
    with pytest.raises(RuntimeError, match="no_grad"):
        y.backward()
    with pytest.raises(TypeError, match="int32 has no gradient"):
        Tensor([1]).requires_grad_()
    with pytest.raises(TypeError, match="no gradient; detach"):
        x.bitcast("int32")


def test_a_failure_leaves_the_gradients_alone() -> None:
    x = Tensor([1.0], requires_grad=True)
    y = x * 2
    (y * 1).backward()
    assert grad_of(x) == [2.0]
    with pytest.raises(RuntimeError):
        (y + x).backward()
    assert grad_of(x) == [2.0]


@pytest.mark.parametrize("length", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_long_chain(length: int) -> None:
    x = Tensor([1.0], requires_grad=True)
    y, start = x, time.process_time()
    for _ in range(length):
        y = y + 1.0
    y.backward()
    assert grad_of(x) == [1.0]
    del y
    assert time.process_time() - start < 60


def test_realising_before_backward_gives_the_same() -> None:
    for early in (False, True):
        x = Tensor([0.5, 1.5], requires_grad=True)
        y = x.sin() * x
        if early:
            y.realize()
        y.sum().backward()
        assert [round(g, 5) for g in grad_of(x)] == [0.91822, 1.10360]


def test_devices_in_one_graph() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    (x * 3).to("NUMPY:1").square().sum().backward()
    assert grad_of(x) == [18.0, 36.0] and x.grad is not None and x.grad.device == "NUMPY"


def test_gradient_at_tensors_that_leave_it_open(backend: str) -> None:
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    z = (x * y).exp2().sum()
    dx, dy = z.gradient(x, y)
    ref = 2.0 ** np.array([3.0, 8.0]) * np.log(2)
    np.testing.assert_allclose(dx.numpy(), ref * [3, 4], rtol=1e-5)
    np.testing.assert_allclose(dy.numpy(), ref * [1, 2], rtol=1e-5)
    assert x.grad is None and z.requires_grad is None
    with pytest.raises(RuntimeError, match="depends on nothing that requires a gradient"):
        z.backward()


def test_gradient_reaches_what_is_seen_through_views(backend: str) -> None:
    x, y = Tensor([[1.0], [2.0], [3.0]]), Tensor([[10.0, 20.0, 30.0, 40.0]]).realize()
    dx, dy = (x + y).sum().gradient(x, y)
    assert dx.tolist() == [[4.0], [4.0], [4.0]] and dy.tolist() == [[3.0, 3.0, 3.0, 3.0]]
    eye = Tensor.eye(3)
    (found,) = Tensor([[2.0, 0.0, -2.0]]).matmul(eye).sum().gradient(eye)
    assert found.tolist() == [[2.0] * 3, [0.0] * 3, [-2.0] * 3]


READINGS: dict[str, Callable[[Tensor], object]] = {
    "tolist": Tensor.tolist,
    "numpy": Tensor.numpy,
    "data": lambda x: x.data(),
    "printed": repr,
    "array": lambda x: np.asarray(x.detach()),
    "item": lambda tensor: tensor.reshape(-1)[0].item() if tensor.shape else tensor.item(),
    "float": lambda tensor: float(tensor.mean() if tensor.shape else tensor),
    "bool": lambda tensor: bool((tensor > 0).any() if tensor.shape else tensor),
    "html": lambda tensor: tensor._repr_html_(),
    "pickled": pickle.dumps,
}


def slopes(model: nn.Sequential, read: dict[int, str]) -> list[Any]:
    """The gradients of a loss of a model without an optimiser, some of whose values are read on the way."""
    x = Tensor(np.linspace(-2, 2, 21, dtype=np.float32).reshape(7, 3))
    for position, layer in enumerate(model):
        x = layer(x)
        if position in read:
            READINGS[read[position]](x)
    loss = (x - 1).square().mean()
    if -1 in read:
        READINGS[read[-1]](loss)
    loss.backward()
    found = [grad_of(tensor) for tensor in nn.state.get_parameters(model)]
    for tensor in nn.state.get_parameters(model):
        tensor.grad = None
    return found


@pytest.mark.parametrize("how", READINGS)
def test_reading_changes_no_gradient_of_a_model_without_an_optimiser(how: str) -> None:
    Tensor.manual_seed(3)
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.LayerNorm(5), nn.Linear(5, 5), nn.GELU(), nn.Linear(5, 2))
    wanted = slopes(model, {})
    for read in ({-1: how}, {0: how}, {4: how, -1: how}, dict.fromkeys(range(-1, 6), how)):
        for found, want in zip(slopes(model, read), wanted, strict=True):
            np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


def test_what_leaves_it_open_is_a_leaf_once_it_is_realized_or_chosen() -> None:
    x = Tensor([1.0, 2.0])
    y = (x * 2).realize()
    (y * y).sum().gradient(y)
    with pytest.raises(RuntimeError, match="nothing depends on target 0"):
        (y * y).sum().gradient(x)
    w = (x * 3).requires_grad_()
    (w * w).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [6.0, 12.0] and x.grad is None
    v = x * 3
    v.requires_grad = True
    (v * v).sum().backward()
    assert v.grad is not None and v.grad.tolist() == [6.0, 12.0]


def test_a_chain_of_realized_tensors_keeps_no_links() -> None:
    x = Tensor([1.0])
    first = weakref.ref(x)
    for _ in range(3):
        x = (x + 1).realize()
    assert first() is None and x.tolist() == [4.0]
    x = Tensor([1.0])
    first = weakref.ref(x)
    for _ in range(3):
        x = x + 1
        x.tolist()
    assert first() is None and x.tolist() == [4.0]
    layer, x = nn.Linear(1, 1), Tensor([1.0])
    first = weakref.ref(x)
    for _ in range(3):
        with Tensor.no_grad():
            x = layer(x)
        x.tolist()
    assert first() is None


def test_weights_of_a_small_convolution() -> None:
    rng = np.random.default_rng(0)
    x, w, g = (rng.standard_normal(s).astype(np.float32) for s in ((64, 16, 8, 8), (32, 16, 3, 3), (64, 32, 8, 8)))
    weight = Tensor(w, requires_grad=True)
    (Tensor(x).conv2d(weight, padding=1) * Tensor(g)).sum().backward()
    assert weight.grad is not None
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (8, 8), (2, 3))
    want = np.einsum("bcijyx,boyx->ocij", windows, g)
    np.testing.assert_allclose(weight.grad.numpy(), want, rtol=1e-3, atol=1e-3)


def test_a_result_becomes_a_leaf_by_being_told_so(backend: str) -> None:
    p = Tensor.uniform(3) * 0.1  # a result, which leaves it open
    p.requires_grad = True
    (p * p).sum().backward()
    assert p.grad is not None
    np.testing.assert_allclose(p.grad.numpy(), 2 * p.numpy(), rtol=1e-6)
    q = (p * 2).detach()
    q.requires_grad = True
    (q * 3).sum().backward()
    assert q.grad is not None and q.grad.tolist() == [3, 3, 3]


def test_what_cannot_be_told_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="int32 has no gradient"):
        Tensor([1]).requires_grad = True
    y = Tensor([1.0], requires_grad=True) * 2
    y.requires_grad = True  # it does already
    with pytest.raises(RuntimeError, match="detach"):
        y.requires_grad = False
    with pytest.raises(RuntimeError, match="detach"):
        y.requires_grad_(False)


def test_parameters_of_layers_get_gradients_without_an_optimizer(backend: str) -> None:
    model = [nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 1, bias=False)]
    x = Tensor(np.ones((2, 3), np.float32))
    (x.sequential(model) ** 2).sum().backward()
    params = nn.state.get_parameters(model)
    assert len(params) == 5 and all(p.grad is not None and p.grad.shape == p.shape for p in params)
    assert x.grad is None
    found = [p.grad.numpy() for p in params if p.grad is not None]
    for p in params:
        p.grad = None
        p.requires_grad_()
    (x.sequential(model) ** 2).sum().backward()
    for p, had in zip(params, found, strict=True):
        assert p.grad is not None
        np.testing.assert_array_equal(p.grad.numpy(), had)
    with pytest.raises(RuntimeError, match="depends on nothing that requires a gradient"):
        (Tensor([1.0]) * 2).sum().backward()


def test_a_frozen_layer_gets_no_gradient() -> None:
    model = [nn.Linear(3, 4), nn.Linear(4, 1)]
    for p in nn.state.get_parameters(model[0]):
        p.requires_grad_(False)
    Tensor(np.ones((2, 3), np.float32)).sequential(model).sum().backward()
    assert [p.grad is None for p in nn.state.get_parameters(model)] == [True, True, False, False]


def test_gradients_of_targets_that_do_not_matter() -> None:
    x, unused = Tensor(3.0), Tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="target 1, of shape .2,.; with materialize_grads=True"):
        (x * x).gradient(x, unused)
    assert [g.tolist() for g in (x * x).gradient(x, unused, materialize_grads=True)] == [6.0, [0.0, 0.0]]


def test_the_gradient_of_a_power_with_exponent_zero_is_zero_also_at_zero(backend: str) -> None:
    for exponent in (0, 0.0, Tensor([0.0, 0.0, 0.0]), Tensor(0.0)):
        x = Tensor([0.0, 2.0, -1.0], requires_grad=True)
        (x**exponent).sum().backward()
        assert x.grad is not None and x.grad.tolist() == [0, 0, 0]


def test_gradients_at_the_edges_are_those_of_pytorch(backend: str) -> None:
    # a strided slice whose deviation is 0: no NaN; several sources and what is there multiplied, zeros among them
    x = Tensor(np.array([2.0, 5.0, 2.0, 7.0, 2.0]), requires_grad=True)
    x[::2].std().backward()
    assert x.grad is not None and x.grad.tolist() == [0, 0, 0, 0, 0]
    a, at = np.array([[1.0, 0.0, 3.0], [2.0, 2.0, 0.0]]), np.array([[0, 0, 1], [1, 2, 2]])

    @TinyJit
    def slopes(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        a.requires_grad_()
        b.requires_grad_()
        a.grad = b.grad = None
        a.scatter_reduce(1, Tensor(at), b, "prod", include_self=True).sum().backward()
        assert a.grad is not None and b.grad is not None
        return a.grad.realize(), b.grad.realize()

    for _ in range(4):
        source = np.array([[0.0, 3.0, 2.0], [5.0, 0.0, 0.0]])
        found = slopes(Tensor(a).contiguous().realize(), Tensor(source).contiguous().realize())
        assert [g.tolist() for g in found] == [[[0, 2, 1], [1, 5, 0]], [[3, 0, 0], [2, 0, 0]]]


def test_the_gradient_of_logcumsumexp_over_wide_ranges(backend: str) -> None:
    x = np.random.default_rng(0).standard_normal(40) * 10
    weights = np.random.default_rng(1).standard_normal(40)
    t = Tensor(x, requires_grad=True)
    (t.logcumsumexp() * Tensor(weights)).sum().backward()
    powers = np.exp(x - x.max())
    sums = np.cumsum(powers)
    want = [(weights[i:] * powers[i] / sums[i:]).sum() for i in range(40)]
    assert t.grad is not None
    np.testing.assert_allclose(t.grad.numpy(), want, rtol=1e-9, atol=1e-12)
