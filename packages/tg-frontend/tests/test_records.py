"""Records never answer with what was: a replay gives what a call of the function would give, or says why it cannot."""

from __future__ import annotations

import gc
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

from tg_frontend import JitError, Tensor, TinyJit, nn
from tg_lazy import Context
from tg_runtime import GlobalCounters
from tg_shape import Variable

pytestmark = pytest.mark.usefixtures("no_warning")


def real(*values: float) -> Tensor:
    return Tensor(list(values)).contiguous().realize()


def nothing(_: Any) -> None:
    """For functions that only do something."""


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
def test_writes_between_calls_are_seen(name: str, backend: str, recorded: Any) -> None:
    w = real(1.0, 2.0, 3.0)
    function = recorded(lambda x: (x * w).sum(), lambda: real(1.0, 1.0, 1.0))
    record = function.captured
    for _ in range(3):
        WRITES[name](w)
        for _ in range(2):
            got = function(real(1.0, 2.0, 4.0)).item()
            assert got == (np.array([1.0, 2.0, 4.0]) * w.numpy()).sum()
    assert (function.captured is record) == (name != "replace")


def test_the_learning_rate_is_seen(backend: str, recorded: Any) -> None:
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


def test_a_restored_state_is_seen(backend: str, recorded: Any) -> None:
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


def test_lazy_readers_keep_their_values(backend: str, recorded: Any) -> None:
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
def test_other_tensors_are_seen(name: str, kept: bool, backend: str, recorded: Any) -> None:
    model = Model()
    function = recorded(lambda x: model(x), lambda: real(1.0, 1.0))
    old = [model.w, *model.parts, model.table["a"], model.parts] if kept else []
    REBINDS[name](model)
    for i in range(3):
        assert function(real(1.0, i)).tolist() == model(real(1.0, i)).tolist()
    assert len(old) in (0, 4)


class Slotted:
    """Keeps what it has in slots, one of them with a private name."""

    __slots__ = ("__hidden", "__weakref__", "w")

    def __init__(self) -> None:
        self.bind(2.0, 3.0)

    def bind(self, w: float, hidden: float) -> None:
        self.w, self.__hidden = real(w), real(hidden)

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.w + self.__hidden


@pytest.mark.parametrize("kept", [False, True])
def test_what_is_bound_to_a_slot_is_seen(kept: bool, backend: str, recorded: Any) -> None:
    model = Slotted()
    old = [model.w, model._Slotted__hidden] if kept else []  # type: ignore[attr-defined]
    function = recorded(lambda x: model(x), lambda: real(1.0))
    assert function(real(4.0)).item() == 11.0
    model.bind(5.0, 3.0)
    assert function(real(4.0)).item() == 23.0
    model.bind(5.0, 7.0)
    assert function(real(4.0)).item() == 27.0
    assert len(old) in (0, 2)


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


@pytest.mark.parametrize(("calls", "words"), [(1, "every call"), (2, "every few calls"), (12, "every few calls")])
def test_tensors_in_turn_that_the_function_knows_are_said_to_be_slow(calls: int, words: str, backend: str) -> None:
    """As arguments: each is recorded by itself, after one replay or after several."""
    model = Model()
    model.w = real(3.0)
    model.parts = [real(1.0), real(2.0)]

    def step(of: Model, x: Tensor) -> Tensor:
        return of.w * x

    function = TinyJit(step)
    with pytest.warns(RuntimeWarning, match=f"step is recorded anew in {words}, .* choose among tensors"):
        for i in range(6 * calls):
            assert function(model, model.parts[i // calls % 2]).item() == 3.0 * (1 + i // calls % 2)


def test_a_record_that_served_for_long_may_be_made_anew(backend: str) -> None:
    model = Model()
    model.w, model.parts = real(3.0), [real(1.0), real(2.0)]
    function = TinyJit(lambda of, x: of.w * x)
    for i in range(100):
        assert function(model, model.parts[i // 20 % 2]).item() == 3.0 * (1 + i // 20 % 2)


@pytest.mark.parametrize("place", ["element", "key", "attribute"])
@pytest.mark.parametrize("kept", [False, True])
def test_state_that_the_function_itself_rebinds(place: str, kept: bool, backend: str) -> None:
    """It reads what the last call put there, whoever else still holds what the call before that had put there."""

    def run(wrap: Any) -> list[float]:
        model, old, seen = Model(), [], []
        model.w = real(3.0)

        def step(_: Tensor) -> Tensor:
            holder = model.parts if place == "element" else model.table if place == "key" else vars(model)
            key: Any = {"element": 0, "key": "a", "attribute": "other"}[place]
            before = holder.get(key, real(0.0)) if isinstance(holder, dict) else holder[key]
            holder[key] = (model.w + 1).realize()
            model.w.assign(before * 2)
            old.append(before if kept else None)
            return Tensor.zeros(2)

        model.parts, model.table, model.other = [real(0.0)], {"a": real(0.0)}, real(0.0)  # type: ignore[attr-defined]
        function = wrap(step)
        for i in range(7):
            function(real(float(i)))
            seen.append(model.w.item())
        return seen

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert run(TinyJit) == run(lambda function: function)


@pytest.mark.parametrize("change", ["set", "add", "rebind", "replace"])
@pytest.mark.parametrize("when", [0, 1, 2, 4])
def test_a_constant_that_python_computed_with(change: str, when: int, backend: str) -> None:
    """``c + 1`` of a constant is a constant at once: no kernel shows that ``c`` was used."""

    def run(wrap: Any) -> list[Any]:
        world = {"c": Tensor.full((3,), 2.0)}
        function, seen = wrap(lambda x: (x * 1.0, world["c"] + 1)), []
        for i in range(7):
            seen.append(function(real(0.0, float(i)))[1].tolist())
            if i == when and change == "set":
                world["c"][1] = 7
            elif i == when and change == "add":
                world["c"] += 3
            elif i == when and change == "rebind":
                world["c"] = Tensor.full((3,), 5.0)
            elif i == when:
                world["c"].replace(Tensor.full((3,), 6.0))
        return seen

    assert run(TinyJit) == run(lambda function: function)


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


def test_a_part_of_a_waiting_value_that_somebody_computes_is_what_it_was_then(backend: str) -> None:
    """The waiting value is made of that part from then on, whatever is written to what the part is made of."""
    w = real(1.0, 2.0, 3.0)
    with Tensor.no_grad():
        waiting = w * 2 + 1
        function = TinyJit(lambda x: x * waiting)
        for _ in range(3):
            function(real(1.0, 1.0, 1.0))
        assert function.captured is not None
        part = (w * 2).realize()
        w += 10
        for n in (1.0, 2.0):
            assert function(real(n, n, n)).tolist() == [3.0 * n, 5.0 * n, 7.0 * n]
    assert part.tolist() == [2.0, 4.0, 6.0] and waiting.tolist() == [3.0, 5.0, 7.0]


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


def test_a_record_costs_nothing_more(backend: str, recorded: Any) -> None:
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
