"""Movement, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tg_frontend import Tensor
from tg_lazy import Context
from tg_shape import Variable

X = np.arange(24).reshape(2, 3, 4)
CASES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[NDArray[Any]], Any]]] = {
    "reshape": (lambda t: t.reshape(4, -1), lambda x: x.reshape(4, -1)),
    "reshape tuple": (lambda t: t.reshape((6, 4)), lambda x: x.reshape(6, 4)),
    "reshape None": (lambda t: t.reshape(None, 12), lambda x: x.reshape(2, 12)),
    "view": (lambda t: t.view(24), lambda x: x.reshape(24)),
    "expand": (lambda t: t[:, :1].expand(-1, 5, -1), lambda x: np.broadcast_to(x[:, :1], (2, 5, 4))),
    "expand new axes": (lambda t: t.expand(3, 2, 3, 4), lambda x: np.broadcast_to(x, (3, 2, 3, 4))),
    "permute": (lambda t: t.permute(2, 0, 1), lambda x: x.transpose(2, 0, 1)),
    "permute negative": (lambda t: t.permute((-1, 0, 1)), lambda x: x.transpose(2, 0, 1)),
    "transpose": (lambda t: t.transpose(0, -1), lambda x: x.swapaxes(0, -1)),
    "T": (lambda t: t.T, lambda x: x.T),
    "flip": (lambda t: t.flip(0, -1), lambda x: np.flip(x, (0, 2))),
    "shrink": (lambda t: t.shrink(((0, 1), None, (1, 3))), lambda x: x[:1, :, 1:3]),
    "pad": (lambda t: t.pad(((1, 0), None, (0, 2))), lambda x: np.pad(x, ((1, 0), (0, 0), (0, 2)))),
    "pad flat": (lambda t: t.pad((1, 2, 0, 1)), lambda x: np.pad(x, ((0, 0), (0, 1), (1, 2)))),
    "pad value": (lambda t: t.pad((1, 2), value=7), lambda x: np.pad(x, ((0, 0), (0, 0), (1, 2)), constant_values=7)),
    "pad negative": (lambda t: t.pad((-1, 2)), lambda x: np.pad(x[..., 1:], ((0, 0), (0, 0), (0, 2)))),
    "pad reflect": (lambda t: t.pad((2, 3), mode="reflect"), lambda x: np.pad(x, ((0, 0), (0, 0), (2, 3)), "reflect")),
    "pad edge": (lambda t: t.pad((2, 3), mode="replicate"), lambda x: np.pad(x, ((0, 0), (0, 0), (2, 3)), "edge")),
    "pad wrap": (lambda t: t.pad((2, 3), mode="circular"), lambda x: np.pad(x, ((0, 0), (0, 0), (2, 3)), "wrap")),
    "squeeze": (lambda t: t[:, :1].squeeze(), lambda x: x[:, 0]),
    "squeeze axis": (lambda t: t[:, :1].squeeze(1).squeeze(0), lambda x: x[:, 0]),
    "unsqueeze": (lambda t: t.unsqueeze(-1).unsqueeze(0), lambda x: x[None, ..., None]),
    "flatten": (lambda t: t.flatten(1), lambda x: x.reshape(2, 12)),
    "unflatten": (lambda t: t.unflatten(-1, (2, -1)), lambda x: x.reshape(2, 3, 2, 2)),
    "repeat": (lambda t: t.repeat(2, 1, 3), lambda x: np.tile(x, (2, 1, 3))),
    "repeat more": (lambda t: t.repeat((2, 1, 1, 2)), lambda x: np.tile(x, (2, 1, 1, 2))),
    "repeat_interleave": (lambda t: t.repeat_interleave(2, 1), lambda x: x.repeat(2, 1)),
    "repeat_interleave flat": (lambda t: t.repeat_interleave(2), lambda x: x.repeat(2)),
    "cat": (lambda t: t.cat(t[:, :1], t, dim=1), lambda x: np.concatenate([x, x[:, :1], x], 1)),
    "stack": (lambda t: Tensor.stack(t, t + 1, dim=-1), lambda x: np.stack([x, x + 1], -1)),
    "split": (lambda t: t.split(2, 1)[1], lambda x: x[:, 2:]),
    "split sizes": (lambda t: t.split([1, 0, 3], -1)[2], lambda x: x[..., 1:]),
    "chunk": (lambda t: t.chunk(2, -1)[1], lambda x: x[..., 2:]),
    "unbind": (lambda t: t.unbind()[1], lambda x: x[1]),
    "unbind last": (lambda t: t.unbind(dim=-1)[2], lambda x: x[..., 2]),
    "roll": (lambda t: t.roll(-3, 2), lambda x: np.roll(x, -3, 2)),
    "roll axes": (lambda t: t.roll((1, 5), (0, -1)), lambda x: np.roll(x, (1, 5), (0, -1))),
    "roll flat": (lambda t: t.roll(5), lambda x: np.roll(x, 5)),
    "diagonal": (lambda t: t[0, :, :3].diagonal(), lambda x: np.diagonal(x[0, :, :3])),
    "rearrange": (lambda t: t.rearrange("a b (c d) -> (b a) d c", c=2),
                  lambda x: x.reshape(2, 3, 2, 2).transpose(1, 0, 3, 2).reshape(6, 2, 2)),
    "rearrange dots": (lambda t: t.rearrange("a ... c -> c (...) a"), lambda x: x.transpose(2, 1, 0)),
    "rearrange dots apart": (lambda t: t.rearrange("a … -> … a"), lambda x: x.transpose(1, 2, 0)),
    "rearrange ones": (lambda t: t.rearrange("a b c -> a 1 (b c)"), lambda x: x.reshape(2, 1, 12)),
    "unfold": (lambda t: t.unfold(2, 3, 1), lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, 2)),
    "unfold apart": (lambda t: t.unfold(1, 1, 2), lambda x: x[:, ::2, :, None]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_against_numpy(name: str, backend: str) -> None:
    ours, theirs = CASES[name]
    want = theirs(X)
    got = ours(Tensor(X))
    assert got.shape == want.shape and got.tolist() == want.tolist()


def test_zero_sizes() -> None:
    t = Tensor.zeros(2, 0, 3)
    assert t.reshape(0, 5).shape == (0, 5) and t.permute(1, 0, 2).shape == (0, 2, 3)
    assert t.pad(((0, 0), (1, 1), (0, 0)), value=2.0).tolist() == [[[2.0] * 3] * 2] * 2
    assert t.cat(Tensor.ones(2, 1, 3), dim=1).tolist() == [[[1.0] * 3]] * 2
    assert t.flip(1).repeat(1, 2, 1).shape == (2, 0, 3) and t.sum(1).tolist() == [[0.0] * 3] * 2
    assert t.flatten().shape == (0,) and t.expand(4, 2, 0, 3).shape == (4, 2, 0, 3)


def test_scalars() -> None:
    t = Tensor(5)
    assert t.reshape(1, 1).tolist() == [[5]] and t.unsqueeze(0).shape == (1,) and t.flatten().shape == (1,)
    assert t.permute().item() == 5 and t.squeeze().item() == 5 and t.expand(3).tolist() == [5, 5, 5]
    assert t.T.item() == 5 and t.flip().item() == 5


def test_cat_promotes_and_keeps_signs_of_zero(backend: str) -> None:
    joined = Tensor([-0.0, 1.0]).cat(Tensor([2, 3]))
    assert joined.tolist() == [0.0, 1.0, 2.0, 3.0] and np.signbit(joined.numpy())[0]


def test_symbolic_sizes(backend: str) -> None:
    n = Variable("n", 1, 4).bind(3)
    t = Tensor([[0, 1, 2, 3], [4, 5, 6, 7]])
    part = t[:, :n]
    assert part.shape == (2, n) and part.sum().item() == 0 + 1 + 2 + 4 + 5 + 6
    assert part.reshape(n, 2).sum(0).sum().item() == 18 and (t[:, n] + 0).tolist() == [3, 7]
    assert part.contiguous().numpy().tolist() == [[0, 1, 2], [4, 5, 6]]
    assert (t + n).tolist() == [[3, 4, 5, 6], [7, 8, 9, 10]]


BAD: dict[str, tuple[Callable[[Tensor], object], type[Exception], str]] = {
    "reshape": (lambda t: t.reshape(5, 5), ValueError, r"reshape: \(2, 3, 4\) has 24 elements, \(5, 5\) has 25"),
    "reshape -1": (lambda t: t.reshape(5, -1), ValueError, r"24 elements do not divide by 5"),
    "reshape two -1": (lambda t: t.reshape(-1, -1), ValueError, "at most one size may be -1"),
    "reshape -2": (lambda t: t.reshape(-2, 12), ValueError, "none below"),
    "reshape float": (lambda t: t.reshape(2.0, 12), TypeError, r"sizes and axes are integers, got 2\.0"),
    "reshape None": (lambda t: t.reshape(2, 3, 4, None), ValueError, "has not"),
    "expand": (lambda t: t.expand(2, 5, 4), ValueError, r"expand: \(2, 3, 4\) to \(2, 5, 4\)"),
    "expand a new axis": (lambda t: t.expand(-1, -1, -1, -1), ValueError, "a new axis has no size"),
    "expand fewer": (lambda t: t.expand(3, 4), ValueError, "cannot fall"),
    "permute": (lambda t: t.permute(0, 1, 1), ValueError, "every axis"),
    "permute range": (lambda t: t.permute(0, 1, 3), IndexError, r"axis 3 is out of range for shape \(2, 3, 4\)"),
    "flip": (lambda t: t.flip(3), IndexError, "flip: axis 3"),
    "flip twice": (lambda t: t.flip(0, -3), ValueError, "twice"),
    "shrink": (lambda t: t.shrink(((0, 3), None, None)), ValueError, "does not lie inside"),
    "shrink count": (lambda t: t.shrink(((0, 1),)), ValueError, r"1 bounds for shape \(2, 3, 4\)"),
    "pad": (lambda t: t.pad((1, 2, 3)), ValueError, r"pad: \(1, 2, 3\)"),
    "pad mode": (lambda t: t.pad((1, 1), mode="mirror"), ValueError, "mode 'mirror'"),
    "pad reflect": (lambda t: t.pad((4, 0), mode="reflect"), ValueError, "axis 2"),
    "pad cut": (lambda t: t.pad((-3, -3)), ValueError, "cuts more"),
    "transpose": (lambda t: t.transpose(0, 5), IndexError, "transpose: axis 5"),
    "squeeze": (lambda t: t.squeeze(7), IndexError, "squeeze: axis 7"),
    "unsqueeze": (lambda t: t.unsqueeze(5), IndexError, "unsqueeze: axis 5"),
    "flatten": (lambda t: t.flatten(2, 1), ValueError, "comes after"),
    "unflatten": (lambda t: t.unflatten(1, (2, 2)), ValueError, "unflatten: axis 1"),
    "repeat": (lambda t: t.repeat(2, 2), ValueError, "repeat"),
    "cat": (lambda t: t.cat(t[:, :2], dim=0), ValueError, r"cat: the shapes \(2, 3, 4\) and \(2, 2, 4\) do not join"),
    "cat axis": (lambda t: t.cat(t, dim=3), IndexError, "cat: axis 3"),
    "stack": (lambda t: t.stack(t[:1]), ValueError, "stack: the shapes"),
    "split": (lambda t: t.split([1, 1], 1), ValueError, "do not add up"),
    "split zero": (lambda t: t.split(0), ValueError, "parts of 0"),
    "chunk": (lambda t: t.chunk(0), ValueError, "chunk"),
    "unbind": (lambda t: t.unbind(3), IndexError, "unbind: axis 3"),
    "unbind scalar": (lambda t: t.sum().unbind(), ValueError, "no axis to take apart"),
    "roll": (lambda t: t.roll((1, 2), 0), ValueError, "2 shifts for 1 axes"),
    "diagonal": (lambda t: t.diagonal(dim1=1, dim2=1), ValueError, "two axes are wanted"),
    "rearrange": (lambda t: t.rearrange("a b -> b a"), ValueError, "names 2 axes"),
    "rearrange size": (lambda t: t.rearrange("a (b c) d -> a b c d", b=2), ValueError, "not an axis of size 3"),
    "rearrange names": (lambda t: t.rearrange("a b c -> a b"), ValueError, "same axes"),
    "rearrange braces": (lambda t: t.rearrange("a (b c -> a b c"), ValueError, "parentheses"),
    "unfold": (lambda t: t.unfold(1, 4, 1), ValueError, "larger than axis 1"),
    "axis type": (lambda t: t.squeeze(1.0), TypeError, "axis is an integer"),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_mistakes_are_named(name: str) -> None:
    function, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        function(Tensor(X))


@st.composite
def _moves(draw: st.DrawFn) -> tuple[tuple[int, ...], list[tuple[str, Any]]]:
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    moves: list[tuple[str, Any]] = []
    now = shape
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["permute", "flip", "shrink", "pad", "merge", "split"]))
        if kind == "permute":
            order = tuple(draw(st.permutations(range(len(now)))))
            moves.append((kind, order))
            now = tuple(now[i] for i in order)
        elif kind == "flip":
            axis = draw(st.integers(0, len(now) - 1))
            moves.append((kind, axis))
        elif kind == "shrink":
            bounds = tuple((a := draw(st.integers(0, d)), draw(st.integers(a, d))) for d in now)
            moves.append((kind, bounds))
            now = tuple(b - a for a, b in bounds)
        elif kind == "pad":
            widths = tuple((draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in now)
            moves.append((kind, widths))
            now = tuple(d + a + b for d, (a, b) in zip(now, widths, strict=True))
        elif kind == "merge" and len(now) > 1:
            now = (now[0] * now[1], *now[2:])
            moves.append(("reshape", now))
        elif now[-1] % 2 == 0:
            now = (*now[:-1], 2, now[-1] // 2)
            moves.append(("reshape", now))
    return shape, moves


@settings(max_examples=60)
@given(_moves())
def test_chains_of_movements(case: tuple[tuple[int, ...], list[tuple[str, Any]]]) -> None:
    shape, moves = case
    x = np.arange(1, 1 + int(np.prod(shape))).reshape(shape)
    with Context(DEV="NUMPY"):
        t = Tensor(x)
        for kind, argument in moves:
            t = getattr(t, kind)(argument)
            if kind == "permute":
                x = x.transpose(argument)
            elif kind == "flip":
                x = np.flip(x, argument)
            elif kind == "shrink":
                x = x[tuple(slice(a, b) for a, b in argument)]
            elif kind == "pad":
                x = np.pad(x, argument)
            else:
                x = x.reshape(argument)
        assert t.numpy().tolist() == x.tolist() and t.shape == x.shape


def test_a_pad_of_a_pad_stays_within_its_array(backend: str) -> None:
    x = np.arange(105.0, dtype=np.float32).reshape(1, 7, 3, 5) + np.ones((1, 3, 1), np.float32)
    t = Tensor(x)
    t, x = Tensor.stack(t, t, dim=2), np.stack([x, x], 2)
    for widths in (
        [(0, 0), (0, 0), (0, 1), (1, -1), (0, -1)], [(0, 0), (0, 0), (-1, 0), (2, -1), (0, 1)],
        [(1, 2), (0, -1), (3, -2), (-2, 0), (-1, 1)],
    ):  # fmt: skip
        t = t.pad(tuple(n for pair in reversed(widths) for n in pair))
        cut = tuple(slice(-min(a, 0), d + min(b, 0)) for (a, b), d in zip(widths, x.shape, strict=True))
        x = np.pad(x[cut], [(max(a, 0), max(b, 0)) for a, b in widths])
    assert t.numpy().tolist() == x.tolist()


@pytest.mark.parametrize("join", [Tensor.cat, Tensor.stack])
def test_nothing_to_join_is_named(join: Any) -> None:
    with pytest.raises(ValueError, match="one list of at least one tensor is wanted"):
        join([])
