"""Sequences of several lengths in one tensor: what a recurrent layer makes of each is what it makes of it alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, nn
from tg_frontend.nn.utils import rnn

RNG = np.random.default_rng(13)
LENGTHS = [2, 7, 3, 7, 1]
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("RNN", {"nonlinearity": "relu"}), ("LSTM", {"num_layers": 2, "bidirectional": True}), ("LSTM", {"proj_size": 2}),
    ("GRU", {"bidirectional": True, "batch_first": True}),
]  # fmt: skip


def sequences(*lengths: int, width: int = 3) -> list[Any]:
    return [RNG.standard_normal((length, width)) for length in lengths]


@pytest.mark.parametrize(("kind", "options"), KINDS)
@pytest.mark.parametrize("given", [False, True])
def test_layers_take_each_sequence_as_if_it_were_alone(kind: str, options: dict[str, Any], given: bool) -> None:
    layer: Any = getattr(nn, kind)(3, 5, dtype="float64", **options)
    parts = [Tensor(part, requires_grad=True) for part in sequences(*LENGTHS)]
    count = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
    widths = (options.get("proj_size", 5), 5) if kind == "LSTM" else (5,)
    states = [RNG.standard_normal((count, len(LENGTHS), width)) for width in widths]

    def begun(*which: Any) -> Any:
        found = tuple(Tensor(state[:, which[0]] if which else state) for state in states)
        return (found if kind == "LSTM" else found[0]) if given else None

    def ends(last: Any) -> tuple[Any, ...]:
        return last if isinstance(last, tuple) else (last,)

    out, last = layer(rnn.pack_sequence(parts, enforce_sorted=False), begun())
    assert isinstance(out, rnn.PackedSequence)
    whole = sum(((o * o).sum() for o in (out.data, *ends(last))), Tensor(0.0, dtype="float64"))
    slopes = [slope.numpy() for slope in whole.gradient(*parts, layer.weight_hh_l0)]
    shares = np.zeros_like(slopes[-1])
    for place, (part, got) in enumerate(zip(parts, rnn.unpack_sequence(out), strict=True)):
        alone, final = layer(part, begun(place))
        np.testing.assert_allclose(got.numpy(), alone.numpy(), atol=1e-12)
        for end, lonely in zip(ends(last), ends(final), strict=True):
            np.testing.assert_allclose(end[:, place].numpy(), lonely.numpy(), atol=1e-12)
        total = sum(((o * o).sum() for o in (alone, *ends(final))), Tensor(0.0, dtype="float64"))
        slope, share = total.gradient(part, layer.weight_hh_l0)
        np.testing.assert_allclose(slopes[place], slope.numpy(), atol=1e-11)
        shares += share.numpy()
    np.testing.assert_allclose(slopes[-1], shares, atol=1e-10)


def test_second_slopes() -> None:
    layer: Any = nn.GRU(2, 3).double()
    at, way = RNG.standard_normal((4, 2, 2)), RNG.standard_normal((4, 2, 2))

    def slope(values: Any) -> tuple[Tensor, Tensor]:
        x = Tensor(values, requires_grad=True)
        out, last = layer(rnn.pack_padded_sequence(x, [4, 2]))
        return ((out.data**2).sum() + last.sum()).gradient(x)[0], x

    found, x = slope(at)
    bend = (found * Tensor(way)).sum().gradient(x)[0].numpy()
    ends = [slope(at + sign * 1e-6 * way)[0].numpy() for sign in (1, -1)]
    np.testing.assert_allclose(bend, (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-6)
    assert (bend[2:, 1] == 0).all()  # padding


@pytest.mark.parametrize("batch_first", [False, True])
def test_padding_comes_off_and_on(batch_first: bool) -> None:
    parts = [Tensor(part) for part in sequences(*LENGTHS, width=2)]
    padded = rnn.pad_sequence(parts, batch_first=batch_first, padding_value=9.0)
    assert padded.shape == ((5, 7, 2) if batch_first else (7, 5, 2))
    packed = rnn.pack_padded_sequence(padded, Tensor(LENGTHS), batch_first, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [sum(length > step for length in LENGTHS) for step in range(7)]
    want = np.concatenate([[p.numpy()[t] for p in (parts[1], parts[3], parts[2], parts[0], parts[4]) if len(p) > t]
                           for t in range(7)])  # fmt: skip
    np.testing.assert_array_equal(packed.data.numpy(), want)
    again, lengths = rnn.pad_packed_sequence(packed, batch_first, padding_value=9.0, total_length=11)
    assert lengths.tolist() == LENGTHS
    assert again.shape[1 if batch_first else 0] == 11
    first = again[:, :7] if batch_first else again[:7]
    np.testing.assert_array_equal(first.numpy(), padded.numpy())
    assert (again[:, 7:] if batch_first else again[7:]).numpy().min() == 9
    for one, part in zip(rnn.unpad_sequence(padded, LENGTHS, batch_first), parts, strict=True):
        np.testing.assert_array_equal(one.numpy(), part.numpy())
    left = rnn.pad_sequence(parts, batch_first=True, padding_side="left").numpy()
    for row, part in zip(left, parts, strict=True):
        np.testing.assert_array_equal(row[7 - len(part) :], part.numpy())
        assert not row[: 7 - len(part)].any()


def test_padding_that_is_no_number_goes_nowhere() -> None:
    x = np.full((3, 2, 4), np.nan)
    x[:, 0], x[:1, 1] = RNG.standard_normal((3, 4)), RNG.standard_normal((1, 4))
    layer: Any = nn.LSTM(4, 3).double()
    out, (last, _) = layer(rnn.pack_padded_sequence(Tensor(x), [3, 1]))
    out.data.sum().backward()
    assert all(np.isfinite(one.numpy()).all() for one in (out.data, last, layer.weight_ih_l0.grad))


@pytest.mark.parametrize("sort", [True, False])
def test_what_pytorch_makes(sort: bool) -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.nn.utils.rnn
    lengths = sorted(LENGTHS, reverse=True) if sort else LENGTHS
    x = RNG.standard_normal((7, 5, 3))
    want = theirs.pack_padded_sequence(torch.tensor(x), torch.tensor(lengths), enforce_sorted=sort)
    got = rnn.pack_padded_sequence(Tensor(x), lengths, enforce_sorted=sort)
    if sort:
        assert got.sorted_indices is want.sorted_indices is got.unsorted_indices is None
    else:
        lengths_of = [lengths[n] for n in got.sorted_indices.tolist()]  # type: ignore[union-attr]
        assert lengths_of == [lengths[n] for n in want.sorted_indices.tolist()]
    assert got.batch_sizes.tolist() == want.batch_sizes.tolist()
    other: Any = torch.nn.GRU(3, 5, num_layers=2, bidirectional=True).double()
    mine: Any = nn.GRU(3, 5, num_layers=2, bidirectional=True).double()
    mine.load_state_dict(other.state_dict())
    (out, last), (known, end) = mine(got), other(want)
    padded, _ = theirs.pad_packed_sequence(known)
    np.testing.assert_allclose(rnn.pad_packed_sequence(out)[0].numpy(), padded.detach().numpy(), atol=1e-12)
    np.testing.assert_allclose(last.numpy(), end.detach().numpy(), atol=1e-12)


@pytest.mark.parametrize(
    ("what", "says"),
    [
        (lambda: rnn.pack_padded_sequence(Tensor.ones(3, 2), [1, 3]), "pack_padded_sequence: lengths .* grow"),
        (lambda: rnn.pack_padded_sequence(Tensor.ones(3, 2), [3, 0]), "lengths are from 1 to 3"),
        (lambda: rnn.pack_padded_sequence(Tensor.ones(3, 2), [4, 1]), "lengths are from 1 to 3"),
        (lambda: rnn.pack_padded_sequence(Tensor.ones(3, 2), [3]), "1 lengths for 2 sequences"),
        (lambda: rnn.pack_padded_sequence(Tensor.ones(3, 2), Tensor([3.0, 1.0])), "integers along one axis"),
        (lambda: rnn.pad_sequence([]), "pad_sequence: at least one"),
        (lambda: rnn.pad_sequence([Tensor.ones(2, 3), Tensor.ones(2, 4)]), "differ behind their first axis"),
        (lambda: rnn.pad_sequence([Tensor.ones(2)], padding_side="top"), "padding_side"),
        (lambda: rnn.unpad_sequence(Tensor.ones(3, 2), [4, 1]), "unpad_sequence: lengths"),
        (lambda: rnn.pad_packed_sequence(rnn.pack_sequence([Tensor.ones(5)]), total_length=4), "total_length is 4"),
        (lambda: rnn.pad_packed_sequence(rnn.PackedSequence(Tensor.ones(3), Tensor([1, 2]))), "never grow"),
        (lambda: rnn.pad_packed_sequence(rnn.PackedSequence(Tensor.ones(4), Tensor([2, 1]))), "for 3 elements"),
        (lambda: nn.GRU(3, 2)(rnn.pack_sequence([Tensor.ones(5, 4)])), r"GRU: packed elements have shape \(5, 4\)"),
    ],
)
def test_what_does_not_fit_is_told(what: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        what()


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint64", "bool", "float64"])
def test_padding_keeps_every_digit(dtype: str) -> None:
    digits = {"int32": 2**30 + 1, "int64": 2**53 + 1, "uint64": 2**64 - 1, "bool": True, "float64": 1 + 2.0**-52}
    largest = digits[dtype]
    packed = rnn.pack_sequence([Tensor([largest, 1], dtype=dtype), Tensor([largest], dtype=dtype)])
    padded, _ = rnn.pad_packed_sequence(packed)
    assert padded.dtype.name == dtype and padded.tolist() == [[largest, largest], [1, 0]]
