"""RNN, LSTM and GRU: PyTorch's parameters, values and gradients; a step is compiled once."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tg_frontend import Tensor, nn

Array = npt.NDArray[Any]
CASES: list[tuple[str, dict[str, Any]]] = [
    *((kind, options) for kind in ("RNN", "LSTM", "GRU") for options in (
        {}, {"bidirectional": True, "num_layers": 2}, {"batch_first": True, "num_layers": 3, "bias": False},
    )),
    ("LSTM", {"proj_size": 3, "num_layers": 2, "bidirectional": True}), ("RNN", {"nonlinearity": "relu"}),
]  # fmt: skip
INPUTS, HIDDEN, BATCH, STEPS = 5, 7, 3, 6


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize(("kind", "options"), CASES)
def test_values_and_gradients_are_those_of_pytorch(
    kind: str, options: dict[str, Any], given: bool, batched: bool
) -> None:
    torch = pytest.importorskip("torch")
    theirs: Any = getattr(torch.nn, kind)(INPUTS, HIDDEN, **options)
    mine: Any = getattr(nn, kind)(INPUTS, HIDDEN, **options)
    shapes = {name: tensor.shape for name, tensor in nn.state.get_state_dict(mine).items()}
    assert shapes == {name: tuple(tensor.shape) for name, tensor in theirs.state_dict().items()}
    nn.state.load_state_dict(mine, {name: Tensor(t.numpy()) for name, t in theirs.state_dict().items()}, verbose=False)
    for name in shapes:
        getattr(mine, name).requires_grad_()
    shape = (BATCH, STEPS, INPUTS) if options.get("batch_first") else (STEPS, BATCH, INPUTS)
    x = torch.randn(*(shape if batched else (STEPS, INPUTS)), requires_grad=True)
    count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    sizes = (options.get("proj_size") or HIDDEN, HIDDEN) if kind == "LSTM" else (HIDDEN,)
    states = [
        torch.randn(*((count, BATCH, size) if batched else (count, size)), requires_grad=True) for size in sizes
    ]  # fmt: skip
    own_x = Tensor(x.detach().numpy(), requires_grad=True)
    own_states = [Tensor(state.detach().numpy(), requires_grad=True) for state in states]

    def run(layer: Any, x: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        out, last = layer(x, (tuple(states) if kind == "LSTM" else states[0]) if given else None)
        return out, list(last) if kind == "LSTM" else [last]

    results = []
    for layer, data, state in ((theirs, x, states), (mine, own_x, own_states)):
        out, last = run(layer, data, state)
        loss = (out * out).sum()
        for part in last:
            loss = loss + (part * 3).sin().sum()
        loss.backward()
        leaves = [data, *(state if given else ())]
        found = [leaf.grad for leaf in leaves] + [getattr(layer, name).grad for name in shapes]
        results.append([np.asarray(t.detach().numpy()) for t in (out, *last, *found)])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _step(kind: str, x: Array, h: Array, c: Array, weights: dict[str, Array]) -> tuple[Array, Array]:
    """One step by the equations in PyTorch's documentation of these layers."""
    a = x @ weights["weight_ih"].T + weights["bias_ih"]
    b = h @ weights["weight_hh"].T + weights["bias_hh"]
    if kind == "RNN":
        return np.tanh(a + b), c
    if kind == "LSTM":
        i, f, g, o = np.split(a + b, 4, -1)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        return _sigmoid(o) * np.tanh(c), c
    (ar, az, an), (br, bz, bn) = np.split(a, 3, -1), np.split(b, 3, -1)
    r, z = _sigmoid(ar + br), _sigmoid(az + bz)
    return (1 - z) * np.tanh(an + r * bn) + z * h, c


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_values_are_those_of_the_equations(kind: str, bidirectional: bool, backend: str) -> None:
    rng = np.random.default_rng(2)
    layer: Any = getattr(nn, kind)(INPUTS, HIDDEN, num_layers=2, bidirectional=bidirectional)
    x = rng.standard_normal((STEPS, BATCH, INPUTS)).astype(np.float32)
    out, last = layer(Tensor(x))
    ends, cells = [], []
    for number in range(2):
        ways = []
        for suffix in ("", "_reverse") if bidirectional else ("",):
            weights = {
                name: getattr(layer, f"{name}_l{number}{suffix}").numpy().astype(float)
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            }
            h = c = np.zeros((BATCH, HIDDEN))
            found = []
            for row in x[::-1] if suffix else x:
                h, c = _step(kind, row, h, c, weights)
                found.append(h)
            ends.append(h)
            cells.append(c)
            ways.append(np.stack(found[::-1] if suffix else found))
        x = np.concatenate(ways, -1)
    np.testing.assert_allclose(out.numpy(), x, rtol=1e-5, atol=1e-6)
    for got, want in zip(last if kind == "LSTM" else (last,), (ends, cells), strict=False):
        np.testing.assert_allclose(got.numpy(), np.stack(want), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_gradients_are_slopes(kind: str) -> None:
    """By finite differences in float64, of the input and of each kind of parameter."""
    rng = np.random.default_rng(4)
    layer: Any = getattr(nn, kind)(2, 3)
    names = [f"{name}_l0" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    values = [rng.standard_normal(getattr(layer, name).shape) for name in names]
    values.append(rng.standard_normal((4, 2, 2)))

    def loss(arrays: list[Array]) -> tuple[Tensor, list[Tensor]]:
        tensors = [Tensor(array, requires_grad=True) for array in arrays]
        for name, tensor in zip(names, tensors[:-1], strict=True):
            setattr(layer, name, tensor)
        out, last = layer(tensors[-1])
        return (out * out).sum() + sum((part.sin().sum() for part in last), Tensor(0.0, dtype="float64")), tensors

    total, tensors = loss(values)
    for which, slope in enumerate(total.gradient(*tensors)):
        place = tuple(int(rng.integers(0, d)) for d in values[which].shape)
        ends = []
        for sign in (1, -1):
            moved = [value.copy() for value in values]
            moved[which][place] += sign * 1e-5
            ends.append(loss(moved)[0].item())
        assert np.isclose(slope.numpy()[place], (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-7), (which, place)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_a_cell_is_a_step_of_the_layer(kind: str, backend: str) -> None:
    layer: Any = getattr(nn, kind)(3, 4)
    cell: Any = getattr(nn, f"{kind}Cell")(3, 4)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        setattr(cell, name, getattr(layer, f"{name}_l0"))
    x = Tensor(np.random.default_rng(1).standard_normal((5, 2, 3)).astype(np.float32))
    out, _ = layer(x)
    state = None
    for step in range(5):
        state = cell(x[step], state)
        hidden = state[0] if kind == "LSTM" else state
        np.testing.assert_allclose(hidden.numpy(), out.numpy()[step], rtol=1e-5, atol=1e-6)
    assert cell(x[0, 0]).shape == (4,) if kind != "LSTM" else cell(x[0, 0])[1].shape == (4,)


def test_a_thousand_steps_compile_quickly() -> None:
    """T = 1,000 compiles and runs for the first time in two seconds; more here, as tests run side by side."""
    layer = nn.LSTM(24, 40)
    start = time.perf_counter()
    layer(Tensor.ones(1000, 3, 24))[0].realize()
    assert time.perf_counter() - start < 20


def test_dropout_is_between_layers_and_in_training() -> None:
    layer = nn.GRU(3, 64, num_layers=2, dropout=1.0, bias=False)
    x = Tensor.ones(4, 2, 3)
    assert abs(layer(x)[0].numpy()).max() > 0
    with Tensor.train():
        assert abs(layer(x)[0].numpy()).max() == 0  # the second layer sees nothing
    single = nn.GRU(3, 4, dropout=1.0)
    with Tensor.train():
        assert abs(single(x)[0].numpy()).max() > 0


def test_empty_sequences_and_batches() -> None:
    out, last = nn.GRU(3, 4)(Tensor.zeros(0, 2, 3))
    assert out.shape == (0, 2, 4) and last.tolist() == np.zeros((1, 2, 4)).tolist()
    out, (hidden, cell) = nn.LSTM(3, 4)(Tensor.zeros(2, 0, 3))
    assert out.shape == (2, 0, 4) and hidden.shape == cell.shape == (1, 0, 4)


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(ValueError, match=r"LSTM: the input has shape \(2, 3, 5\)"):
        nn.LSTM(3, 4)(Tensor.ones(2, 3, 5))
    with pytest.raises(ValueError, match=r"GRU: a state has shape \(1, 2, 5\), not \(1, 2, 4\)"):
        nn.GRU(3, 4)(Tensor.ones(6, 2, 3), Tensor.ones(1, 2, 5))
    with pytest.raises(ValueError, match="nonlinearity"):
        nn.RNN(3, 4, nonlinearity="sin")
    with pytest.raises(ValueError, match="proj_size"):
        nn.LSTM(3, 4, proj_size=4)
    with pytest.raises(ValueError, match="dropout"):
        nn.GRU(3, 4, dropout=1.5)
    with pytest.raises(ValueError, match="num_layers is 1 or more, got 0"):
        nn.GRU(3, 4, num_layers=0)
    with pytest.raises(ValueError, match=r"GRUCell: the input has shape \(2, 5\)"):
        nn.GRUCell(3, 4)(Tensor.ones(2, 5))
    with pytest.raises(ValueError, match=r"RNNCell: the state has shape \(2, 5\)"):
        nn.RNNCell(3, 4)(Tensor.ones(2, 3), Tensor.ones(2, 5))
