"""TinyJit: what a replay does, and what it refuses."""

from __future__ import annotations

import gc
import threading
import weakref
from contextvars import copy_context
from typing import Any

import numpy as np
import pytest

from tg_frontend import JitError, Tensor, TinyJit, nn
from tg_frontend.jit import tinyjit
from tg_frontend.jit.call import Call
from tg_lazy import Context
from tg_runtime import Device, GlobalCounters
from tg_shape import Variable


def real(*values: float) -> Tensor:
    return Tensor(list(values)).realize()


def test_replays_compute_on_their_inputs(backend: str) -> None:
    calls = []

    @TinyJit
    def function(a: Tensor, b: Tensor) -> Tensor:
        calls.append(1)
        return ((a + 1) * b).sum() + a.max()

    for i in range(6):
        assert function(real(i, 2.0), real(3.0, i)).item() == (i + 1) * 3 + 3 * i + max(i, 2)
    assert len(calls) == 2
    assert function.captured is not None
    function.reset()
    assert function(real(1.0, 2.0), real(1.0, 1.0)).item() == 7.0 and len(calls) == 3


def test_a_replay_is_one_launch_where_the_device_condenses(backend: str) -> None:
    @TinyJit
    def function(x: Tensor) -> Tensor:
        for _ in range(5):
            x = (x + 1).realize()
        return x

    results = [function(real(float(i))).item() for i in range(4)]
    assert results == [5.0, 6.0, 7.0, 8.0]
    before = GlobalCounters.kernel_count
    function(real(0.0))
    assert GlobalCounters.kernel_count - before == 5
    assert function.captured is not None
    if backend == "CPU":
        assert len(function.captured.steps) == 1
    with Context(JIT=2):
        function.reset()
        assert [function(real(float(i))).item() for i in range(4)] == results
        assert function.captured is not None and len(function.captured.steps) == 5


def test_memory_between_kernels_is_shared(backend: str) -> None:
    @TinyJit
    def shifted(x: Tensor) -> Tensor:
        for _ in range(6):
            x = (x + x.flip(0)).contiguous()
        return x

    data = np.arange(4096, dtype=np.float32)
    expected = data
    for _ in range(6):
        expected = expected + expected[::-1]
    assert shifted.memory is None
    for k in range(4):
        result = shifted(Tensor(data + k, device=backend).realize())
        np.testing.assert_array_equal(result.numpy(), expected + k * 64)
    memory = shifted.memory
    assert memory is not None
    if Device[backend].allocator.arenas:
        assert (memory.buffers, memory.nbytes, memory.arena_nbytes) == (5, 5 * 4 * 4096, 2 * 4 * 4096)
    else:
        assert memory.buffers == 0


def test_a_record_is_told(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    twice = TinyJit(lambda x: (x + x.flip(0)).contiguous().flip(0) + 1)
    with Context(DEBUG=1):
        for _ in range(2):
            twice(Tensor([1.0, 2.0], device=backend))
    assert "recorded 2 steps" in capsys.readouterr().out


def test_results_of_different_calls_do_not_share_memory(backend: str) -> None:
    function = TinyJit(lambda x: x * 2)
    kept = [function(real(float(i))) for i in range(5)]
    assert [t.item() for t in kept] == [0.0, 2.0, 4.0, 6.0, 8.0]


def test_nested_arguments_and_results(backend: str) -> None:
    @TinyJit
    def function(pair: tuple[Tensor, Tensor], *, named: dict[str, Any], rows: list[Tensor], n: int) -> dict[str, Any]:
        total = pair[0] + pair[1] * n + named["x"] + rows[0]
        return {"total": total, "list": [total.T, (total * 2, "text")], "input": pair[0], "rows": rows}

    for i in range(4):
        got = function((real(1.0, i), real(2.0, 3.0)), named={"x": real(i, 1.0), "k": None}, rows=[real(5.0, 6.0)], n=2)
        total = [1.0 + 4 + i + 5, i + 6 + 1.0 + 6]
        assert got["total"].tolist() == total and got["list"][0].tolist() == total
        assert got["list"][1][0].tolist() == [2 * t for t in total] and got["list"][1][1] == "text"
        assert got["input"].tolist() == [1.0, i] and got["rows"][0].tolist() == [5.0, 6.0]


def test_views_and_constants_as_inputs(backend: str) -> None:
    table = Tensor(np.arange(12, dtype=np.float32).reshape(4, 3)).realize()
    function = TinyJit(lambda row, c: (row * 2 + c).sum())
    for i in range(4):
        assert function(table[i], Tensor(float(i))).item() == 2 * (9 * i + 3) + 3 * i
    for i in range(3):
        assert function(table.T[:, i], Tensor.full((), 1.0)).item() == 2 * (9 * i + 3) + 3


def test_variables_may_change(backend: str) -> None:
    n = Variable("n", 1, 10)
    x = Tensor.arange(10).contiguous().realize()

    @TinyJit
    def function(x: Tensor, count: Any) -> Tensor:
        return (x[:count] * 2).sum().add(count)

    for i in range(1, 7):
        assert function(x, n.bind(i)).item() == i * (i - 1) + i


def test_symbolic_inputs(backend: str) -> None:
    n = Variable("n", 1, 10)
    x = Tensor.arange(10).contiguous().realize()
    function = TinyJit(lambda part: part.sum())
    for i in range(1, 6):
        assert function(x[: n.bind(i)]).item() == i * (i - 1) // 2


def test_state_is_changed_by_assignment(backend: str) -> None:
    count, cache = Tensor([0]).contiguous().realize(), Tensor.zeros(4).contiguous().realize()

    @TinyJit
    def function(x: Tensor) -> Tensor:
        count.assign(count + 1)
        cache[1:3] = x
        return cache.sum()

    for i in range(5):
        assert function(real(i, 1.0)).item() == i + 1
        assert count.tolist() == [i + 1] and cache.tolist() == [0.0, i, 1.0, 0.0]


def test_assigning_to_an_input(backend: str) -> None:
    @TinyJit
    def function(x: Tensor) -> None:
        x.assign(x + 1)

    x, y = real(1.0).contiguous().realize(), real(10.0).contiguous().realize()
    for _ in range(3):
        function(x)
    function(y)
    assert x.tolist() == [4.0] and y.tolist() == [11.0]


def test_a_training_step_is_the_same_with_and_without(backend: str) -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.standard_normal((5, 4, 1, 6, 6)).astype(np.float32), rng.integers(0, 3, (5, 4))

    def train(jit: bool) -> tuple[list[float], list[Any]]:
        Tensor.manual_seed(5)
        conv, norm, linear = nn.Conv2d(1, 2, 3), nn.BatchNorm(2), nn.Linear(8, 3)
        model = [conv, norm, linear]
        optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.05)

        @Tensor.train()
        def step(x: Tensor, y: Tensor) -> Tensor:
            optimizer.zero_grad()
            hidden = norm(conv(x)).relu().max_pool2d(2).flatten(1).dropout(0.25)
            loss = linear(hidden).sparse_categorical_crossentropy(y).backward()
            optimizer.step()
            return loss

        run: Any = TinyJit(step) if jit else step
        losses = [run(Tensor(x), Tensor(y)) for x, y in zip(images, labels, strict=True)]
        return [loss.item() for loss in losses], [t.tolist() for t in nn.state.get_parameters(model)]

    assert train(True) == train(False)


def test_random_numbers_are_new_in_each_replay(backend: str) -> None:
    def draw() -> list[list[float]]:
        Tensor.manual_seed(1)
        function = TinyJit(lambda x: (x + Tensor.rand(3), Tensor.randint(2, high=1000)))
        return [part.tolist() for _ in range(5) for part in function(real(0.0, 0.0, 0.0))]

    with Context(JIT=0):
        eager = draw()
    assert draw() == eager and len({str(row) for row in eager}) == 10


def test_methods_and_decorators(backend: str) -> None:
    class Scale:
        def __init__(self, by: float) -> None:
            self.by = real(by)

        @TinyJit
        def __call__(self, x: Tensor) -> Tensor:
            return x.mul(self.by)

    double = Scale(2.0)
    assert [double(real(float(i))).item() for i in range(4)] == [0.0, 2.0, 4.0, 6.0]
    triple = Scale(3.0)
    for i in range(4):  # each instance has a record of its own
        assert (triple(real(float(i))).item(), double(real(float(i))).item()) == (3.0 * i, 2.0 * i)


def test_one_inside_another(backend: str) -> None:
    inner = TinyJit(Tensor.exp2)
    outer = TinyJit(lambda x: inner(x) * 2)
    assert [outer(real(float(i))).item() for i in range(5)] == [2.0, 4.0, 8.0, 16.0, 32.0]


def test_what_must_not_change() -> None:
    function = TinyJit(lambda x, n=1, *, d=None: x * n)
    for _ in range(3):
        function(real(1.0, 2.0), 2, d={"k": real(1.0)})
    where = "on NUMPY"
    bad: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((real(1.0), 2), {}, rf"argument 0 was a tensor of shape \(2,\), float32, {where} .* shape \(1,\)"),
        ((Tensor([1, 2]), 2), {}, r"float32, .* int32"),
        ((real(1.0, 2.0).to("NUMPY:1"), 2), {}, "on NUMPY:1"),
        ((real(1.0, 2.0), 3), {}, "argument 1 was 2 when it was recorded, now it is 3"),
        ((real(1.0, 2.0), 2.0), {}, "argument 1 was 2 .* 2.0"),
        ((real(1.0, 2.0),), {}, "argument 1"),
        ((2.0, 2), {}, "argument 0"),
    ]
    for args, kwargs, message in bad:
        with pytest.raises(JitError, match=message):
            function(*args, **{"d": {"k": real(1.0)}, **kwargs})
    with pytest.raises(JitError, match="argument 'd'"):
        function(real(1.0, 2.0), 2, d={"other": real(1.0)})
    with pytest.raises(JitError, match=r"argument 'd'\['k'\]"):
        function(real(1.0, 2.0), 2, d={"k": real(1.0, 2.0)})
    with pytest.raises(JitError, match=r"Tensor\.training"), Tensor.train():
        function(real(1.0, 2.0), 2, d={"k": real(1.0)})
    assert function(real(3.0, 2.0), 2, d={"k": real(1.0)}).tolist() == [6.0, 4.0]


def test_duplicate_inputs_are_named() -> None:
    function = TinyJit(lambda x, y: x + y)
    x = real(1.0)
    with pytest.raises(JitError, match="argument 0 and argument 1 are the same tensor"):
        function(x, x)
    with pytest.raises(JitError, match="argument 0 and argument 1 are the same memory"):
        function(x, x.reshape(1, 1).reshape(1))
    assert [function(x, real(2.0)).item() for _ in range(3)] == [3.0] * 3
    n = Variable("n", 1, 3)
    with pytest.raises(JitError, match="binds the variable n to 1 and to 2"):
        TinyJit(lambda a, b: a)(n.bind(1), n.bind(2))


def test_reading_while_recording_is_refused() -> None:
    function = TinyJit(lambda x: x * x.sum().item())
    assert function(real(2.0)).item() == 4.0
    with pytest.raises(RuntimeError, match="was read inside of a function while TinyJit records it"):
        function(real(2.0))
    shown = TinyJit(lambda x: (repr(x), x + 1)[1])
    assert [shown(real(1.0)).item() for _ in range(3)] == [2.0] * 3


def test_a_function_that_executes_nothing_is_refused() -> None:
    function = TinyJit(lambda x: x)
    function(real(1.0))
    with pytest.raises(JitError, match="executed nothing"):
        function(real(1.0))


def test_a_failure_while_recording_can_be_repeated(backend: str) -> None:
    calls: list[int] = []

    def fragile(x: Tensor) -> Tensor:
        calls.append(1)
        if len(calls) == 2:
            raise OSError("once")
        return x + Tensor.rand(1) * 0

    function = TinyJit(fragile)
    assert function(real(1.0)).item() == 1.0
    with pytest.raises(OSError, match="once"):
        function(real(1.0))
    assert [function(real(float(i))).item() for i in range(4)] == [0.0, 1.0, 2.0, 3.0] and len(calls) == 3


def test_gradients_end_at_the_border() -> None:
    w = Tensor([2.0], requires_grad=True)
    function = TinyJit(lambda x: (x * w).sum())
    for _ in range(3):
        out = function(real(3.0))
        assert out.item() == 6.0
        with pytest.raises(RuntimeError, match="depends on nothing"):
            out.backward()


def test_it_can_be_turned_off() -> None:
    calls: list[int] = []

    @TinyJit
    def function(x: Tensor) -> Tensor:
        calls.append(1)
        return x + 1

    with Context(JIT=0):
        assert [function(real(float(i))).item() for i in range(4)] == [1.0, 2.0, 3.0, 4.0]
    assert len(calls) == 4


def test_two_threads(backend: str) -> None:
    function = TinyJit(lambda x: (x * 2).contiguous() + 1)
    for _ in range(3):
        function(real(0.0))
    wrong: list[float] = []

    def work(base: int) -> None:
        for i in range(20):
            value = float(base + i)
            got = float(function(real(value)))
            if got != 2 * value + 1:
                wrong.append(got)

    threads = [threading.Thread(target=copy_context().run, args=(work, 100 * i)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_assignments_before_the_call_are_not_recorded(backend: str) -> None:
    state = Tensor.zeros(3).contiguous().realize()
    double = TinyJit(lambda x: x * 2)
    double(Tensor([1.0]))
    state.assign(state + 1)
    for _ in range(4):
        double(Tensor([1.0]))
    assert state.tolist() == [1.0, 1.0, 1.0]


def test_the_same_tensors_again(backend: str) -> None:
    calls = []

    def fn(x: Tensor, w: Tensor) -> Tensor:
        calls.append(1)
        return (x @ w).realize()

    jitted = TinyJit(fn)
    x, w = Tensor([[1.0, 2.0]]).realize(), Tensor([[1.0, 0.0], [0.0, 1.0]]).realize()
    results = [jitted(x, w) for _ in range(5)]
    assert len(calls) == 2
    assert len({id(result.lazydata.storage) for result in results}) == 5  # each has memory of its own
    assert all(result.tolist() == [[1.0, 2.0]] for result in results)
    x.assign(Tensor([[3.0, 4.0]])).realize()
    assert jitted(x, w).tolist() == [[3.0, 4.0]]
    assert jitted(Tensor([[5.0, 6.0]]).realize(), w).tolist() == [[5.0, 6.0]]
    assert jitted(x, w).tolist() == [[3.0, 4.0]]
    x.assign(x + 1)  # not executed yet
    assert jitted(x, w).tolist() == [[4.0, 5.0]]
    with pytest.raises(JitError, match="shape"):
        jitted(Tensor([[1.0], [2.0]]).realize(), w)
    assert jitted(x, w).tolist() == [[4.0, 5.0]]
    Tensor.training = True
    try:
        with pytest.raises(JitError, match="training"):
            jitted(x, w)
    finally:
        Tensor.training = False


def test_plain_arguments_are_recognised(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments like the recorded ones do not take the way that tells what is wrong; all others do."""
    n = Variable("n", 1, 10)
    looked: list[tuple[Any, ...]] = []

    class Looked(Call):
        def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], *more: Any, **named: Any) -> None:
            looked.append(args)
            super().__init__(args, kwargs, *more, **named)

    monkeypatch.setattr(tinyjit, "Call", Looked)
    function = TinyJit(lambda x, count, y, factor: ((x[:count] * factor).sum() + y.sum()).realize())
    xs = [Tensor.arange(10).contiguous().realize() for _ in range(2)]
    ys = [real(1.0, 2.0), real(3.0, 4.0), Tensor([[5.0], [6.0]]).realize().reshape(2)]
    for i in range(2):
        function(xs[i], n.bind(2), ys[i], 3)
    assert len(looked) == 2
    for i in range(1, 7):
        x, y = xs[i % 2], ys[i % 3]
        assert function(x, n.bind(i), y, 3).item() == 3 * i * (i - 1) / 2 + sum(y.tolist())
    assert len(looked) == 2
    bad: list[tuple[tuple[Any, ...], str]] = [
        ((xs[0], n.bind(2), ys[0], 4), "argument 3 was 3"),
        ((xs[0], 2, ys[0], 3), "argument 1"),
        ((xs[0], Variable("m", 1, 10).bind(2), ys[0], 3), "argument 1"),
        ((xs[0], n.bind(2), ys[0]), "argument 3"),
        ((xs[0], n.bind(2), ys[0].cast("float64").realize(), 3), "float64"),
        ((xs[0], n.bind(2), ys[0].to("NUMPY:1").realize(), 3), "NUMPY:1"),
        ((xs[0], n.bind(2), xs[1], 3), "shape"),
    ]
    for args, message in bad:
        with pytest.raises(JitError, match=message):
            function(*args)
    assert len(looked) == 2 + len(bad)
    wider = Tensor([7.0, 8.0, 9.0]).realize()
    assert function(xs[0], n.bind(1), wider[1:], 3).item() == 17.0  # a part, of which a copy is passed
    assert len(looked) == 3 + len(bad)
    ys[0].assign(ys[0] + 1)  # not executed yet
    assert function(xs[0], n.bind(1), ys[0], 3).item() == 5.0
    twice = TinyJit(lambda x, y: (x + y).realize())
    for _ in range(3):
        twice(ys[0], ys[1])
    with pytest.raises(JitError, match="the same tensor"):
        twice(ys[0], ys[0])
    with pytest.raises(JitError, match="the same memory"):
        twice(ys[0], ys[0].reshape(2, 1).reshape(2))


def test_a_single_kernel_is_a_graph_where_that_is_sooner(backend: str) -> None:
    function = TinyJit(lambda x: (x + 1).realize())
    for i in range(4):
        assert function(real(float(i))).item() == i + 1
    assert function.captured is not None
    ((item, _),) = function.captured.steps
    graph = Device[backend].graph
    assert (type(item.prg) is graph) == (backend == "CPU")
    before = GlobalCounters.kernel_count, GlobalCounters.global_ops
    function(real(1.0))
    assert (GlobalCounters.kernel_count - before[0], GlobalCounters.global_ops - before[1]) == (1, 1)


def test_arguments_are_not_kept_alive(backend: str) -> None:
    jitted = TinyJit(lambda x: (x + 1).realize())
    for _ in range(4):
        x = Tensor([1.0, 2.0]).realize()
        jitted(x)
        jitted(x)
    gone = weakref.ref(x.lazydata)
    del x
    gc.collect()
    assert gone() is None


def test_a_gradient_that_nobody_else_holds_is_not_copied() -> None:
    """What flows back through a lookup was made for the table that it flows to: it is the result itself."""
    table = Tensor(np.zeros((700, 3), np.float32)).realize()
    index = Tensor(np.arange(400, dtype=np.int32) % 7).realize()
    function = TinyJit(lambda weights, index: table[index].gradient(table, gradient=weights)[0].realize())
    found = []
    for factor in range(1, 6):
        found.append(function(Tensor.full((400, 3), float(factor)).contiguous().realize(), index))
    before = GlobalCounters.kernel_count
    found.append(function(Tensor.full((400, 3), 6.0).contiguous().realize(), index))
    assert GlobalCounters.kernel_count - before == 3, "the argument, zeros, and what is added"
    for factor, out in enumerate(found, 1):
        assert out.numpy()[:8, 0].tolist() == [58 * factor, *[57 * factor] * 6, 0]
    found[-1].assign(found[-1] * 0).realize()
    assert found[-2].numpy()[0, 0] == 58 * 5


def test_equal_gradients_in_a_record_have_memory_of_their_own() -> None:
    x, y = Tensor([1.0, 2.0]).realize(), Tensor([7.0, 8.0]).realize()

    @TinyJit
    def function(w: Tensor) -> list[Tensor]:
        found = (x + y).gradient(x, y, gradient=w * 2)
        found[0].realize(*found[1:])
        return found

    for _ in range(4):
        a, b = function(Tensor([3.0, 5.0]).realize())
        a.assign(a * 0).realize()
        assert b.tolist() == [6.0, 10.0]
