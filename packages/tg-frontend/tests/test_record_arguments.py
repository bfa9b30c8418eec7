"""Arguments of a recorded function: which memory is whose, and what tells two calls apart."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from tg_frontend import JitError, Tensor, TinyJit

pytestmark = pytest.mark.usefixtures("no_warning")


def real(*values: float) -> Tensor:
    return Tensor(list(values)).contiguous().realize()


def nothing(_: Any) -> None:
    """For functions that only do something."""


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


def test_parts_as_arguments_are_written(backend: str, recorded: Any) -> None:
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


def test_equal_values_are_written_apart(backend: str, recorded: Any) -> None:
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


class Keeper:
    """What a function keeps something in."""

    def __init__(self) -> None:
        self.seen: list[Tensor] = []
        self.last: Any = None


@pytest.mark.parametrize("part", [False, True])
def test_an_argument_that_the_function_keeps(part: bool, backend: str) -> None:
    """A replay would not put it where the function did: what was the argument in the recorded call is no answer."""

    def given(number: float) -> Tensor:
        return real(0.0, number)[1:] if part else real(number)

    keeper = Keeper()

    def attribute(x: Tensor) -> Tensor:
        keeper.last = x
        return x + 1

    def element(x: Tensor) -> Tensor:
        keeper.seen.append(x)
        return x + 1

    for function in (attribute, element):
        jitted = TinyJit(function)
        assert jitted(given(1.0)).item() == 2.0
        if part:  # the record works on a copy of its own
            assert jitted(given(2.0)).item() == 3.0 and jitted(given(3.0)).item() == 4.0
            with pytest.raises(RuntimeError, match="or as a view of its argument"):
                (keeper.last if function is attribute else keeper.seen[-1]).tolist()
        else:
            with pytest.raises(JitError, match="leaves argument 0 itself in an attribute"):
                jitted(given(2.0))

    def within(x: Tensor) -> Tensor:
        keeper.last = x
        out: Tensor = keeper.last + 1
        keeper.last = None
        return out

    jitted = TinyJit(within)
    assert [jitted(given(float(i))).item() for i in range(5)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("view", ["reshape", "expand", "slice", "detach", "copy"])
def test_a_view_of_an_argument_that_the_function_keeps(view: str, backend: str) -> None:
    keeper = Keeper()
    views = {
        "reshape": lambda x: x.reshape(1, 2),
        "expand": lambda x: x.reshape(2, 1).expand(2, 3),
        "slice": lambda x: x[1:],
        "detach": lambda x: x.detach(),
        "copy": lambda x: x.clone().realize(),
    }

    @TinyJit
    def function(x: Tensor) -> Tensor:
        keeper.last = views[view](x)
        return x + 1

    for i in range(2):
        assert function(real(0.0, i)).tolist() == [1.0, i + 1.0]
        assert keeper.last.numpy().reshape(-1)[-1] == i
    for i in range(2, 5):
        assert function(real(0.0, i)).tolist() == [1.0, i + 1.0]
        if view == "copy":
            assert keeper.last.tolist() == [0.0, i]
        else:
            with pytest.raises(RuntimeError, match="or as a view of its argument"):
                keeper.last.tolist()


def number(re: float, im: float, dtype: str = "complex64") -> Tensor:
    return Tensor(np.array([re + 1j * im, im], dtype)).realize()


def test_complex_arguments(backend: str) -> None:
    """They are recognised by both parts, without a closer look, and told from what is not like them."""
    function = TinyJit(lambda z, x: ((z * x).realize(), (z.imag - x).realize()))
    for n in range(5):
        z, x = number(n, 2 * n), real(3.0, n)
        product, rest = function(z, x)
        np.testing.assert_array_equal(product.numpy(), [3 * n + 6j * n, 2 * n * n])
        np.testing.assert_array_equal(rest.numpy(), [2 * n - 3, -n])
    assert function.captured is not None and function.captured.expected is not None
    z = number(1, 2)
    for others in ((z.real.clone(), real(1.0, 2.0)), (number(1, 2, "complex128"), real(1.0, 2.0)), (z, z.imag), (z, z)):
        with pytest.raises(JitError):
            function(*others)


def test_complex_arguments_are_written(backend: str) -> None:
    """Each part in its own memory, which nobody else sees change."""

    def step(z: Tensor, x: Tensor) -> Tensor:
        z += x
        return (z * 2).realize()

    function = TinyJit(step)
    for n in range(6):
        z, x = number(n, 1), number(1, 10)
        before, more = z.numpy(), x.numpy()
        part = z.imag if n % 2 else z.real
        shown = (part * 1).realize() if n == 2 else part + 0  # computed before, or still to be
        assert np.array_equal(function(z, x).numpy(), 2 * (before + more))
        assert np.array_equal(z.numpy(), before + more)
        assert np.array_equal(shown.numpy(), before.imag if n % 2 else before.real)
