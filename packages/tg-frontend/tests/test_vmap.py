"""vmap of what has no gradient, axes, nesting, writes, and what it refuses. Beside: ``test_gradients.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit, nn, vmap
from tg_frontend.ops.updating import fetch_update, update

RNG = np.random.default_rng(0)
FLOATS, OTHERS = RNG.standard_normal((3, 5, 7)), RNG.standard_normal((3, 7))
INTEGERS = RNG.integers(0, 5, (3, 5, 7)).astype(np.int32)
PLACES = RNG.integers(0, 5, (3, 4)).astype(np.int32)

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "argmax": (lambda x: x.argmax(1), (FLOATS,)),
    "argmin": (lambda x: x.argmin(), (FLOATS,)),
    "argsort": (lambda x: x.argsort(0), (FLOATS,)),
    "topk": (lambda x: x.topk(3)[1], (FLOATS,)),
    "compare": (lambda x, y: (x > y) & (x != 0), (FLOATS, OTHERS)),
    "bits": (lambda x: (x << 2) ^ ~x | (x >> 1), (INTEGERS,)),
    "integers": (lambda x: x // 3 + x % 2 * x, (INTEGERS,)),
    "any": (lambda x: (x > 3).any(0), (INTEGERS,)),
    "one_hot": (lambda x: x.one_hot(5), (INTEGERS,)),
    "lookup": (lambda i: Tensor(OTHERS)[i % 3], (INTEGERS,)),
    "rows": (lambda x, i: x[i], (FLOATS, PLACES)),
    "columns": (lambda x, i: x[:, i], (FLOATS, PLACES)),
    "far rows": (lambda x, i: x.gather(0, (i * 3).reshape(-1, 1).expand(4, 7) % 5), (FLOATS, PLACES)),
    "cast": (lambda x: x.cast("float16").cast("int32"), (FLOATS * 9,)),
    "bitcast": (lambda x: x.bitcast("int64") >> 3, (FLOATS,)),
    "wider bitcast": (lambda x: x[:, :6].contiguous().bitcast("int64"), (INTEGERS,)),
    "narrower bitcast": (lambda x: x.bitcast("uint8"), (INTEGERS,)),
    "half sum": (lambda x: x.cast("float16").sum(1), (FLOATS,)),
    "update": (lambda x, i: update(x, i, 2.0), (FLOATS, PLACES)),
    "update of the same": (lambda i: update(Tensor.zeros(5, dtype="int32"), i, 1), (PLACES,)),
    "fetch_update": (lambda x, i: fetch_update(x[:, 0], i, 1.0)[1], (FLOATS, PLACES)),
    "views": (lambda x: x.pad((1, 2, 3, 0)).reshape(-1)[3:].flip(0)[::2], (FLOATS,)),
    "views of views": (lambda x: x.T.reshape(-1).unfold(0, 4, 3).permute(1, 0)[1:], (FLOATS,)),
    "clone": (lambda x: x.clone().contiguous() + x.to("NUMPY:1").to(x.device), (FLOATS,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_loop(name: str, backend: str) -> None:
    function, arrays = CASES[name]
    found = vmap(function)(*[Tensor(array) for array in arrays])
    for i in range(3):
        each = function(*[Tensor(array[i]) for array in arrays])
        assert each.dtype is found.dtype
        np.testing.assert_array_equal(found[i].numpy(), each.numpy())


def test_axes() -> None:
    x, y = Tensor(FLOATS), Tensor(OTHERS)
    found = vmap(lambda a, b: a.sum(0) + b["y"], in_axes=(1, {"y": None}), out_axes=-1)(x, {"y": y[0]})
    np.testing.assert_allclose(found.numpy(), (FLOATS.sum(0) + OTHERS[0]).T)
    as_pytorch: Any = vmap
    np.testing.assert_allclose(as_pytorch(lambda a: a * 2, in_dims=1, out_dims=1)(x).numpy(), FLOATS * 2)
    one, two = vmap(lambda a: (a, a.sum()), in_axes=-1, out_axes=(1, 0))(y)
    assert one.shape == (3, 7) and two.shape == (7,)
    np.testing.assert_allclose(vmap(lambda a: Tensor([1.0, 2.0]))(x).numpy(), [[1, 2]] * 3)
    assert vmap(lambda a: a * 2)(Tensor.zeros(0, 3)).shape == (0, 3)
    assert vmap(lambda a: a * 2)(Tensor.zeros(1, 3)).shape == (1, 3)


def test_nested() -> None:
    x, y = RNG.standard_normal(3), RNG.standard_normal((5, 2))
    outer = vmap(vmap(lambda a, b: (a * b).sum(), in_axes=(None, 0)), in_axes=(0, None))
    np.testing.assert_allclose(outer(Tensor(x), Tensor(y)).numpy(), np.outer(x, y.sum(1)))


def test_writes_to_what_was_made_and_to_arguments() -> None:
    def written(row: Tensor) -> tuple[Tensor, Tensor]:
        made = Tensor.zeros(3, dtype="float64")
        made[1:] = row[:2]
        row[0] = row[1] * 5
        return row, made

    x = Tensor(FLOATS[0])
    rows, made = vmap(written)(x)
    wanted = FLOATS[0].copy()
    wanted[:, 0] = wanted[:, 1] * 5
    np.testing.assert_allclose(rows.numpy(), wanted)
    np.testing.assert_allclose(made.numpy(), np.pad(FLOATS[0][:, :2], ((0, 0), (1, 0))))
    np.testing.assert_array_equal(x.numpy(), FLOATS[0])


def test_random_numbers_are_drawn_once() -> None:
    rows = vmap(lambda x: x * 0 + Tensor.rand(4))(Tensor.zeros(3, 4)).tolist()
    assert rows[0] == rows[1] == rows[2] and len(set(rows[0])) == 4


def test_a_record() -> None:
    jitted = TinyJit(lambda x: vmap(lambda row: row.softmax(0))(x).realize())
    for i in range(5):
        array = FLOATS[0] * i
        np.testing.assert_allclose(jitted(Tensor(array).realize()).numpy(), Tensor(array).softmax(1).numpy())


def test_values_that_were_written_afterwards_are_noticed() -> None:
    x = Tensor(FLOATS[0]).contiguous().realize()
    w = Tensor([2.0], dtype="float64", requires_grad=True)
    out = vmap(lambda row: row * w)(x).sum()
    x += 1
    with pytest.raises(RuntimeError, match="written to in place"):
        out.backward()


class Outside:
    """What a function must not write to."""

    def __init__(self) -> None:
        self.memory = Tensor(OTHERS[0]).realize()
        self.leaf = Tensor(OTHERS[0], requires_grad=True)
        self.norm = nn.BatchNorm(7)

    def assigns(self, row: Tensor) -> Tensor:
        self.memory.assign(row)
        return row

    def leaves_a_gradient(self, row: Tensor) -> Tensor:
        (self.leaf * row).sum().backward()
        return row

    def fails_halfway(self, row: Tensor) -> Tensor:
        self.memory[0] = row[0]
        raise KeyError("halfway")

    def counts(self, row: Tensor) -> Tensor:
        with Tensor.train():
            return self.norm(row.cast("float32").reshape(1, 7, 1).expand(2, 7, 3))


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("assigns", RuntimeError, "vmap: .*assigns writes"),
        ("leaves_a_gradient", RuntimeError, "leaves it a gradient"),
        ("fails_halfway", KeyError, "halfway"),
        ("counts", RuntimeError, "vmap: .*counts writes"),
    ],
)
def test_what_is_outside_stays_as_it_is(name: str, kind: type[Exception], message: str) -> None:
    outside = Outside()
    for _ in range(2):
        with pytest.raises(kind, match=message):
            vmap(getattr(outside, name))(Tensor(OTHERS))
        np.testing.assert_array_equal(outside.memory.numpy(), OTHERS[0])
        assert outside.leaf.grad is None
        assert outside.norm.running_mean is not None and outside.norm.running_mean.tolist() == [0.0] * 7
    outside.memory[1] = 3.0
    assert outside.memory.tolist()[:2] == [OTHERS[0, 0], 3.0]


def two(a: Tensor, b: Tensor) -> Tensor:
    return a + b


BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "unequal": (lambda: vmap(two)(Tensor(FLOATS), Tensor(FLOATS[0])), ValueError, "3 along axis 0 of tensor 0"),
    "out of range": (lambda: vmap(lambda a: a, in_axes=2)(Tensor([1.0])), IndexError, "vmap: in_axes=2 is out of"),
    "a scalar": (lambda: vmap(lambda a: a)(Tensor(1.0)), IndexError, "vmap: in_axes=0"),
    "none": (lambda: vmap(lambda a: a, in_axes=None)(Tensor([1.0])), ValueError, "vmap: no argument has values"),
    "too many": (lambda: vmap(lambda a: a, in_axes=(0, 0))(Tensor([1.0])), ValueError, "vmap: in_axes=.* for 1 arg"),
    "no axis": (lambda: vmap(lambda a: a, in_axes="x")(Tensor([1.0])), ValueError, "vmap: in_axes has 'x'"),
    "no tensor": (lambda: vmap(lambda a: 3)(Tensor([1.0])), TypeError, "vmap: .* returned a int, not a tensor"),
    "out_axes": (lambda: vmap(lambda a: a, out_axes=3)(Tensor([1.0])), IndexError, "vmap: out_axes=3"),
    "no out_axes": (lambda: vmap(lambda a: a, out_axes=None)(Tensor([1.0])), ValueError, "vmap: out_axes has None"),
    "an element": (lambda: vmap(lambda a: a.item())(Tensor([1.0])), RuntimeError, "vmap: an element was asked for"),
    "a branch": (lambda: vmap(lambda a: a if a > 0 else -a)(Tensor([1.0])), RuntimeError, "vmap: an element was asked"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    call, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        call()
