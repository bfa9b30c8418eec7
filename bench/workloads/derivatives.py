"""Derivatives of functions: of several orders, in both directions, for many values at once, and with recomputation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

from ..case import Array, Case, normal
from ..libraries import Library
from ..workload import Registry, Workload
from . import language

Builder = Callable[[Library], Callable[..., Any]]


def layers(*widths: int) -> list[Array]:
    """Weights of a multilayer perceptron, shape (outputs, inputs) each."""
    return [normal(m, n, seed=number, scale=n**-0.5) for number, (n, m) in enumerate(pairwise(widths))]


def perceptron(library: Library, x: Any, *weights: Any) -> Any:
    """Layers with hyperbolic tangents between them."""
    *inner, last = weights
    for weight in inner:
        x = library.tanh(library.linear(x, weight))
    return library.linear(x, last)


def slopes_of_samples(library: Library) -> Callable[..., Any]:
    """For each sample of a batch, the square of the norm of its own gradient."""
    transforms = library.transforms

    def loss(one: Any, other: Any, x: Any, y: Any) -> Any:
        error = perceptron(library, x, one, other) - y
        return (error * error).sum()

    def norms(x: Any, y: Any, one: Any, other: Any) -> Any:
        slopes = transforms.vmap(transforms.grad(loss, (0, 1)), (None, None, 0, 0))(one, other, x, y)
        return sum((slope * slope).sum((1, 2)) for slope in slopes)

    return norms


def product_with_hessian(library: Library) -> Callable[..., Any]:
    """A loss's second derivative at the first weights, times a matrix of their shape."""
    transforms = library.transforms

    def product(direction: Any, x: Any, y: Any, one: Any, *rest: Any) -> Any:
        def loss(weight: Any) -> Any:
            error = perceptron(library, x, weight, *rest) - y
            return (error * error).mean()

        return transforms.jvp(transforms.grad(loss), (one,), (direction,))[1]

    return product


def penalty(library: Library) -> Callable[..., Any]:
    """The gradient, at the first weights, of how far slopes of a critic at its inputs are from length 1."""
    transforms = library.transforms

    def slope(x: Any, one: Any, *rest: Any) -> Any:
        def cost(weight: Any) -> Any:
            slopes = transforms.grad(lambda x: perceptron(library, x, weight, *rest).sum())(x)
            away = ((slopes * slopes).sum(1) + 1e-12) ** 0.5 - 1
            return (away * away).mean()

        return transforms.grad(cost)(one)

    return slope


def jacobian(library: Library) -> Callable[..., Any]:
    """Of all results by all arguments."""
    return lambda x, *weights: library.transforms.jacrev(lambda x: perceptron(library, x, *weights))(x)


def hessian(library: Library) -> Callable[..., Any]:
    """Of a single result by all arguments, twice."""
    return lambda x, *weights: library.transforms.hessian(lambda x: perceptron(library, x, *weights).sum())(x)


def register(registry: Registry) -> None:
    """Appends the workloads of this module."""
    few, batch = 61, 127
    rows: tuple[tuple[str, Builder, Callable[[], list[Array]]], ...] = (
        (
            f"gradients of {few} samples, 131-257-31", slopes_of_samples,
            lambda: [normal(few, 131), normal(few, 31, seed=1), *layers(131, 257, 31)],
        ),
        (
            f"product with a Hessian, batch {batch}, 257-509-131", product_with_hessian,
            lambda: [normal(509, 257, seed=9), normal(batch, 257), normal(batch, 131, seed=1), *layers(257, 509, 131)],
        ),
        (
            f"gradient of a penalty on slopes, batch {batch}, 257-509-509-1", penalty,
            lambda: [normal(batch, 257), *layers(257, 509, 509, 1)],
        ),
        ("Jacobian 67x997", jacobian, lambda: [normal(997), *layers(997, 499, 67)]),
        ("Hessian 97x97", hessian, lambda: [normal(97), *layers(97, 199, 1)]),
    )  # fmt: skip

    def built(build: Builder, arrays: Callable[[], list[Array]], library: Library) -> Case:
        return library.derived(build(library), arrays())

    for name, build, arrays in rows:
        registry.add(
            Workload(
                name, "derivatives", partial(built, build, arrays), "ms", tolerance=1e-3,
                reference=("torch", "jax", "tinygrad"),
            )  # fmt: skip
        )
    registry.add(
        Workload(
            f"{language.NAME}, checkpoints", "derivatives", partial(language.training, checkpoints=True), "ms",
            tolerance=1e-2, reference=("torch", "jax", "tinygrad"),
        )  # fmt: skip
    )
