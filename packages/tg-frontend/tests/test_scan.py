"""scan: the same as a loop in Python, with its gradients; compiled once; what it refuses, it refuses whole."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit, cond, nn, scan
from tg_runtime import GlobalCounters
from tg_shape import Variable

RNG = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def unrolled(f: Callable[[Any, Any], tuple[Any, Any]], carry: Any, x: Tensor, reverse: bool) -> tuple[Any, Tensor]:
    """What scan does, step by step."""
    count = int(x.shape[0])
    kept: dict[int, Tensor] = {}
    for n in reversed(range(count)) if reverse else range(count):
        carry, kept[n] = f(carry, x[n])
    return carry, Tensor.stack(*(kept[n] for n in range(count)))


def grads(run: Callable[..., tuple[Any, Tensor]], reverse: bool, arrays: list[Any], weight: Any) -> list[Any]:
    w, x, h = (Tensor(array, requires_grad=True) for array in arrays)

    def step(carry: Any, x: Tensor) -> tuple[Any, Tensor]:
        hidden, count = carry
        new = (hidden @ w * 0.3 + x * count).tanh()
        return (new, count + 1), new * x

    (last, count), ys = run(step, (h, Tensor(1.0)), x, reverse=reverse)
    loss = (last * 2).sum() + (ys * Tensor(weight)).sum() + count
    loss.backward()
    found = [loss, last, ys, *(tensor.grad for tensor in (w, x, h))]
    return [tensor.numpy() for tensor in found if tensor is not None]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("count", [1, 2, 7, 13])
def test_values_and_gradients_are_those_of_a_loop(count: int, reverse: bool, backend: str) -> None:
    arrays, weight = [normal(5, 5), normal(count, 3, 5), normal(3, 5)], normal(count, 3, 5)
    got, want = grads(scan, reverse, arrays, weight), grads(unrolled, reverse, arrays, weight)
    assert len(got) == len(want) == 6
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "bool", "uint8", "int64"])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (0, 2), (2, 1, 7)])
def test_every_dtype_and_shape(dtype: str, shape: tuple[int, ...], backend: str) -> None:
    x = Tensor(RNG.integers(0, 2, (5, *shape))).cast(dtype)
    last, kept = scan(lambda carry, x: (carry.maximum(x), (carry, x)), x[0], x)
    want = np.maximum.accumulate(np.concatenate([x.numpy()[:1], x.numpy()]))
    np.testing.assert_array_equal(last.numpy(), want[-1])
    np.testing.assert_array_equal(kept[0].numpy(), want[:-1])
    np.testing.assert_array_equal(kept[1].numpy(), x.numpy())
    assert last.dtype.name == kept[0].dtype.name == dtype


def test_trees_keep_their_form() -> None:
    carry, ys = scan(
        lambda c, x: ({"a": c["a"] + x[0], "b": [c["b"][0] * 2]}, (x[1]["k"], None, 3)),
        {"a": Tensor(0.0), "b": [1]}, (Tensor([1.0, 2.0]), {"k": Tensor([[1], [2]])}),
    )  # fmt: skip
    assert carry["a"].item() == 3.0 and carry["b"][0].item() == 4
    assert ys[0].tolist() == [[1], [2]] and ys[1] is None and ys[2].tolist() == [3, 3]
    assert scan(lambda c, x: (None, x * 2), None, Tensor([1.0, 2.0]))[1].tolist() == [2.0, 4.0]
    assert scan(lambda c, x: (c, None), (), Tensor([1.0, 2.0])) == ((), None)
    assert scan(lambda c, x: (c + 1, c), Tensor([0]), length=3)[1].tolist() == [[0], [1], [2]]


def test_no_step_gives_the_first_carry() -> None:
    first = Tensor([1.0, 2.0], requires_grad=True)
    last, ys = scan(lambda c, x: (c + x, c.sum()), first, Tensor.zeros(0, 2))
    assert last.tolist() == [1.0, 2.0] and ys.shape == (0,)
    (last * 3).sum().backward()
    assert first.grad is not None and first.grad.tolist() == [3.0, 3.0]


def test_a_scan_in_a_scan(backend: str) -> None:
    data = normal(3, 4, 2)
    x = Tensor(data, requires_grad=True)
    last, ys = scan(lambda c, row: scan(lambda d, e: (d * 0.5 + e, d), c, row), Tensor.zeros(2), x)
    loss = last.sum() + (ys * ys).sum()
    loss.backward()
    y, carry, total = Tensor(data, requires_grad=True), Tensor.zeros(2), Tensor(0.0)
    for i in range(12):
        total, carry = total + (carry * carry).sum(), carry * 0.5 + y[i // 4, i % 4]
    (total + carry.sum()).backward()
    assert x.grad is not None and y.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last.numpy(), carry.numpy(), rtol=1e-5, atol=1e-6)


def test_the_body_is_called_and_compiled_once() -> None:
    calls = []

    def step(c: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        calls.append(1)
        return (c * 1.25 + x.sum() * 3).tanh(), x * c

    x = Tensor(normal(500, 11)).realize()
    first = Tensor(normal(11)).realize()
    before = GlobalCounters.compile_count
    scan(step, first, x)[1].realize()
    assert len(calls) == 1 and GlobalCounters.compile_count - before < 8


def test_a_record_is_replayed_on_other_tensors(recorded: Callable[..., Any]) -> None:
    w = Tensor(normal(3, 3), requires_grad=True)

    def train(x: Tensor) -> tuple[Tensor, Tensor]:
        w.grad = None
        last, ys = scan(lambda c, x: ((c @ w + x).tanh(), c * x), x[0], x)
        (last.sum() + ys.sum()).backward()
        assert w.grad is not None
        return ys, w.grad

    jitted = recorded(train, lambda: Tensor(normal(6, 2, 3)))
    for _ in range(2):
        data = normal(6, 2, 3)
        for a, b in zip(jitted(Tensor(data)), train(Tensor(data)), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


def test_results_share_no_memory() -> None:
    last, sums = scan(lambda c, x: (c + x, c + x), Tensor(0.0), Tensor([1.0, 2.0, 3.0]))
    last += 5
    sums[0] = 9
    assert last.item() == 11.0 and sums.tolist() == [9.0, 3.0, 6.0]


def test_what_does_not_change_is_computed_once() -> None:
    w = Tensor(normal(40, 40)).realize()
    x = Tensor(normal(50, 40)).realize()
    first = Tensor.zeros(40).contiguous().realize()
    with Tensor.no_grad():
        GlobalCounters.reset()
        scan(lambda c, x: (c * (w @ w).sum(0) + x, None), first, x)[0].realize()
    assert GlobalCounters.global_ops < 50 * 40 * 40 + 4 * 40**3


def test_layers_in_the_body_learn() -> None:
    layer = nn.Linear(3, 3)
    _, ys = scan(lambda c, x: (layer(c).tanh() + x, layer(x)), Tensor.zeros(2, 3), Tensor(normal(4, 2, 3)))
    ys.sum().backward()
    assert layer.weight.grad is not None and layer.weight.grad.shape == (3, 3)
    assert layer.bias is not None and layer.bias.grad is not None and layer.bias.grad.tolist() == [8.0, 8.0, 8.0]


ONE, ONES = Tensor([0.0]), Tensor([[1.0], [2.0]])
BAD: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    (TypeError, "carry is float32, and the function returns it as int32", lambda: scan(
        lambda c, x: (c.cast("int32"), x), ONE, ONES)),
    (ValueError, r"carry\[1\] has shape \(1,\), and the function returns it with shape \(1, 1\)", lambda: scan(
        lambda c, x: ((c[0], c[1].reshape(1, 1)), x), (ONE, ONE), ONES)),
    (TypeError, r"form \., and the function returns one of \(\., \.\)", lambda: scan(
        lambda c, x: ((c, c), x), ONE, ONES)),
    (ValueError, r"xs\[0\] has length 2, xs\[1\] 3", lambda: scan(
        lambda c, x: (c, x), ONE, (ONES, Tensor.zeros(3)))),
    (ValueError, "xs has length 2, length 3", lambda: scan(lambda c, x: (c, x), ONE, ONES, length=3)),
    (ValueError, "length is a number of steps", lambda: scan(lambda c, x: (c, x), ONE, length=-1)),
    (ValueError, "without xs", lambda: scan(lambda c, x: (c, x), ONE)),
    (ValueError, "no axis to go through", lambda: scan(lambda c, x: (c, x), ONE, Tensor(1.0))),
    (TypeError, "xs is a tensor, got a int", lambda: scan(lambda c, x: (c, x), ONE, 3)),
    (TypeError, "returns a carry and what is kept", lambda: scan(lambda c, x: c, ONE, ONES)),
    (TypeError, "y is a tensor or a number, got a str", lambda: scan(lambda c, x: (c, "a"), ONE, ONES)),
    (RuntimeError, "asks for the value", lambda: scan(lambda c, x: (c, x.item()), ONE, ONES)),
    (RuntimeError, "asks for the value", lambda: scan(lambda c, x: (c if c > 0 else x, x), ONE, ONES)),
    (RuntimeError, "draws random numbers", lambda: scan(lambda c, x: (c + c.rand_like(), x), ONE, ONES)),
    (RuntimeError, "writes in place", lambda: scan(lambda c, x: (c.assign(c + 1), x), ONE, ONES)),
    (ValueError, "xs is on NUMPY|on CPU", lambda: scan(
        lambda c, x: (c, x), Tensor([1.0], device="NUMPY"), Tensor([1.0], device="CPU"))),
    (ValueError, "symbolic", lambda: scan(
        lambda c, x: (c, x), ONE, Tensor.zeros(4, 1).contiguous()[: Variable("scan_n", 1, 4).bind(2)])),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "match", "bad"), BAD)
def test_what_is_wrong_is_named(kind: type[Exception], match: str, bad: Callable[[], Any]) -> None:
    with pytest.raises(kind, match=match):
        bad()


def test_a_refused_function_changes_nothing() -> None:
    w = Tensor([1.0, 2.0]).realize()

    def step(c: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        w.assign(w + x)
        return c + w, x

    with pytest.raises(RuntimeError, match="writes in place to a tensor of shape"):
        scan(step, Tensor([0.0, 0.0]), Tensor([1.0, 2.0]))
    assert w.tolist() == [1.0, 2.0]
    assert w.assign(w * 2).tolist() == [2.0, 4.0]


def test_a_refused_function_leaves_gradients_as_they_were() -> None:
    a, b = Tensor([1.0, 2.0, 3.0], requires_grad=True), Tensor([5.0], requires_grad=True)
    whole = a * 1.0
    part = whole.detach()

    def step(c: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        whole[0] = c * a[1]
        part[0] = c * b[0]
        return c, x

    with pytest.raises(RuntimeError, match="writes in place to a tensor of shape"):
        scan(step, Tensor(2.0), Tensor([1.0, 2.0]))
    whole[1] = b[0]
    assert whole.tolist() == part.tolist() == [1.0, 5.0, 3.0] and not part.requires_grad
    (whole * Tensor([1.0, 10.0, 100.0])).sum().backward()
    assert a.grad is not None and a.grad.tolist() == [1.0, 0.0, 100.0]
    assert b.grad is not None and b.grad.tolist() == [10.0]


@pytest.mark.parametrize("made", ["computed", "a constant", "a view of a constant", "a view"])
def test_writing_to_what_has_no_memory_yet_is_refused(made: str) -> None:
    start = Tensor([1.0, 2.0])
    whole = start + 1 if made == "computed" else Tensor.zeros(2, 2) if "constant" in made else start.reshape(1, 2) * 2
    w = whole[0] if made.startswith("a view") else whole

    def step(c: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        w[...] = x
        return c + w, x

    with pytest.raises(RuntimeError, match="writes in place to a tensor of shape"):
        scan(lambda c, x: (cond(c.sum() > 0, lambda c: step(c, x)[0], lambda c: c, c), x), start, start)
    TinyJit(lambda x: (x + 1).realize())(start)  # executes first what is unfinished: not what was refused
    assert whole.sum().item() == {"computed": 5.0, "a view": 6.0}.get(made, 0.0)


def test_memory_that_the_function_makes_may_be_written(backend: str) -> None:
    """Such as what a sort or a scatter computes in, and what is known before the loop: each step begins anew."""
    places, x = Tensor([3, 1, 3, 0]), Tensor(normal(2, 4))

    def step(c: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        memory = Tensor.empty(4)
        memory[:] = 0.25
        memory[1:3] = c[2:]
        memory += Tensor.zeros(4).scatter_add(0, places, x) + Tensor.zeros(4).contiguous().index_add(0, places, c)
        return memory.argsort() * 0.5 + memory, memory

    for one, other in zip(scan(step, x[0], x), unrolled(step, x[0], x, reverse=False), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-6)


def test_gradients_flow_through_what_the_function_writes(backend: str) -> None:
    """To memory that it made, and returns as it is: of what it carries, goes through, chooses and uses beside."""
    array = np.array([0.3, -1.0, 2.0])

    def written(a: Tensor) -> Tensor:
        memory = Tensor.zeros(3, dtype="float64")
        memory[1:] = a[1:] * a[1:]
        return memory

    def computed(a: Tensor) -> Tensor:
        return a * a * Tensor([0.0, 1.0, 1.0], dtype="float64")

    programs: list[Callable[[Callable[[Tensor], Tensor], Tensor], Any]] = [
        lambda f, a: scan(lambda c, x: (f(c), None), a, length=2)[0],
        lambda f, a: scan(lambda c, x: (c, f(x)), a, a.stack(a * 2))[1],
        lambda f, a: scan(lambda c, x: (c, f(a)), a, length=2)[1],
        lambda f, a: scan(lambda c, x: (None, f(x)), None, a.stack(a * 2))[1],
        lambda f, a: cond(a.sum() > 0, f, lambda a: a, a), lambda f, a: cond(a.sum() > 0, lambda: f(a), lambda: a),
    ]  # fmt: skip
    for program in programs:
        slopes = []
        for function in (written, computed):
            a = Tensor(array, requires_grad=True)
            (slope,) = program(function, a).sum().gradient(a)
            slopes += [slope.numpy(), slope.square().sum().gradient(a)[0].numpy()]
        np.testing.assert_allclose(slopes[0], slopes[2], rtol=1e-12)
        np.testing.assert_allclose(slopes[1], slopes[3], rtol=1e-12)


def test_what_leaks_has_no_value() -> None:
    leaked: list[Tensor] = []

    def step(c: Tensor, x: Tensor) -> tuple[Tensor, None]:
        leaked.append(c + x)
        return c + x, None

    last, _ = scan(step, Tensor(0.0), Tensor([1.0, 2.0]))
    assert last.item() == 3.0
    for read in (Tensor.item, Tensor.realize, lambda x: (x * 2).numpy()):  # the loop's own kernel is the same addition
        with pytest.raises(RuntimeError, match="was left by the function"):
            read(leaked[0])


def test_an_interrupted_loop_can_be_computed_again() -> None:
    last, _ = scan(lambda c, x: (c + 1, None), Tensor.zeros(1 << 16), length=60_000)

    def interrupt() -> None:
        signal.raise_signal(signal.SIGINT)

    timer = threading.Timer(0.3, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        last.realize()
        timer.join()
        pytest.skip("the loop was faster than the signal")
    assert scan(lambda c, x: (c + 1, None), Tensor.zeros(1 << 16), length=3)[0].numpy().max() == 3


def test_a_record_calls_nothing_again() -> None:
    calls = []

    def step(c: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        calls.append(1)
        return c + x, c

    jitted = TinyJit(lambda x: scan(step, x[0], x))
    for _ in range(5):
        jitted(Tensor([1.0, 2.0, 4.0]))
    assert len(calls) == 2


@pytest.mark.drawn(1)
@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_of_gradients(reverse: bool, backend: str) -> None:
    """A penalty on gradients, as of a loop in Python; and once more."""
    arrays = [RNG.standard_normal(shape) for shape in ((3, 3), (5, 2, 3), (2, 3))]

    def penalised(run: Callable[..., Any], order: int) -> list[Any]:
        leaves = [Tensor(array, requires_grad=True) for array in arrays]
        w, x, h = leaves

        def step(c: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            new = (c @ w * 0.3 + x).tanh()
            return new, new * x

        last, ys = run(step, h, x, reverse=reverse)
        loss = (last * last).sum() + (ys * ys * ys).sum()
        for _ in range(order):
            loss.backward(create_graph=True)
            grads = [leaf.grad for leaf in leaves]
            for leaf in leaves:
                leaf.grad = None
            loss = sum(((g * g).sum() for g in grads if g is not None), Tensor(0.0, dtype="float64"))
        return [g.numpy() for g in loss.gradient(*leaves)]

    for order in (1, 2):
        for a, b in zip(penalised(scan, order), penalised(unrolled, order), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)


def test_a_gradient_computes_only_what_leads_to_its_targets() -> None:
    """Neither the forward loop, whose values a linear function does not need, nor gradients nobody asked for."""
    start, xs = Tensor([1.0, 2.0]).realize(), Tensor.ones(50, 2).contiguous().realize()
    weights = Tensor.ones(50, 2).contiguous().realize()

    def averages() -> Tensor:
        found: Tensor = scan(lambda mean, x: (mean * 0.5 + x, mean), start, xs)[1]
        return found

    (found,) = averages().gradient(start, gradient=weights)
    GlobalCounters.reset()
    assert found.tolist() == pytest.approx([2.0, 2.0])
    alone = GlobalCounters.kernel_count
    (found,) = averages().gradient(xs, gradient=weights)
    assert found.tolist()[0] == pytest.approx([2.0, 2.0]) and found.tolist()[-1] == [0.0, 0.0]
    assert alone < 2 * 50, "one kernel a step, none of which goes forward"

    kept: list[float] = []
    other = Tensor([3.0, 4.0])
    between = other * 2
    between.register_hook(lambda grad: kept.append(1.0))
    (found,) = (start * between).sum().gradient(start)
    assert found.tolist() == [6.0, 8.0] and not kept, "no target is behind it"


@pytest.mark.parametrize("way", ["turned", "batches", "both", "written before", "of a view"])
@pytest.mark.parametrize(("count", "rows"), [(32, 8), (37, 11)])
def test_products_with_what_does_not_change(way: str, count: int, rows: int, backend: str) -> None:
    """Of many steps: operands are copied into another layout first. They are right however they lie in memory."""
    n = 7
    w, x, h = normal(n, n) / 3, normal(count, rows, n), normal(rows, n)

    def in_halves(f: Callable[..., Any], first: Tensor, parts: Tensor) -> tuple[Tensor, Tensor]:
        """By two loops, of fewer steps each: nothing is copied."""
        half, begun = scan(f, first, parts[: count // 2])
        last, ended = scan(f, half, parts[count // 2 :])
        return last, begun.cat(ended, dim=0)

    def through(run: Callable[..., tuple[Any, Tensor]]) -> list[Any]:
        weight, parts, first = (Tensor(array, requires_grad=True) for array in (w, x, h))
        kept = weight.detach().clone().realize()
        if way == "written before":  # what was written before the loop is what it reads
            kept[2] = 1.0
        wide = Tensor.cat(weight, weight * 2, dim=1).realize()

        def step(state: Tensor, part: Tensor) -> tuple[Tensor, Tensor]:
            if way == "turned":
                new = state @ weight.T
            elif way == "batches":
                new = (state.reshape(1, rows, n) @ Tensor.stack(weight, weight.T).transpose(1, 2)).sum(0)
            elif way == "both":
                new = state @ weight.T + (state * 0.5) @ weight
            elif way == "written before":
                new = state @ kept.T + state @ weight.T
            else:
                new = state @ wide[:, 3 : 3 + n].T
            new = (new + part).tanh()
            return new, new * part

        last, ys = run(step, first, parts)
        (last.sum() + (ys * ys).sum()).backward()
        return [last, ys, parts.grad, first.grad, weight.grad]

    for got, want in zip(through(scan), through(in_halves), strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-4, atol=2e-4)


def test_a_loop_that_is_gone_holds_no_memory() -> None:
    def step(carry: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        return (carry * x).contiguous().flip(0) + carry, x

    def used() -> int:
        last, _ = scan(step, Tensor.ones(1000), Tensor.ones(3))
        last.realize()
        del last
        gc.collect()
        return GlobalCounters.mem_used

    used()
    assert used() == used()
