"""How parameters begin, what they are normalised with, and their vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit, nn

RNG = np.random.default_rng(9)


@pytest.mark.parametrize(
    ("name", "options", "deviation", "bound"),
    [("uniform_", {"a": -2.0, "b": 2.0}, 2 / math.sqrt(3), 2), ("normal_", {"std": 0.5}, 0.5, None),
     ("trunc_normal_", {"a": -1.0, "b": 1.0}, 0.5396, 1),
     ("xavier_uniform_", {"gain": 2.0}, 2 * math.sqrt(2 / 700), None),
     ("xavier_normal_", {}, math.sqrt(2 / 700), None), ("kaiming_uniform_", {"a": 1.0}, math.sqrt(1 / 300), None),
     ("kaiming_normal_", {"mode": "fan_out", "nonlinearity": "relu"}, math.sqrt(2 / 400), None)],
)  # fmt: skip
def test_deviations(name: str, options: dict[str, Any], deviation: float, bound: float | None) -> None:
    made = nn.init.__dict__[name](Tensor.zeros(400, 300), **options)
    values = made.numpy()
    assert abs(values.std() / deviation - 1) < 0.02 and abs(values.mean()) < deviation / 50
    assert bound is None or np.abs(values).max() <= bound
    layer = nn.Linear(300, 400)
    before = layer.weight
    assert nn.init.__dict__[name](layer.weight, **options) is before and before.requires_grad is not False
    layer(Tensor.ones(1, 300)).sum().backward()
    assert layer.weight.grad is not None


def test_fixed_values() -> None:
    for rows, columns in ((3, 7), (7, 3), (5, 5)):
        w = nn.init.orthogonal_(Tensor.zeros(rows, columns), gain=2.0).numpy() / 2
        square = w @ w.T if rows <= columns else w.T @ w
        np.testing.assert_allclose(square, np.eye(len(square)), atol=1e-5)
    x = Tensor(RNG.random((1, 4, 5, 3)).astype(np.float32))
    kernel = nn.init.dirac_(Tensor.zeros(4, 2, 3, 3), groups=2)
    np.testing.assert_allclose(x.conv2d(kernel, groups=2, padding=1).numpy(), x.numpy(), rtol=1e-6)
    assert (nn.init.sparse_(Tensor.zeros(11, 4), 0.3).numpy() == 0).sum(0).tolist() == [4] * 4
    for bad in (lambda: nn.init.eye_(Tensor.zeros(2)), lambda: nn.init.xavier_normal_(Tensor.zeros(2)),
                lambda: nn.init.kaiming_normal_(Tensor.zeros(2, 2), mode="fan"),
                lambda: nn.init.calculate_gain("x")):  # fmt: skip
        with pytest.raises(ValueError, match="_|calculate_gain"):
            bad()


def test_vectors() -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2))
    vector = nn.utils.parameters_to_vector(model.parameters())
    assert vector.shape == (32,)
    other = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2))
    nn.utils.vector_to_parameters(vector, other.parameters())
    for name, tensor in model.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), other.state_dict()[name].numpy())
    with pytest.raises(ValueError, match="vector_to_parameters"):
        nn.utils.vector_to_parameters(vector[1:], other.parameters())
    norm = nn.utils.get_total_norm([vector, vector]).item()
    np.testing.assert_allclose(norm, np.linalg.norm(vector.numpy()) * 2**0.5, rtol=1e-5)


@pytest.mark.parametrize("dim", [0, 1, None])
def test_a_weight_as_length_and_direction(dim: int | None) -> None:
    layer = nn.Linear(4, 3)
    x, plain = Tensor(RNG.random((2, 4)).astype(np.float32)), layer(Tensor.ones(1, 4)).numpy()
    nn.utils.weight_norm(layer, dim=dim)
    np.testing.assert_allclose(layer(Tensor.ones(1, 4)).numpy(), plain, rtol=1e-5)
    optimizer = nn.optim.SGD(layer.parameters(), lr=0.1)

    @TinyJit
    def step(v: Tensor) -> None:
        optimizer.zero_grad()
        (layer(v) ** 2).sum().backward()
        optimizer.step()

    losses = [(layer(x) ** 2).sum().item()]
    for _ in range(4):
        step(x.realize())
        losses.append((layer(x) ** 2).sum().item())
    assert losses == sorted(losses, reverse=True) and losses[0] > losses[-1]
    after = layer(x).numpy()
    nn.utils.remove_weight_norm(layer)
    np.testing.assert_allclose(layer(x).numpy(), after, rtol=1e-5)
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    with pytest.raises(ValueError, match="not computed so"):
        nn.utils.remove_weight_norm(layer)


def test_a_weight_over_its_greatest_singular_value() -> None:
    layer = nn.utils.spectral_norm(nn.Conv2d(2, 5, 3), n_power_iterations=3)
    with Tensor.train():
        for _ in range(20):
            layer(Tensor.ones(1, 2, 4, 4)).realize()
    matrix = layer.weight.numpy().reshape(5, -1)
    np.testing.assert_allclose(np.linalg.svd(matrix, compute_uv=False)[0], 1, rtol=1e-3)
    with pytest.raises(RuntimeError, match="already"):
        nn.utils.spectral_norm(layer)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of PyTorch, for the older of its two ways
@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
def test_states_of_pytorch_fit(name: str) -> None:
    torch: Any = pytest.importorskip("torch")
    theirs = getattr(torch.nn.utils, name)(torch.nn.Linear(4, 3))
    ours = getattr(nn.utils, name)(nn.Linear(4, 3))
    theirs.eval()
    ours.eval()
    ours.load_state_dict(theirs.state_dict())
    x = RNG.random((2, 4)).astype(np.float32)
    want = theirs(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(ours(Tensor(x)).numpy(), want, rtol=1e-5, atol=1e-6)


LAYERS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "Linear": (lambda: nn.Linear(3, 5), (2, 3)), "Bilinear": (lambda: nn.Bilinear(3, 3, 2), (2, 3)),
    "Conv1d": (lambda: nn.Conv1d(3, 4, 2), (1, 3, 5)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(3, 2, 2), (1, 3, 4, 4)),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(3), (4, 3)), "GroupNorm": (lambda: nn.GroupNorm(1, 3), (2, 3)),
    "LayerNorm": (lambda: nn.LayerNorm(3), (2, 3)), "RMSNorm": (lambda: nn.RMSNorm(3), (2, 3)),
    "PReLU": (nn.PReLU, (2, 3)), "Embedding": (lambda: nn.Embedding(5, 2), ()),
    "LSTM": (lambda: nn.LSTM(3, 2), (4, 1, 3)), "GRUCell": (lambda: nn.GRUCell(3, 2), (1, 3)),
    "MultiheadAttention": (lambda: nn.MultiheadAttention(4, 2), (3, 1, 4)),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(4, 2, 8, 0.0), (3, 1, 4)),
    "Parameter": (lambda: Scaled(), (2,)),
}  # fmt: skip
"""Layers of each family, and the shape of what they take."""


class Scaled(nn.Module):
    """A model with a parameter of its own."""

    def __init__(self) -> None:
        self.scale = nn.Parameter(Tensor.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale


def _result(layer: Any, name: str, shape: tuple[int, ...]) -> Tensor:
    """The first tensor that a layer of :data:`LAYERS` gives."""
    x = Tensor.ones(*shape) if shape else Tensor([1, 3])
    inputs = {"Bilinear": (x, x), "MultiheadAttention": (x, x, x)}.get(name, (x,))
    found = layer(*inputs)
    while isinstance(found, tuple):
        found = found[0]
    assert isinstance(found, Tensor)
    return found


@pytest.mark.parametrize("name", LAYERS)
def test_parameters_say_that_they_are_learnt(name: str) -> None:
    """Programs choose what an optimiser gets by ``requires_grad``: it tells what ``backward`` is going to do."""
    make, shape = LAYERS[name]
    layer = make()
    chosen = [p for p in layer.parameters() if p.requires_grad]
    assert len(chosen) == len(list(layer.parameters())) > 0
    assert not any(buffer.requires_grad for buffer in layer.buffers())
    with Tensor.train(name != "BatchNorm1d"):
        result = _result(layer, name, shape)
        assert result.requires_grad and (result * 2).sum().requires_grad and not result.detach().requires_grad
        assert not result.is_leaf and result.grad_fn is not None
        assert any(node is not None for node, _ in result.grad_fn.next_functions)
        with Tensor.no_grad():
            assert not _result(layer, name, shape).requires_grad
        for p in layer.parameters():
            p.requires_grad = False
        assert not any(p.requires_grad for p in layer.parameters())
        assert not _result(layer, name, shape).requires_grad
        for p in layer.parameters():  # what is frozen is still found, and can be thawed
            p.requires_grad = True
        assert list(map(id, layer.parameters())) == list(map(id, chosen))
        _result(layer, name, shape).sum().backward()
    assert all(p.grad is not None for p in chosen)


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("ask", [Tensor.requires_grad_, lambda x: setattr(x, "requires_grad", True)])
def test_results_asked_for_a_gradient_lead_to_parameters(ask: Callable[[Tensor], Any], asked: bool) -> None:
    """As of the hook that programs put behind a table which may be frozen: what is learnt stays learnt."""
    for frozen in (False, True):
        model = nn.Sequential(nn.Embedding(5, 2), nn.Linear(2, 3)).requires_grad_(not frozen or asked)
        model[0].requires_grad_(not frozen)
        if asked:
            nn.optim.SGD(model.parameters())
        hidden = model[0](Tensor([1, 3]))
        ask(hidden)
        assert hidden.requires_grad and hidden.is_leaf is frozen
        model[1](hidden).sum().backward()
        grads = [p.grad is not None for p in (*model.parameters(), hidden)]
        assert grads == [not frozen, asked or not frozen, asked or not frozen, frozen]


def test_what_was_chosen_by_requires_grad_is_learnt() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    before = [p.numpy().copy() for p in model.parameters()]
    optimizer = nn.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.5)
    loss = (model(Tensor([[1.0, -2.0]])) - 9).square().sum()
    if loss.requires_grad:
        loss.backward()
        optimizer.step()
    assert all((p.numpy() != old).any() for p, old in zip(model.parameters(), before, strict=True))


def test_inputs_and_outputs_are_counted_as_pytorchs_programs_ask() -> None:
    assert nn.init._calculate_fan_in_and_fan_out(Tensor.zeros(5, 3, 2, 7)) == (3 * 14, 5 * 14)
    with pytest.raises(ValueError, match="_calculate_fan_in_and_fan_out: a tensor of shape"):
        nn.init._calculate_fan_in_and_fan_out(Tensor.zeros(5))
