"""``tinytg.autograd``: gradients of what was computed and of functions, by the names of ``torch.autograd``."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinytg import Tensor, TinyJit, autograd
from tinytg.autograd import functional

SEED = int(os.environ.get("AUTOGRAD_SEED", "20261130"))
SEEDS = random.Random(SEED).sample(range(1_000_000), 4)


class Drawn:
    """Arrays of shapes drawn at random, and the derivatives of ``tanh(a @ b)`` by hand."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.n, self.m = (int(size) for size in rng.choice([1, 2, 3, 5, 7, 8], 2))
        self.a, self.b, self.w = (rng.standard_normal(s) for s in ((self.n, self.m), self.m, self.n))
        self.v = rng.standard_normal(self.m)
        self.slope = 1 - np.tanh(self.a @ self.b) ** 2
        self.bend = -2 * np.tanh(self.a @ self.b) * self.slope

    def tensors(self, requires_grad: bool | None = True) -> tuple[Tensor, Tensor, Tensor]:
        a, b, w = (Tensor(x, requires_grad=requires_grad) for x in (self.a, self.b, self.w))
        return a, b, w


def close(found: Any, wanted: Any) -> None:
    assert isinstance(found, Tensor)
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_grad_sums_over_outputs_and_leaves_grad_as_it_is(seed: int) -> None:
    d = Drawn(seed)
    a, b, w = d.tensors()
    outputs = ((a @ b).tanh(), (b**2).sum())
    by_a, by_b, by_w = autograd.grad(outputs, (a, b, w), (w, None), allow_unused=True)
    close(by_a, np.outer(d.w * d.slope, d.b))
    close(by_b, d.a.T @ (d.w * d.slope) + 2 * d.b)
    assert by_w is None and (a.grad, b.grad, w.grad) == (None, None, None)
    zeros = autograd.grad((b**2).sum(), [w, b], materialize_grads=True)
    outputs = ((a @ b).tanh(), (b**2).sum())
    (by_a,) = autograd.grad(outputs, a, (w, None), create_graph=True)
    close(autograd.grad(by_a.sum(), w)[0], d.slope * d.b.sum())  # it depends on its weights
    close(zeros[0], np.zeros(d.n))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_gradient_penalty_reaches_weights(seed: int) -> None:
    d = Drawn(seed)
    a, b, _ = d.tensors()
    (slope,) = autograd.grad((a @ b).tanh().sum(), a, create_graph=True)
    assert slope.requires_grad
    (slope**2).sum().backward()  # sum of slope_i^2 * |b|^2
    square = (d.b**2).sum()
    close(b.grad, 2 * d.b * (d.slope**2).sum() + square * (d.a.T @ (2 * d.slope * d.bend)))
    a, b, _ = d.tensors()
    assert not autograd.grad((a @ b).tanh().sum(), a)[0].requires_grad


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("create_graph", [False, True])
def test_many_weights_at_once(seed: int, create_graph: bool) -> None:
    d = Drawn(seed)
    a, b, w = d.tensors()
    weights = Tensor(np.eye(d.n))
    rows, none = autograd.grad(
        (a @ b).tanh(), (b, w), weights, is_grads_batched=True, create_graph=create_graph, allow_unused=True
    )
    close(rows, d.a * d.slope[:, None])
    assert none is None and bool(rows.requires_grad) is create_graph
    if create_graph:
        close(autograd.grad(rows.sum(), b)[0], d.a.T @ (d.bend * d.a.sum(1)))


@pytest.mark.parametrize("seed", SEEDS)
def test_backward_adds_to_grad_of_leaves_or_of_inputs(seed: int) -> None:
    d = Drawn(seed)
    for inputs in (False, True):
        a, b, w = d.tensors()
        autograd.backward(b.sum())
        autograd.backward([(a @ b).tanh(), (b**2).sum()], [w.detach(), None], inputs=b if inputs else None)
        close(b.grad, d.a.T @ (d.w * d.slope) + 2 * d.b + 1)
        assert (a.grad is None) is inputs
    x = Tensor(2.0, requires_grad=True)
    autograd.backward(x**3, create_graph=True, inputs=[x])
    assert x.grad is not None and autograd.grad(x.grad, x)[0].item() == 12


@pytest.mark.parametrize("seed", SEEDS)
def test_functional_returns_what_pytorch_does(seed: int) -> None:
    d = Drawn(seed)
    a, b, w = d.tensors(None)
    f: Callable[..., Any] = lambda a, b: ((a @ b).tanh(), b.square())  # noqa: E731
    number: Callable[..., Any] = lambda b: (a @ b).tanh().sum().reshape(1)  # noqa: E731
    by_a = np.einsum("i,ik,j->ikj", d.slope, np.eye(d.n), d.b)
    by_b, hessian = d.a * d.slope[:, None], d.a.T @ (d.bend[:, None] * d.a)
    for strategy in ("reverse-mode", "forward-mode"):
        (one, two), (zeros, three) = functional.jacobian(f, (a, b), strategy=strategy)
        close(one, by_a)
        close(two, by_b)
        close(zeros, np.zeros((d.m, d.n, d.m)))
        close(three, np.diag(2 * d.b))
        close(functional.jacobian(lambda b: (a @ b).tanh(), b, strategy=strategy), by_b)
        close(functional.hessian(number, b, outer_jacobian_strategy=strategy), hessian)
        ((nested,),) = functional.hessian(number, (b,), outer_jacobian_strategy=strategy)
        close(nested, hessian)
    v = Tensor(d.v)
    (value, _), (one, two) = functional.vjp(f, (a, b), (w, v))
    close(value, np.tanh(d.a @ d.b))
    close(one, np.outer(d.w * d.slope, d.b))
    close(two, by_b.T @ d.w + 2 * d.b * d.v)
    _, (one, two) = functional.jvp(f, (a, b), (a * 0, v))
    close(one, by_b @ d.v)
    close(two, 2 * d.b * d.v)
    for product in (functional.vhp, functional.hvp):
        value, row = product(number, b, v)
        close(value.reshape(()), np.tanh(d.a @ d.b).sum())
        close(row, hessian @ d.v)
    close(functional.vjp(number, b)[1], d.slope @ d.a)


def test_what_functional_returns_can_be_differentiated_if_asked() -> None:
    x = Tensor([1.0, 2.0], dtype="float64", requires_grad=True)
    ones = Tensor.ones(2, dtype="float64")
    cubes: Callable[..., Any] = lambda x: x**3  # noqa: E731
    fourth: Callable[..., Any] = lambda x: (x**4).sum()  # noqa: E731
    wanted: list[tuple[Callable[..., Any], tuple[Any, ...], list[float]]] = [
        (functional.jacobian, (cubes, x), [6, 12]), (functional.hessian, (fourth, x), [24, 48]),
        (functional.vjp, (cubes, x, ones), [6, 12]), (functional.jvp, (cubes, x, ones), [6, 12]),
        (functional.vhp, (fourth, x, ones), [24, 48]), (functional.hvp, (fourth, x, ones), [24, 48]),
    ]  # fmt: skip
    for function, args, slope in wanted:
        for create_graph in (False, True):
            found = function(*args, create_graph=create_graph)
            found = found[1] if isinstance(found, tuple) else found
            assert bool(found.requires_grad) is create_graph, function
            if create_graph:
                assert autograd.grad(found.sum(), x)[0].tolist() == slope, function


def test_complex_gradients_are_conjugate_as_pytorchs() -> None:
    z = Tensor([1 + 2j, -0.5j], requires_grad=True)
    weight = Tensor([2 - 1j, 1j])
    (slope,) = autograd.grad(z * z, z, weight, create_graph=True)
    wanted = weight.numpy() * np.conj(2 * z.numpy())
    np.testing.assert_allclose(slope.numpy(), wanted, rtol=1e-6)
    autograd.backward(z * z, weight, inputs=z)
    assert z.grad is not None
    np.testing.assert_allclose(z.grad.numpy(), wanted, rtol=1e-6)
    (again,) = autograd.grad((slope.real**2 + slope.imag**2).sum(), z)  # of |2 w z|^2
    np.testing.assert_allclose(again.numpy(), 8 * abs(weight.numpy()) ** 2 * z.numpy(), rtol=1e-5)


def test_in_a_recorded_step() -> None:
    w = Tensor([0.5, -1.0, 2.0], requires_grad=True)

    @TinyJit
    def step(x: Tensor) -> Tensor:
        (slope,) = autograd.grad((x * w).sin().sum(), x, create_graph=True)
        (out,) = autograd.grad(slope.square().sum(), w)
        return out.realize()

    for k in range(4):
        x = np.arange(3) * 0.3 + k
        found = step(Tensor(x.astype(np.float32), requires_grad=True).realize())
        v = np.array([0.5, -1.0, 2.0])
        wanted = 2 * np.cos(x * v) * v * (np.cos(x * v) - x * v * np.sin(x * v))
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_only_what_a_gradient_went_through_is_freed() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    w = Tensor([3.0, 4.0], requires_grad=True)
    inner, other = x.exp(), w.exp()
    loss = (inner.square() + other.square()).sum()
    (slope,) = autograd.grad(loss, inner, retain_graph=True)
    (slope,) = autograd.grad(loss, inner)
    autograd.backward([inner, other.sum()], [slope, None])  # what is before `inner` is there, and what is beside
    assert x.grad is not None and w.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp([2.0, 4.0]), rtol=1e-5)
    with pytest.raises(RuntimeError, match="freed by an earlier"):
        autograd.grad(loss, x)


FREEING: dict[str, Callable[[Tensor], Any]] = {
    "backward": lambda root: root.backward(),
    "backward create_graph": lambda root: root.backward(retain_graph=False, create_graph=True),
    "autograd.backward": lambda root: autograd.backward([root, root.square()]),
}
ASKING: dict[str, Callable[[Tensor, Tensor], Tensor | None]] = {
    "gradient": lambda root, at: root.gradient(at)[0],
    "materialized": lambda root, at: root.gradient(at, materialize_grads=True)[0],
    "grad": lambda root, at: autograd.grad(root, at, retain_graph=True)[0],
    "zeros": lambda root, at: autograd.grad(root, at, retain_graph=True, materialize_grads=True)[0],
    "None": lambda root, at: autograd.grad([root, root * 0], at, retain_graph=True, allow_unused=True)[0],
    "create_graph": lambda root, at: autograd.grad(root, at, create_graph=True)[0],
    "inputs": lambda root, at: added_to(root, at),
}


def added_to(root: Tensor, at: Tensor) -> Tensor | None:
    autograd.backward(root, retain_graph=True, inputs=at)
    return at.grad


@pytest.mark.parametrize("asking", ASKING)
@pytest.mark.parametrize("freeing", FREEING)
@pytest.mark.parametrize("seed", SEEDS[:1])
def test_what_was_freed_is_an_error_on_the_way_and_nothing_beside_it(seed: int, freeing: str, asking: str) -> None:
    rng = random.Random(f"{seed} {freeing} {asking}")
    leaves = [Tensor([rng.uniform(0.5, 1.5) for _ in range(3)], requires_grad=True) for _ in range(5)]
    behind = [rng.random() < 0.5 for _ in leaves]
    behind[rng.randrange(5)] = True
    after = rng.randrange(5)
    state = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    for number, (leaf, is_behind) in enumerate(zip(leaves, behind, strict=True)):
        state = (state * leaf).tanh() if is_behind else state
        if number == after and state._ctx is not None:
            FREEING[freeing](state.sum())
    if any(behind[after + 1:]):  # what came later is freed in a second step, on what was freed
        autograd.grad(state.sum(), [leaf for number, leaf in enumerate(leaves) if behind[number] and number > after])
    for leaf in leaves:
        leaf.grad = None
    kept = state.detach().numpy()
    for leaf, is_behind in zip(leaves, behind, strict=True):
        root = (state * leaf.square()).sum() + sum(one.sum() for one in leaves)
        if is_behind:
            with pytest.raises(RuntimeError, match="freed by an earlier"):
                ASKING[asking](root, leaf)
        else:
            found = ASKING[asking](root, leaf)
            assert found is not None
            np.testing.assert_allclose(found.numpy(), 2 * kept * leaf.detach().numpy() + 1, rtol=1e-5)
    (slope,) = autograd.grad((state**2).sum(), state)  # at what was freed, and no further
    np.testing.assert_allclose(slope.numpy(), 2 * kept, rtol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_weights_and_inputs_written_later_change_no_gradient_of_a_gradient(seed: int) -> None:
    ways: list[Callable[[Tensor], Any]] = [
        lambda w: w.mul_(3), lambda w: w.assign(w * 0), lambda w: w.__setitem__(0, 5.0)
    ]  # fmt: skip
    for write in ways:
        d = Drawn(seed)
        for several in (False, True):
            a, b, w = d.tensors(requires_grad=None)
            root, w = (a @ b).tanh(), w.realize()
            roots, weights = ([root, root], [w, w]) if several else ([root], [w])
            (slope,) = autograd.grad(roots, b, weights, create_graph=True)
            write(w)
            wanted = (d.a * (d.w * d.bend)[:, None]).T @ d.a @ np.ones(d.m)
            close(slope.sum().gradient(b)[0], wanted * (1 + several))


@pytest.mark.parametrize("create_graph", [False, True])
def test_backward_at_inputs_adds_once_and_fills_what_asked_for_it(create_graph: bool) -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = (x * 3).retain_grad()
    z = (y * 2).retain_grad()
    roots, weights = [(z**2).sum(), y], [None, Tensor([1.0, 1.0])]
    autograd.backward(roots, weights, create_graph=create_graph, inputs=(one for one in [x, y, x]))
    assert x.grad is not None and y.grad is not None and z.grad is not None
    assert (x.grad.tolist(), y.grad.tolist(), z.grad.tolist()) == ([75.0, 147.0], [25.0, 49.0], [12.0, 24.0])


@pytest.mark.parametrize("several", [False, True])
def test_a_hook_is_called_once_though_gradients_are_differentiated(several: bool) -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    seen: list[Any] = []
    y = x * 2

    def times_five(grad: Tensor) -> Tensor:
        seen.append(grad.tolist())
        return grad * 5

    handle = y.register_hook(times_five)
    outputs = [y**3, y] if several else [y**3]
    (slope,) = autograd.grad(outputs, x, [Tensor.ones(2)] * len(outputs), create_graph=True)
    handle.remove()
    assert slope.tolist() == [120 + 10 * several, 480 + 10 * several]
    assert autograd.grad(slope.sum(), x)[0].tolist() == [240, 480]
    assert seen == [[12 + several, 48 + several]]


X = Tensor([1.0, 2.0], requires_grad=True)
REFUSES = Tensor([1.0, 2.0], requires_grad=False)
WHOLE = Tensor([1, 2])


def cubes(x: Tensor) -> Tensor:
    return x**3


def fourth(x: Tensor) -> Tensor:
    return (x**4).sum()


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda: autograd.grad(X * 2, X), ValueError, "grad: outputs.0., of shape .2,. and float32, needs grad_out"),
        (lambda: autograd.grad(fourth(X), REFUSES), RuntimeError, "grad: inputs.0., of shape .2,. .* requires no"),
        (lambda: autograd.grad(fourth(X), [X, WHOLE]), RuntimeError, "grad: inputs.1.*int32, requires no gradient"),
        (lambda: autograd.grad(fourth(X), Tensor([1.0])), RuntimeError, "grad: no output depends on inputs.0."),
        (lambda: autograd.grad(fourth(REFUSES), X), RuntimeError, "grad: outputs.0.* depends on nothing"),
        (lambda: autograd.grad(X * 2, X, Tensor.ones(3)), ValueError, "grad: grad_outputs.0. has shape .3,."),
        (lambda: autograd.grad(X * 2, X, Tensor.ones(2), is_grads_batched=True), ValueError, r"grad: .*\(number, "),
        (lambda: autograd.grad(X * 2, X, [None, None]), ValueError, "grad: 1 tensors in outputs, and 2 in grad_out"),
        (lambda: autograd.grad(X * 2, X, Tensor([1j, 2j])), ValueError, "grad: grad_outputs.0. is of complex64"),
        (lambda: autograd.grad(X * 2, 3), TypeError, "grad: inputs is a tensor or a sequence of tensors, got a int"),  # type: ignore[arg-type]
        (lambda: autograd.grad([], X), ValueError, "grad: outputs has no tensor"),
        (lambda: autograd.grad(fourth(X), X, allow_unused=False, materialize_grads=True), ValueError,
         "grad: allow_unused=False with materialize_grads=True"),
        (lambda: autograd.grad(fourth(X), X, create_grph=True), TypeError, "grad.* did you mean 'create_graph'"),  # type: ignore[call-arg]
        (lambda: autograd.backward(X * 2), ValueError, "backward: tensors.0., of shape .2,. .* needs grad_tensors"),
        (lambda: autograd.backward(fourth(X), inputs=[]), ValueError, "backward: inputs has no tensor"),
        (lambda: autograd.backward(fourth(X), inputs=WHOLE), RuntimeError, "backward: inputs.0.* requires no gradient"),
        (lambda: functional.jacobian(lambda x: 3, X), TypeError, "jacobian: .* returns a tensor .* got a int"),
        (lambda: functional.jacobian(cubes, [X]), TypeError, "jacobian: inputs are a tensor or a tuple .* got a list"),  # type: ignore[arg-type]
        (lambda: functional.jacobian(cubes, WHOLE), TypeError, "jacobian: inputs are of floats .* got int32"),
        (lambda: functional.jacobian(cubes, X, strategy="up"), ValueError, "jacobian: strategy is 'reverse-mode'"),
        (lambda: functional.hessian(cubes, X), ValueError, "hessian: cubes returns one real number"),
        (lambda: functional.vjp(cubes, X), ValueError, "vjp: v is to be given"),
        (lambda: functional.vjp(cubes, X, Tensor.ones(3)), ValueError, "vjp: v has shapes"),
        (lambda: functional.jvp(cubes, X), ValueError, "jvp: v is to be given"),
        (lambda: functional.jvp(cubes, X, Tensor.ones(3)), ValueError, "jvp: v has shapes"),
        (lambda: functional.vhp(cubes, X, X), ValueError, "vhp: cubes returns one real number"),
        (lambda: functional.hvp(fourth, X, 3), TypeError, "hvp: v is a tensor or a tuple"),  # type: ignore[arg-type]
        (lambda: autograd.gradcheck(cubes, [3]), ValueError, "gradcheck: no input is a tensor"),
        (lambda: autograd.gradcheck(lambda x: 3, Tensor(1.0, dtype="float64")), TypeError, "gradcheck: .* returns no "),
    ],
)  # fmt: skip
def test_mistakes_are_named(call: Callable[[], Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=r"^autograd\.(functional\.)?" + said):
        call()


@pytest.mark.parametrize("name", functional.__all__)
def test_strict_refuses_what_does_not_depend(name: str) -> None:
    y = Tensor([2.0])
    v = () if name in ("jacobian", "hessian") else ((X, y),) if name in ("jvp", "vhp", "hvp") else (Tensor(1.0),)
    f = getattr(functional, name)
    f(lambda x, y: fourth(x), (X, y), *v)  # zeros
    f(lambda x, y: (x * y).square().sum(), (X, y), *v, strict=True)
    with pytest.raises(RuntimeError, match="strict: result 0 of .* does not depend on argument 1"):
        f(lambda x, y: fourth(x), (X, y), *v, strict=True)


class Wrong(autograd.Function):
    """A cube whose gradient, or second gradient, is off by a factor."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * x * x

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return grads[0] * 3 * x * (x if ctx.factor == 1 else x.detach()) * (ctx.factor or 1), None


def test_gradcheck_finds_wrong_gradients_and_their_gradients() -> None:
    x = Tensor([0.5, -1.0], dtype="float64", requires_grad=True)
    right, wrong, once = (lambda x, f=f: Wrong.apply(x, f) for f in (1, 1.01, 0))
    assert autograd.gradcheck(right, x) and autograd.gradgradcheck(right, x)
    assert not autograd.gradcheck(wrong, (x,), raise_exception=False)
    assert autograd.gradcheck(wrong, (x,), rtol=0.1)
    with pytest.raises(autograd.GradcheckError, match="element 0 of result 0 by element 0 of input 0 is 0.7575"):
        autograd.gradcheck(wrong, x)
    assert autograd.gradcheck(once, x) and not autograd.gradgradcheck(once, x, raise_exception=False)
    with pytest.warns(UserWarning, match="input 0 is of float32"):
        autograd.gradcheck(fourth, X, raise_exception=False)


def test_gradcheck_of_several_of_complex_numbers_and_of_what_refuses() -> None:
    x, n = Tensor([[0.5, -1.0, 2.0]], dtype="float64"), Tensor([2, 3, 1])
    still = Tensor([1.0, 2.0, 3.0], dtype="float64", requires_grad=False)
    assert autograd.gradcheck(lambda x, n, s: (x**n * s, n, (x * s.round()).sum()), (x, n, still))
    z = Tensor([0.5 + 1j, -1.0], dtype="complex128", requires_grad=True)
    assert autograd.gradcheck(lambda z: (z * z.conj() + z.sin(), z.abs()), z)
    assert autograd.gradgradcheck(lambda z: z * z.sin(), z)
    assert autograd.gradgradcheck(lambda x: x.exp(), x, Tensor([[1.0, math.pi, 0.0]], dtype="float64"))


def test_gradients_that_differ_from_time_to_time_are_found() -> None:
    x, factors = Tensor([1.0], dtype="float64", requires_grad=True), iter(range(100))

    class Changing(autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 1

        @staticmethod
        def backward(ctx: Any, *grads: Tensor) -> Tensor:
            return grads[0] * (1 + 1e-9 * next(factors))

    with pytest.raises(autograd.GradcheckError, match="when it is taken again"):
        autograd.gradcheck(Changing.apply, x)
    assert autograd.gradcheck(Changing.apply, x, nondet_tol=1e-5)


def test_gradgradcheck_of_what_is_written_in_place() -> None:
    def written(x: Tensor) -> Tensor:
        out = x * 1
        out[0] = out[1] * 2
        out *= x
        return out

    x = Tensor([[0.3, -2.0], [1.1, 0.4]], dtype="float64", requires_grad=True)
    assert autograd.gradcheck(written, x) and autograd.gradgradcheck(written, x)
