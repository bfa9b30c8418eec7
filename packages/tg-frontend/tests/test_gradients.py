"""Every gradient, and the gradient of that, against finite differences; and vmap of all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tg_frontend import Tensor, vmap
from tg_lazy import Context
from tg_runtime import Device

Array = NDArray[np.float64]
Case = tuple[Callable[..., Tensor], list[Array]]
STEP, TOLERANCE = 1e-6, 2e-5


def numbers(*shape: int, seed: int = 0, low: float | None = None) -> Array:
    """Normal numbers; positive ones from ``low``, if it is given."""
    x = np.random.default_rng(seed).standard_normal(shape)
    return x if low is None else np.abs(x) + low


def check(function: Callable[..., Tensor], arrays: list[Array], twice: bool = True) -> None:
    """The gradient of a weighted sum of ``function``, at no more than 16 places an operand; ``twice``: and of that."""
    rng = np.random.default_rng(9)
    tensors = [Tensor(array, requires_grad=True) for array in arrays]
    out = function(*tensors)
    weights = rng.standard_normal(tuple(int(str(d)) for d in out.shape))
    (out * Tensor(weights)).sum().backward()
    for which, (array, tensor) in enumerate(zip(arrays, tensors, strict=True)):
        assert tensor.grad is not None and tensor.grad.shape == tensor.shape and tensor.grad.dtype is tensor.dtype
        found = tensor.grad.numpy()
        places = list(np.ndindex(array.shape))
        for place in (places[i] for i in rng.permutation(len(places))[:16]):
            values = []
            for sign in (1, -1):
                moved = [a.copy() for a in arrays]
                moved[which][place] += sign * STEP
                values.append(float((function(*(Tensor(m) for m in moved)).numpy() * weights).sum()))
            slope = (values[0] - values[1]) / (2 * STEP)
            assert np.isclose(found[place], slope, rtol=TOLERANCE, atol=TOLERANCE), (which, place, found[place], slope)
    if twice:
        check_again(function, arrays, weights)


def slopes(function: Callable[..., Tensor], arrays: list[Array], weights: Array) -> tuple[list[Tensor], list[Tensor]]:
    """Operands, and the gradients at them of a weighted sum."""
    tensors = [Tensor(array, requires_grad=True) for array in arrays]
    return tensors, (function(*tensors) * Tensor(weights)).sum().gradient(*tensors)


def check_again(function: Callable[..., Tensor], arrays: list[Array], weights: Array) -> None:
    """The gradient of that gradient, in two directions."""
    rng = np.random.default_rng(10)
    tensors, found = slopes(function, arrays, weights)
    ways = [rng.standard_normal(array.shape) for array in arrays]
    along = sum(((slope * Tensor(way)).sum() for slope, way in zip(found, ways, strict=True)), start=Tensor(0.0))
    curved = [bend.numpy() for bend in along.gradient(*tensors, materialize_grads=True)]
    for _ in range(2):
        others = [rng.standard_normal(array.shape) for array in arrays]
        ends = []
        for sign in (1, -1):
            moved = [array + sign * STEP * other for array, other in zip(arrays, others, strict=True)]
            ends.append([slope.numpy() for slope in slopes(function, moved, weights)[1]])
        wanted = sum(float(((a - b) * way).sum()) for a, b, way in zip(*ends, ways, strict=True)) / (2 * STEP)
        got = sum(float((bend * other).sum()) for bend, other in zip(curved, others, strict=True))
        assert np.isclose(got, wanted, rtol=1e-4, atol=1e-4), (got, wanted)


def method(name: str, *args: Any, **kwargs: Any) -> Callable[..., Tensor]:
    return lambda x: getattr(x, name)(*args, **kwargs)


UNARY = (
    "exp exp2 expm1 erfc sin cos tan atan sinh cosh tanh asinh erf sigmoid logsigmoid gelu quick_gelu silu mish "
    "softplus softsign elu celu selu relu relu6 leaky_relu hardswish hardsigmoid hardtanh abs square neg sum mean "
    "max min prod std var softmax log_softmax softmin logsumexp cumsum cummax logcumsumexp layernorm normalize "
    "contiguous contiguous_backward"
).split()
POSITIVE = "log log1p log2 log10 sqrt rsqrt reciprocal".split()


@pytest.mark.parametrize("name", UNARY)
def test_methods(name: str) -> None:
    check(lambda x: getattr(x, name)()[0] if name == "cummax" else getattr(x, name)(), [numbers(3, 4)])


@pytest.mark.parametrize("name", POSITIVE)
def test_methods_of_positive_numbers(name: str) -> None:
    check(method(name), [numbers(3, 4, low=0.2)])


@pytest.mark.parametrize("name", ["asin", "acos", "atanh"])
def test_methods_within_one(name: str) -> None:
    check(method(name), [np.tanh(numbers(3, 4))])


def test_acosh() -> None:
    check(method("acosh"), [numbers(7, low=1.2)])


INDEX = [[0, 2], [2, 1]]
CASES: dict[str, Case] = {
    "add": (lambda a, b: a + b, [numbers(3, 1), numbers(1, 4, seed=1)]),
    "sub": (lambda a, b: a - b, [numbers(3), numbers(2, 3, seed=1)]),
    "mul": (lambda a, b: a * b, [numbers(3, 1), numbers(4, seed=1)]),
    "square by mul": (lambda a: a * a, [numbers(5)]),
    "div": (lambda a, b: a / b, [numbers(3, 4), numbers(4, seed=1, low=0.5)]),
    "maximum": (lambda a, b: a.maximum(b), [numbers(7), numbers(7, seed=1)]),
    "minimum": (lambda a, b: a.minimum(b), [numbers(7), numbers(7, seed=1)]),
    "where": (lambda a, b: (a > 0).where(a * 2, b), [numbers(7), numbers(7, seed=1)]),
    "pow": (lambda a, b: a**b, [numbers(7, low=0.1), numbers(7, seed=1)]),
    "pow of negatives": (lambda a: a**3 + a**2 + (a**-2) * 0.1, [numbers(7)]),
    "pow 2.5": (lambda a: a**2.5, [numbers(7, low=0.2)]),
    "pow of a number": (lambda a: 2.5**a, [numbers(7)]),
    "mod": (lambda a: a % 0.7 + a.fmod(0.9), [numbers(7) * 2]),
    "mod of two": (lambda a, b: a % b, [numbers(7) * 5, numbers(7, seed=1, low=0.5)]),
    "fmod of two": (lambda a, b: a.fmod(b), [numbers(7) * 5, numbers(7, seed=1, low=0.5)]),
    "floor division": (lambda a, b: a // b + a, [numbers(7) * 5, numbers(7, seed=1, low=0.5)]),
    "atan2": (lambda a, b: a.atan2(b), [numbers(7), numbers(7, seed=1)]),
    "softplus beta": (lambda a: a.softplus(2.5), [numbers(7) * 3]),
    "clip": (lambda a: a.clip(-0.5, 0.5), [numbers(9)]),
    "lerp": (lambda a, b: a.lerp(b, 0.3), [numbers(4), numbers(4, seed=1)]),
    "logaddexp": (lambda a, b: a.logaddexp(b), [numbers(4), numbers(4, seed=1)]),
    "gelu none": (method("gelu", "none"), [numbers(9) * 2]),
    "atan far": (method("atan"), [numbers(9) * 9]),
    "copy": (lambda a: a.to("NUMPY:1").to("NUMPY") * a, [numbers(3)]),
    "sum axis": (lambda a: a.sum(1), [numbers(2, 3, 4)]),
    "mean axes": (lambda a: a.mean((0, 2), keepdim=True), [numbers(2, 3, 4)]),
    "max axis": (lambda a: a.max(1), [numbers(2, 3, 4)]),
    "min axis": (lambda a: a.min(-1), [numbers(2, 3, 4)]),
    "prod with zeros": (lambda a: a.prod(1), [np.array([[1.0, 0, 2], [0, 0, 3], [1, 2, 3]])]),
    "var mean": (lambda a: a.var_mean(0)[0] + a.var_mean(0)[1], [numbers(4, 3)]),
    "std axis": (lambda a: a.std(1, correction=0), [numbers(4, 3)]),
    "cumsum": (lambda a: a.cumsum(1), [numbers(2, 5)]),
    "cumsum in blocks": (lambda a: a.cumsum(0), [numbers(300)]),
    "cumprod": (lambda a: a.cumprod(1), [numbers(2, 5)]),
    "cumprod in blocks": (lambda a: a.cumprod(0), [numbers(19, 2)]),
    "cumprod of zeros": (lambda a: a.cumprod(1), [np.array([[1.0, 0, 2, 3], [2, 0, 0, 3], [0, 1, 2, 3]])]),
    "cummin": (lambda a: a.cummin(1)[0], [numbers(2, 5)]),
    "sort": (lambda a: a.sort()[0], [numbers(2, 5)]),
    "topk": (lambda a: a.topk(2, dim=0)[0], [numbers(4, 3)]),
    "movement": (lambda a: a.flip(0).roll(1, 1).repeat(2, 1).permute(1, 0).reshape(-1), [numbers(3, 4)]),
    "expand": (lambda a: a.reshape(3, 1, 1).expand(3, 2, 4), [numbers(3)]),
    "shrink and pad": (lambda a: a.pad((1, -1, 0, 2), value=2.0), [numbers(3, 4)]),
    "reflect": (lambda a: a.pad((1, 2), mode="reflect"), [numbers(3, 4)]),
    "replicate": (lambda a: a.pad((2, 1), mode="replicate"), [numbers(3, 4)]),
    "circular": (lambda a: a.pad((2, 1), mode="circular"), [numbers(3, 4)]),
    "unfold": (lambda a: a.unfold(1, 3, 2), [numbers(2, 7, 2)]),
    "cat": (lambda a, b: Tensor.cat(a, b, a, dim=1), [numbers(2, 3), numbers(2, 1, seed=1)]),
    "stack": (lambda a, b: Tensor.stack(a, b, dim=1), [numbers(2, 3), numbers(2, 3, seed=1)]),
    "split": (lambda a: a.split([1, 2], 1)[1] * 2, [numbers(2, 3)]),
    "diagonal": (lambda a: a.diagonal(), [numbers(3, 3)]),
    "repeat_interleave": (lambda a: a.repeat_interleave(3, 0), [numbers(2, 2)]),
    "rearrange": (lambda a: a.rearrange("b (h w) -> w b h", h=2), [numbers(2, 6)]),
    "tril": (lambda a: a.tril() + a.triu(1) * 2, [numbers(3, 4)]),
    "slices": (lambda a: a[1:, ::-2], [numbers(4, 5)]),
    "rows": (lambda a: a[Tensor(INDEX)], [numbers(3, 4)]),
    "two indices": (lambda a: a[:, Tensor([0, 2, 2]), Tensor([1, 1, -1])], [numbers(2, 3, 4)]),
    "mask": (lambda a: a[Tensor([True, False, True])], [numbers(3, 2)]),
    "gather": (lambda a: a.gather(1, Tensor([[0, 0], [1, 3], [2, 2]])), [numbers(3, 4)]),
    "scatter": (
        lambda a, b: a.scatter(1, Tensor([[0, 0], [1, 3], [2, 2]]), b), [numbers(3, 4), numbers(3, 2, seed=1)],
    ),
    "scatter mean": (
        lambda a, b: a.scatter_reduce(1, Tensor([[0, 0], [1, 3], [2, 2]]), b, "mean"),
        [numbers(3, 4), numbers(3, 2, seed=1)],
    ),
    "scatter max": (
        lambda a, b: a.scatter_reduce(0, Tensor([[0, 0, 1, 1]]), b, "amax"), [numbers(3, 4), numbers(1, 4, seed=1)],
    ),
    "matmul": (lambda a, b: a @ b, [numbers(3, 1, 4, 5), numbers(2, 5, 3, seed=1)]),
    "matmul of vectors": (lambda a, b: a @ b, [numbers(5), numbers(5, seed=1)]),
    "einsum": (lambda a, b: Tensor.einsum("bij,bjk->ikb", a, b), [numbers(2, 3, 4), numbers(2, 4, 3, seed=1)]),
    "trace": (lambda a: Tensor.einsum("ii->", a), [numbers(3, 3)]),
    "linear": (
        lambda x, w, b: x.linear(w, b), [numbers(2, 3), numbers(3, 4, seed=1), numbers(4, seed=2)],
    ),
    "conv1d": (
        lambda x, w, b: x.conv2d(w, b, stride=3), [numbers(1, 2, 9), numbers(3, 2, 2, seed=1), numbers(3, seed=2)],
    ),
    "conv2d": (
        lambda x, w: x.conv2d(w, stride=2, padding=1), [numbers(2, 4, 6, 5), numbers(6, 4, 3, 3, seed=1)],
    ),
    "conv2d groups": (
        lambda x, w: x.conv2d(w, groups=2, stride=(1, 2), dilation=(2, 1), padding=(1, 0, 2, 1)),
        [numbers(2, 4, 7, 5), numbers(6, 2, 2, 3, seed=1)],
    ),
    "conv3d": (lambda x, w: x.conv2d(w, padding=1), [numbers(1, 2, 3, 4, 3), numbers(2, 2, 2, 3, 1, seed=1)]),
    "conv_transpose2d": (
        lambda x, w: x.conv_transpose2d(w, stride=2, padding=1, output_padding=1),
        [numbers(2, 4, 3, 4), numbers(4, 2, 3, 3, seed=1)],
    ),
    "max_pool2d": (method("max_pool2d", (3, 2), 2, padding=(1, 1, 1, 1)), [numbers(1, 2, 6, 5)]),
    "max_pool2d ceil": (method("max_pool2d", 2, ceil_mode=True), [numbers(1, 2, 5, 5)]),
    "avg_pool2d": (method("avg_pool2d", 3, 1, padding=1, count_include_pad=False), [numbers(1, 2, 5, 5)]),
    "interpolate": (method("interpolate", (7, 3)), [numbers(1, 1, 4, 5)]),
    "std of a strided slice": (lambda a: a[1::3, ::-2].std(1) * a.pow(0).sum(), [numbers(7, 5)]),
    "logcumsumexp and interpolate": (
        lambda a: a.logcumsumexp(2).interpolate(11) * a.interpolate(11), [numbers(2, 3, 7) * 9],
    ),
    "scatter prod": (
        lambda a, b: a.scatter_reduce(1, Tensor([[0, 0], [1, 3], [2, 2]]), b, "prod", include_self=True),
        [numbers(3, 4), numbers(3, 2, seed=1)],
    ),
    "scatter prod with zeros": (
        lambda a, b: a.scatter_reduce(1, Tensor([[0, 0, 0], [1, 3, 1], [2, 2, 3]]), b, "prod"),
        [np.array([[0, 2, 3, 0, 1.0], [1, 0, 0, 2, 0], [2, 5, 3, 0, 7], [0, 1, 2, 3, 4]]),
         np.array([[0, 3, 2.0], [0, 0, 2], [0, 4, 0]])],
    ),
    "scatter prod of one axis": (
        lambda a, b: a.scatter_reduce(0, Tensor([1] * 11), b, "prod", include_self=False),
        [numbers(3), numbers(11, seed=1)],
    ),
    "gradient of scatter prod": (
        lambda a, b: a.scatter_reduce(0, Tensor([0, 0, 1, 0, 1]), b, "prod").sin().sum().gradient(b)[0],
        [np.array([2.0, 0.0]), np.array([0.0, 3.0, 0.0, 0.0, 5.0])],
    ),
    "batchnorm": (
        lambda x, w, b, m, s: x.batchnorm(w, b, m, s),
        [numbers(2, 3, 4), numbers(3, seed=1), numbers(3, seed=2), numbers(3, seed=3), numbers(3, seed=4, low=0.3)],
    ),
    "attention": (
        lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True),
        [numbers(2, 2, 3, 4), numbers(2, 2, 3, 4, seed=1), numbers(2, 2, 3, 4, seed=2)],
    ),
    "attention of groups": (
        lambda q, k, v: q.scaled_dot_product_attention(k, v, enable_gqa=True),
        [numbers(2, 4, 3, 4), numbers(2, 2, 5, 4, seed=1), numbers(2, 2, 5, 3, seed=2)],
    ),
    "cross_entropy": (lambda a: a.cross_entropy(Tensor([0, 2, 1]), label_smoothing=0.1), [numbers(3, 4)]),
    "cross_entropy of probabilities": (lambda a: a.cross_entropy(Tensor(np.eye(3, 4))), [numbers(3, 4)]),
    "sparse_categorical_crossentropy": (
        lambda a: a.sparse_categorical_crossentropy(Tensor([0, -1, 1]), label_smoothing=0.1), [numbers(3, 4)],
    ),
    "nll_loss": (lambda a: a.nll_loss(Tensor([0, 2, 1]), weight=Tensor([1.0, 2, 3, 4])), [numbers(3, 4)]),
    "binary_crossentropy": (
        lambda a: a.sigmoid().binary_crossentropy(Tensor([0.0, 1, 1], dtype="float64")), [numbers(3)],
    ),
    "binary_crossentropy_logits": (
        lambda a: a.binary_crossentropy_logits(Tensor([0.0, 1, 1], dtype="float64"), pos_weight=Tensor([2.0])),
        [numbers(3)],
    ),
}  # fmt: skip


@pytest.mark.drawn(60)
@pytest.mark.parametrize("name", CASES)
def test_operations(name: str) -> None:
    check(*CASES[name])


def check_vmap(function: Callable[..., Tensor], arrays: list[Array]) -> None:
    """``vmap`` against a loop: the values, and their gradients."""
    many = [np.stack([array * factor for factor in (1, 0.95, 0.9)]) for array in arrays]
    tensors = [Tensor(array, requires_grad=True) for array in many]
    out = vmap(function)(*tensors)
    each = [function(*[tensor[i] for tensor in tensors]) for i in range(3)]
    loop = each[0].stack(*each[1:])
    assert out.dtype is loop.dtype
    np.testing.assert_allclose(out.numpy(), loop.numpy(), rtol=1e-9, atol=1e-12)
    weights = Tensor(np.random.default_rng(3).standard_normal(tuple(int(str(d)) for d in loop.shape)))
    found, wanted = [(one * weights).sum().gradient(*tensors, materialize_grads=True) for one in (out, loop)]
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-7, atol=1e-10)


@pytest.mark.drawn(50)
@pytest.mark.parametrize("name", [*UNARY, *POSITIVE, *CASES])
def test_vmap_is_a_loop(name: str) -> None:
    if name in CASES:
        check_vmap(*CASES[name])
    else:
        function = (lambda x: x.cummax()[0]) if name == "cummax" else method(name)
        check_vmap(function, [numbers(3, 4, low=0.2 if name in POSITIVE else None)])


def written(a: Tensor, b: Tensor) -> Tensor:
    c = Tensor(np.zeros((4, 5)))
    c[1:3, ::2] = b
    c[3] = a[0]
    return c * a


@pytest.mark.parametrize("name", [*UNARY, *POSITIVE, *CASES])
def test_where_there_are_no_elements_there_are_no_slopes(name: str) -> None:
    """Each axis of each operand in turn has no element: it is said that it must, or gradients have shapes as well."""
    function, arrays = CASES.get(name, (method(name), [numbers(3, 4)]))
    for axis in range(max(array.ndim for array in arrays)):
        tensors = [Tensor(array.take([], axis) if axis < array.ndim else array, requires_grad=True) for array in arrays]
        try:
            result = function(*tensors)
            out = result[0] if isinstance(result, tuple) else result
            out.numpy()
        except (ValueError, IndexError):
            continue
        for tensor, slope in zip(tensors, out.sum().gradient(*tensors, materialize_grads=True), strict=True):
            assert slope.numpy().shape == tensor.shape


def test_setitem() -> None:
    check(written, [numbers(4, 5), numbers(2, 3, seed=1)])
    check_vmap(written, [numbers(4, 5), numbers(2, 3, seed=1)])


COMPILED = ["matmul", "conv2d", "conv2d groups", "max_pool2d", "cumsum", "pow", "einsum", "attention", "cat", "slices"]


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_gradients_are_those_of_double_precision(name: str) -> None:
    if "CPU" not in Device.available():
        pytest.skip("the device CPU is not available here")
    function, arrays = CASES[name]
    exact = [Tensor(array, requires_grad=True) for array in arrays]
    function(*exact).square().sum().backward()
    with Context(DEV="CPU"):
        compiled = [Tensor(array.astype(np.float32), requires_grad=True) for array in arrays]
        function(*compiled).square().sum().backward()
        for single, double in zip(compiled, exact, strict=True):
            assert single.grad is not None and double.grad is not None
            np.testing.assert_allclose(single.grad.numpy(), double.grad.numpy(), rtol=1e-3, atol=1e-4)


def test_ties_share_the_gradient() -> None:
    x = Tensor([1.0, 3.0, 3.0, 2.0], requires_grad=True)
    x.max().backward()
    assert x.grad is not None and x.grad.tolist() == [0.0, 0.5, 0.5, 0.0]
    a, b = Tensor([2.0], requires_grad=True), Tensor([2.0], requires_grad=True)
    a.maximum(b).backward()
    assert a.grad is not None and b.grad is not None and a.grad.tolist() == b.grad.tolist() == [0.5]
    r = Tensor([0.0], requires_grad=True)
    r.relu().backward()
    assert r.grad is not None and r.grad.tolist() == [0.0]


def test_rounding_has_a_gradient_of_zero() -> None:
    x = Tensor([1.4, -2.6], requires_grad=True)
    (x.trunc() + x.floor() + x.ceil() + x.round()).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0.0, 0.0]


def test_half_precision_gradients_have_the_dtype_of_the_leaf() -> None:
    w = Tensor.ones(300, 2, dtype="float16", requires_grad=True)
    (Tensor.ones(4, 300, dtype="float16") @ w).sum().backward()
    assert w.grad is not None and w.grad.dtype is w.dtype and set(w.grad.flatten().tolist()) == {4.0}
    x = Tensor.ones(1, dtype="float16", requires_grad=True)
    x.expand(5000).sum().backward()  # 5000 is beyond the whole numbers of float16: it is added up in float32
    assert x.grad is not None and x.grad.item() == 5000.0


def test_the_gradient_of_a_running_maximum_goes_to_the_last_of_equals() -> None:
    x = Tensor([3.0, 1.0, 3.0, 5.0, 2.0], requires_grad=True)
    (x.cummax()[0] * Tensor([1.0, 2.0, 4.0, 8.0, 16.0])).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3.0, 0.0, 4.0, 24.0, 0.0]
    rng = np.random.default_rng(7)
    for shape, axis in (((17, 531), 1), ((531, 17), 0), ((3, 1, 2), 1)):
        data, weight = rng.integers(0, 9, shape).astype(np.float32), rng.random(shape).astype(np.float32)
        x = Tensor(data, requires_grad=True)
        values, at = x.cummax(axis)
        (values * Tensor(weight)).sum().backward()
        want, found_at = np.zeros(shape), at.numpy()
        for place in np.ndindex(*shape):
            to = list(place)
            to[axis] = int(found_at[place])
            want[tuple(to)] += weight[place]
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-5)
        plain = Tensor(data)  # of which nobody said that it wants a gradient
        found = (plain.cummax(axis)[0] * Tensor(weight)).sum().gradient(plain)[0]
        np.testing.assert_allclose(found.numpy(), want, rtol=1e-5)
