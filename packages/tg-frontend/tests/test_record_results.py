"""Results of replays: whose memory they are, and what the function leaves elsewhere."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from tg_frontend import JitError, Tensor, TinyJit, fft, scan
from tg_lazy import Ops
from tg_shape import Variable

pytestmark = pytest.mark.usefixtures("no_warning")


def real(*values: float) -> Tensor:
    return Tensor(list(values)).contiguous().realize()


def nothing(_: Any) -> None:
    """For functions that only do something."""


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
    with pytest.raises(RuntimeError, match="is not left by replays"):
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
    with pytest.raises(RuntimeError, match="is not left by replays"):
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


def test_results_that_alias(backend: str, recorded: Any) -> None:
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
    beside = Tensor.zeros(2)  # the same numbers, of which there is one node
    function = TinyJit(lambda x: (x + 1, Tensor.zeros(2), x.sum().reshape(1)))
    for i in range(6):
        got = function(real(float(i), 1.0))
        assert beside.lazydata.base.op is Ops.CONST
        assert [t.tolist() for t in got] == [[i + 1.0, 2.0], [0.0, 0.0], [i + 1.0]]
        for t in got:
            t += 7
            t.replace(t.clone().realize())


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


# results that share memory with each other


def _written_first(x: Tensor) -> Any:
    y = x + 1
    z = y[1:]
    z *= 2
    return y.realize(), z


CONSTANT: dict[str, Tensor] = {}
SHARING: dict[str, Any] = {
    "a view": _written_first,
    "views alone": lambda x: ((y := x + 1)[1:], y[:2], y[::2]),
    "twice": lambda x: ((y := x + 1), y),
    "detached": lambda x: ((y := x + 1), y.detach(), y.reshape(3, 1)),
    "bits": lambda x: ((y := x + 1), y.bitcast("int32")),
    "bits alone": lambda x: ((y := x + 1).bitcast("int32"), y.bitcast("int32")[1:]),
    "bits of the argument": lambda x: (x.bitcast("int32"), x * 2),
    "views of the argument": lambda x: (x[1:], x[:2], x * 2),
    "a constant": lambda x: ((y := Tensor.full((3,), 2.0)), y[1:], x * 2),
    "a value from outside": lambda x: (CONSTANT["c"][1:], CONSTANT["c"], x * 2),
    "equal": lambda x: (x * 0 + 5, x * 0 + 5),
    "bits of an equal value": lambda x: (x + 1, (y := (x + 1).bitcast("int32")), y),
    "parts of an equal value": lambda x: (x + 1, (y := x + 1)[1:], y[1:]),
    "flipped back": lambda x: (x.flip(0).flip(0), x * 2),
}


@pytest.mark.parametrize("part", [False, True])
@pytest.mark.parametrize("name", SHARING)
def test_results_that_share_memory(name: str, part: bool, backend: str) -> None:
    """What is written to one shows in those, and only in those, in which it shows without TinyJit."""

    def run(jit: Any) -> list[Any]:
        CONSTANT["c"] = Tensor.full((3,), 4.0)
        function, seen, last = jit(SHARING[name]), [], None
        for i in range(5):
            whole = real(*[float(i + n) for n in range(5)])
            x = whole[1:4] if part else whole[:3].clone().realize()
            out = function(x)
            seen.append([a is b for a in out for b in out])
            for n, tensor in enumerate(out):
                tensor += 10 + n
                seen.append([one.tolist() for one in (*out, x, whole, CONSTANT["c"])])
                out[0][-1:] = 7
                x -= 1
                seen.append([one.tolist() for one in (*out, x, whole, CONSTANT["c"])])
            if last is not None:
                seen.append([one.tolist() for one in last])
            last = out
        return seen

    assert run(TinyJit) == run(lambda function: function)


@pytest.mark.parametrize("keeps", [0, 1])
def test_results_share_memory_where_one_of_them_is_kept(keeps: int, backend: str) -> None:
    kept: list[Tensor] = []

    @TinyJit
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        value = x + 1
        bits = value.bitcast("int32")
        kept[:] = [bits if keeps else value]
        return value, bits

    for i in range(5):
        value, bits = function(real(float(i), 2.0))
        bits[0] = 0x40000000
        assert value.tolist() == [2.0, 3.0]
        if i:  # from the recorded call on it is a tensor of its own
            assert kept[0].bitcast("float32" if keeps else "int32").tolist()[1] == (3.0 if keeps else 0x40400000)


@pytest.mark.parametrize("change", ["write", "rebind", "replace"])
@pytest.mark.parametrize("keeps", ["uncomputed", "view"])
def test_what_is_left_of_a_tensor_from_outside_is_of_that_call(keeps: str, change: str, backend: str) -> None:
    world: dict[str, Tensor] = {"w": real(1.0, 2.0)}
    owner = world["w"]

    @TinyJit
    def function(x: Tensor) -> Tensor:
        world["kept"] = world["w"] * 2 if keeps == "uncomputed" else world["w"][1:]
        return x + 1

    for i in range(6):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # recorded anew
            function(real(float(i)))
        want = (world["w"] * 2 if keeps == "uncomputed" else world["w"][1:]).tolist()
        try:
            assert world["kept"].tolist() == want
        except RuntimeError as error:
            assert i >= 2 and "is not left by replays" in str(error)
        if i < 2:
            continue
        if change == "write":
            world["w"] += 1
        elif change == "rebind":
            world["w"] = real(float(i), 7.0)
        else:
            world["w"].replace(real(float(i), 8.0))
    assert owner.shape == (2,)


def averaged(state: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    state = state * 0.5 + x
    return state, state + 1


def averages(init: list[float], xs: list[list[float]]) -> tuple[list[list[float]], list[float]]:
    """What :func:`averaged` adds up to, and the state that it leaves."""
    kept, state = [], init
    for x in xs:
        state = [0.5 * one + other for one, other in zip(state, x, strict=True)]
        kept.append([one + 1 for one in state])
    return kept, state


def looped(way: str) -> TinyJit[..., Any]:
    def run(init: Tensor, xs: Tensor) -> Any:
        state, kept = scan(averaged, init, xs)
        return {"kept": kept, "state": state, "reversed": kept.flip(0), "both": (kept, state)}[way]

    return TinyJit(run)


@pytest.mark.parametrize("way", ["kept", "state", "reversed", "both"])
def test_parts_of_memory(backend: str, way: str) -> None:
    """What a loop computes lies in one memory. A result that is much of that is not copied, but is the caller's own."""
    function, found, wanted = looped(way), [], []
    steps, init = 11, [float(1 << i % 3) for i in range(61)]
    for n in range(5):
        xs = [[float((n + 3 * step + i) % 5) for i in range(61)] for step in range(steps)]
        got = function(real(*init), Tensor(xs).realize())
        parts = got if isinstance(got, tuple) else (got,)
        found.append(parts)
        kept, state = averages(init, xs)
        wanted.append({"kept": (kept,), "state": (state,), "reversed": (kept[::-1],), "both": (kept, state)}[way])
        if n:  # written by its owner, it is nobody else's
            for part, want in zip(found[n - 1], wanted[n - 1], strict=True):
                assert part.tolist() == want
                part += 100.0
                part.realize()
    assert [part.tolist() for part in found[-1]] == list(wanted[-1])
    for parts, wants in zip(found[:-1], wanted[:-1], strict=True):
        for part, want in zip(parts, wants, strict=True):
            assert part.tolist() == (Tensor(want) + 100.0).tolist()
    record = function.captured
    assert record is not None
    assert all(item.prg.name == "scan" for item in record.executed.items) == (way == "kept")


def test_parts_of_memory_go_in_again(backend: str) -> None:
    """A result that is a part of memory is an argument like any other, of this record and of another one."""
    function = looped("kept")
    total = TinyJit(lambda xs: (xs * 2).sum(0))
    xs = [[float((3 * step + i) % 5) for i in range(61)] for step in range(11)]
    init, now = [float(1 << i % 3) for i in range(61)], Tensor(xs).realize()
    for _ in range(5):
        now = function(real(*init), now)
        xs, _ = averages(init, xs)
        assert now.flatten().tolist() == pytest.approx([one for x in xs for one in x], rel=1e-5)
        assert total(now).tolist() == pytest.approx([2 * sum(column) for column in zip(*xs, strict=True)], rel=1e-5)


VIEWS: dict[str, Any] = {
    "transposed": lambda y: y.T,
    "a row": lambda y: y[1],
    "backwards": lambda y: y.flip(1),
    "twice": lambda y: (y, y.T),
    "repeated": lambda y: y[:, :1].expand(3, 4),
    "parts of complex numbers": lambda y: fft.fft(y),
}


@pytest.mark.parametrize("name", VIEWS)
def test_results_that_are_views(name: str, backend: str) -> None:
    """They need no look at the arguments, but where two are of one memory; later calls do not change what they show."""
    view = VIEWS[name]
    function = TinyJit(lambda x: view((x * 2 + 1).contiguous().realize()))
    found: list[Tensor] = []
    wanted: list[Tensor] = []
    for n in range(5):
        x = (Tensor.arange(12.0).reshape(3, 4) * (n + 1)).contiguous().realize()
        results, plain = function(x), view((x * 2 + 1).contiguous())
        for kept, one in ((found, results), (wanted, plain)):
            kept.extend(one if isinstance(one, tuple) else [one])
    assert function.captured is not None and (function.captured.expected is None) == (name == "twice")
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.tolist() == theirs.tolist()
