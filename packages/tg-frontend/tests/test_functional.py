"""``nn.functional`` beside plain numpy and finite differences, and what it says of arguments that do not fit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tg_frontend import Tensor, nn
from tg_frontend.nn import functional

F: Any = functional
RNG = np.random.default_rng(7)
Floats = npt.NDArray[np.float64]


def draw(*shape: int) -> Floats:
    return RNG.uniform(-1, 1, shape)


def same(got: Tensor, want: Any, tolerance: float = 1e-9) -> None:
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=tolerance)


def _slopes(function: Callable[..., Tensor], *arrays: Floats) -> None:
    """The slope in a random direction, and the slope of that, beside finite differences."""
    seed = Tensor(draw(*map(int, function(*map(Tensor, arrays)).shape)))
    ways = [draw(*array.shape) for array in arrays]

    def slope(value: Tensor, leaves: list[Tensor]) -> Tensor:
        found = value.gradient(*leaves, materialize_grads=True)
        parts = [(part * Tensor(way)).sum() for part, way in zip(found, ways, strict=True)]
        return sum(parts[1:], parts[0])

    def orders(step: float) -> list[float]:
        leaves = [Tensor(a + step * way, requires_grad=True) for a, way in zip(arrays, ways, strict=True)]
        value = (function(*leaves).square() * seed).sum()
        first = slope(value, leaves)
        return [value.item(), first.item(), slope(first, leaves).item()]

    step = 1e-5
    here, before, behind = orders(0.0), orders(-step), orders(step)
    for order in (0, 1):
        want = (behind[order] - before[order]) / (2 * step)
        np.testing.assert_allclose(here[order + 1], want, rtol=2e-5, atol=1e-6)


def _bounds(have: int, want: int) -> list[slice]:
    return [slice(i * have // want, math.ceil((i + 1) * have / want)) for i in range(want)]


@pytest.mark.parametrize("shape", [(2, 3, 7), (3, 5), (1, 2, 1), (0, 3, 4)])
@pytest.mark.parametrize("size", [1, 3, 4, 5, 11])
def test_adaptive_pools_of_one_axis(shape: tuple[int, ...], size: int) -> None:
    x = draw(*shape)
    parts = [x[..., part] for part in _bounds(shape[-1], size)]
    same(F.adaptive_avg_pool1d(Tensor(x), size), np.stack([part.mean(-1) for part in parts], -1))
    same(F.adaptive_max_pool1d(Tensor(x), size), np.stack([part.max(-1) for part in parts], -1))


@pytest.mark.parametrize("size", [(2, 3), (1, 1), (5, 7), (4, None), (3, 2)])
def test_adaptive_pools_of_two_axes_and_positions(size: tuple[int, int | None]) -> None:
    x = draw(2, 3, 5, 7)
    high, wide = size[0], size[1] or 7
    mean, most, where = (np.zeros((2, 3, high, wide)) for _ in range(3))
    for (i, rows), (j, columns) in itertools.product(enumerate(_bounds(5, high)), enumerate(_bounds(7, wide))):
        part = x[:, :, rows, columns]
        mean[:, :, i, j], most[:, :, i, j] = part.mean((2, 3)), part.max((2, 3))
        at = part.reshape(2, 3, -1).argmax(-1)
        width = part.shape[3]
        where[:, :, i, j] = (rows.start + at // width) * 7 + columns.start + at % width
    same(F.adaptive_avg_pool2d(Tensor(x), size), mean)
    got, places = F.adaptive_max_pool2d(Tensor(x), size, return_indices=True)
    same(got, most)
    assert (places.numpy() == where).all()
    volume = x.reshape(2, 3, 1, 5, 7)
    same(F.adaptive_avg_pool3d(Tensor(volume), (1, *size)), mean[:, :, None])
    same(F.adaptive_max_pool3d(Tensor(volume), (1, *size)), most[:, :, None])
    _slopes(lambda x: F.adaptive_avg_pool2d(x, size), x)
    _slopes(lambda x: F.adaptive_max_pool2d(x, size), x)


def _irregular(size: int, kernel: int, want: int, draw: float) -> list[slice]:
    """Windows as Graham (2014) lays them, in the numbers of float32."""
    step, u = np.float32((size - kernel) / max(want - 1, 1)), np.float32(draw)
    starts = [int((np.float32(i) + u) * step) - int(u * step) for i in range(want - 1)]
    return [slice(start, start + kernel) for start in (*starts, size - kernel)]


@pytest.mark.parametrize("kernels, wants", [((2, 3, 2), (5, 4, 3)), ((1, 2, 2), (4, 1, 6)), ((3, 3, 1), (1, 5, 7))])
def test_fractional_pools_and_positions(kernels: tuple[int, ...], wants: tuple[int, ...]) -> None:
    x, draws = draw(2, 3, 7, 11, 9), np.abs(draw(2, 3, 3)).astype(np.float32)
    sizes = x.shape[2:]
    want, at = np.zeros((2, 3, *wants)), np.zeros((2, 3, *wants), int)
    numbered = np.arange(np.prod(sizes)).reshape(sizes)
    for b, c in itertools.product(range(2), range(3)):
        windows = [_irregular(*axis) for axis in zip(sizes, kernels, wants, draws[b, c].tolist(), strict=True)]
        for place in itertools.product(*map(range, wants)):
            part = tuple(windows[i][k] for i, k in enumerate(place))
            want[(b, c, *place)] = x[b, c][part].max()
            at[(b, c, *place)] = numbered[part].flat[x[b, c][part].argmax()]
    got, where = F.fractional_max_pool3d(Tensor(x), kernels, wants, None, True, Tensor(draws))
    same(got, want)
    assert (where.numpy() == at).all()
    # the draws of two axes come the other way round, as PyTorch's do
    flat = Tensor(draws[:, :, [2, 1]].copy())
    most, where = F.fractional_max_pool2d(Tensor(x[:, :, 0]), kernels[1:], wants[1:], None, True, flat)
    for b, c in itertools.product(range(2), range(3)):
        windows = [_irregular(*axis) for axis in zip(sizes[1:], kernels[1:], wants[1:], draws[b, c, 1:], strict=True)]
        for i, j in itertools.product(range(wants[1]), range(wants[2])):
            assert most[b, c, i, j].item() == x[b, c, 0][windows[0][i], windows[1][j]].max()
    assert (np.take_along_axis(x[:, :, 0].reshape(2, 3, -1), where.numpy().reshape(2, 3, -1), 2)
            == most.numpy().reshape(2, 3, -1)).all()  # fmt: skip
    _slopes(lambda x: F.fractional_max_pool3d(x, kernels, wants, _random_samples=Tensor(draws)), x)


@pytest.mark.parametrize("n", [2, 3])
def test_fractional_pools_are_torchs(n: int) -> None:
    torch: Any = pytest.importorskip("torch")
    x, draws = draw(2, 3, *(11, 13, 7)[:n]).astype(np.float32), np.abs(draw(2, 3, n)).astype(np.float32)
    for kernel, wants in (((2, 3, 2)[:n], (5, 4, 3)[:n]), (2, (1, 7, 5)[:n]), (3, (8, 9, 4)[:n])):
        arguments = kernel, wants, None, True
        of_torch = getattr(torch.nn.functional, f"fractional_max_pool{n}d")
        most, where = of_torch(torch.from_numpy(x), *arguments, _random_samples=torch.from_numpy(draws))
        got, places = getattr(F, f"fractional_max_pool{n}d")(Tensor(x), *arguments, _random_samples=Tensor(draws))
        assert (got.numpy() == most.numpy()).all() and (places.numpy() == where.numpy()).all()


def test_fractional_pools_draw_their_windows() -> None:
    x = Tensor(draw(1, 50, 23))
    first, second = (nn.FractionalMaxPool2d(2, output_ratio=(0.5, 0.7))(x) for _ in range(2))
    assert first.shape == (1, 25, 16) and (first != second).any().item()
    for bad in ({}, {"output_size": 3, "output_ratio": 0.5}, {"output_ratio": 1.5}, {"output_size": (50, 2)}):
        with pytest.raises(ValueError, match="fractional_max_pool2d"):
            F.fractional_max_pool2d(x, 2, **bad)
    with pytest.raises(ValueError, match="_random_samples"):
        F.fractional_max_pool2d(x, 2, 3, _random_samples=Tensor.zeros(1, 1, 3))
    wide, draws = Tensor(draw(2, 3, 7, 7)), Tensor(np.random.default_rng(0).random((5, 3, 2)))
    few = F.fractional_max_pool2d(wide, 2, 3, _random_samples=draws[:2])
    same(F.fractional_max_pool2d(wide, 2, 3, _random_samples=draws), few.numpy())  # the first of too many
    same(F.fractional_max_pool2d(wide[0], 2, 3, _random_samples=draws), few[0].numpy())
    with pytest.raises(ValueError, match="_random_samples"):
        F.fractional_max_pool2d(wide, 2, 3, _random_samples=draws[:1])


@pytest.mark.parametrize("pool", [
    lambda x: F.max_pool2d(x, 3, 2, return_indices=True), lambda x: F.adaptive_max_pool2d(x, 2, return_indices=True),
    lambda x: F.fractional_max_pool2d(x, 3, 2, return_indices=True),
])  # fmt: skip
def test_the_place_of_nan_is_where_it_stands(pool: Callable[[Tensor], Any]) -> None:
    x = draw(1, 1, 5, 5)
    x[0, 0, 4, 3] = np.nan
    most, where = pool(Tensor(x))
    assert math.isnan(most[0, 0, 1, 1].item()) and where[0, 0, 1, 1].item() == 23
    assert (x.reshape(-1)[where.numpy().reshape(-1)[:3]] == most.numpy().reshape(-1)[:3]).all()


def test_power_pools_are_norms_of_windows() -> None:
    x = np.abs(draw(2, 3, 6)) + 0.1
    want = np.cbrt((x.reshape(2, 3, 3, 2) ** 3).sum(-1))
    same(F.lp_pool1d(Tensor(x), 3, 2), want)
    same(F.lp_pool2d(Tensor(x[:, :, None]), 3, (1, 2)), want[:, :, None])
    same(F.lp_pool3d(Tensor(x[:, :, None, None]), 3, (1, 1, 2)), want[:, :, None, None])


def test_columns_and_back() -> None:
    x = draw(2, 3, 7, 6)
    arguments = ((3, 2), (2, 1), (1, 2), (2, 3))
    got = F.unfold(Tensor(x), *arguments)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (2, 2)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (5, 2), (2, 3))[:, :, ::2, ::3, ::2, :]
    same(got, seen.transpose(0, 1, 4, 5, 2, 3).reshape(2, 18, -1))
    # folding is the transpose of unfolding
    y = draw(*got.shape)
    back = F.fold(Tensor(y), (7, 6), *arguments)
    assert back.shape == x.shape
    np.testing.assert_allclose((back.numpy() * x).sum(), (got.numpy() * y).sum())
    _slopes(lambda y: F.fold(y, (7, 6), *arguments), y)


@pytest.mark.parametrize("stride", [1, 2, 3, 5])
@pytest.mark.parametrize("dilation", [1, 2, 3])
def test_windows_are_added_where_their_elements_came_from(stride: int, dilation: int) -> None:
    """fold, and the gradients of unfold and fold, beside sums over every element of every window."""
    for kernel, padding in ((1, 0), (2, 0), (3, 2), (4, 1)):
        size, arguments = (14, 13), ((kernel, 2), (dilation, 1), (padding, 0), (stride, 2))
        places = np.arange(1.0, 1 + size[0] * size[1], dtype=np.float32).reshape(1, 1, *size)  # 0 where padded
        columns = F.unfold(Tensor(places), *arguments).numpy().astype(int)[0]
        y = draw(1, *columns.shape)
        want = np.bincount(columns.ravel(), y.ravel(), size[0] * size[1] + 1)[1:].reshape(1, 1, *size)
        np.testing.assert_allclose(F.fold(Tensor(y), size, *arguments).numpy(), want, rtol=1e-5, atol=1e-5)
        x = Tensor(draw(1, 1, *size), requires_grad=True)
        slope = (F.unfold(x, *arguments) * Tensor(y)).sum().gradient(x)[0]
        np.testing.assert_allclose(slope.numpy(), want, rtol=1e-5, atol=1e-5)
        other, into = draw(1, 1, *size), Tensor(y, requires_grad=True)
        slope = (F.fold(into, size, *arguments) * Tensor(other)).sum().gradient(into)[0]
        same(slope, np.append(0.0, other)[columns][None])


def test_statistics_that_are_given_or_follow() -> None:
    x, w, b = draw(4, 3, 5), draw(3), draw(3)
    mean, var = draw(3), np.abs(draw(3)) + 0.5
    column = (1, 3, 1)
    want = (x - mean.reshape(column)) / np.sqrt(var.reshape(column) + 1e-5) * w.reshape(column) + b.reshape(column)
    running, spread = Tensor(mean), Tensor(var)
    same(F.batch_norm(Tensor(x), running, spread, Tensor(w), Tensor(b)), want)
    F.batch_norm(Tensor(x), running, spread, training=True, momentum=0.25)
    same(running, mean * 0.75 + x.mean((0, 2)) * 0.25)
    same(spread, var * 0.75 + x.var((0, 2), ddof=1) * 0.25)
    normal = (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5)
    same(F.instance_norm(Tensor(x)), normal)
    same(F.group_norm(Tensor(x), 3, Tensor(w), Tensor(b)), normal * w.reshape(column) + b.reshape(column))
    table = draw(3, 5)
    whole = (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 1e-5)
    same(F.layer_norm(Tensor(x), (3, 5), Tensor(table), Tensor(table)), whole * table + table)
    same(F.rms_norm(Tensor(x), 5), x / np.sqrt((x * x).mean(-1, keepdims=True) + np.finfo(np.float64).eps))
    squares = np.pad(x * x, ((0, 0), (1, 0), (0, 0)))
    same(F.local_response_norm(Tensor(x), 2, 0.5), x / (1 + 0.5 * (squares[:, :-1] + squares[:, 1:]) / 2) ** 0.75)
    _slopes(lambda x: F.local_response_norm(x, 3, 0.5), x)
    _slopes(lambda x: F.batch_norm(x, None, None, training=True), x)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2, -3])
def test_bags(mode: str, padding: int | None) -> None:
    table, numbers, offsets = draw(5, 3), RNG.integers(0, 5, 11), [0, 4, 4, 9]
    of: Any = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]

    def bag(rows: Any) -> Any:
        rows = [row for row in rows if padding is None or row != padding % 5]
        return of(table[rows], axis=0) if rows else np.zeros(3)

    want = [bag(part) for part in np.split(numbers, offsets[1:])]
    weight = Tensor(table)
    same(F.embedding_bag(Tensor(numbers), weight, Tensor(offsets), mode=mode, padding_idx=padding), want)
    for last in (11, 10, 9):  # the last bag goes to the end nevertheless, as in PyTorch
        ends = Tensor([*offsets, last])
        got = F.embedding_bag(Tensor(numbers), weight, ends, mode=mode, padding_idx=padding, include_last_offset=True)
        same(got, want)
    none = F.embedding_bag(Tensor(numbers), weight, Tensor([0]), mode=mode, include_last_offset=True)
    assert none.shape == (0, 3)
    with pytest.raises(ValueError, match="no offset"):
        F.embedding_bag(Tensor(numbers), weight, Tensor([], dtype="int32"), mode=mode, include_last_offset=True)
    square = RNG.integers(0, 5, (4, 3))
    same(F.embedding_bag(Tensor(square), weight, mode=mode, padding_idx=padding), [bag(part) for part in square])
    _slopes(lambda w: F.embedding_bag(Tensor(square), w, mode=mode, padding_idx=padding), table)


def test_products_with_tables() -> None:
    x, y, w, b = draw(4, 3), draw(4, 2), draw(5, 3, 2), draw(5)
    same(F.bilinear(Tensor(x), Tensor(y), Tensor(w), Tensor(b)), np.einsum("bi,kij,bj->bk", x, w, y) + b)
    same(F.linear(Tensor(x), Tensor(w[:, :, 0]), Tensor(b)), x @ w[:, :, 0].T + b)
    _slopes(F.bilinear, x, y, w)


@pytest.mark.parametrize("align", [False, True])
def test_a_grid_that_changes_nothing(align: bool) -> None:
    x = draw(2, 3, 4, 5)
    still = np.broadcast_to(np.eye(2, 3), (2, 2, 3))
    grid = F.affine_grid(Tensor(still.copy()), x.shape, align_corners=align)
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            same(F.grid_sample(Tensor(x), grid, mode, padding, align), x)
    volume = draw(1, 2, 3, 4, 5)
    grid = F.affine_grid(Tensor(np.eye(3, 4)[None]), volume.shape, align_corners=align)
    same(F.grid_sample(Tensor(volume), grid, align_corners=align), volume)


def test_places_between_and_outside() -> None:
    x = Tensor([[[[1.0, 3.0, 5.0]]]])

    def at(place: float, **kwargs: Any) -> float:
        grid = Tensor([[[[place, 0.0]]]])
        return float(F.grid_sample(x, grid, align_corners=True, **kwargs).item())

    assert at(0.5) == 4 and at(1.5) == 2.5 and at(3.0) == 0
    assert at(1.5, padding_mode="border") == 5 and at(1.5, padding_mode="reflection") == 4
    assert at(-0.4, mode="nearest") == 3 and at(-3.0, mode="nearest", padding_mode="reflection") == 5
    grid = RNG.uniform(-0.9, 0.9, (2, 3, 4, 2))
    _slopes(lambda x, g: F.grid_sample(x, g), draw(2, 2, 5, 4), grid)


def _alignments(logs: Floats, labels: list[int]) -> float:
    steps, classes = logs.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=steps):
        read = [c for i, c in enumerate(path) if c and (not i or path[i - 1] != c)]
        if read == labels:
            total += math.exp(sum(logs[i, c] for i, c in enumerate(path)))
    return -math.log(total) if total else math.inf


def test_ctc_loss_sums_over_all_alignments() -> None:
    scores = draw(5, 3, 3)
    logs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    labels, ends = [[1, 2], [1, 1, 2], [2]], [5, 4, 3]
    want = [_alignments(logs[:end, i], part) for i, (part, end) in enumerate(zip(labels, ends, strict=True))]
    padded = Tensor([[1, 2, 0], [1, 1, 2], [2, 0, 0]])
    same(F.ctc_loss(Tensor(logs), padded, ends, [2, 3, 1], reduction="none"), want)
    flat = Tensor([1, 2, 1, 1, 2, 2])
    same(F.ctc_loss(Tensor(logs), flat, Tensor(ends), Tensor([2, 3, 1]), reduction="sum"), sum(want))
    same(F.ctc_loss(Tensor(logs), padded, ends, [2, 3, 1]), np.mean(np.array(want) / [2, 3, 1]))
    none = F.ctc_loss(Tensor(logs), padded, [5, 3, 3], [2, 3, 1], reduction="none").tolist()
    assert none[1] == math.inf
    assert F.ctc_loss(Tensor(logs), padded, [5, 3, 3], [2, 3, 1], reduction="none", zero_infinity=True).tolist()[1] == 0
    _slopes(lambda s: F.ctc_loss(s.log_softmax(-1), padded, ends, [2, 3, 1]), scores)
    silent = F.ctc_loss(Tensor(logs), padded, [0, 0, 4], [2, 0, 1], reduction="none")
    assert silent.tolist()[:2] == [math.inf, 0]  # as PyTorch has it
    for steps, counts in (([6, 4, 4], [2, 3, 1]), ([5, -1, 4], [2, 3, 1]), ([5, 4, 4], [2, 4, 1])):
        with pytest.raises(ValueError, match=r"ctc_loss: (input|target)_lengths: (6|-1|4) of \d (steps|labels)"):
            F.ctc_loss(Tensor(logs), padded, steps, counts)
        with pytest.raises(ValueError, match=r"ctc_loss: (input|target)_lengths: (6|-1|4) of \d (steps|labels)"):
            F.ctc_loss(Tensor(logs), padded, Tensor(steps), Tensor(counts))  # in memory of the host
        wrong = F.ctc_loss(Tensor(logs), padded, Tensor(steps) + 0, Tensor(counts) + 0, reduction="none").isnan()
        assert wrong.tolist() == [steps[0] > 5, steps[1] < 0 or counts[1] > 3, False]
    assert F.ctc_loss(Tensor(logs), flat, ends, Tensor([2, 3, 2]), reduction="none").isnan().tolist()[2]


def test_margins() -> None:
    x, target = draw(3, 5), np.array([[3, 0, -1, 1, 2], [-1, 2, 2, 2, 2], [0, 1, 2, 3, 4]])
    want = []
    for row, classes in zip(x, target, strict=True):
        labels = list(itertools.takewhile(lambda c: c >= 0, classes))
        others = [c for c in range(5) if c not in labels]
        want.append(sum(max(0.0, 1 - row[a] + row[b]) for a in labels for b in others) / 5)
    same(F.multilabel_margin_loss(Tensor(x), Tensor(target), reduction="none"), want)
    same(F.multilabel_margin_loss(Tensor(x), Tensor(target)), np.mean(want))


def test_what_is_dropped() -> None:
    Tensor.manual_seed(5)
    x = Tensor.ones(200, 7, 3)
    sums = F.dropout1d(x, 0.25).sum(-1).numpy()
    assert set(np.round(sums.ravel(), 4)) == {0.0, 4.0} and 0.6 < (sums > 0).mean() < 0.9
    kept = F.alpha_dropout(Tensor.randn(200, 200), 0.3, training=True)
    assert abs(kept.mean().item()) < 0.05 and abs(kept.std().item() - 1) < 0.05
    assert F.dropout(x, training=False).numpy().min() == 1
    slopes = F.rrelu(-x, 0.25, 0.5, training=True).numpy()
    assert -0.5 <= slopes.min() < slopes.max() <= -0.25
    choices = F.gumbel_softmax(Tensor([0.0, 3.0, 0.0]).expand(500, 3), hard=True).numpy()
    assert (choices.sum(-1) == 1).all() and 0.8 < choices[:, 1].mean() < 0.97


def test_names_that_are_methods_take_their_arguments_as_torch_has_them() -> None:
    x = Tensor([[1.0, -2.0]])
    same(F.relu(input=x, inplace=False), [[1.0, 0.0]])
    same(F.softmax(x, dim=0), [[1.0, 1.0]])
    same(F.interpolate(Tensor([[[1.0, 3.0, 5.0, 7.0]]]), scale_factor=0.5, mode="area"), [[[2.0, 6.0]]])
    same(F.binary_cross_entropy(Tensor([0.5]), Tensor([1.0]), Tensor([2.0])), 2 * math.log(2), 1e-6)
    same(F.embedding(Tensor([1]), Tensor([[1.0], [2.0]]), max_norm=None, scale_grad_by_freq=False), [[2.0]])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: F.adaptive_avg_pool3d(x, 3), "functional.adaptive_avg_pool3d: input of shape"),
        (lambda x: F.adaptive_max_pool1d(x, -1), "functional.adaptive_max_pool1d: output_size -1"),
        (lambda x: F.batch_norm(x, None, None), "functional.batch_norm: running_mean and running_var"),
        (lambda x: F.group_norm(x, 2), "functional.group_norm: 3 channels do not divide into 2"),
        (lambda x: F.layer_norm(x, 3), "functional.layer_norm: input of shape"),
        (lambda x: F.dropout2d(x, 2.0), "functional.dropout2d: 2.0 is not a probability"),
        (lambda x: F.fold(x, 3, 2), "functional.fold: input of shape"),
        (lambda x: F.grid_sample(x, x), "functional.grid_sample: a grid of shape"),
        (lambda x: F.embedding_bag(x.cast("int32"), x), "functional.embedding_bag: input of shape"),
        (lambda x: F.ctc_loss(x, x, [1], [1], blank=9), "functional.ctc_loss: log_probs of shape"),
        (lambda x: F.bilinear(x, x, x), "functional.bilinear: inputs of shapes"),
        (lambda x: F.gumbel_softmax(x, 0), "functional.gumbel_softmax: tau 0"),
        (lambda x: F.rrelu(x, 1.0, 0.5), "functional.rrelu: lower"),
        (lambda x: F.interpolate(x), "functional.interpolate: one of size and scale_factor"),
    ],
)
def test_what_does_not_fit_is_said(call: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call(Tensor.ones(2, 3, 4))


@pytest.mark.parametrize("name", ["l1_loss", "mse_loss", "smooth_l1_loss", "huber_loss"])
@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32", "uint64"])
def test_losses_of_unsigned_integers_lose_no_digit(name: str, kind: str, backend: str) -> None:
    most = 2 ** (8 * np.dtype(kind).itemsize) - 1
    x, y = [most, most // 2, 3, 0], [most - 2, most // 2 + 3, 9, most]
    found = getattr(functional, name)(Tensor(x, dtype=kind), Tensor(y, dtype=kind), reduction="none").tolist()
    for got, a, b in zip(found, x, y, strict=True):
        apart = abs(a - b)
        want = {"l1_loss": apart, "mse_loss": apart**2}.get(name, apart - 0.5 if apart else 0)
        assert got == pytest.approx(want, rel=1e-6), (a, b)


def test_squares_of_integers_do_not_wrap(backend: str) -> None:
    assert functional.mse_loss(Tensor([2**31 - 1]), Tensor([7])).item() == pytest.approx((2.0**31 - 8) ** 2, rel=1e-6)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int64", "uint32", "bool"])
def test_means_of_integers(kind: str, backend: str) -> None:
    """Those of pools are cut to integers, as PyTorch's are; methods of Tensor and adaptive pools give floats."""
    x = Tensor([[[1, 0, 1, 1, 0]]], dtype=kind)
    whole = functional.avg_pool1d(x, 2)
    assert whole.tolist() == [[[0.5, 1.0] if kind == "bool" else [0, 1]]]
    assert whole.dtype.name == ("float32" if kind == "bool" else kind)
    assert x.avg_pool1d(2).tolist() == [[[0.5, 1.0]]]
    np.testing.assert_allclose(functional.adaptive_avg_pool1d(x, 2).numpy(), [[[2 / 3, 2 / 3]]], rtol=1e-6)


def test_attention_without_features_is_a_mean(backend: str) -> None:
    values = np.random.default_rng(3).normal(size=(2, 4, 5)).astype(np.float32)
    got = Tensor.ones(2, 3, 0).scaled_dot_product_attention(Tensor.ones(2, 4, 0), Tensor(values))
    np.testing.assert_allclose(got.numpy(), np.repeat(values.mean(1, keepdims=True), 3, 1), rtol=1e-5)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, math.inf])
def test_distances_of_all_pairs_in_order_and_their_slopes(p: float) -> None:
    """Rows may be the same: what a row is from itself, which nobody asks for, has no slope that spoils the others."""
    n, k = int(np.random.default_rng().integers(3, 19)), int(np.random.default_rng().integers(2, 9))
    rows = draw(n, k)
    x = Tensor(rows, requires_grad=True)
    found = F.pdist(x, p)
    pairs = list(itertools.combinations(range(n), 2))
    same(found, [np.linalg.norm(rows[i] - rows[j], p) if p else np.count_nonzero(rows[i] - rows[j]) for i, j in pairs]
         if p != 0.5 else [(np.abs(rows[i] - rows[j]) ** 0.5).sum() ** 2 for i, j in pairs])  # fmt: skip
    if not p:
        return
    weights = draw(len(pairs))
    (found * Tensor(weights)).sum().backward()
    y = Tensor(rows, requires_grad=True)
    first, second = (y[[pair[side] for pair in pairs]] for side in (0, 1))
    (functional.pairwise_distance(first, second, p, 0.0) * Tensor(weights)).sum().backward()
    assert x.grad is not None and y.grad is not None
    same(x.grad, y.grad.numpy(), 1e-7)
    rows[1] = rows[0]
    x = Tensor(rows, requires_grad=True)
    F.pdist(x, p)[1:].sum().backward()
    assert x.grad is not None and np.isfinite(x.grad.numpy()).all()
