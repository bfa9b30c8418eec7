"""Gradients of gradients: to any order, through what backward leaves, and never from what was overwritten."""

from __future__ import annotations

import gc
from weakref import ref

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit, nn
from tg_frontend.autograd.functions import Function, Grads
from tg_lazy import LazyBuffer, Ops


def test_any_order() -> None:
    x = Tensor(2.0, dtype="float64")
    found, value = [], x**5
    for _ in range(6):
        (value,) = value.gradient(x, materialize_grads=True)
        found.append(value.item())
    assert found == [80.0, 160.0, 240.0, 240.0, 120.0, 0.0]


def test_what_was_read_can_be_differentiated() -> None:
    x = Tensor([1.0, 2.0, 3.0])
    (slope,) = (x**3).sum().gradient(x)
    assert slope.tolist() == [3.0, 12.0, 27.0]
    assert (slope * 2)[1:].sum().gradient(x)[0].tolist() == [0.0, 24.0, 36.0]


def test_a_product_of_which_factors_are_zero() -> None:
    x = Tensor([1.0, 2.0, 0.0, 4.0], dtype="float64")
    (slope,) = x.prod().gradient(x)
    rows = [slope[i].gradient(x)[0].tolist() for i in range(4)]
    assert rows == [[0, 0, 8, 0], [0, 0, 4, 0], [8, 4, 0, 2], [0, 0, 2, 0]]
    assert Tensor.zeros(3, 0).prod(1).sum().gradient(y := Tensor.zeros(2), materialize_grads=True)[0].shape == y.shape


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0])
def test_powers_at_zero(exponent: float) -> None:
    x, y = Tensor([0.0, 2.0], dtype="float64"), Tensor([exponent, exponent], dtype="float64")
    slope, _ = (x**y).sum().gradient(x, y)
    (bend,) = slope.sum().gradient(x)
    assert bend.tolist() == [2.0 if exponent == 2 else 0.0, exponent * (exponent - 1) * 2.0 ** (exponent - 2)]


def test_gradient_penalty_is_that_of_torch() -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for shape in ((5, 7), (7, 3), (3,))]
    x, w, b = (Tensor(array, requires_grad=True) for array in arrays)
    loss = (x @ w + b).tanh().square().sum()
    (slope,) = loss.gradient(x)
    (loss + (slope.square().sum(1).sqrt() - 1).square().mean()).backward()
    x2, w2, b2 = (torch.tensor(array, requires_grad=True) for array in arrays)
    loss2 = (x2 @ w2 + b2).tanh().square().sum()
    (slope2,) = torch.autograd.grad(loss2, x2, create_graph=True)
    (loss2 + (slope2.square().sum(1).sqrt() - 1).square().mean()).backward()
    for ours, theirs in ((x, x2), (w, w2), (b, b2)):
        assert ours.grad is not None
        np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-9)


def test_backward_with_create_graph() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    x.square().sum().backward()
    first = x.grad
    assert first is not None
    y = (x**3).sum()
    y.backward(create_graph=True)
    assert x.grad is not None and x.grad is not first and first.tolist() == [2.0, 4.0]
    assert x.grad.tolist() == [5.0, 16.0]
    assert x.grad.sum().gradient(x)[0].tolist() == [6.0, 12.0]
    y.backward()  # the graph is still there
    with pytest.raises(RuntimeError, match="freed"):
        y.backward()
    z = x.exp().sum()
    z.backward(create_graph=True, retain_graph=False)
    with pytest.raises(RuntimeError, match="freed"):
        z.backward()


def test_parameters_of_layers_get_gradients_that_can_be_differentiated() -> None:
    layer = nn.Linear(3, 2)
    layer(Tensor.ones(4, 3)).square().sum().backward(create_graph=True)
    assert layer.weight.grad is not None
    (bend,) = layer.weight.grad.sum().gradient(layer.weight)
    np.testing.assert_allclose(bend.numpy(), np.full((2, 3), 24.0))


def test_a_gradient_in_the_weights_of_a_gradient() -> None:
    x, v = Tensor([1.0, 2.0, 3.0]), Tensor([1.0, 0.0, -1.0])
    (product,) = (x**3).gradient(x, gradient=v)
    assert product.gradient(v, gradient=Tensor([1.0, 1.0, 1.0]))[0].tolist() == [3.0, 12.0, 27.0]


def test_what_was_written_between_two_orders_is_noticed() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    w = Tensor([3.0, 4.0]).contiguous().realize()
    (slope,) = (x.square() * w).sum().gradient(x)
    w += 1
    with pytest.raises(RuntimeError, match="written to in place"):
        slope.sum().gradient(x)
    (slope,) = (x.exp() * w).sum().gradient(x)
    with Tensor.no_grad():
        x.assign([5.0, 5.0])
    with pytest.raises(RuntimeError, match="written to in place"):
        slope.sum().gradient(x)


def test_a_write_that_a_gradient_flows_through() -> None:
    x = Tensor([1.0, 2.0, 3.0], dtype="float64", requires_grad=True)
    y = x * 2
    y[1:] = x[:2] ** 3
    (slope,) = (y**2).sum().gradient(x)
    assert slope.tolist() == [8 * 1 + 6 * 1, 6 * 32, 0]
    assert slope.sum().gradient(x)[0].tolist() == [8 + 30, 30 * 16, 0]


def test_a_freed_graph_is_noticed() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = (x**3).sum()
    (slope,) = y.gradient(x)
    y.backward()
    with pytest.raises(RuntimeError, match="freed"):
        slope.sum().gradient(x)


def test_without_create_graph_nothing_is_kept() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    for create in (False, True):
        y = x.exp().sum()
        weak = ref(y)
        (slope,) = y.gradient(x, create_graph=create)
        assert slope.requires_grad is create
        del y
        gc.collect()
        assert (weak() is not None) is create
    with Tensor.no_grad():
        assert (x * x).sum().requires_grad is False


@pytest.mark.parametrize("steps", [3_000, pytest.param(50_000, marks=pytest.mark.slow)])
def test_a_deep_graph_is_differentiated_twice(steps: int) -> None:
    """Deeper than any stack of calls; in the slow case, more than 100,000 nodes before the first gradient."""
    x = Tensor([1.0, 2.0], dtype="float64", device="NUMPY")
    y = x
    for _ in range(steps):
        y = (y * x).sin()
    (slope,) = y.sum().gradient(x)
    (bend,) = slope.sum().gradient(x)
    assert bend.shape == (2,)


def test_a_record_of_second_derivatives() -> None:
    def bend(x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        (slope,) = (x**3).sum().gradient(x)
        return slope.sum().gradient(x)[0].realize()

    jitted = TinyJit(bend)
    for i in range(5):
        assert jitted(Tensor([1.0, i]).realize()).tolist() == [6.0, 6.0 * i]


class Bad(Function):
    """Keeps something that is neither its operand nor its result."""

    __slots__ = ("square",)

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.square = x.alu(Ops.MUL, x)
        return self.square.alu(Ops.MUL, x)

    def backward(self, grad: LazyBuffer) -> Grads:
        return (grad.alu(Ops.MUL, self.square),)


def test_a_rule_that_cannot_be_recorded_says_so() -> None:
    x = Tensor([1.0], requires_grad=True)
    (slope,) = x._apply(Bad()).gradient(x)
    with pytest.raises(TypeError, match="the gradient of bad cannot be differentiated"):
        slope.gradient(x)


@pytest.mark.parametrize(("sizes", "out"), [((7,), 4), ((8,), 3), ((8, 5), 3), ((5, 7, 8), 3)])
@pytest.mark.parametrize("batch", [0, 2])
def test_pools_of_no_elements_have_second_gradients_like_others(batch: int, sizes: tuple[int, ...], out: int) -> None:
    x = Tensor.ones(batch, 3, *sizes, requires_grad=True)
    pool = getattr(nn.functional, f"adaptive_avg_pool{len(sizes)}d")
    (slope,) = pool(x, out).square().sum().gradient(x, create_graph=True)
    (second,) = slope.square().sum().gradient(x, materialize_grads=True)
    assert slope.shape == second.shape == x.shape
    assert batch == 0 or bool((second != 0).any().item())
