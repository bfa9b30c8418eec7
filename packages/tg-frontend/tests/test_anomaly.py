"""Anomaly mode: what is named, where, and that nothing else is."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit, detect_anomaly, nn, set_detect_anomaly
from tg_lazy import ANOMALY, Context, LazyBuffer
from tg_lazy.cost import LIMITS, Limits
from tg_runtime import AnomalyError, Device
from tg_runtime.execution import engine
from tg_shape import Variable

HERE = __file__
NAN, INF = float("nan"), float("inf")


def line_of(function: Callable[..., object], text: str) -> tuple[str, int]:
    """File and line of the line of a function in which a text stands."""
    first = function.__code__.co_firstlineno
    lines = Path(HERE).read_text(encoding="utf-8").splitlines()[first - 1 :]
    return HERE, first + next(n for n, line in enumerate(lines) if text in line)


def failing(function: Callable[[], object], inf: bool = False) -> AnomalyError:
    with pytest.raises(AnomalyError) as found, detect_anomaly(inf=inf):
        function()
    return found.value


def test_the_line_the_method_and_the_operand_are_named(backend: str) -> None:
    def program() -> None:
        x = Tensor([[1.0, -1.0, 2.0], [3.0, 4.0, -5.0]])
        y = x.log()  # the line
        (y.sum(axis=1) * 2).realize()

    error = failing(program)
    assert (error.op, error.method, error.line) == ("LOG", "Tensor.log", line_of(program, "# the line"))
    assert (error.shape, error.index, error.count, error.gradient_of) == ((2, 3), (0, 1), 2, None)
    assert str(error).startswith(
        f"LOG of -1 made NaN: 2 of 6 elements, the first at (0, 1), shape (2, 3), float32 on {backend}\n"
    )
    assert "y = x.log()  # the line" in str(error)


def test_a_fused_kernel_is_taken_apart(backend: str) -> None:
    def program() -> None:
        x = Tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]).T
        z = x.contiguous() / x  # 0 / 0
        ((z + 1).relu().reshape(3, 2).sum(axis=1) - 1).abs().realize()

    error = failing(program)
    assert (error.op, error.line) == ("FDIV", line_of(program, "# 0 / 0"))
    assert (error.shape, error.index, error.count) == ((2, 3), (0, 1), 3)
    assert "of 0 and 0 made NaN" in str(error)


def test_what_ran_before_is_looked_at_again(backend: str) -> None:
    values = [1.0, 2.0]

    def program() -> None:
        (Tensor(values).log() + 1).realize()

    for _ in range(3):  # its plan is known by now
        program()
    values[1] = -1.0
    program()
    assert failing(program).op == "LOG"


def test_of_several_operations_the_earliest_is_told(backend: str) -> None:
    def program() -> None:
        x = Tensor([4.0, 2.0, 9.0, 1.0, -1.0])
        y = x.log()  # the last element
        z = (y - 0.5).sqrt()  # the last but one
        (z / (x - 4) * (x - 4)).realize()  # the first

    error = failing(program)
    assert (error.op, error.line, error.index) == ("LOG", line_of(program, "# the last element"), (4,))


def test_what_is_repeated_counts_once(backend: str) -> None:
    def program() -> None:
        x = Tensor([4.0, -1.0, 9.0, -4.0]).sqrt()
        (x.reshape(4, 1).expand(4, 50) + Tensor.ones(4, 50).contiguous().realize()).realize()

    error = failing(program)
    assert (error.op, error.shape, error.index, error.count) == ("SQRT", (4,), (1,), 2)


def test_a_sum_of_opposite_infinities_is_a_reduction(backend: str) -> None:
    def program() -> None:
        Tensor([[1.0, 2.0, 3.0], [INF, 0.0, -INF]]).sum(axis=1).realize()

    error = failing(program)
    assert (error.op, error.method, error.shape, error.index, error.count) == ("ADD", "Tensor.sum", (2, 1), (1, 0), 1)


def test_a_matrix_product_is_found_without_its_products_in_memory(backend: str) -> None:
    a, b = np.ones((33, 17), np.float32), np.ones((17, 29), np.float32)
    a[3, 5], b[5, 7] = INF, 0
    left, right = Tensor(a).realize(), Tensor(b).realize()
    error = failing(lambda: (left @ right).relu().realize())
    assert (error.op, error.method, error.shape, error.index, error.count) == (
        "MUL", "Tensor.__matmul__", (33, 29, 17), (3, 7, 5), 1)  # fmt: skip
    assert "in Tensor @" in str(error)


def test_overflow_of_a_softmax_in_half_precision(backend: str) -> None:
    def program() -> None:
        x = Tensor([[20.0, 10.0]], dtype="float16")
        power = x.exp()  # overflows
        (power / power.sum(axis=1, keepdim=True)).realize()  # inf / inf

    error = failing(program)
    assert (error.op, error.line) == ("FDIV", line_of(program, "# inf / inf"))
    error = failing(program, inf=True)
    assert (error.op, error.method, error.line) == ("CAST", "Tensor.exp", line_of(program, "# overflows"))
    assert (error.shape, error.index) == ((1, 2), (0, 0)) and "made inf" in str(error)
    with detect_anomaly(inf=True):
        assert Tensor([[20.0, 10.0]], dtype="float16").softmax().sum().item() == 1


def test_every_float(backend: str) -> None:
    for dtype in ("float64", "float32", "float16", "bfloat16", "fp8e5m2", "fp8e4m3"):
        def program(dtype: str = dtype) -> None:
            (Tensor([4.0, 0.0, 1.0], dtype=dtype).realize().cast("float32") * 0 - 1).sqrt().cast(dtype).realize()

        assert failing(program).op == "SQRT", dtype
        with detect_anomaly(inf=True):
            assert Tensor([4.0, 0.0, 1.0], dtype=dtype).sqrt().sum().item() == 3, dtype


def test_the_gradient_names_the_line_of_the_forward(backend: str) -> None:
    def program() -> None:
        x = Tensor([0.0, 3.0], requires_grad=True)
        root = x.sqrt()  # forward
        (root * 2).sum().backward()  # backward
        assert x.grad is not None
        x.grad.realize()

    with detect_anomaly():
        program()  # an infinite slope, but no NaN
    error = failing(program, inf=True)
    assert error.gradient_of == ("sqrt", line_of(program, "# forward"))
    assert (error.method, error.line, error.index) == ("Tensor.backward", line_of(program, "# backward"), (0,))
    assert "as the gradient of sqrt" in str(error) and "root = x.sqrt()" in str(error)


def test_a_norm_at_zero_has_a_gradient_of_nan(backend: str) -> None:
    def program() -> None:
        x = Tensor([0.0, 0.0], requires_grad=True)
        square = x * x  # square
        square.sum().sqrt().backward()
        assert x.grad is not None
        x.grad.realize()

    error = failing(program)
    assert error.gradient_of == ("mul", line_of(program, "# square")) and "MUL of inf and 0" in str(error)


def test_what_a_where_does_not_choose_is_no_anomaly(backend: str) -> None:
    x = Tensor([[1.0, 0.0, 2.0], [-3.0, 0.0, 5.0]])
    with detect_anomaly(inf=True):
        (x > 0).where(x.log(), 0).realize()
        ((x > 0).where(x.log(), 0) + (x == 0).where(0, 1 / x)).sum().realize()

    def program() -> None:
        safe = (x > 0).where(x.log(), 0)  # whose logarithm of -3 is not chosen
        (safe * (x / x)).realize()

    error = failing(program)
    assert (error.op, error.line, error.index) == ("FDIV", line_of(program, "x / x"), (0, 1))


@pytest.mark.parametrize("first", [True, False])
def test_what_a_where_chooses_is_followed(first: bool, backend: str) -> None:
    def program() -> None:
        x = Tensor([1.0, -2.0, 3.0])
        bad, good = (x - 2).sqrt(), (x + 9).sqrt()  # of -1
        chosen = (x > 0).where(bad, good) if first else (x < 0).where(good, bad)
        (chosen + 1).realize()

    error = failing(program)
    assert (error.op, error.index, error.line) == ("SQRT", (0,), line_of(program, "# of -1"))
    assert "SQRT of -1 " in str(error)


def test_padding_and_parts_that_are_cut_off_are_no_anomaly(backend: str) -> None:
    x = Tensor([[-1.0, 1.0, 2.0], [-1.0, 3.0, 4.0]]).realize()
    with detect_anomaly(inf=True):
        x.log()[:, 1:].exp().realize()
        x[:, 1:].log().pad(((1, 1), (2, 2))).exp().sum().realize()
        (1 / x).pad(((1, 2), (0, 3))).sum().realize()
        x.unsqueeze(0).unsqueeze(0).max_pool2d(2, stride=1, padding=1).realize()
        memory = Tensor.empty(7)
        memory[:5] = Tensor([1.0, 2.0, 3.0, 4.0, 5.0]).log()
        memory.realize()


def test_what_the_program_itself_put_there_is_no_anomaly(backend: str) -> None:
    x = Tensor([1.0, NAN, -3.0]).realize()
    with detect_anomaly():
        (x + 1).exp().abs().realize()
        ((x * 2).exp() + 1).sqrt().sum().realize()
        (x > 0).where(NAN, x).realize()
        Tensor.full((3,), NAN).contiguous().realize()
        Tensor([0x7FC00000], dtype="uint32").realize().bitcast("float32").contiguous().realize()
    with detect_anomaly(inf=True):
        scores = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        (Tensor([[True, False, True], [True, True, False]]).where(scores, -INF)).softmax().realize()

    def program() -> None:
        (x - 1).log().neg().abs().realize()  # of -4, beside the NaN

    error = failing(program)
    assert (error.op, error.index, error.count, error.line) == ("LOG", (2,), 1, line_of(program, "# of -4"))


def test_an_assignment_that_reads_what_it_overwrites(backend: str) -> None:
    x = Tensor([1.0, 2.0, -3.0]).realize()

    def program() -> None:
        x.assign(x.log() * 2).realize()  # in place

    error = failing(program)
    assert (error.op, error.index, error.line) == ("LOG", (2,), line_of(program, "# in place"))
    assert "LOG of -3 " in str(error)
    np.testing.assert_allclose(x.numpy(), [0, 2 * np.log(2), NAN], rtol=1e-6)  # done, and not done again


def test_a_kernel_whose_parts_hand_rows_to_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    if "CPU" not in Device.available():
        pytest.skip("the device CPU is not available here")
    monkeypatch.setitem(LIMITS, "CPU", Limits(row_bytes=8192))
    data = np.random.default_rng(0).standard_normal((3, 2, 128, 8)).astype(np.float32)
    q, k, v = (Tensor(x, device="CPU").realize() for x in data)

    def attention() -> Tensor:
        scores = q.matmul(k.transpose(1, 2))
        scores = scores + (Tensor.arange(128, device="CPU") == 100).where(scores * 0 - 1, 1.0).sqrt()  # one column
        return scores.softmax().matmul(v)

    items = attention().schedule()
    assert any(argument.internal for item in items for argument in item.ast.arg), "no such kernel: draw another example"
    error = failing(lambda: attention().realize())
    assert (error.op, error.line, error.shape) == ("SQRT", line_of(attention, "# one column"), (2, 128, 128))
    assert error.index[2] == 100


def test_inside_of_tinyjit(backend: str) -> None:
    def step(x: Tensor) -> Tensor:
        return (x.exp().log() - 1).sqrt().sum() + x.contiguous().sum()  # step

    def of(value: float) -> Tensor:
        return Tensor([[value, value + 1], [2.0, 3.0]])

    jitted = TinyJit(step)
    with detect_anomaly():
        right = [jitted(of(v)).item() for v in (5.0, 4.0, 3.0)]
    assert jitted.captured is not None
    error = failing(lambda: jitted(of(0.5)))
    assert (error.op, error.line, error.method) == ("SQRT", line_of(step, "# step"), "Tensor.sqrt")
    assert (error.shape, error.index) == ((2, 2), (0, 0))
    # the record still works, with and without the mode
    assert [jitted(of(v)).item() for v in (5.0, 4.0, 3.0)] == right
    with detect_anomaly():
        assert jitted(of(4.0)).item() == right[1]


def test_a_record_from_before_the_mode(backend: str) -> None:
    state = Tensor([0.0, 0.0]).realize()

    def step(x: Tensor) -> Tensor:
        state.assign(state + x.relu())
        return (x.exp().log() - 1).sqrt().contiguous().sum()  # step

    jitted = TinyJit(step)
    for value in (5.0, 4.0, 3.0):
        jitted(Tensor([value, 2.0]))
    right = jitted(Tensor([5.0, 2.0])).item()
    error = failing(lambda: jitted(Tensor([0.5, 2.0])))
    assert (error.op, error.line[0]) == ("SQRT", HERE) and "before anomaly mode" in str(error)
    assert jitted(Tensor([5.0, 2.0])).item() == right
    with detect_anomaly():
        assert jitted(Tensor([5.0, 2.0])).item() == right
    assert state.tolist()[0] in (27.5, 27.0)  # the state of the step that failed may be written or not


def test_symbolic_sizes(backend: str) -> None:
    n = Variable("n", 1, 8)
    x = Tensor([float(i) for i in range(8)]).realize()

    def program() -> None:
        for size in (3, 5):
            (2 - x.shrink(((0, n.bind(size)),))).sqrt().sum().realize()

    error = failing(program)
    assert (error.op, error.shape, error.index, error.count) == ("SQRT", (5,), (3,), 2)


def test_a_layer_and_its_gradient(backend: str) -> None:
    layer = nn.LayerNorm(6, eps=0.0)

    def program() -> None:
        layer((Tensor.randn(4, 6) * 0).contiguous()).realize()  # a row of equal numbers

    error = failing(program)
    assert (error.method, error.line) == ("LayerNorm", line_of(program, "# a row"))


def test_a_function_of_the_callers(backend: str) -> None:
    def fill(out: Any, given: Any) -> None:
        values = np.frombuffer(given.tobytes(), np.float32)
        with np.errstate(invalid="ignore"):
            out.copyin(memoryview(np.sqrt(values).tobytes()))

    def custom(*values: float) -> None:
        x = Tensor(list(values)).realize().lazydata
        engine.realize([LazyBuffer.custom(fill, [x], (len(values),), x.dtype, x.device)])

    with detect_anomaly():
        custom(1.0, 4.0)
        custom(NAN, 4.0)
    error = failing(lambda: custom(1.0, -4.0))
    assert (error.op, error.shape, error.index, error.count) == ("CUSTOM", (2,), (1,), 1) and "fill" in str(error)


def test_a_function_of_the_callers_is_not_blamed_for_one_bad_operand_of_several(backend: str) -> None:
    def ratio(out: Any, *given: Any) -> None:
        a, b = (np.frombuffer(x.tobytes(), np.float32) for x in given)
        with np.errstate(all="ignore"):
            out.copyin(memoryview((a / b).tobytes()))

    def custom(a: float, b: float) -> None:
        given = [Tensor([x, 1.0]).realize().lazydata for x in (a, b)]
        engine.realize([LazyBuffer.custom(ratio, given, (2,), given[0].dtype, given[0].device)])

    with detect_anomaly():
        custom(NAN, 1.0)
        custom(1.0, NAN)
        custom(NAN, NAN)
    assert failing(lambda: custom(0.0, 0.0)).index == (0,)


def test_spellings_and_scopes() -> None:
    bad = [1.0, -1.0]

    @detect_anomaly()
    def decorated() -> list[float]:
        return Tensor(bad).log().tolist()  # type: ignore[no-any-return]

    with pytest.raises(AnomalyError):
        decorated()
    assert ANOMALY.value == 0
    with detect_anomaly(), Context(ANOMALY=0):
        Tensor(bad).log().realize()
    with detect_anomaly(), detect_anomaly(check_nan=False):
        Tensor([-1.0]).log().realize()
    with detect_anomaly(), set_detect_anomaly(True, check_nan=False):
        assert ANOMALY.value == 1  # that of the block goes before that of all threads
    with set_detect_anomaly(True, check_nan=False):
        Tensor([-1.0]).log().realize()
    with pytest.raises(ValueError, match="^detect_anomaly: inf=True with check_nan=False"):
        detect_anomaly(False, inf=True)
    with pytest.raises(ValueError, match="set_detect_anomaly: inf=True with check_nan=False"):
        set_detect_anomaly(True, False, True)
    with set_detect_anomaly(True, inf=True):
        assert ANOMALY.value == 2
        with set_detect_anomaly(False):
            Tensor(bad).log().realize()
        with pytest.raises(AnomalyError):
            Tensor([0.0]).log().realize()
    assert ANOMALY.value == 0
    set_detect_anomaly(True)
    try:
        with pytest.raises(RuntimeError, match="LOG of -1"):
            Tensor(bad).log().realize()
    finally:
        set_detect_anomaly(False)
    assert np.isnan(Tensor(bad).log().numpy()[1])


def test_the_environment_turns_it_on() -> None:
    program = "from tg_frontend import Tensor\nTensor([-1.0], device='NUMPY').sqrt().realize()"
    done = subprocess.run(
        [sys.executable, "-c", program], env={"ANOMALY": "1", "PATH": "", "CACHEDIR": "/nonexistent"},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert "AnomalyError: SQRT of -1 made NaN" in done.stderr and "in Tensor.sqrt" in done.stderr


def test_nothing_is_looked_at_while_it_is_off(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    def unwanted(*given: object) -> None:
        raise AssertionError("looked at")

    monkeypatch.setattr("tg_runtime.execution.run.watched", unwanted)
    monkeypatch.setattr("tg_frontend.jit.steps.watched", unwanted)
    jitted = TinyJit(lambda x: x.log())
    for _ in range(4):
        Tensor([-1.0]).log().realize()
        jitted(Tensor([-1.0])).realize()
    with pytest.raises(AssertionError, match="looked at"), detect_anomaly():
        Tensor([1.0]).log().realize()


UNARY = {"log": np.log, "sqrt": np.sqrt, "exp": np.exp, "neg": np.negative, "abs": np.abs, "reciprocal": np.reciprocal}
BINARY = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}


class Drawn:
    """A program of one operation a line, as text, and its values by numpy."""

    def __init__(self, draw: random.Random) -> None:
        self.lines: list[str] = [""]
        self.values: list[Any] = []
        self.operands: list[tuple[int, ...]] = [()]
        shape = draw.choice([(2, 3), (5,), (4, 1, 3), (7, 2)])
        for _ in range(draw.randint(1, 2)):
            data = np.array(draw.choices([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0, 50.0], k=int(np.prod(shape))), np.float32)
            self.add(f"Tensor(np.array({data.tolist()}, np.float32).reshape({shape})).realize()", data.reshape(shape))
        for _ in range(draw.randint(2, 9)):
            self.step(draw)

    def add(self, text: str, value: Any, *operands: int) -> None:
        self.lines.append(f"v{len(self.values)} = {text}")
        self.values.append(value)
        self.operands.append(operands)

    def step(self, draw: random.Random) -> None:
        a = draw.randrange(len(self.values))
        same = [n for n, value in enumerate(self.values) if value.shape == self.values[a].shape]
        b, x = draw.choice(same), self.values[a]
        kind = draw.choice(["unary", "unary", "binary", "binary", "where", "sum", "move", "realize"])
        if kind == "unary":
            name = draw.choice(list(UNARY))
            self.add(f"v{a}.{name}()", UNARY[name](x.astype(np.float64)).astype(np.float32), a)  # rounded once
        elif kind == "binary":
            name = draw.choice(list(BINARY))
            self.add(f"v{a} {name} v{b}", BINARY[name](x, self.values[b]), a, b)
        elif kind == "where":
            c = draw.choice(same)
            self.add(f"(v{c} > 0).where(v{a}, v{b})", np.where(self.values[c] > 0, x, self.values[b]), a, b)
        elif kind == "sum" and x.shape:
            self.add(f"v{a}.sum(axis=-1, keepdim=True).expand({x.shape})",
                     np.broadcast_to(x.sum(axis=-1, keepdims=True), x.shape), a)  # fmt: skip
        elif kind == "move":
            self.add(f"v{a}.flip(0).pad(((1, 0),) + ((0, 0),) * {x.ndim - 1})[:-1]",
                     np.concatenate([np.zeros_like(x[:1]), x[::-1]])[:-1], a)  # fmt: skip
        else:
            self.add(f"v{a}.contiguous()", x, a)


@np.errstate(all="ignore")
def check_programs(seed: int) -> None:
    """An error comes exactly where the result has a NaN, and the line that it names makes one of numbers."""
    draw = random.Random(seed)
    for _ in range(6):
        program = Drawn(draw)
        text = "\n".join(program.lines)
        space: dict[str, Any] = {"Tensor": Tensor, "np": np}
        last = len(program.values) - 1
        with detect_anomaly():
            exec(compile(text, f"<drawn with {seed}>", "exec"), space)
            try:
                space[f"v{last}"].realize()
            except AnomalyError as error:
                found = error
            else:
                assert not np.isnan(program.values[last]).any(), text
                continue
        assert found.line[0].startswith("<drawn"), (str(found), text)
        line = found.line[1]
        value, operands = program.values[line - 2], [program.values[k] for k in program.operands[line - 1]]
        if "reduction" in str(found):
            made = np.isnan(value).any(axis=-1) & ~np.isnan(operands[0]).any(axis=-1)
            assert made[found.index[:-1]], (str(found), text)
        else:
            assert np.isnan(value[found.index]), (str(found), text)
            assert not any(np.isnan(x[found.index]) for x in operands), (str(found), text)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int, backend: str) -> None:
    check_programs(seed)


def test_new_random_programs() -> None:
    """Interpreted alone: a product that is contracted with a sum may be less than 0 by a rounding, and its root NaN."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"check_programs({seed})")
    check_programs(seed)
