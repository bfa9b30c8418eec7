"""Hooks, gradients in between, modes, and functions with gradients of a person's own."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from tg_frontend import Function, FunctionContext, Tensor, grad, vmap
from tg_frontend.transform.graph import Node, register_multi_grad_hook


def test_a_hook_sees_and_changes_a_gradient() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    seen: list[Any] = []
    handle = y.register_hook(lambda g: seen.append(g.tolist()))
    other = y.register_hook(lambda g: g * 2)
    x.register_hook(lambda g: g + 1)
    (y.square() + y).sum().backward()
    assert seen == [[7.0, 13.0]]  # all of it
    assert x.grad is not None and x.grad.tolist() == [43.0, 79.0]
    assert (x * 1).sum().gradient(x)[0].tolist() == [2.0, 2.0]
    handle.remove()
    handle.remove()
    other.remove()
    assert (x * 3).sum().gradient(x)[0].tolist() == [4.0, 4.0]


def test_a_hook_of_a_gradient_that_is_differentiated() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x**3
    y.register_hook(lambda g: g * x)
    (slope,) = y.sum().gradient(x)
    assert slope.tolist() == [3.0, 24.0]  # 3 x**3
    assert slope.sum().gradient(x)[0].tolist() == [9.0, 36.0]


def test_retained_gradients() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = (x * 3).retain_grad()
    y.sum().gradient(x)
    assert y.grad is None
    y.square().sum().backward()
    assert y.grad is not None and y.grad.tolist() == [6.0, 12.0]
    assert x.retain_grad() is x
    z = (x * 3).retain_grad()
    z.square().sum().backward(create_graph=True)
    assert z.grad is not None and z.grad.sum().gradient(x)[0].tolist() == [6.0, 6.0]


def test_what_hooks_refuse() -> None:
    x = Tensor([1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="register_hook: .* refuses a gradient"):
        x.detach().register_hook(lambda g: g)
    with pytest.raises(RuntimeError, match="retain_grad: .* refuses a gradient"):
        x.detach().retain_grad()
    y = x * 2
    handle = y.register_hook(lambda g: g.reshape(1, 1))
    with pytest.raises(ValueError, match=r"a hook returned a gradient of shape \(1, 1\)"):
        y.sum().gradient(x)
    handle.remove()
    y.register_hook(lambda g: 3)  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match="a hook returned a int"):
        y.sum().gradient(x)


def test_modes() -> None:
    x = Tensor([1.0], requires_grad=True)
    with Tensor.no_grad():
        with Tensor.enable_grad():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
        with Tensor.set_grad_enabled(True):
            assert (x * 2).requires_grad
    with Tensor.set_grad_enabled(False):
        assert not (x * 2).requires_grad


class Waves(Function):
    """A function of two results, one of which is kept."""

    @staticmethod
    def forward(ctx: FunctionContext, x: Tensor, factor: float) -> tuple[Tensor, Tensor]:
        wave = (x * factor).exp()
        ctx.factor = factor  # type: ignore[attr-defined]
        ctx.save_for_backward(wave, x)
        return wave, x * x

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        wave, x = ctx.saved_tensors
        return grads[0] * wave * ctx.factor + grads[1] * x * 2, None  # type: ignore[attr-defined]


class Apart(Waves):
    """The same, with what is kept for the gradient said apart."""

    @staticmethod
    def forward(x: Tensor, factor: float) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        return (x * factor).exp(), x * x

    @staticmethod
    def setup_context(ctx: FunctionContext, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.factor = inputs[1]  # type: ignore[attr-defined]
        ctx.save_for_backward(output[0], inputs[0])


def whole(x: Tensor, kind: type[Function] = Waves) -> Tensor:
    wave, square = kind.apply(x, 2.0)
    return (wave * square).sum()  # type: ignore[no-any-return]


def test_a_function_of_ones_own() -> None:
    array = np.array([0.5, 1.0, -0.3])
    x, e = Tensor(array, requires_grad=True), np.exp(2 * array)
    first, second = e * (2 * array**2 + 2 * array), e * (4 * array**2 + 8 * array + 2)
    whole(x).backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), first)
    np.testing.assert_allclose(grad(lambda x: whole(x, Apart))(Tensor(array)).numpy(), first)
    np.testing.assert_allclose(grad(lambda x: grad(whole)(x).sum())(Tensor(array)).numpy(), second)
    np.testing.assert_allclose(vmap(grad(lambda x: whole(x.reshape(1))))(Tensor(array)).numpy(), first)
    with Tensor.no_grad():
        assert Waves.apply(x, 2.0)[0].requires_grad is False


class Bad(Function):
    """Returns what it is told to."""

    @staticmethod
    def forward(ctx: FunctionContext, x: Tensor, out: Any) -> Any:
        ctx.out = out  # type: ignore[attr-defined]
        return x * 2

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        return ctx.out  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("out", "kind", "message"),
    [
        (None, RuntimeError, "Bad.backward returned 1 gradients; forward was given 2"),
        ((3, None), TypeError, "Bad.backward returned a int for argument 0"),
        ((Tensor([1.0, 2.0, 3.0]), None), RuntimeError, r"returned shape \(3,\) for argument 0, of shape \(2,\)"),
    ],
)
def test_bad_gradients_of_ones_own(out: Any, kind: type[Exception], message: str) -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(kind, match=message):
        Bad.apply(x, out).sum().backward()


def test_what_was_saved_and_overwritten_is_noticed() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = Waves.apply(x, 2.0)[0].sum()
    with Tensor.no_grad():
        x.assign([5.0, 6.0])
    with pytest.raises(RuntimeError, match="written to in place"):
        y.backward()


def _written(name: str, y: Tensor) -> None:
    if name == "mul":
        y.mul_(5)
    elif name == "part":
        y[0] = 7.0
    elif name == "view":
        y[1:].mul_(5)
    else:
        y.copy_(y * 5)


@pytest.mark.parametrize("second", ["mul", "part", "view", "copy"])
@pytest.mark.parametrize("first", ["mul", "part", "view", "copy"])
def test_a_hook_sees_the_gradient_of_the_elements_there_were(first: str, second: str) -> None:
    def gradients(written: bool) -> tuple[list[list[float]], list[float]]:
        """Of the tensor before, between and after two writes, and of the leaf: by writing, or by copies."""
        seen: dict[int, list[float]] = {}

        def kept(step: int, grad: Tensor) -> None:
            seen[step] = grad.tolist()

        a = Tensor([1.0, 2.0, 3.0], requires_grad=True)
        y, total = a * 2, Tensor([0.0, 0.0, 0.0])
        weights = (Tensor([3.0, 1.0, 2.0]), Tensor([1.0, 7.0, 2.0]), Tensor([5.0, 1.0, 4.0]))
        for step, weight in enumerate(weights):
            if step and not written:
                y = y.clone()
            if step:
                _written((first, second)[step - 1], y)
            if not written:
                y = y * 1  # a version of its own
            y.register_hook(partial(kept, step))
            total = total + y * weight
        total.sum().backward()
        assert a.grad is not None
        return [seen[step] for step in range(3)], a.grad.tolist()

    assert gradients(True) == gradients(False)


def test_a_hook_that_changes_a_gradient_before_a_write() -> None:
    a = Tensor([1.0, 2.0], requires_grad=True)
    y = a * 2
    handle, other = y.register_hook(lambda grad: grad * 10), y.register_hook(lambda grad: grad * 0)
    t = y * 3
    y.mul_(5)
    other.remove()
    (y.sum() + t.sum()).backward()
    assert a.grad is not None and a.grad.tolist() == [160.0, 160.0]
    handle.remove()


def test_a_kept_gradient_is_that_of_the_newest_elements() -> None:
    a = Tensor([1.0, 2.0], requires_grad=True)
    y = (a * 2).retain_grad()
    y.mul_(3)
    y.sum().backward()
    assert y.grad is not None and y.grad.tolist() == [1.0, 1.0]


# *** complex numbers: a hook sees dL/dRe + i dL/dIm, all of it ***

Z = np.array([[1.0 + 2.0j, 3.0 - 1.0j]])


def test_a_hook_of_a_complex_tensor_sees_and_changes_a_gradient() -> None:
    z = Tensor(Z, requires_grad=True)
    w = z * (1 + 2j)
    seen: list[Any] = []

    def times_i(grad: Tensor) -> Tensor:
        seen.append(grad.numpy())
        return grad * 1j

    handle = w.register_hook(times_i)
    w.retain_grad()
    z.register_hook(lambda grad: seen.append(grad.numpy()))
    (w * w).imag.sum().backward(retain_graph=True)
    of_w = (2j * Z.conj() * (1 - 2j)) * 1j
    assert w.grad is not None and z.grad is not None
    np.testing.assert_allclose(seen[0], of_w / 1j)
    np.testing.assert_allclose(w.grad.numpy(), of_w)
    np.testing.assert_allclose(seen[1], of_w * (1 - 2j))
    np.testing.assert_allclose(z.grad.numpy(), of_w * (1 - 2j))
    seen.clear()
    handle.remove()
    handle.remove()
    (w.real.sum() + w.imag.sum()).backward()
    assert len(seen) == 1


@pytest.mark.parametrize("part", ["real", "imag"])
def test_a_part_that_no_gradient_reaches_gets_what_a_hook_gives_it(part: str) -> None:
    """Also where nothing was computed from it, and it is all that leads to a leaf."""
    x = Tensor([1.0, 2.0], requires_grad=True)
    w = Tensor.complex(x, x.detach() * 3) if part == "imag" else Tensor.complex(x.detach() * 3, x)
    w.register_hook(lambda grad: grad * 1j)
    getattr(w, part).sum().backward(retain_graph=True)
    assert x.grad is not None and x.grad.tolist() == ([-1.0, -1.0] if part == "imag" else [1.0, 1.0])
    (again,) = getattr(w * 2, part).sum().gradient(x)
    assert again.tolist() == ([-2.0, -2.0] if part == "imag" else [2.0, 2.0])
    z = Tensor(Z, requires_grad=True)
    z.register_hook(lambda grad: grad * (1 + 1j))
    getattr(z, part).sum().backward()
    assert z.grad is not None
    np.testing.assert_allclose(z.grad.numpy(), np.full((1, 2), (1 + 1j) * (1j if part == "imag" else 1)))


def test_a_number_has_a_gradient_where_it_is_a_part() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    for z in (x + 3j, x * (1 + 0j) + 3j, Tensor.complex(x, Tensor([3.0, 3.0]))):
        (slope,) = (z.abs() ** 2).sum().gradient(z)
        np.testing.assert_allclose(slope.numpy(), 2 * z.numpy())
        z.retain_grad()
        (z.abs() ** 2).sum().backward()
        assert z.grad is not None
        np.testing.assert_allclose(z.grad.numpy(), 2 * z.numpy())
    written = Tensor(Z.copy())
    written[0, 0] = x[1]
    written.retain_grad()
    (written.abs() ** 2).sum().backward()
    assert written.grad is not None
    np.testing.assert_allclose(written.grad.numpy(), 2 * written.numpy())
    with Tensor.no_grad():
        data = (x * 2) * (1 + 1j)
    data.reshape(-1).zero_()  # views stay views
    assert not data.numpy().any()


def test_hooks_of_complex_tensors_stay_with_what_was_written() -> None:
    z = Tensor(Z, requires_grad=True)
    w, seen = z * 2, list[Any]()
    w.register_hook(lambda grad: seen.append(grad.numpy()))
    setattr(w, "imag", w.real * 3)  # noqa: B010  # typed as real tensors have it
    w.register_hook(lambda grad: grad * 2)
    w.real.sum().backward(retain_graph=True)
    np.testing.assert_allclose(seen.pop(), np.full((1, 2), 2 + 0j))
    w.imag.sum().backward()
    np.testing.assert_allclose(seen.pop(), np.full((1, 2), 6 + 0j))
    v = z * 2
    v.register_hook(lambda grad: None)
    v.real.mul_(v.imag)
    v.register_hook(lambda grad: None)
    with pytest.raises(RuntimeError, match="parts of a complex tensor .* with a hook were computed from one another"):
        (v * v).real.sum().backward()


def test_a_hook_after_both_parts_of_a_leaf_have_their_gradients() -> None:
    z, seen = Tensor(Z, requires_grad=True), list[Any]()

    def step(leaf: Tensor) -> None:
        assert leaf is z and leaf.grad is not None
        seen.append(leaf.grad.numpy())
        leaf.grad = None

    handle = z.register_post_accumulate_grad_hook(step)
    z.real.sum().backward()
    (z * z).imag.sum().backward()
    (z * 1j).real.sum().backward(create_graph=True)
    np.testing.assert_allclose(seen[0], np.ones((1, 2)))
    np.testing.assert_allclose(seen[1], 2j * Z.conj())
    np.testing.assert_allclose(seen[2], np.full((1, 2), -1j))
    handle.remove()
    z.imag.sum().backward()
    assert len(seen) == 3 and z.grad is not None
    first = z.grad
    z.real.sum().backward()
    assert first.numpy().tolist() == [[1 + 1j, 1 + 1j]]  # added to in place, both parts


def test_what_hooks_of_complex_tensors_refuse() -> None:
    z = Tensor(Z, requires_grad=True)
    for name in ("register_hook", "register_post_accumulate_grad_hook"):
        with pytest.raises(TypeError, match=f"{name}: a function of"):
            getattr(z, name)(3)
        with pytest.raises(RuntimeError, match=f"{name}: a "):
            getattr(z.detach(), name)(print)
    with pytest.raises(RuntimeError, match=r"register_post_accumulate_grad_hook: a leaf that may"):
        (z * 2).register_post_accumulate_grad_hook(print)
    handle = z.register_hook(lambda grad: grad.real)
    with pytest.raises(TypeError, match="a hook returned a tensor of float64; it returns a tensor of complex128"):
        z.real.sum().backward()
    handle.remove()
    z.register_hook(lambda grad: grad.reshape(-1))
    with pytest.raises(ValueError, match=r"a hook returned a gradient of shape \(2,\)"):
        z.real.sum().backward()
    with pytest.raises(ValueError, match=r"grad: one of shape \(2,\), complex128"):
        z.grad = Tensor(Z[0])


def test_gradients_of_gradients_and_of_batches_pass_hooks_of_complex_tensors() -> None:
    z = Tensor(Z, requires_grad=True)
    w = z * z
    w.register_hook(lambda grad: grad * z)  # dL/dw is 1 everywhere: the gradient is z * 2 * conj(z)
    (slope,) = w.real.sum().gradient(z)
    np.testing.assert_allclose(slope.numpy(), 2 * np.abs(Z) ** 2)
    np.testing.assert_allclose(slope.real.sum().gradient(z)[0].numpy(), 4 * Z)

    def turned(z: Tensor) -> Tensor:
        w = z * 2
        w.register_hook(lambda grad: grad * 1j)
        return (w * w).real.sum()

    np.testing.assert_allclose(vmap(grad(turned))(z).numpy(), 8j * Z.conj())


# *** several tensors, and the graph ***


def test_a_hook_of_several_tensors() -> None:
    x, z, u = Tensor([1.0, 2.0], requires_grad=True), Tensor(Z[0], requires_grad=True), Tensor(3.0, requires_grad=True)
    w, seen, firsts = x * z, list[Any](), list[Any]()
    all_of, first_of = [x, w, u], [x, w]
    handles = [
        register_multi_grad_hook(all_of, seen.append), register_multi_grad_hook(first_of, firsts.append, mode="any")
    ]  # fmt: skip
    w.real.sum().backward()
    assert [one if one is None else one.tolist() for one in seen.pop()] == [Z[0].real.tolist(), [1, 1], None]
    assert [one.tolist() for one in firsts] == [[1, 1]]
    (u * 2).backward()
    assert seen.pop()[:2] == [None, None] and len(firsts) == 1
    with pytest.raises(RuntimeError, match="freed"):
        w.real.sum().backward()
    firsts.pop()
    (x * 1).sum().backward()  # after one that failed
    assert len(seen) == 1 and seen.pop()[0].tolist() == [1, 1]
    for handle in handles:
        handle.remove()
    (x * u).sum().backward()
    assert not seen and len(firsts) == 2


def test_what_a_hook_of_several_tensors_refuses() -> None:
    x = Tensor([1.0], requires_grad=True)
    for args, kind, message in (
        (([x], print, "some"), ValueError, "mode is 'all' or 'any'"), (([], print, "all"), ValueError, "there is no"),
        (([x], 3, "all"), TypeError, "a function of gradients"), (([x, 3], print, "all"), TypeError, r"tensors\[1\]"),
        (([x, x.detach()], print, "all"), RuntimeError, r"tensors\[1\], of shape \(1,\), refuses"),
    ):  # fmt: skip
        tensors, function, mode = args
        with pytest.raises(kind, match=f"register_multi_grad_hook: {message}"):
            register_multi_grad_hook(tensors, function, mode=mode)  # type: ignore[arg-type]


def test_the_graph_by_its_nodes() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = (x * 2).sum()
    assert x.grad_fn is None and y.grad_fn is not None and y.grad_fn == y.grad_fn and hash(y.grad_fn) == hash(y.grad_fn)
    last: Any = y.grad_fn
    names = [last.name()]
    while last.next_functions:
        last = last.next_functions[0][0]
        names.append(last.name())
    assert {"SumBackward", "MulBackward"} <= set(names) and names[-1] == "AccumulateGrad"
    assert last.variable is x and isinstance(last, Node) and last != y.grad_fn and repr(last) == "<AccumulateGrad>"
    z = Tensor(Z, requires_grad=True)
    assert z.grad_fn is None and isinstance((z * 2).grad_fn, Node)


@pytest.mark.parametrize("value", [[1.0, 2.0], Z[0]])
@pytest.mark.parametrize("leaf", [True, False])
def test_a_hook_that_a_hook_registers_sees_gradients_from_the_next_time_on(value: Any, leaf: bool) -> None:
    x, calls = Tensor(value, requires_grad=True), list[int]()
    y = x if leaf else x * 1

    def first(grad: Tensor) -> None:
        calls.append(1)
        y.register_hook(lambda grad: calls.append(2))

    handle = y.register_hook(first)
    (y * y).real.sum().backward(retain_graph=True)
    assert calls == [1]
    handle.remove()
    (y * y).real.sum().backward()
    assert calls == [1, 2]
