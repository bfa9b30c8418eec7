"""Checkpoints: gradients, random numbers and statistics are those without; the memory is not kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit, hessian, jvp, nn, scan, vmap
from tg_frontend import grad as slope_of
from tg_runtime import GlobalCounters

X = np.random.default_rng(0).standard_normal((7, 5)).astype(np.float32)


def plain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def leaf(*values: float) -> Tensor:
    return Tensor(list(values), requires_grad=True)


def both(program: Callable[[Any], list[Tensor]]) -> None:
    """A program gives the same without checkpoints and with; sums of large terms round alike but for their size."""
    Tensor.manual_seed(1)
    want = [t.numpy() for t in program(plain)]
    Tensor.manual_seed(1)
    got = [t.numpy() for t in program(nn.checkpoint)]
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6 * np.abs(b).max(initial=1))


def grad(tensor: Tensor) -> Tensor:
    assert tensor.grad is not None
    return tensor.grad


@pytest.mark.parametrize("jit", [False, True])
def test_a_training_step(jit: bool, backend: str) -> None:
    """Dropout drops the same elements, BatchNorm counts a batch once, and what is drawn later is the same."""
    def program(checkpoint: Any) -> list[Tensor]:
        blocks = [
            [nn.Linear(5, 9), nn.BatchNorm(9), Tensor.tanh, lambda t: t.dropout(0.3), nn.Linear(9, 5)]
            for _ in range(2)
        ]
        optimizer = nn.optim.SGD(nn.state.get_parameters(blocks), lr=0.1, momentum=0.9)

        def step(x: Tensor) -> Tensor:
            optimizer.zero_grad()
            with Tensor.train():
                for block in blocks:
                    x = checkpoint(lambda t, block: t + t.sequential(block), x, block)
                loss = x.square().mean()
            loss.backward()  # where dropout would not drop
            optimizer.step()
            return loss

        run: Any = TinyJit(step) if jit else step
        losses = [run(Tensor(X)).realize() for _ in range(4)]
        return [*losses, *nn.state.get_state_dict(blocks).values(), Tensor.rand(3)]

    both(program)


def test_tensors_from_outside(backend: str) -> None:
    """Leaves and results that the function finds in its closure; one is also what its argument comes from."""
    def program(checkpoint: Any) -> list[Tensor]:
        w, v = leaf(1.5, -2.0, 0.5), leaf(0.3, 0.2, 0.1)
        h = (w * 2).sin()
        y = checkpoint(lambda x: (x * w + h).exp() * v, w * v)
        y.sum().backward()
        return [y, grad(w), grad(v)]

    both(program)


def test_gradients_of_intermediates(backend: str) -> None:
    def program(checkpoint: Any) -> list[Tensor]:
        w = leaf(1.5, -2.0, 0.5)
        h = (w * 2).sin()
        y = checkpoint(lambda x: x * h.exp(), h).square().sum()
        return [*y.gradient(w, h), *y.gradient(h)]

    both(program)


def test_several_results(backend: str) -> None:
    """A tuple with results of other shapes and dtypes, an argument, and what has no gradient."""
    def program(checkpoint: Any) -> list[Tensor]:
        x, w = Tensor(X, requires_grad=True), leaf(1.0, 2.0, 3.0, 4.0, 5.0)

        def part(x: Tensor, by: float) -> tuple[Any, ...]:
            y = x.tanh() * w
            return y * by, y.sum(0).cast("float64"), y.argmax(1), x, 7, (y * y).mean()

        a, b, place, same, seven, c = checkpoint(part, x, by=0.5)
        assert isinstance(checkpoint(part, x, by=0.5), tuple) and same is x and seven == 7
        assert a.dtype.name == "float32" and b.dtype.name == "float64" and place.dtype.name == "int32"
        (a.square().sum() + b.sin().sum().cast("float32") + c * 3).backward()
        return [a, b, place, c, grad(x), grad(w)]

    both(program)


def test_a_checkpoint_in_a_checkpoint(backend: str) -> None:
    def program(checkpoint: Any) -> list[Tensor]:
        x, w = Tensor(X, requires_grad=True), leaf(0.5, 1.0, 1.5, 2.0, 2.5)
        with Tensor.train():
            y = checkpoint(lambda t: checkpoint(lambda u: (u * w).dropout(0.5), t.sin()).cos().dropout(0.5), x)
        y.sum().backward()
        return [y, grad(x), grad(w), Tensor.rand(2)]

    both(program)


def test_twice_through_a_retained_graph(backend: str) -> None:
    def program(checkpoint: Any) -> list[Tensor]:
        w = leaf(1.5, -2.0)
        y = checkpoint(lambda x: (x * x).exp(), w).sum()
        y.backward(retain_graph=True)
        y.backward()
        return [grad(w)]

    both(program)


def test_parameters_without_a_wish(backend: str) -> None:
    """Without an optimizer, parameters of layers get gradients where nothing asks for one."""
    def program(checkpoint: Any) -> list[Tensor]:
        layer = nn.Linear(5, 3)
        checkpoint(lambda x: layer(x).tanh(), Tensor(X)).sum().backward()
        return [grad(layer.weight), grad(layer.bias)] if layer.bias is not None else []

    both(program)


def test_where_no_gradient_is_wanted(backend: str) -> None:
    calls = []

    def part(x: Tensor) -> Tensor:
        calls.append(1)
        return x * 2

    with Tensor.no_grad():
        assert nn.checkpoint(part, leaf(3.0)).requires_grad is False
    assert nn.checkpoint(part, Tensor([3.0], requires_grad=False)).tolist() == [6.0]
    assert len(calls) == 2
    assert nn.checkpoint(part, leaf(3.0), use_reentrant=False, preserve_rng_state=True).tolist() == [6.0]


@pytest.mark.parametrize("backend", ["CPU"], indirect=True)
@pytest.mark.usefixtures("collected")
def test_only_what_lies_between_is_kept(backend: str) -> None:
    """Six parts, each of which makes eight times what it is given."""
    def peak(checkpoint: Any, width: int) -> tuple[int, Any]:
        Tensor.manual_seed(0)
        layers = [(nn.Linear(width, 8 * width), nn.Linear(8 * width, width)) for _ in range(6)]
        Tensor.realize(*nn.state.get_parameters(layers))
        x = Tensor(np.random.default_rng(0).standard_normal((1003, width)).astype(np.float32)).realize()
        GlobalCounters.reset()
        before = GlobalCounters.mem_used
        for first, last in layers:
            x = checkpoint(lambda x, first, last: x + last(first(x).sin()), x, first, last)
        x.square().mean().backward()
        parameters = nn.state.get_parameters(layers)
        Tensor.realize(*[grad(p) for p in parameters])
        return GlobalCounters.mem_peak - before, [grad(p).numpy() for p in parameters]

    with_all, want = peak(plain, 13)
    with_few, got = peak(nn.checkpoint, 13)
    between, inside = 1003 * 13 * 4, 8 * 1003 * 13 * 4
    assert with_all > 6 * inside
    assert with_few < 6 * between + 4 * inside
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_what_was_written_since_is_told(backend: str) -> None:
    w, x = leaf(1.0, 2.0), Tensor([3.0, 4.0]).realize()
    for target in (w, x):
        y = nn.checkpoint(lambda x: x * w, x).sum()
        with Tensor.no_grad():
            target += 1
        with pytest.raises(RuntimeError, match=r"of shape \(2,\) that .*lambda.* computes with was written"):
            y.backward()


def test_a_function_that_writes_is_told() -> None:
    x = Tensor([3.0, 4.0]).realize()

    def part(w: Tensor) -> Tensor:
        x.assign(x + 1)
        return x * w

    with pytest.raises(RuntimeError, match="part computes with was written to in place by that, and would be again"):
        nn.checkpoint(part, leaf(1.0, 2.0))


def test_a_function_that_changes_its_mind_is_told() -> None:
    calls: list[int] = []
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)

    def other_shape(x: Tensor) -> Tensor:
        calls.append(1)
        return x * 2 if len(calls) % 2 else x.sum()

    def other_tensor(x: Tensor) -> Tensor:
        calls.append(1)
        return x * (w if len(calls) % 2 else v)

    def fewer(x: Tensor) -> Any:
        calls.append(1)
        return (x * 2, x * 3) if len(calls) % 2 else (x * 2,)

    def more_numbers(x: Tensor) -> Tensor:
        calls.append(1)
        return x * Tensor.rand(2) * (1 if len(calls) % 2 else Tensor.rand(2))

    for function, says in (
        (other_shape, r"shape \(\), not \(2,\)"), (other_tensor, "that it did not use before"),
        (fewer, "returned 1 results the second time"), (more_numbers, "drawn again, but more of them"),
    ):  # fmt: skip
        calls.clear()
        made = nn.checkpoint(function, w)
        with pytest.raises(RuntimeError, match=says):
            (made[1] if isinstance(made, tuple) else made).sum().backward()


WIDTH, HEADS, ROWS, COLUMNS = 16, 2, 5, 33


class Block:
    """A block of a transformer."""

    def __init__(self) -> None:
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def __call__(self, x: Tensor) -> Tensor:
        qkv = self.qkv(self.before(x)).reshape(ROWS, COLUMNS, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        seen = qkv[0].scaled_dot_product_attention(qkv[1], qkv[2], is_causal=True, dropout_p=0.1)
        x = x + self.out(seen.transpose(1, 2).reshape(ROWS, COLUMNS, WIDTH)).dropout(0.1)
        return x + self.down(self.up(self.between(x)).gelu()).dropout(0.1)


def transformer_step(checkpoint: Any, jit: bool) -> tuple[list[int], list[Any]]:
    """Training steps of 12 blocks: the peak of each, in bytes beside parameters, and what is left in these."""
    Tensor.manual_seed(0)
    blocks = [Block() for _ in range(12)]
    parameters = nn.state.get_parameters(blocks)
    optimizer = nn.optim.Adam(parameters, lr=1e-3)
    Tensor.realize(*parameters)
    rows = np.random.default_rng(0).standard_normal((ROWS, COLUMNS, WIDTH)).astype(np.float32)
    x = Tensor(rows).realize()
    GlobalCounters.reset()
    before = GlobalCounters.mem_used

    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        with Tensor.train():
            for block in blocks:
                x = checkpoint(block, x)
            loss = x.square().mean()
            loss.backward()
        optimizer.step()
        return loss.realize()

    run: Any = TinyJit(step) if jit else step
    peaks, results = [], []
    for _ in range(3 if jit else 2):  # Adam's memory is there from the first on; the third is replayed
        results.append(run(x).numpy())
        peaks.append(GlobalCounters.mem_peak - before)
    return peaks, [*results, *(p.numpy() for p in parameters[:9])]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("backend", ["CPU"], indirect=True)
@pytest.mark.usefixtures("collected")
def test_a_training_step_of_a_transformer_takes_less_than_half_of_the_memory(jit: bool, backend: str) -> None:
    """The peak with Adam's memory in it; a record, too, holds on to less than half."""
    with_all, want = transformer_step(plain, jit)
    with_few, got = transformer_step(nn.checkpoint, jit)
    assert with_few[-1] < with_all[-1] / 3
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_gradients_of_gradients(backend: str) -> None:
    """To the third order, with the same random numbers, one checkpoint in another."""
    def program(checkpoint: Any) -> list[Tensor]:
        x, w = leaf(1.5, -2.0, 0.5), leaf(0.3, 0.2, 0.1)

        def inner(t: Tensor) -> Tensor:
            return (t * w).sin().cat(t, w).dropout(0.3)

        with Tensor.train():
            y = checkpoint(lambda t: checkpoint(inner, t * w).reshape(3, 3).prod(0).exp(), x).sum()
        slopes = y.gradient(x, w)
        (slopes[0].square().sum() + slopes[1].sin().sum()).backward(create_graph=True)
        bends = [grad(x), grad(w)]
        return [y, *slopes, *bends, *(bends[0] * bends[1]).sum().gradient(x, w), Tensor.rand(3)]

    both(program)


def test_a_penalty_on_several_results_under_a_record(backend: str) -> None:
    def program(checkpoint: Any) -> list[Tensor]:
        layer, norm = nn.Linear(5, 5), nn.BatchNorm(5)
        parameters = [p.requires_grad_() for p in (layer.weight, norm.weight) if p is not None]

        def part(t: Tensor) -> tuple[Any, ...]:
            t = norm(layer(t)).tanh()
            return t.cast("float64"), t.argmax(1), t.square()

        def step(x: Tensor) -> Any:
            for parameter in parameters:
                parameter.grad = None
            x = x.detach().requires_grad_()
            with Tensor.train():
                a, place, b = checkpoint(part, x)
                y = a.sum().cast("float32") + b.sum() * 3
                (slope,) = y.gradient(x)
                (y + (slope.square().sum(1).sqrt() - 1).square().sum()).backward()
            return [place.realize(), *(grad(p).realize() for p in parameters)]

        run: Any = TinyJit(step)
        out = [t for n in range(4) for t in run(Tensor(X * (n + 1)).realize())]
        return [*out, *nn.state.get_state_dict(norm).values()]

    both(program)


@pytest.mark.parametrize("backend", ["CPU"], indirect=True)
@pytest.mark.usefixtures("collected")
def test_the_second_order_keeps_what_lies_between_only(backend: str) -> None:
    def peak(checkpoint: Any) -> tuple[int, Any]:
        ws = [Tensor(np.linspace(-1, 1, 13, dtype=np.float32) + n, requires_grad=True).realize() for n in range(8)]
        x = Tensor(np.random.default_rng(0).standard_normal((503, 13)).astype(np.float32), requires_grad=True)
        GlobalCounters.reset()
        before = GlobalCounters.mem_used

        def part(x: Tensor, w: Tensor) -> Tensor:
            wide = (x.unsqueeze(1) * w.reshape(13, 1)).sin().contiguous().exp().contiguous()  # (503, 13, 13)
            return (wide.square().contiguous() * w).mean(1)

        y: Tensor = x.realize()
        for w in ws:
            y = checkpoint(part, y, w)
        (slope,) = y.mean().gradient(x)
        slope.square().sum().backward()
        found = [grad(w).realize() for w in ws]
        return GlobalCounters.mem_peak - before, [one.numpy() for one in found]

    with_all, want = peak(plain)
    with_few, got = peak(nn.checkpoint)
    assert with_few < with_all / 2
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-6)


def test_what_was_written_since_is_told_at_the_second_order(backend: str) -> None:
    w, x = leaf(1.0, 2.0), Tensor([3.0, 4.0], requires_grad=True).realize()
    (slope,) = nn.checkpoint(lambda x: (x * w).exp(), x).sum().gradient(x)
    with Tensor.no_grad():
        w += 1
    with pytest.raises(RuntimeError, match=r"of shape \(2,\) that .*lambda.* computes with was written"):
        slope.sum().gradient(x)


TRANSFORMS: dict[str, Callable[[Any], Callable[[Tensor], Tensor]]] = {
    "vmap": lambda f: vmap(f),
    "vmap of grad": lambda f: vmap(slope_of(f)),
    "vmap of grad of grad": lambda f: vmap(slope_of(lambda x: slope_of(f)(x).square().sum())),
    "grad of vmap": lambda f: slope_of(lambda x: vmap(f)(x).square().sum()),
    "hessian": lambda f: lambda x: hessian(f)(x[0]),
    "jvp": lambda f: lambda x: jvp(f, (x[0],), (x[1],))[1],
    "scan": lambda f: lambda x: scan(lambda h, row: (f(row * h), h), Tensor(1.0), x)[0],
    "grad of scan": lambda f: slope_of(lambda x: scan(lambda h, row: (f(row * h), h), Tensor(1.0), x)[0]),
    "scan of grad": lambda f: lambda x: scan(lambda h, row: (slope_of(f)(row * h).sum(), h), Tensor(1.0), x)[0],
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_in_functions_of_functions(name: str, backend: str) -> None:
    """The gradient of one part is made of no argument, which is a trap where nothing has a value yet."""
    x = Tensor(X[:, :3])

    def program(checkpoint: Any) -> list[Tensor]:
        w = leaf(0.5, -0.25, 0.75)

        def function(row: Tensor) -> Tensor:
            made: Tensor = checkpoint(lambda t: (checkpoint(lambda u: u * w, t)).sin() * t, row)
            return made.sum()

        return [TRANSFORMS[name](function)(x)]

    both(program)


def test_blocks_of_ones_own_around_the_first_call_and_the_others() -> None:
    events: list[str] = []

    @contextmanager
    def block(name: str) -> Iterator[None]:
        events.append(name)
        yield
        events.append(f"end of {name}")

    def function(x: Tensor, power: int) -> Tensor:
        events.append("call")
        return x**power

    x = leaf(1.0, 2.0)
    y = nn.checkpoint(
        function, x, power=3, use_reentrant=False, determinism_check="none", debug=True, early_stop=False,
        context_fn=lambda: (block("first"), block("again")),
    )  # fmt: skip
    assert events == ["first", "call", "end of first"]
    y.sum().backward()
    assert events[3:] == ["again", "call", "end of again"] and grad(x).tolist() == [3, 12]
    with Tensor.no_grad():
        nn.checkpoint(function, x, 2, context_fn=lambda: (block("first"), block("again")))
    assert events[6:] == ["first", "call", "end of first"]
