"""Functions made of functions: derivatives in any nesting, beside one another and beside torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import (
    Tensor,
    TinyJit,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    nn,
    value_and_grad,
    vjp,
    vmap,
)

X = np.array([0.3, 0.7, -1.2])
SLOPES = 3 * X**2
Function = Callable[..., Any]


def cube(x: Tensor) -> Tensor:
    return x.pow(3).sum()


def mixed(x: Tensor) -> Tensor:
    return (x * x.flip(0)).sin() * x.sum()


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found.numpy(), np.asarray(wanted), rtol=1e-8, atol=1e-10)


def test_first_order() -> None:
    x = Tensor(X)
    close(grad(cube)(x), SLOPES)
    value, slope = value_and_grad(cube)(x)
    close(value, (X**3).sum())
    close(slope, SLOPES)
    value, gradients = vjp(cube, x)
    close(gradients(Tensor(2.0))[0], 2 * SLOPES)
    close(gradients(Tensor(3.0))[0], 3 * SLOPES)
    close(jvp(cube, (x,), (x,))[1], (SLOPES * X).sum())
    assert all(t.requires_grad is None for t in (value, slope, grad(cube)(x), jvp(cube, (x,), (x,))[1]))


SECOND: dict[str, tuple[Function, Any]] = {
    "grad of grad": (lambda x: grad(lambda y: grad(cube)(y).sum())(x), 6 * X),
    "grad of jvp": (lambda x: grad(lambda y: jvp(cube, (y,), (Tensor(X),))[1])(x), 6 * X * X),
    "jvp of grad": (lambda x: jvp(grad(cube), (x,), (x,))[1], 6 * X * X),
    "jvp of jvp": (lambda x: jvp(lambda y: jvp(cube, (y,), (Tensor(X),))[1], (x,), (x,))[1], (6 * X**3).sum()),
    "grad of vjp": (lambda x: grad(lambda y: vjp(cube, y)[1](Tensor(1.0))[0].sum())(x), 6 * X),
    "jvp of vjp": (lambda x: jvp(lambda y: vjp(cube, y)[1](Tensor(1.0))[0], (x,), (x,))[1], 6 * X * X),
    "vjp of grad": (lambda x: vjp(grad(cube), x)[1](x)[0], 6 * X * X),
    "vmap of grad of grad": (lambda x: vmap(grad(grad(lambda y: y**3)))(x), 6 * X),
    "grad of vmap of grad": (lambda x: grad(lambda y: vmap(grad(lambda z: z**3))(y).sum())(x), 6 * X),
    "grad of grad of vmap": (
        lambda x: grad(lambda y: grad(lambda z: vmap(lambda w: w**3)(z).sum())(y).sum())(x), 6 * X,
    ),
    "hessian": (lambda x: hessian(cube)(x), np.diag(6 * X)),
    "hvp": (lambda x: hvp(cube, (x,), (x,))[1][0], 6 * X * X),
    "jacobian of jacobian": (lambda x: jacobian(jacobian(cube))(x), np.diag(6 * X)),
    "three times": (lambda x: grad(lambda y: grad(lambda z: grad(cube)(z).sum())(y).sum())(x), [6.0] * 3),
}  # fmt: skip


@pytest.mark.parametrize("name", SECOND)
def test_nested(name: str) -> None:
    function, wanted = SECOND[name]
    found = function(Tensor(X))
    assert found.requires_grad is None
    close(found, wanted)
    with Tensor.no_grad():
        found = function(Tensor(X))
        close(found, wanted)
        assert found.requires_grad is False


@pytest.mark.parametrize("name", SECOND)
def test_nested_in_a_record(name: str) -> None:
    function, wanted = SECOND[name]
    jitted = TinyJit(lambda x: function(x).realize())
    for factor in (1.0, 2.0, 3.0, 1.0):
        found = jitted(Tensor(X * factor).realize())
    assert jitted.captured is not None
    if "Tensor(X)" not in name and "grad of jvp" != name and "jvp of jvp" != name:
        close(found, wanted)


@pytest.mark.parametrize("outer", [jacrev, jacfwd, jacobian])
@pytest.mark.parametrize("inner", [jacrev, jacfwd])
def test_matrices_are_those_of_torch(outer: Function, inner: Function) -> None:
    torch = pytest.importorskip("torch")

    def theirs(x: Any) -> Any:
        return (x * x.flip(0)).sin() * x.sum()

    first = [torch.autograd.functional.jacobian(theirs, torch.tensor(X * i)).numpy() for i in (1, 2)]
    bends = torch.autograd.functional.hessian
    second = [np.stack([bends(lambda x, r=r: theirs(x)[r], torch.tensor(X * i)) for r in range(3)]) for i in (1, 2)]
    many = Tensor(np.stack([X, X * 2]))
    close(inner(mixed)(Tensor(X)), first[0])
    close(outer(inner(mixed))(Tensor(X)), second[0])
    close(vmap(inner(mixed))(many), first)
    blocks = np.zeros((2, 3, 2, 3))
    blocks[0, :, 0], blocks[1, :, 1] = first
    close(inner(vmap(mixed))(many), blocks)
    slopes = [np.einsum("ij,ijk->k", 2 * one, two) for one, two in zip(first, second, strict=True)]
    close(vmap(grad(lambda x: inner(mixed)(x).square().sum()))(many), slopes)


def test_nested_arguments_and_results() -> None:
    params = {"w": Tensor([[1.0, 2.0]]), "b": [Tensor([3.0])]}

    def model(p: Any, x: Tensor) -> Any:
        return ((x @ p["w"].T + p["b"][0]) ** 2).sum()

    x = Tensor([[1.0, 1.0]])
    found = grad(model)(params, x)
    assert found["w"].tolist() == [[12.0, 12.0]] and found["b"][0].tolist() == [12.0]
    both = grad(model, argnums=(1, 0))(params, x)
    assert both[0].tolist() == [[12.0, 24.0]] and both[1]["b"][0].tolist() == [12.0]
    value, aux = grad(lambda x: (cube(x), {"twice": x * 2}), has_aux=True)(Tensor([1.0, 2.0]))
    assert value.tolist() == [3.0, 12.0] and aux["twice"].tolist() == [2.0, 4.0]
    (out, count), gradients = vjp(lambda a, b: (a * b, a.sum()), Tensor([1.0, 2.0]), Tensor([3.0, 4.0]))
    assert out.tolist() == [3.0, 8.0] and count.item() == 3.0
    assert [g.tolist() for g in gradients((Tensor([1.0, 1.0]), Tensor(10.0)))] == [[13.0, 14.0], [1.0, 2.0]]
    table = jacrev(lambda a, b: {"s": a * b.sum()}, argnums=(0, 1))(Tensor([1.0, 2.0]), Tensor([3.0]))
    other = jacfwd(lambda a, b: {"s": a * b.sum()}, argnums=(0, 1))(Tensor([1.0, 2.0]), Tensor([3.0]))
    assert [t.tolist() for t in table["s"]] == [t.tolist() for t in other["s"]] == [[[3, 0], [0, 3]], [[1], [2]]]


def test_what_the_outside_requires() -> None:
    w = Tensor([2.0, 3.0], requires_grad=True)
    slope = grad(lambda x: (x * x * w).sum())(Tensor([1.0, 2.0]))
    assert slope.requires_grad is True
    slope.sum().backward()
    assert w.grad is not None and w.grad.tolist() == [2.0, 4.0]
    layer = nn.Linear(2, 1)
    rows = vmap(grad(lambda x: layer(x).tanh().sum()))(Tensor([[1.0, 2.0], [3.0, 4.0]]))
    rows.sum().backward()
    assert layer.weight.grad is not None and layer.weight.grad.shape == (1, 2)


def test_an_argument_on_which_nothing_depends() -> None:
    x, y = Tensor([1.0, 2.0]), Tensor([3.0])
    assert grad(lambda a, b: a.sum(), argnums=1)(x, y).tolist() == [0.0]
    assert grad(lambda a: a.detach().sum())(x).tolist() == [0.0, 0.0]
    assert jvp(lambda a: Tensor(4.0), (x,), (x,))[1].item() == 0.0
    assert jacrev(lambda a: Tensor([4.0]))(x).tolist() == [[0.0, 0.0]]


def test_empty_and_single() -> None:
    assert grad(cube)(Tensor.zeros(0, 3)).shape == (0, 3)
    assert grad(lambda x: x**2)(Tensor(3.0)).item() == 6.0
    assert jacrev(lambda x: x * 2)(Tensor(3.0)).item() == jacfwd(lambda x: x * 2)(Tensor(3.0)).item() == 2.0


BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no number": (lambda: grad(lambda x: x * 2)(Tensor([1.0, 2.0])), ValueError, r"grad: .*lambda.* shape \(2,\)"),
    "no tensor": (lambda: grad(lambda x: 3)(Tensor(1.0)), TypeError, "grad: .* returned a int"),
    "value_and_grad": (lambda: value_and_grad(lambda x: x)(Tensor([1.0, 2.0])), ValueError, "value_and_grad: "),
    "integers": (lambda: grad(cube)(Tensor([1, 2])), TypeError, "grad: an argument of int32"),
    "no such argument": (lambda: grad(cube, argnums=2)(Tensor(1.0)), IndexError, "grad: argnums=2"),
    "a number": (lambda: grad(cube)(1.0), TypeError, "grad: argument 0 holds no tensor, but a float"),
    "no aux": (lambda: grad(cube, has_aux=True)(Tensor(1.0)), TypeError, "has_aux"),
    "tangents": (lambda: jvp(cube, (Tensor([1.0]),), (Tensor([1.0, 2.0]),)), ValueError, "jvp: tangents of shapes"),
    "weights": (lambda: vjp(cube, Tensor([1.0]))[1](Tensor([1.0, 2.0])), ValueError, "vjp: weights of shapes"),
    "vjp of no tensor": (lambda: vjp(lambda x: None, Tensor([1.0])), TypeError, "vjp: .* returned a NoneType"),
    "hvp of no number": (lambda: hvp(lambda x: x, (Tensor([1.0, 2]),), (Tensor([1.0, 2]),)), ValueError, "hvp: "),
    "jacrev of integers": (lambda: jacrev(lambda x: x > 1)(Tensor([1.0])), TypeError, "jacrev: a result of bool"),
    "jacfwd of nothing": (lambda: jacfwd(cube)(1.0), TypeError, "jacfwd: argument 0 holds no tensor"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    call, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        call()
