"""Tensors of layers that are computed from others: ``nn.utils.parametrize`` and ``nn.utils.parametrizations``."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit, nn
from tg_frontend.nn.utils import parametrizations
from tg_frontend.nn.utils import parametrize as _parametrize

RNG = np.random.default_rng(37)
N: Any = nn
parametrize: Any = _parametrize


def draw(*shape: int) -> Any:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


class Symmetric(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.triu() + x.triu(1).T

    def right_inverse(self, x: Tensor) -> Tensor:
        return x.triu()


class Doubled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class Shared(Doubled):
    def right_inverse(self, x: Tensor) -> Tensor:
        return x / 2


class RankOne(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x.unsqueeze(-1) @ y.unsqueeze(-2)

    def right_inverse(self, z: Tensor) -> tuple[Tensor, Tensor]:
        u, s, vh = z.svd(full_matrices=False)
        return u[:, 0] * s[0].sqrt(), vh[0] * s[0].sqrt()


def test_a_weight_is_computed_and_can_be_set() -> None:
    layer = N.Linear(5, 5)
    held: Any = layer.weight
    before = held.numpy()
    optimizer = nn.optim.SGD(layer.parameters(), lr=0.5)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    want = np.triu(before) + np.triu(before, 1).T
    np.testing.assert_array_equal(layer.weight.numpy(), want)
    assert layer.parametrizations["weight"].original is held, "an optimiser that holds the tensor learns it"
    assert issubclass(type(layer), N.Linear) and type(layer).__name__ == "ParametrizedLinear"
    assert [name for name, _ in layer.named_parameters()] == ["bias", "parametrizations.weight.original"]
    x = draw(3, 5)
    np.testing.assert_allclose(layer(Tensor(x)).numpy(), x @ want.T + layer.bias.numpy(), rtol=1e-5, atol=1e-6)
    layer(Tensor(x)).sum().backward()
    full = np.tile(x.sum(0), (5, 1))
    np.testing.assert_allclose(held.grad.numpy(), np.triu(full) + np.triu(full.T, 1), rtol=1e-5, atol=1e-6)
    optimizer.step()
    assert not np.array_equal(layer.weight.numpy(), want)
    new = draw(5, 5)
    layer.weight = Tensor(new + new.T)
    np.testing.assert_array_equal(layer.weight.numpy(), new + new.T)
    assert layer.parametrizations["weight"].original is held
    parametrize.register_parametrization(layer, "weight", Doubled())
    np.testing.assert_array_equal(layer.weight.numpy(), 2 * (new + new.T))
    with pytest.raises(RuntimeError, match="Doubled has no right_inverse"):
        layer.weight = Tensor(new)
    parametrize.register_parametrization(layer, "bias", Doubled())
    assert parametrize.is_parametrized(layer, "bias") and "bias" in repr(layer)
    other = copy.deepcopy(layer)
    parametrize.remove_parametrizations(layer, "weight")
    assert layer.weight is held and parametrize.is_parametrized(layer)
    np.testing.assert_array_equal(layer.weight.numpy(), 2 * (new + new.T))
    parametrize.remove_parametrizations(layer, "bias", leave_parametrized=False)
    assert type(layer) is N.Linear and sorted(layer.state_dict()) == ["bias", "weight"]
    np.testing.assert_array_equal(other.bias.numpy(), 2 * layer.bias.numpy())
    np.testing.assert_array_equal(other.weight.numpy(), 2 * (new + new.T))


def test_several_originals() -> None:
    layer: Any = parametrize.register_parametrization(nn.Linear(4, 3), "weight", RankOne())
    a, b = draw(3), draw(4)
    layer.weight = Tensor(np.outer(a, b))
    np.testing.assert_allclose(layer.weight.numpy(), np.outer(a, b), rtol=1e-4, atol=1e-5)
    names = [f"parametrizations.weight.original{n}" for n in range(2)]
    assert [name for name, _ in layer.named_parameters()] == ["bias", *names]
    with pytest.raises(ValueError, match="computed from 2 tensors"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    other: Any = parametrize.transfer_parametrizations_and_params(layer, nn.Linear(4, 3))
    np.testing.assert_array_equal(other.weight.numpy(), layer.weight.numpy())
    given = {names[0]: Tensor(np.zeros(3, np.float32))}
    np.testing.assert_array_equal(
        nn.utils.stateless.functional_call(layer, given, Tensor.ones(1, 4)).numpy()[0], layer.bias.numpy()
    )
    parametrize.remove_parametrizations(layer, "weight")
    assert [name for name, _ in layer.named_parameters()] == ["bias", "weight"]


def test_inside_cached_other_originals_are_computed_anew() -> None:
    layer: Any = parametrizations.weight_norm(N.Linear(3, 2, bias=False))
    x = Tensor(draw(5, 3))
    others = {name: Tensor(draw(*value.shape) + 2) for name, value in layer.state_dict().items()}
    want = N.utils.stateless.functional_call(layer, others, (x,)).numpy()
    with parametrize.cached():
        before = layer(x).numpy()
        found = N.utils.stateless.functional_call(layer, others, (x,)).numpy()
        np.testing.assert_array_equal(layer(x).numpy(), before)
    np.testing.assert_array_equal(found, want)
    assert not np.allclose(before, want)


def test_what_is_kept_inside_cached() -> None:
    layer: Any = parametrize.register_parametrization(N.Linear(3, 3), "weight", Symmetric())
    assert layer.weight is not layer.weight
    with parametrize.cached():
        with parametrize.cached():
            first = layer.weight
        assert layer.weight is first
        with Tensor.no_grad():
            assert layer.weight is not first, "a tensor without a record is none to differentiate"
        (layer.weight * layer.weight).sum().backward()
    assert layer.weight is not first
    want = 2 * np.triu(first.numpy()) + 2 * np.triu(first.numpy(), 1)
    np.testing.assert_allclose(layer.parametrizations["weight"].original.grad.numpy(), want, rtol=1e-5)

    other: Any = parametrize.register_parametrization(N.Linear(3, 3), "weight", Shared())

    @TinyJit
    def called(x: Tensor) -> Tensor:
        out: Tensor = (other(x) * 1).realize()
        return out

    bias = other.bias.numpy()
    for n in range(7):  # a record of a kept tensor would be made anew each time, of which TinyJit warns
        other.weight = Tensor(np.full((3, 3), n + 1, np.float32))
        other.parametrizations["weight"].original.realize()
        with parametrize.cached():
            other.weight.realize()
            got = called(Tensor.ones(1, 3).realize()).numpy()[0]
        np.testing.assert_allclose(got, 3 * (n + 1) + bias, rtol=1e-6, err_msg="a record reads what is there now")


class _Short(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[1:]


class _Half(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.half()


class _No(nn.Module):
    def forward(self, x: Tensor) -> Any:
        return None


class _Cast(Doubled):
    def right_inverse(self, x: Tensor) -> Tensor:
        return x.double()


class _Wrong(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.no_such_method()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize(
    ("made", "error", "said"),
    [(_Short(), ValueError, "unless unsafe"), (_Half(), ValueError, "float16 of"), (_No(), ValueError, "NoneType"),
     (_Cast(), ValueError, "keeps its dtype"), (_Wrong(), AttributeError, "no_such_method")],
)  # fmt: skip
def test_what_fits_no_layer(made: Any, error: type, said: str) -> None:
    for before in (0, 1):
        layer: Any = N.Linear(3, 3)
        if before:
            parametrize.register_parametrization(layer, "weight", Doubled())
        kept, names = layer.weight.numpy(), sorted(layer.state_dict())
        if isinstance(made, _Cast) and before:
            said = "float64 of shape"
        with pytest.raises(error, match=said):
            parametrize.register_parametrization(layer, "weight", made)
        assert sorted(layer.state_dict()) == names
        np.testing.assert_array_equal(layer.weight.numpy(), kept)
    layer = N.Linear(3, 3)
    if isinstance(made, (_Short, _Wrong)):
        parametrize.register_parametrization(layer, "weight", made, unsafe=True)
        with pytest.raises((RuntimeError, ValueError), match="no_such_method|shape"):
            layer(Tensor.ones(2, 3)).weight.no_such_method()
        if isinstance(made, _Short):
            assert layer.weight.shape == (2, 3)


def test_names_that_are_not_there() -> None:
    layer = N.Linear(3, 3)
    calls: Any = (lambda: parametrize.register_parametrization(layer, "weights", Doubled()),
                  lambda: parametrize.remove_parametrizations(layer, "weight"),
                  lambda: parametrizations.weight_norm(layer, "weights"),
                  lambda: parametrizations.spectral_norm(layer, "in_features"),
                  lambda: parametrizations.orthogonal(layer, "bias"),
                  lambda: parametrizations.orthogonal(layer, orthogonal_map="qr"),
                  lambda: parametrizations.spectral_norm(layer, n_power_iterations=0),
                  lambda: parametrize.ParametrizationList([], layer.weight))  # fmt: skip
    for call in calls:
        with pytest.raises(ValueError, match="no tensor|not parametrised|wanted|one of|positive"):
            call()
    with pytest.raises(IndexError, match="no axis 2"):
        parametrizations.spectral_norm(layer, dim=2)
    assert type(layer) is nn.Linear


def _step(layer: Any, x: Any) -> Any:
    optimizer = nn.optim.SGD(layer.parameters(), lr=0.1)

    @TinyJit
    def step(v: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = (layer(v) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss.realize()

    return [step(Tensor(x).realize()).item() for _ in range(5)]


@pytest.mark.parametrize("dim", [0, 1, None, -1])
def test_a_length_and_a_direction(dim: int | None) -> None:
    layer: Any = nn.Linear(4, 3)
    before = layer.weight.numpy()
    parametrizations.weight_norm(layer, dim=dim)
    np.testing.assert_allclose(layer.weight.numpy(), before, rtol=1e-5, atol=1e-7)
    g, v = (one.numpy() for one in layer.parametrizations["weight"].originals())
    axes = {0: 1, 1: 0}.get(dim if dim is not None else -1)
    np.testing.assert_allclose(g, np.sqrt((before**2).sum(axes, keepdims=axes is not None)), rtol=1e-5)
    np.testing.assert_array_equal(v, before)
    losses = _step(layer, draw(2, 4))
    assert losses == sorted(losses, reverse=True) and losses[0] > losses[-1]
    old = nn.utils.weight_norm(nn.Linear(4, 3), dim=dim)
    assert not layer.load_state_dict(old.state_dict()).missing_keys
    np.testing.assert_allclose(layer.weight.numpy(), old.weight.numpy(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "args", "axis"), [("Linear", (7, 5), 0), ("Conv2d", (2, 5, 3), 0), ("ConvTranspose1d", (3, 5, 2), 1)]
)
def test_a_spectral_norm(name: str, args: tuple[int, ...], axis: int) -> None:
    layer: Any = parametrizations.spectral_norm(getattr(N, name)(*args), n_power_iterations=2)
    original = layer.parametrizations["weight"].original.numpy()
    matrix = np.moveaxis(original, axis, 0).reshape(original.shape[axis], -1)
    greatest = np.linalg.svd(matrix, compute_uv=False)[0]
    u, v = (layer.parametrizations["weight"][0].__dict__[end].numpy() for end in ("_u", "_v"))
    with Tensor.train():
        _ = layer.weight.numpy()
    v_next = matrix.T @ (u2 := _unit(matrix @ v))
    u2 = _unit(matrix @ _unit(v_next))
    np.testing.assert_allclose(layer.parametrizations["weight"][0]._u.numpy(), u2, rtol=1e-4, atol=1e-5)
    with Tensor.train():
        for _ in range(40):
            _ = layer.weight.numpy()
    np.testing.assert_allclose(layer.weight.numpy(), original / greatest, rtol=1e-4, atol=1e-5)
    assert u.shape == (matrix.shape[0],)


def _unit(x: Any) -> Any:
    return x / np.linalg.norm(x)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthonormal_weights(shape: tuple[int, int], kind: str | None, trivial: bool) -> None:
    layer: Any = nn.Linear(*shape)
    parametrizations.orthogonal(layer, orthogonal_map=kind, use_trivialization=trivial)

    def product() -> Any:
        w = layer.weight.numpy()
        return w @ w.T if shape[0] >= shape[1] else w.T @ w

    one = np.eye(min(shape))
    np.testing.assert_allclose(product(), one, atol=2e-5)
    losses = _step(layer, draw(2, shape[0]))
    assert losses[0] > losses[-1]
    householder = kind == "householder" or (kind is None and shape[0] != shape[1])
    if not householder:  # of reflections, the signs of the diagonal are learnt without bounds
        np.testing.assert_allclose(product(), one, atol=2e-5)
    if kind in ("matrix_exp", "cayley"):
        np.testing.assert_allclose(layer.weight.numpy(), _made(layer.parametrizations["weight"], kind), atol=2e-5)
    q = np.linalg.qr(draw(max(shape), max(shape)))[0][: shape[1], : shape[0]]
    if trivial or householder:
        layer.weight = Tensor(q)
        np.testing.assert_allclose(layer.weight.numpy(), q, atol=2e-5)
    else:
        with pytest.raises(NotImplementedError, match="no inverse"):
            layer.weight = Tensor(q)


def _made(parts: Any, kind: str) -> Any:
    """What a map makes of the original: of the difference of a lower triangle and its transpose."""
    original = parts.original.numpy().astype(np.float64)
    tall = original if original.shape[0] >= original.shape[1] else original.T
    rows, columns = tall.shape
    lower = np.pad(np.tril(tall), ((0, 0), (0, rows - columns)))
    skew, one = lower - lower.T, np.eye(rows)
    if kind == "cayley":
        found = np.linalg.solve(one - skew / 2, one + skew / 2)
    else:
        values, vectors = np.linalg.eig(skew)
        found = ((vectors * np.exp(values)) @ np.linalg.inv(vectors)).real
    found = found[:, :columns] if parts[0].base is None else parts[0].base.numpy() @ found[:, :columns]
    return found.T if tall is not original else found


def test_other_layers_keep_their_calls() -> None:
    layer: Any = parametrizations.weight_norm(nn.LSTM(3, 5), "weight_hh_l0")
    x = draw(4, 2, 3)
    plain = nn.LSTM(3, 5)
    plain.load_state_dict({name: getattr(layer, name) for name in plain.state_dict()})
    np.testing.assert_allclose(layer(Tensor(x))[0].numpy(), plain(Tensor(x))[0].numpy(), rtol=1e-5, atol=1e-6)
    model = nn.Sequential(parametrizations.spectral_norm(nn.Linear(3, 5)), nn.ReLU())
    assert "ParametrizedLinear" in repr(model) and repr(model).count("\n") > 5
    assert not model.train()[0].parametrizations["weight"][0].eval().training


@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm", "orthogonal"])
def test_states_of_pytorch_fit(name: str) -> None:
    torch: Any = pytest.importorskip("torch")
    for args in ((5, 3), (3, 5), (4, 4)):
        theirs = getattr(torch.nn.utils.parametrizations, name)(torch.nn.Linear(*args)).eval()
        ours: Any = getattr(parametrizations, name)(nn.Linear(*args)).eval()
        ours.load_state_dict(theirs.state_dict())
        assert sorted(ours.state_dict()) == sorted(theirs.state_dict())
        x = draw(7, args[0])
        (theirs(torch.from_numpy(x)) ** 2).sum().backward()
        (ours(Tensor(x)) ** 2).sum().backward()
        gradients = {one: tensor.grad.numpy() for one, tensor in ours.named_parameters()}
        for one, tensor in theirs.named_parameters():
            np.testing.assert_allclose(gradients[one], tensor.grad.numpy(), rtol=1e-3, atol=1e-4)
