"""Names of PyTorch and numpy: what they compute beside numpy's values, and words for those that are not there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor
from tg_frontend.ops.absent import INSTEAD

RNG = np.random.default_rng(5)


def test_a_name_that_is_not_there_says_what_is_used_instead() -> None:
    x = Tensor([[1.0]])
    for name, said in INSTEAD.items():
        with pytest.raises(AttributeError, match=f"no attribute '{name}': ") as raised:
            getattr(x, name)
        assert str(raised.value).endswith(said)


def test_every_name_of_an_array_is_there_or_answered() -> None:
    unnamed = [n for n in dir(np.ndarray) if not n.startswith("_") and n not in dir(Tensor) and n not in INSTEAD]
    assert unnamed == []


@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3), (3, 0, 2), (5, 1, 7)])
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_unravel_index_and_back(shape: tuple[int, ...], dtype: str) -> None:
    count = int(np.prod(shape))
    flat = RNG.integers(0, max(count, 1), (3, 5) if count else (0,)).astype(dtype)
    found = Tensor(flat).unravel_index(shape)
    for mine, theirs in zip(found, np.unravel_index(flat, shape) if shape else (), strict=True):
        assert mine.dtype.name == dtype
        np.testing.assert_array_equal(mine.numpy(), theirs)
    if shape:
        for order in "CF":
            rows = np.array(np.unravel_index(flat, shape))
            wanted = np.ravel_multi_index(tuple(rows), shape, order=order)  # type: ignore[call-overload]
            np.testing.assert_array_equal(Tensor(rows).ravel_multi_index(shape, order=order).numpy(), wanted)


def test_positions_out_of_range() -> None:
    rows = [[-1, 4, 1], [5, -7, 2]]
    for mode in ("wrap", "clip", ("clip", "wrap")):
        wanted = np.ravel_multi_index(np.array(rows), (3, 5), mode=mode)
        assert Tensor(rows).ravel_multi_index((3, 5), mode).tolist() == wanted.tolist()
    with pytest.raises(ValueError, match=r"^Tensor\.ravel_multi_index: a position is out of range for an axis of"):
        Tensor(rows).ravel_multi_index((3, 5))
    with pytest.raises(ValueError, match="3 rows"):
        Tensor([1, 1, 1]).ravel_multi_index((3, 5))
    with pytest.raises(ValueError, match="there are no positions"):
        Tensor([0]).unravel_index((2, 0))
    with pytest.raises(TypeError, match="positions are integers"):
        Tensor([0.0]).unravel_index((2, 1))
    assert Tensor([200], dtype="uint8").unravel_index((1000, 3))[0].tolist() == [66]


def test_broadcast_shapes() -> None:
    for shapes in ([(2, 1), (3,), ()], [(5, 1, 7), (1, 7)], [(0, 1), (1, 3)], [4, (2, 1)], []):
        assert Tensor.broadcast_shapes(*shapes) == np.broadcast_shapes(*shapes)
    with pytest.raises(ValueError, match="do not broadcast"):
        Tensor.broadcast_shapes((2,), (3,))
    with pytest.raises(ValueError, match="negative"):
        Tensor.broadcast_shapes((-1,))


@pytest.mark.parametrize(("points", "d", "bins"), [(0, 1, 3), (1, 2, 2), (101, 2, (3, 5)), (53, 3, (2, 1, 7))])
@pytest.mark.parametrize("density", [False, True])
def test_histogramdd(points: int, d: int, bins: Any, density: bool) -> None:
    x = RNG.integers(-8, 9, (points, d)) / 4
    weights = RNG.integers(1, 9, points) / 8
    bounds = [(-1.5, 1.75)] * d
    for weight in (None, weights):
        if density and points < 2:
            continue
        wanted, edges = np.histogramdd(x, bins, bounds, density, weight)
        mine, ours = Tensor(x).histogramdd(bins, [b for pair in bounds for b in pair],
                                           None if weight is None else Tensor(weight), density)  # fmt: skip
        np.testing.assert_allclose(mine.numpy(), wanted, rtol=1e-12)
        for a, b in zip(ours, edges, strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-12)


def test_histogramdd_of_edges_and_of_its_own_bounds() -> None:
    x = RNG.integers(0, 17, (3, 31, 2)) / 4
    edges = [np.array([0.0, 0.5, 2.0]), np.array([-1.0, 1.0, 3.0, 4.0])]
    flat = x.reshape(-1, 2)
    for bins, ours in ((edges, [Tensor(e) for e in edges]), (3, 3)):
        wanted, _ = np.histogramdd(flat, bins, density=True)
        np.testing.assert_allclose(Tensor(x).histogramdd(ours, density=True)[0].numpy(), wanted, rtol=1e-12)
    with pytest.raises(ValueError, match="with 2 coordinates"):
        Tensor(x).histogramdd([3])
    with pytest.raises(TypeError, match="floats are wanted"):
        Tensor([[1, 2]]).histogramdd(3)


def _segments(x: np.ndarray[Any, Any], lengths: list[int], how: str, initial: float | None) -> Any:
    start, out = 0, []
    for length in lengths:
        part, start = x[start : start + length], start + length
        base = {"sum": 0.0, "mean": np.nan, "prod": 1.0, "max": -np.inf, "min": np.inf}[how]
        begin = np.full((1, *x.shape[1:]), base if initial is None else initial)
        if how == "mean":
            whole = part.sum(0) + (0 if initial is None else initial)
            out.append(whole / length if length else begin[0])
        else:
            out.append(getattr(np.concatenate([begin, part]), how)(0))
    return np.stack(out)


@pytest.mark.parametrize("how", ["sum", "mean", "prod", "max", "min"])
@pytest.mark.parametrize("initial", [None, 1.5])
def test_segment_reduce(how: str, initial: float | None) -> None:
    x = RNG.integers(-6, 7, (7, 3)) / 4
    lengths = [2, 0, 4, 1]
    wanted = _segments(x, lengths, how, initial)
    t = Tensor(x)
    ways: list[dict[str, Any]] = [{"lengths": Tensor(lengths)}, {"offsets": Tensor([0, 2, 2, 6, 7])}]
    for told in ways:
        np.testing.assert_allclose(t.segment_reduce(how, initial=initial, **told).numpy(), wanted)
    both = np.stack([x, x[::-1]])
    counts = [lengths, [1, 3, 0, 3]]
    rows = np.stack([_segments(a, n, how, initial) for a, n in zip(both, counts, strict=True)])
    mine = Tensor(both).segment_reduce(how, lengths=Tensor(counts), axis=1, initial=initial)
    np.testing.assert_allclose(mine.numpy(), rows)


def test_segment_reduce_gradient_and_refusals() -> None:
    x = Tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    (x.segment_reduce("mean", lengths=Tensor([3, 1])) * Tensor([3.0, 5.0])).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [1.0, 1.0, 1.0, 5.0]
    left_over = x.detach().segment_reduce("sum", offsets=Tensor([1, 2]))
    assert left_over.tolist() == [2.0]
    assert x.detach().segment_reduce("sum", lengths=Tensor([1, 1]), unsafe=True).tolist() == [1.0, 2.0]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"lengths": Tensor([1, 1])}, "do not add up to 4"), ({"lengths": Tensor([5, -1])}, "negative"),
        ({}, "by one of them"), ({"offsets": Tensor([0, 9])}, "outside of an axis"),
    ]  # fmt: skip
    for told, said in wrong:
        with pytest.raises(ValueError, match=said):
            x.detach().segment_reduce("sum", **told)
    with pytest.raises(ValueError, match="there are sum"):
        x.segment_reduce("median", lengths=Tensor([4]))


def test_signs_and_conjugates_in_place() -> None:
    z = Tensor([3 + 4j, 0j, -2 + 0j])
    assert z.sgn_() is z
    np.testing.assert_allclose(z.numpy(), [0.6 + 0.8j, 0, -1], rtol=1e-6)
    assert z.conj_physical_() is z
    np.testing.assert_allclose(z.numpy(), [0.6 - 0.8j, 0, -1], rtol=1e-6)
    assert Tensor([-2.0, 0.0, 7.0]).sgn_().tolist() == [-1.0, 0.0, 1.0]
    assert not z.is_neg() and z.resolve_neg() is z


def test_hooks_after_the_gradient_is_added() -> None:
    w = Tensor([1.0, 2.0], requires_grad=True)
    seen: list[Any] = []
    handle = w.register_post_accumulate_grad_hook(
        lambda leaf: seen.append(leaf.grad.numpy().tolist() if leaf.grad is not None else 0)
    )
    for create in (False, True):
        (w * w).sum().backward(create_graph=create)
    assert seen == [[2.0, 4.0], [4.0, 8.0]]
    handle.remove()
    (w * 2).sum().backward()
    assert len(seen) == 2

    def step(leaf: Tensor) -> None:
        with Tensor.no_grad():
            assert leaf.grad is not None
            leaf.assign(leaf - leaf.grad)
        leaf.grad = None

    v = Tensor([1.0, 2.0], requires_grad=True)
    v.register_post_accumulate_grad_hook(step)
    (v * 3).sum().backward()
    assert v.tolist() == [-2.0, -1.0] and v.grad is None
    with pytest.raises(RuntimeError, match="a leaf that may get a gradient is wanted"):
        (w * 2).register_post_accumulate_grad_hook(step)


def test_scalar_tensor() -> None:
    assert Tensor.scalar_tensor(3).dtype.name == "float32" and Tensor.scalar_tensor(True).item() == 1.0
    assert Tensor.scalar_tensor(3, dtype="int64").shape == ()
