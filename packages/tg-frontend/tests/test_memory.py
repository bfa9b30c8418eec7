"""Views share memory, everything else copies, whether anything was computed or not; as PyTorch has it."""

from __future__ import annotations

import gc
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor
from tg_runtime import GlobalCounters

Method = Callable[[Tensor], Tensor]

VIEWS: dict[str, Method] = {
    "a row": lambda t: t[1],
    "a range": lambda t: t[1:, :2],
    "every other": lambda t: t[::2],
    "backward": lambda t: t[::-1],
    "a new axis": lambda t: t[:, None],
    "all of it": lambda t: t[...],
    "reshape": lambda t: t.reshape(2, 6),
    "view": lambda t: t.view(12),
    "flatten": lambda t: t.flatten(),
    "unflatten": lambda t: t.unflatten(1, (2, 2)),
    "squeeze": lambda t: t.reshape(3, 1, 4).squeeze(1),
    "unsqueeze": lambda t: t.unsqueeze(0),
    "permute": lambda t: t.permute(1, 0),
    "transpose": lambda t: t.transpose(0, 1),
    "T": lambda t: t.T,
    "diagonal": lambda t: t.diagonal(),
    "diagonal below": lambda t: t.diagonal(-1),
    "unfold": lambda t: t.unfold(1, 2, 2),
    "chunk": lambda t: t.chunk(2, 1)[1],
    "unbind": lambda t: t.unbind(1)[1],
    "split": lambda t: t.split(2)[0],
    "shrink": lambda t: t.shrink(((1, 3), (0, 2))),
    "detach": lambda t: t.detach(),
    "bitcast": lambda t: t.bitcast("int32"),
    "bitcast narrower": lambda t: t.bitcast("uint16"),
    "bitcast wider": lambda t: t.bitcast("float64"),
    "a part of bits": lambda t: t[1:].bitcast("int32")[:, 1:3],
    "contiguous": lambda t: t.contiguous(),
    "cast to the same": lambda t: t.cast("float32"),
    "rearrange": lambda t: t.rearrange("a b -> b a"),
    "a view of a view": lambda t: t.T[1:3].reshape(2, 3, 1).transpose(0, 2),
}

COPIES: dict[str, Method] = {
    "clone": lambda t: t.clone(),
    "add 0": lambda t: t + 0,
    "times 1": lambda t: t * 1,
    "power 1": lambda t: t**1,
    "plus": lambda t: +t if hasattr(t, "__pos__") else t + 0,
    "abs": lambda t: abs(t),
    "abs of unsigned": lambda t: abs(t.cast("uint32")),
    "cast": lambda t: t.cast("float64"),
    "sum over nothing": lambda t: t.sum(()),
    "sum over size 1": lambda t: t.reshape(3, 1, 4).sum(1),
    "max over size 1": lambda t: t.reshape(3, 1, 4).max(1),
    "prod over size 1": lambda t: t.reshape(3, 1, 4).prod(1),
    "mean over size 1": lambda t: t.reshape(3, 1, 4).mean(1),
    "cumsum over size 1": lambda t: t.reshape(3, 1, 4).cumsum(1),
    "cat of one": lambda t: Tensor.cat(t, dim=0),
    "cat": lambda t: t[:1].cat(t[1:], dim=0),
    "stack of one": lambda t: Tensor.stack(t, dim=0),
    "repeat once": lambda t: t.repeat(1, 1),
    "repeat": lambda t: t.repeat(2, 1),
    "repeat_interleave once": lambda t: t.repeat_interleave(1, 0),
    "roll by 0": lambda t: t.roll(0, 0),
    "roll": lambda t: t.roll(1, 0),
    "roll flat": lambda t: t.roll(12),
    "flip": lambda t: t.flip(0),
    "flip and back": lambda t: t.flip(0).flip(0),
    "flip nothing": lambda t: t.flip(),
    "flip size 1": lambda t: t[:1].flip(0),
    "pad nothing": lambda t: t.pad((0, 0)),
    "pad": lambda t: t.pad((1, 1)),
    "pad off": lambda t: t.pad((-1, 0)),
    "pad reflecting nothing": lambda t: t.pad((0, 0), mode="reflect"),
    "max_pool2d": lambda t: t.reshape(1, 1, 3, 4).max_pool2d(1),
    "avg_pool2d": lambda t: t.reshape(1, 1, 3, 4).avg_pool2d(1),
    "floor of ints": lambda t: t.cast("int32").clone().floor(),
    "round of ints": lambda t: t.cast("int32").round(),
    "reshape of a transposed": lambda t: t.T.reshape(12),
    "contiguous of a transposed": lambda t: t.T.contiguous(),
    "diag": lambda t: t.diag(),
    "index tensors": lambda t: t[Tensor([0, 1])],
    "a mask": lambda t: t[t == t],
    "gather": lambda t: t.gather(0, Tensor([[0, 1, 2, 0]])),
    "scatter nothing": lambda t: t.scatter(0, Tensor.zeros(0, 4, dtype="int32"), Tensor.zeros(0, 4)),
    "where": lambda t: (t == t).where(t, 0),
    "tril": lambda t: t.tril(5),
    "relu": lambda t: t.relu(),
    "clamp": lambda t: t.clamp(-1e9, 1e9),
    "maximum": lambda t: t.maximum(t),
    "interpolate": lambda t: t.reshape(1, 1, 3, 4).interpolate((3, 4), mode="nearest"),
    "to float and back": lambda t: t.cast("float64").cast("float32"),
    "masked_fill": lambda t: t.masked_fill(t != t, 0.0) if hasattr(t, "masked_fill") else t + 0,
    "dot with the unit matrix": lambda t: t @ Tensor.eye(4),
    "sort": lambda t: t.sort()[0],
    "topk": lambda t: t.topk(4)[0],
}


def _tensor(kind: str) -> Tensor:
    data = np.arange(12, dtype=np.float32).reshape(3, 4) + 1
    if kind == "computed":
        return (Tensor(data) * 2).realize()
    if kind == "lazy":
        return Tensor(data) * 2
    if kind == "constant":
        return Tensor.ones(3, 4)
    if kind == "padded":
        return Tensor(data)[:, :3].pad((0, 1))
    return Tensor(data)


KINDS = ["memory", "computed", "lazy", "constant", "padded"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", VIEWS)
def test_views_share(name: str, kind: str) -> None:
    t, f = _tensor(kind), VIEWS[name]
    v = f(t)
    t += 100
    np.testing.assert_array_equal(v.numpy(), f(Tensor(t.numpy())).numpy())
    before = t.numpy()
    v.assign(3)
    assert (v.numpy() == 3).all()
    assert not np.array_equal(t.numpy(), before)
    v[...] = v + 1
    np.testing.assert_array_equal(v.numpy(), f(Tensor(t.numpy())).numpy())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", COPIES)
def test_results_are_copies(name: str, kind: str) -> None:
    t = _tensor(kind)
    y = COPIES[name](t)
    want = COPIES[name](_tensor(kind)).numpy()
    t += 100
    np.testing.assert_array_equal(y.numpy(), want)
    mine = t.numpy()
    y[...] = 1
    assert (y.numpy() == 1).all()
    np.testing.assert_array_equal(t.numpy(), mine)
    z = COPIES[name](t)
    z.assign(2)
    np.testing.assert_array_equal(t.numpy(), mine)
    assert (z.numpy() == 2).all()


@pytest.mark.parametrize("kind", ["memory", "computed", "lazy"])
@pytest.mark.parametrize("repeated", ["expand", "repeat", "repeat in front", "windows", "column", "pad"])
@pytest.mark.parametrize("name", ["cast", "abs of unsigned", "to float and back", "floor of ints", "relu", "times 1"])
def test_what_is_computed_of_repeated_elements_is_memory_of_its_own(name: str, repeated: str, kind: str) -> None:
    """Also where it is computed before it is repeated, and has been computed when it is written."""
    t = _tensor(kind)
    seen = {"expand": lambda: t[:, :1].expand(3, 4), "repeat": lambda: t.repeat(2, 2), "column": lambda: t[:, 1:2].T,
            "repeat in front": lambda: t.repeat(3, 1, 1)[1], "windows": lambda: t.unfold(1, 2, 1)[:, 1],
            "pad": lambda: t.pad((1, 0))}[repeated]()  # fmt: skip
    y = COPIES[name](seen).realize()
    want, mine = y.numpy(), t.numpy()
    want[-1:, ::2] = 7
    y[-1:, ::2] = 7
    np.testing.assert_array_equal(y.numpy(), want)
    np.testing.assert_array_equal(t.numpy(), mine)
    y += y.max()
    np.testing.assert_array_equal(y.numpy(), want + want.max())


@pytest.mark.parametrize("how", ["expand", "windows", "broadcast row"])
def test_several_elements_in_one_place_are_not_written(how: str) -> None:
    t = _tensor("memory")
    v = {"expand": lambda: t[:, :1].expand(3, 4), "windows": lambda: t.unfold(1, 2, 1),
         "broadcast row": lambda: t[0].expand(5, 4)}[how]()  # fmt: skip
    for write in (lambda: v.assign(1), lambda: v.__setitem__(0, 1), lambda: v.__iadd__(1)):
        with pytest.raises(RuntimeError, match="several elements are one place"):
            write()
    t.assign(5)
    assert (v.numpy() == 5).all()
    v = v.clone()
    v[0] = 1
    assert (t.numpy() == 5).all()


def test_the_constructor_copies() -> None:
    buf = np.zeros(4, np.float32)
    made = []
    for i in range(3):
        buf[:] = i
        made.append(Tensor(buf).realize())
    lazy = Tensor(buf)
    buf[:] = 9
    assert [t.tolist() for t in made] == [[float(i)] * 4 for i in range(3)] and lazy.tolist() == [2.0] * 4


def test_gradients_share_no_memory() -> None:
    x, y = (Tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    (x + y).sum().backward()
    seed = Tensor([3.0, 4.0])
    z = Tensor([1.0, 2.0], requires_grad=True)
    (z + 0).backward(seed)
    assert x.grad is not None and y.grad is not None and z.grad is not None
    for gradient in (x.grad, z.grad):
        gradient += 1
    assert x.grad.tolist() == [2, 2] and y.grad.tolist() == [1, 1]
    assert z.grad.tolist() == [4, 5] and seed.tolist() == [3, 4]


def test_assign_broadcasts_and_casts() -> None:
    t = Tensor([[1, 2], [3, 4]])
    assert t.assign([7.9, -1.9]).tolist() == [[7, -1], [7, -1]]
    assert t.assign(Tensor(5.5)).tolist() == [[5, 5], [5, 5]]
    assert t.assign(np.array([[1.0], [2.0]])).tolist() == [[1, 1], [2, 2]]
    assert t[:, 0].assign(Tensor([True, False])).tolist() == [1, 0]
    for wrong in (Tensor([1, 2, 3]), Tensor([[[1, 2]]])):
        with pytest.raises(ValueError, match="assign: a value of shape"):
            t.assign(wrong)


GRADED: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
    "view then whole": (lambda w: _then(w * 2, lambda h: h[1:], lambda h, v: h.__imul__(5), _second), [0, 10, 10]),
    "whole then view": (lambda w: _then(w * 2, lambda h: h[1:], lambda h, v: v.__imul__(5), _first), [2, 10, 10]),
    "used before": (lambda w: _then(w * 2, lambda h: h + 3, lambda h, y: h.__imul__(5), lambda h, y: y + h), [12] * 3),
    "overwritten": (lambda w: _then(w * 2, lambda h: h, lambda h, y: h.assign(Tensor.zeros(3)), _second), [0] * 3),
    "a number": (lambda w: _then(w * 2, lambda h: h[0], lambda h, v: h.__setitem__(0, 5.0), _sum), [0, 2, 2]),
    "detached": (lambda w: _then(w * 2, lambda h: h.detach(), lambda h, v: h.__imul__(5), _sum), [10] * 3),
    "by what flows": (lambda w: _then(w * 2, lambda h: w * 3, lambda h, v: h.__imul__(v), _first), [12, 24, 36]),
    "by itself": (lambda w: _then(w * 2, lambda h: h, lambda h, v: h.__imul__(v), _first), [8, 16, 24]),
    "to a power": (lambda w: _then(w * 2, lambda h: h, lambda h, v: h.__ipow__(2), _first), [8, 16, 24]),
    "a part": (lambda w: _then(w * 2, lambda h: h[1:], lambda h, v: v.__imul__(w[1:]), _first), [2, 8, 12]),
    "remainder": (lambda w: _then(w * 4, lambda h: w + 1.5, lambda h, v: h.__imod__(v), _first), [3, 2, 2]),
    "divided": (lambda w: _then(w * w, lambda h: w, lambda h, v: h.__itruediv__(v), _first), [1, 1, 1]),
    "twice": (lambda w: _then(w * 1, lambda h: w, lambda h, v: h.__imul__(v).__imul__(v), _first), [3, 12, 27]),
    "into zeros": (lambda w: _then(Tensor.zeros(6), lambda z: z[1:4], lambda z, v: v.__iadd__(w), _thrice), [3] * 3),
}


def _first(h: Any, v: Any) -> Any:
    return h


def _second(h: Any, v: Any) -> Any:
    return v


def _sum(h: Any, v: Any) -> Any:
    return h + v


def _thrice(h: Any, v: Any) -> Any:
    return h * 3


def _then(h: Any, view: Any, write: Any, out: Any) -> Any:
    v = view(h)
    write(h, v)
    return out(h, v).sum()


@pytest.mark.parametrize("name", GRADED)
@pytest.mark.parametrize("realised", [False, True])
def test_gradients_flow_through_writes(name: str, realised: bool) -> None:
    w = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    if realised:
        w.realize()
    function, want = GRADED[name]
    function(w).backward()
    assert w.grad is not None and w.grad.tolist() == want


@pytest.mark.parametrize("realised", [False, True])
def test_operands_of_in_place_operators_are_kept(realised: bool) -> None:
    """The gradient of the other operand is made of the elements before the write, also where these are in memory."""
    a, w = Tensor([1.0, 2.0], requires_grad=True), Tensor([[3.0, 4.0]], requires_grad=True)
    x = a * 2
    if realised:
        x.realize()
    x *= w.reshape(2)
    x += 1
    if realised:
        x.realize()
    x.sum().backward()
    assert a.grad is not None and w.grad is not None
    assert (a.grad.tolist(), w.grad.tolist(), x.tolist()) == ([6, 8], [[2, 4]], [7, 17])
    for write in (operator.imul, operator.ipow, operator.imod, operator.itruediv):
        with pytest.raises(RuntimeError, match="a leaf of shape"):
            write(a, w.reshape(2))  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"])
@pytest.mark.parametrize("realised", [False, True])
def test_operators_in_place_do_what_the_others_do(name: str, realised: bool) -> None:
    """With numbers that make a constant or nothing of the elements, too; views and later writes see the same memory."""
    rng = np.random.default_rng(5)
    others: list[Any] = [0, 1, -1, 2.5, rng.uniform(0.3, 3, (5,)), rng.uniform(0.3, 3, (3, 1))]
    for other in others[1:] if name in ("truediv", "floordiv", "mod") else others:
        array, weights = rng.uniform(0.3, 3, (3, 5)), Tensor(rng.standard_normal((3, 5)))
        one, two = Tensor(array, requires_grad=True), Tensor(array, requires_grad=True)
        x, y = one * 1.5, two * 1.5
        if realised:
            x.realize()
        view, operand = x.reshape(15), Tensor(other) if isinstance(other, np.ndarray) else other
        assert getattr(operator, f"i{name}")(x, operand) is x
        want = getattr(operator, name)(y, operand)
        (x * weights).sum().backward()
        (want * weights).sum().backward()
        assert view.tolist() == want.reshape(15).tolist() and x.tolist() == want.tolist(), (name, other)
        assert one.grad is not None and two.grad is not None
        assert one.grad.tolist() == two.grad.tolist(), (name, other)
        with Tensor.no_grad():
            x[1] = 7
        assert view.tolist() == x.reshape(15).tolist() and x[1].tolist() == [7] * 5
        assert x[0].tolist() == want[0].tolist()


@pytest.mark.parametrize("name", ["mul", "truediv", "mod"])
def test_elements_before_a_write_are_kept_for_the_gradient_of_the_other_operand_alone(name: str, backend: str) -> None:
    """They are memory, and one that is not asked for unless a gradient is made of them."""
    for wanted in (False, True):
        x = Tensor([5.0, 6.0, 7.0] * 333, requires_grad=True).realize() * 2
        other = Tensor([2.0, 3.0, 4.0] * 333).realize().requires_grad_(wanted)
        gc.collect()
        before = GlobalCounters.mem_used
        for _ in range(3):
            x = getattr(operator, f"i{name}")(x, other)
        x.realize()
        assert (GlobalCounters.mem_used - before) // x.nbytes() == (4 if wanted else 1)
        del x


@pytest.mark.parametrize("realised", [False, True])
@pytest.mark.parametrize("kind", ["made", "given", "a part", "zeros"])
def test_gradients_add_up_in_place(realised: bool, kind: str) -> None:
    """As in PyTorch, who holds ``grad``, or a view of it, sees what later calls of ``backward`` add."""
    w = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    room = Tensor([0.0, 5.0, 5.0, 5.0, 0.0]).clone()
    if kind == "made":
        (w * 5).sum().backward()
    else:
        w.grad = {"given": Tensor([5.0] * 3), "a part": room[1:4], "zeros": Tensor.zeros(3)}[kind]
    grad = w.grad
    assert grad is not None
    begin = 0.0 if kind == "zeros" else 5.0
    before, part = grad * 1, grad[1:]
    for _ in range(3):
        if realised:
            Tensor.realize(grad, part)
        (w * 2).sum().backward()
        assert w.grad is grad
    assert grad.tolist() == [begin + 6] * 3 and part.tolist() == [begin + 6] * 2
    assert before.tolist() == [begin] * 3
    assert room.tolist() == ([0, 11, 11, 11, 0] if kind == "a part" else [0, 5, 5, 5, 0])


@pytest.mark.parametrize("realised", [False, True])
def test_a_gradient_of_what_was_overwritten_is_refused(realised: bool) -> None:
    w = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    kept, fine = (w * w).sum(), (w + 1).sum()
    with Tensor.no_grad():
        w += 1
    if realised:
        w.realize()
    with pytest.raises(RuntimeError, match="written to in place after it was used"):
        kept.backward()
    fine.backward()
    assert w.grad is not None and w.grad.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="a leaf of shape"):
        w += 1
    with pytest.raises(RuntimeError, match="a leaf of shape"):
        w[1:].assign(Tensor.zeros(2)).sum()
        w[1:] += 2


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("kind", ["constant", "equal graph"])
def test_writing_to_an_equal_value_refuses_nobody_elses_gradient(kind: str, whole: bool) -> None:
    """Constants, and graphs that are built twice, are one node: who writes to his tensor ends his own version alone."""
    w, some = Tensor([1.0, 2.0, 3.0], requires_grad=True), Tensor([5.0, 6.0, 7.0]).realize()

    def factor() -> Tensor:
        return Tensor.full((3,), 1.5) if kind == "constant" else (some * 0.25).detach()

    x, mine, others = w * 2, factor(), factor()
    x *= mine
    others[... if whole else slice(1, None)] = 9
    x.sum().backward()
    assert w.grad is not None and w.grad.tolist() == (mine * 2).tolist()
    assert others.tolist()[1:] == [9, 9] and mine.tolist() == factor().tolist()


def test_what_a_row_is_made_for_is_written_in_place(backend: str) -> None:
    """A single element that every element of the assigned value reads is made in the same kernel."""
    number = Tensor.full((1,), 5, dtype="int32", device=backend)
    x = Tensor.arange(5, dtype="int32", device=backend)
    kept = number.contiguous()
    x[x > 3] = 2
    x[:] += kept * 2
    assert (x.tolist(), kept.tolist()) == ([10, 11, 12, 13, 12], [5])


@pytest.mark.parametrize("kind", ["uint16", "float64"])
@pytest.mark.parametrize("part", [slice(0, 2), slice(1, 3), slice(None), slice(None, None, -1)], ids=str)
def test_parts_of_bits_of_another_size_are_written(kind: str, part: slice) -> None:
    values = np.arange(8, dtype=np.float32) + 1
    x, expected = Tensor(values.copy()).realize(), values.copy()
    seen = expected.view(kind)
    new = np.arange(seen[part].size).astype(kind)
    x.bitcast(kind)[part] = Tensor(new)
    seen[part] = new
    np.testing.assert_array_equal(x.numpy(), expected)
