"""Records never answer with what was: a replay gives what a call of the function would give, or says why it cannot."""

from __future__ import annotations

import gc
import importlib
import random
import sys
import warnings
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from tg_frontend import JitError, Tensor, TinyJit, nn
from tg_frontend.reach import Reached
from tg_lazy import Context
from tg_runtime import GlobalCounters
from tg_shape import Variable


def real(*values: float) -> Tensor:
    return Tensor(list(values)).contiguous().realize()


def nothing(_: Any) -> None:
    """For functions that only do something."""


@pytest.fixture(autouse=True)
def _no_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def recorded(function: Any, *args: Any) -> Any:
    """A TinyJit of ``function`` that has a record."""
    jitted = TinyJit(function)
    for _ in range(3):
        jitted(*[arg() if callable(arg) else arg for arg in args])
    assert jitted.captured is not None
    return jitted


# what is written between two calls


WRITES: dict[str, Any] = {
    "add": lambda w: w.__iadd__(10),
    "assign": lambda w: w.assign(Tensor([5.0, 6.0, 7.0])),
    "item": lambda w: w.__setitem__(0, 7.0),
    "slice": lambda w: w.__setitem__(slice(1, None), Tensor([8.0, 9.0])),
    "view": lambda w: w[1:].assign(Tensor([3.0, 4.0])),
    "twice": lambda w: w.assign(w * 2).assign(w.flip(0) + 1),
    "replace": lambda w: w.replace(Tensor([1.0, 1.0, 2.0]) + 0),
    "zeros": lambda w: w.assign(0),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_between_calls_are_seen(name: str, backend: str) -> None:
    w = real(1.0, 2.0, 3.0)
    function = recorded(lambda x: (x * w).sum(), lambda: real(1.0, 1.0, 1.0))
    record = function.captured
    for _ in range(3):
        WRITES[name](w)
        for _ in range(2):
            got = function(real(1.0, 2.0, 4.0)).item()
            assert got == (np.array([1.0, 2.0, 4.0]) * w.numpy()).sum()
    assert (function.captured is record) == (name != "replace")


def test_the_learning_rate_is_seen(backend: str) -> None:
    w = real(1.0)
    optimizer = nn.optim.SGD([w.requires_grad_()], lr=0.5)

    def step(x: Tensor) -> None:
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()

    function = recorded(step, lambda: real(1.0))
    assert w.item() == -0.5
    changes: list[Any] = [lambda: setattr(optimizer, "lr", 0.0), lambda: optimizer.lr.assign([0.25]),
                          lambda: setattr(optimizer, "lr", Tensor([0.125])), lambda: setattr(optimizer, "lr", 2)]
    for change, lr in zip(changes, (0.0, 0.25, 0.125, 2.0), strict=True):
        before = w.item()
        change()
        function(real(1.0))
        assert w.item() == before - lr == w.item()


def test_settings_of_an_optimiser_are_seen(backend: str) -> None:
    def train(jit: bool) -> list[Any]:
        w = real(1.0, 2.0).requires_grad_()
        optimizer = nn.optim.SGD([w], lr=0.5, momentum=0.5)

        def step(x: Tensor) -> Tensor:
            optimizer.zero_grad()
            loss = (w * w * x).sum().backward()
            optimizer.step()
            return loss

        run: Any = TinyJit(step) if jit else step
        out = []
        for i in range(9):
            if i == 4:
                optimizer.momentum = 0.25
            if i == 6:
                optimizer.weight_decay = 0.5
            out += [run(real(1.0, 0.25)).item(), w.tolist()]
        return out

    assert train(True) == train(False)


def test_a_restored_state_is_seen(backend: str) -> None:
    layer = nn.Linear(2, 1)
    evaluate = recorded(lambda x: layer(x), lambda: Tensor([[1.0, 2.0]]).realize())
    best = {name: tensor.clone() for name, tensor in nn.state.get_state_dict(layer).items()}
    want = evaluate(Tensor([[1.0, 2.0]]).realize()).item()
    layer.weight += 1
    assert evaluate(Tensor([[1.0, 2.0]]).realize()).item() == pytest.approx(want + 3)
    steps = evaluate.captured
    nn.state.load_state_dict(layer, best)
    assert evaluate(Tensor([[1.0, 2.0]]).realize()).item() == want
    assert evaluate.captured is steps  # the tensors were overwritten where they are


def test_loading_takes_values_of_before(backend: str) -> None:
    a, b = real(1.0), real(2.0)
    nn.state.load_state_dict({"a": a, "b": b}, {"a": b, "b": a})
    assert (a.item(), b.item()) == (2.0, 1.0)
    a += 1
    assert (a.item(), b.item()) == (3.0, 1.0)


def test_lazy_readers_keep_their_values(backend: str) -> None:
    """What was computed lazily from memory that a replay overwrites has the value of its time."""
    w = real(1.0, 2.0)

    def step(x: Tensor) -> None:
        w.assign(w + x)

    function = recorded(step, lambda: real(1.0, 1.0))
    before, waiting = w.tolist(), w * 10
    function(real(1.0, 1.0))
    assert waiting.tolist() == [10 * v for v in before]
    x = real(1.0)
    add = recorded(lambda x: nothing(x.assign(x + 1)), lambda: real(0.0))
    waiting = x * 10
    add(x)
    assert (x.item(), waiting.item()) == (2.0, 10.0)


# other objects where the function looks


class Model:
    def __init__(self) -> None:
        self.w = real(1.0, 2.0)
        self.parts = [real(0.0, 0.0)]
        self.table = {"a": real(1.0, 1.0)}

    def __call__(self, x: Tensor) -> Tensor:
        return (x * self.w + self.parts[-1]) * self.table["a"]


REBINDS: dict[str, Any] = {
    "attribute": lambda m: setattr(m, "w", real(3.0, 4.0)),
    "element": lambda m: m.parts.__setitem__(0, real(5.0, 5.0)),
    "longer": lambda m: m.parts.append(real(7.0, 5.0)),
    "key": lambda m: m.table.update(a=real(2.0, 3.0)),
    "list": lambda m: setattr(m, "parts", [real(2.0, 1.0)]),
}


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("name", REBINDS)
def test_other_tensors_are_seen(name: str, kept: bool, backend: str) -> None:
    model = Model()
    function = recorded(lambda x: model(x), lambda: real(1.0, 1.0))
    old = [model.w, *model.parts, model.table["a"], model.parts] if kept else []
    REBINDS[name](model)
    for i in range(3):
        assert function(real(1.0, i)).tolist() == model(real(1.0, i)).tolist()
    assert len(old) in (0, 4)


def test_state_in_python_is_right_and_said_to_be_slow(backend: str) -> None:
    state = {"h": real(0.0)}

    def step(x: Tensor) -> Tensor:
        state["h"] = (state["h"] * 0.5 + x).realize()
        return state["h"] * 1

    function, want = TinyJit(step), 0.0
    with pytest.warns(RuntimeWarning, match="step is recorded anew in every call"):
        for i in range(8):
            want = want * 0.5 + i
            assert function(real(float(i))).item() == want


# arguments


def test_an_argument_that_the_function_knows(backend: str) -> None:
    """Memory that is an argument and used from a closure, too, is one thing in one call and another in the next."""
    w, y = real(1.0), real(10.0)
    function = TinyJit(lambda x: x * 2 + w)
    for _ in range(3):
        assert function(w).item() == 3.0
    for _ in range(3):
        assert function(y).item() == 21.0
    assert function(w).item() == 3.0

    def step(x: Tensor) -> Tensor:
        x += 1
        return w * 100 + x

    jitted = TinyJit(step)
    for _ in range(3):
        assert jitted(real(0.0)).item() == 101.0
    assert jitted(w).item() == 202.0
    assert jitted(w).item() == 303.0
    assert jitted(real(5.0)).item() == 306.0


def test_parts_as_arguments_are_written(backend: str) -> None:
    def step(x: Tensor) -> Tensor:
        x += 1
        return x * 2

    function, whole = TinyJit(step), real(0.0, 10.0, 20.0)
    want = [0.0, 10.0, 20.0]
    for i in (0, 1, 0, 2, 1):
        want[i] += 1
        assert function(whole[i : i + 1]).tolist() == [want[i] * 2]
        assert whole.tolist() == want
    part = whole[1:2]
    for _ in range(4):
        function(part)
        want[1] += 1
        whole += 1
        want = [v + 1 for v in want]
        assert whole.tolist() == want and part.tolist() == want[1:2]  # it stays a part
    with pytest.raises(JitError, match="parts of the same memory"):
        recorded(lambda a, b: nothing(a.assign(b)), lambda: whole[:1], lambda: whole[1:2])


@pytest.mark.parametrize("first", ["own", "borrowed"])
def test_borrowed_memory(first: str, backend: str) -> None:
    """A function that writes to its argument leaves a numpy array alone, and updates the tensor."""
    def make(kind: str) -> tuple[Tensor, Any]:
        array = np.array([1.0, 2.0], np.float32)
        array.flags.writeable = False
        return (Tensor.from_dlpack(array, device=backend) if kind == "borrowed" else Tensor(array).clone()), array

    def step(x: Tensor) -> None:
        x += 1

    function = TinyJit(step)
    for kind in (first, first, "own", "borrowed", "own", "borrowed"):
        x, array = make(kind)
        for n in (2.0, 3.0):
            function(x)
            assert x.tolist() == [n, n + 1] and array.tolist() == [1.0, 2.0]


def test_equal_values_are_written_apart(backend: str) -> None:
    base = real(1.0, 2.0)
    function = recorded(lambda x: nothing(x.assign(x * 3)), lambda: real(0.0, 0.0))
    a, b = base + 1, base + 1  # one node of the graph
    Tensor.realize(a, b)
    function(a)
    assert (a.tolist(), b.tolist()) == ([6.0, 9.0], [2.0, 3.0])


def test_objects_are_told_apart(backend: str) -> None:
    class Scale:
        def __init__(self, by: float) -> None:
            self.by = real(by)

    function = TinyJit(lambda s, x: x * s.by)
    one: Any = Scale(2.0)
    for _ in range(3):
        assert function(one, real(1.0)).item() == 2.0
    number = id(one)
    del one
    gc.collect()
    others = [Scale(3.0) for _ in range(50)]  # one of them is likely to be where the first was
    for other in sorted(others, key=lambda s: id(s) != number)[:2]:
        with pytest.raises(JitError, match="Scale"):
            function(other, real(1.0))


def test_values_are_told_apart() -> None:
    function = TinyJit(lambda x, c: x * c)
    for _ in range(3):
        function(real(1.0), 0.0)
    with pytest.raises(JitError, match=r"argument 1 was 0.0 .* -0.0"):
        function(real(1.0), -0.0)
    function = TinyJit(lambda x, c: x * c)
    for _ in range(4):
        assert np.isnan(function(real(1.0), float("nan")).item())
    for data in (np.ones(2), bytearray(2), np.float32(1.0)):
        with pytest.raises(JitError, match="of which a record would keep what is in it now"):
            TinyJit(lambda x, c: x)(real(1.0), data)
    deep = TinyJit(lambda x: x[0][0]["a"] + 1)
    for i in range(4):
        assert deep([[{"a": real(float(i))}]]).item() == i + 1
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(JitError, match="contains itself"):
        TinyJit(lambda x: x)(loop)


def test_an_argument_that_gets_other_memory_is_refused() -> None:
    x = real(1.0)
    function = TinyJit(lambda x: nothing(x.replace(x + 1)))
    function(x)
    with pytest.raises(JitError, match="gave argument 0, of shape .* other memory"):
        function(x)


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


# results


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


def test_results_kept_elsewhere(backend: str) -> None:
    """A result has memory of its own in every call, also when the function keeps the tensor in an attribute."""
    class Keeper:
        last: Tensor | None = None

    keeper = Keeper()

    def step(x: Tensor) -> Tensor:
        keeper.last = x * 2
        return keeper.last

    function = TinyJit(step)
    kept = []
    for i in range(6):
        kept.append(function(real(float(i))))
        assert keeper.last is not None and keeper.last.item() == 2.0 * i
    assert [t.item() for t in kept] == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]


def test_what_is_left_uncomputed_says_so(backend: str) -> None:
    kept: dict[str, Tensor] = {}

    def step(x: Tensor) -> Tensor:
        kept["later"] = x * 3
        return x + 1

    function = TinyJit(step)
    for i in range(2):
        function(real(float(i)))
    assert kept["later"].item() == 3.0
    function.reset()
    for i in range(3):
        function(real(float(i)))
    with pytest.raises(RuntimeError, match="was not realised before the memory"):
        kept["later"].item()


def test_what_is_left_uncomputed_is_not_computed_late(backend: str) -> None:
    kept: dict[str, Tensor] = {}

    def step(x: Tensor) -> None:
        y = (-x).clamp(-9, 9)
        kept["later"] = y * 2  # of what the next replay overwrites
        x.assign(y)

    function = TinyJit(step)
    for i in range(2):
        function(real(float(i)))
    function(real(5.0))
    with pytest.raises(RuntimeError, match="was not realised before the memory"):
        kept["later"].item()


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclass
class Out:
    y: Any
    n: int


W = [0.0, 1.0]
RESULTS: dict[str, Any] = {
    "empty": lambda x, w: Tensor.empty(3),
    "none": lambda x, w: nothing((x + 1).realize()),
    "constant": lambda x, w: (x + 1, Tensor.zeros(2), Tensor(3.0)),
    "number": lambda x, w: (x * 2, 7, "text", None),
    "input": lambda x, w: (x, x + 1),
    "view of input": lambda x, w: (x[1:], x.reshape(2, 1), x + 1),
    "captured": lambda x, w: (w, x + 1),
    "view of captured": lambda x, w: (w[1:], x + w),
    "nested": lambda x, w: {"a": [x + 1, (x * 2, {"b": w * x})], "c": Pair(x, 1)},
    "dataclass": lambda x, w: Out(x + w, 3),
    "twice": lambda x, w: (lambda y: (y, y, y[1:]))(x + 1),
    "range": lambda x, w: (Tensor.arange(3), x - 1),
    "bits": lambda x, w: (x.bitcast("int32"), x[1:].contiguous(), w.bitcast("int32"), x + 1),
}


def plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.shape if value.shape == (3,) and value.dtype.name == "float32" else value.tolist()
    if isinstance(value, Out):
        return plain(vars(value))
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("name", RESULTS)
def test_results(name: str, backend: str) -> None:
    w = real(*W)
    function = TinyJit(lambda x: RESULTS[name](x, w))
    kept = []
    for i in range(5):
        x = real(float(i), i + 1.0)
        got = function(x)
        want = plain(RESULTS[name](real(float(i), i + 1.0), w))
        assert plain(got) == want and type(got) is type(RESULTS[name](x, w))
        kept.append((got, want))
    assert all(plain(got) == want for got, want in kept)
    assert function.captured is not None


def test_results_that_alias(backend: str) -> None:
    w = real(0.0, 0.0)
    function = recorded(lambda x: (x, x[1:], w, Tensor.zeros(2), x + 1), lambda: real(1.0, 2.0))
    x = real(1.0, 2.0)
    same, part, state, zeros, _ = function(x)
    assert same is x and state is w
    part += 5
    assert x.tolist() == [1.0, 7.0]
    whole = real(0.0, 1.0, 2.0, 3.0)
    _, part, _, _, _ = function(whole[1:3])
    part += 5
    assert whole.tolist() == [0.0, 1.0, 7.0, 3.0]
    zeros += 1
    assert function(real(0.0, 0.0))[3].tolist() == [0.0, 0.0]


def test_results_that_cannot_be_renewed_are_refused() -> None:
    class Box:
        def __init__(self, t: Tensor) -> None:
            self.t = t

    for function, message in ((lambda x: Box(x + 1), "is a Box with tensors"), (lambda x: iter([x + 1]), "list_iter")):
        jitted = TinyJit(lambda x, f=function: (f(x), (x + 1).realize())[0])
        jitted(real(1.0))
        with pytest.raises(JitError, match=message):
            jitted(real(1.0))


# values from before the call that are not computed


def test_uncomputed_state_is_computed_once(backend: str) -> None:
    w = Tensor.rand(3).contiguous()
    calls: list[int] = []

    def step(x: Tensor) -> Tensor:
        calls.append(1)
        if len(calls) < 2:
            return x + 1
        w.assign(w + x)
        return w * 1

    function = TinyJit(step)
    function(real(1.0, 1.0, 1.0))
    first = function(real(1.0, 1.0, 1.0)).numpy()
    for i in range(1, 4):
        np.testing.assert_array_equal(function(real(1.0, 1.0, 1.0)).numpy(), first + np.float32(i))


def test_uncomputed_values_of_state_are_of_their_time(backend: str) -> None:
    w = real(1.0, 2.0)
    double = w * 2  # not computed
    function = TinyJit(lambda x: x + double)
    for i in range(4):
        assert function(real(float(i), 0.0)).tolist() == [2.0 + i, 4.0]
    w += 1
    for i in range(4):
        assert function(real(float(i), 0.0)).tolist() == [2.0 + i, 4.0]
    triple = w * 3

    def step(x: Tensor) -> Tensor:
        w.assign(w + x)
        return w + triple

    jitted, want = TinyJit(step), np.array([2.0, 3.0])
    for _ in range(5):
        want = want + 1
        assert jitted(real(1.0, 1.0)).tolist() == (want + np.array([6.0, 9.0])).tolist()


def test_what_the_function_builds_like_others_is_its_own(backend: str) -> None:
    """Equal graphs are one node: that somebody lets go of his, or computes it, says nothing about the function's."""

    def halves() -> Tensor:
        return Tensor.arange(3).float() * 0.5

    w = real(1.0, 2.0, 3.0)
    with Tensor.no_grad():
        waiting = halves() * w
        function = TinyJit(lambda x: halves() * x)
        for _ in range(2):
            function(real(1.0, 2.0, 3.0))
    record = function.captured
    assert waiting.tolist() == [0.0, 1.0, 3.0]
    del waiting
    w += 1
    with Tensor.no_grad():
        assert function(real(2.0, 2.0, 2.0)).tolist() == [0.0, 1.0, 2.0]
    assert function.captured is record is not None


# variables


def test_a_variable_that_is_no_argument_is_refused(backend: str) -> None:
    n, x = Variable("n", 1, 10), Tensor.arange(10).contiguous().realize()
    at = [3]
    function = TinyJit(lambda y: x[: n.bind(at[0])].sum() + y)
    assert function(real(0.0)).item() == 3.0
    with pytest.raises(JitError, match="the value of the variable n, which is not among its arguments"):
        function(real(0.0))


def test_results_that_depend_on_variables_alone(backend: str) -> None:
    n = Variable("n", 1, 10)
    function = TinyJit(lambda x, i: (Tensor(i), Tensor.arange(i), Tensor.zeros(i, 2), x + 1))
    for i in (3, 2, 5, 1):
        value, places, zeros, _ = function(real(1.0), n.bind(i))
        assert (value.item(), places.tolist(), zeros.tolist()) == (i, list(range(i)), [[0.0, 0.0]] * i)


# methods


def test_what_a_function_leaves_is_left_again(backend: str) -> None:
    """A tensor that calls put into an attribute is there again after somebody took it away or gave it other memory."""
    class Keeper:
        last: Tensor | None = None

    keeper = Keeper()

    def step(x: Tensor) -> Tensor:
        keeper.last = (x * 2).realize()
        return x + 1

    function = TinyJit(step)
    for i in range(7):
        function(real(float(i)))
        assert keeper.last is not None and keeper.last.item() == 2.0 * i
        if i == 3:
            keeper.last.replace(real(9.0))
        if i == 5:
            keeper.last = None


def test_results_may_be_written_to(backend: str) -> None:
    """What the caller does to the result of the recorded call does not show in the results of replays."""
    function = TinyJit(lambda x: (x + 1, Tensor.zeros(2), x.sum().reshape(1)))
    for i in range(6):
        got = function(real(float(i), 1.0))
        assert [t.tolist() for t in got] == [[i + 1.0, 2.0], [0.0, 0.0], [i + 1.0]]
        for t in got:
            t += 7
            t.replace(t.clone().realize())


def test_what_a_record_writes_as_an_argument(backend: str) -> None:
    """A tensor that the function left somewhere is in memory that replays write: as an argument it is recorded anew."""
    state = {"h": real(0.0)}

    def step(x: Tensor) -> Tensor:
        state["h"] = (x * 0 + 5).realize()
        return x * 2

    function = TinyJit(step)
    for i in range(3):
        function(real(float(i)))
    state["h"].assign([3.0])
    assert function(state["h"]).item() == 6.0
    assert function(state["h"]).item() == 10.0


def test_results_that_copy(backend: str) -> None:
    """What copies without TinyJit (a repetition, padding) does so in a replay, though nothing had to be computed."""
    w = real(1.0, 2.0)

    def step(x: Tensor) -> Any:
        w.assign(x)
        return w.pad(((0, 1),)), x.pad(((0, 1),)), w**1

    function, kept = TinyJit(step), []
    for i in range(6):
        kept.append(function(real(float(i), 1.0)))
    for i, got in enumerate(kept):
        assert [t.tolist() for t in got] == [[i, 1.0, 0.0], [i, 1.0, 0.0], [i, 1.0]]


def test_constants_in_results(backend: str) -> None:
    """What Python made of numbers has memory of its own in each result, too."""
    function = TinyJit(lambda x: (x + 1, Tensor([1.0, 2.0, 4.0])))
    kept = [function(real(float(i)))[1] for i in range(5)]
    kept[3] += 1
    assert [t.tolist() for t in kept] == [[2.0, 3.0, 5.0] if i == 3 else [1.0, 2.0, 4.0] for i in range(5)]
    n, w = Variable("n", 1, 4), real(1.0, 2.0, 3.0, 4.0)
    symbolic = TinyJit(lambda x: (x + 1, w[: x.shape[0]]))
    for size in (2, 4, 1, 3):
        assert symbolic(real(0.0, 0.0, 0.0, 0.0)[: n.bind(size)])[1].tolist() == w.tolist()[:size]


def test_memory_that_is_given_while_recording(backend: str) -> None:
    w = real(1.0)
    calls: list[int] = []

    def step(x: Tensor) -> Tensor:
        calls.append(1)
        w.assign(w + x)
        return x * 2

    function, want = TinyJit(step), 1.0
    for i in range(8):
        if i in (1, 5):
            w.replace(Tensor([float(10 * i)]) + 0)  # no memory yet, which it gets in the call
            want = 10.0 * i
        function(real(1.0))
        want += 1
        assert w.item() == want
    assert len(calls) < 8


def test_each_instance_has_a_record(backend: str) -> None:
    class Scale:
        def __init__(self, by: float) -> None:
            self.by = real(by)

        @TinyJit
        def scaled(self, x: Tensor) -> Tensor:
            return x * self.by

    scales = [Scale(float(i)) for i in range(3)]
    for i in range(4):
        assert [s.scaled(real(float(i))).item() for s in scales] == [0.0, i, 2.0 * i]
    assert len({id(s.scaled.captured) for s in scales}) == 3 and scales[0].scaled.cnt == 2
    scales[0].scaled.reset()
    assert scales[0].scaled.captured is None and scales[1].scaled.captured is not None
    gone = [weakref.ref(s) for s in scales]
    del scales
    gc.collect()
    assert [g() for g in gone] == [None] * 3
    assert not Scale.scaled._methods


def test_a_record_costs_nothing_more(backend: str) -> None:
    """A step whose state is written in place has as many kernels as it has without a record."""
    w = real(1.0, 2.0).requires_grad_()
    optimizer = nn.optim.SGD([w], lr=0.5)

    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = (w * w * x).sum().backward()
        optimizer.step()
        return loss

    with Context(JIT=0):
        for _ in range(2):
            TinyJit(step)(real(1.0, 1.0))
        x = real(1.0, 1.0)
        before = GlobalCounters.kernel_count
        TinyJit(step)(x)
        want = GlobalCounters.kernel_count - before
    function = recorded(step, lambda: real(1.0, 1.0))
    x = real(1.0, 1.0)
    before = GlobalCounters.kernel_count
    function(x)
    assert GlobalCounters.kernel_count - before == want


# where a function's tensors are looked for


def _installed(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> Any:
    """A module that is imported as one of an installed package."""
    place = folder / "site-packages"
    place.mkdir(exist_ok=True)
    (place / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


def test_tensors_of_installed_packages_that_use_ours_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    module = _installed(
        tmp_path, monkeypatch, "installed_model",
        "from tg_frontend import Tensor\nscale = Tensor([2.0]).realize()\ndef model(x): return x * scale\n",
    )  # fmt: skip
    function = recorded(lambda x: module.model(x), lambda: real(1.0))
    module.scale = real(3.0)
    assert function(real(5.0)).item() == 15
    module.scale.assign(real(4.0))
    assert function(real(5.0)).item() == 20


def test_what_is_handed_through_foreign_code_is_found(backend: str) -> None:
    space = SimpleNamespace(scale=real(2.0), more={"w": deque([real(1.0)])})

    @contextmanager
    def scaled(by: SimpleNamespace = space) -> Iterator[Tensor]:
        yield by.scale + by.more["w"][0]

    def step(x: Tensor) -> Tensor:
        with scaled() as scale:
            return x * scale

    function = recorded(step, lambda: real(1.0))
    space.scale = real(3.0)
    space.more["w"][0] += 1
    assert function(real(5.0)).item() == 25


def test_the_walk_does_not_enter_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = _installed(
        tmp_path, monkeypatch, "installed_library",
        "table = {n: [n] for n in range(900)}\ndef look(x): return table, x\nclass Thing:\n    all = table\n",
    )  # fmt: skip

    def step(x: Tensor) -> Any:
        assert np.sum(x.numpy()) == 0 or gc.isenabled() or warnings.catch_warnings()
        return other.look(x), other.Thing, random.Random(0), np.random.default_rng

    assert len(Reached([step])._into) < 20
