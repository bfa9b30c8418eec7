"""Complex parameters: optimisers step them as pairs of floats, and models load and clip them."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit, nn

RNG = np.random.default_rng(43)
Z = (RNG.uniform(-1, 1, (3, 5)) + 1j * RNG.uniform(-1, 1, (3, 5))).astype(np.complex64)
A = (RNG.uniform(-1, 1, (5, 2)) + 1j * RNG.uniform(-1, 1, (5, 2))).astype(np.complex64)
R = RNG.uniform(-1, 1, 7).astype(np.float32)
OPTIMISERS: dict[str, Any] = {
    name: kind for name, kind in vars(nn.optim).items()
    if inspect.isclass(kind) and issubclass(kind, nn.optim.Optimizer) and kind.__name__ == name != "Optimizer"
    and name != "OptimizerGroup"
}  # fmt: skip
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "SGD": [{"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}, {"momentum": 0.9, "dampening": 0.5}],
    "Adam": [{"amsgrad": True, "weight_decay": 0.1, "maximize": True}], "AdamW": [{"lr": 0.1}],
    "RMSprop": [{"centered": True, "momentum": 0.5}], "Adagrad": [{"initial_accumulator_value": 0.1}],
    "LBFGS": [{"lr": 0.5, "max_iter": 3}, {"line_search_fn": "strong_wolfe", "max_iter": 3}],
}  # fmt: skip
PLAIN: dict[str, dict[str, Any]] = {"LBFGS": {"max_iter": 4}}  # 20 are usual, which show no more
CASES = [(name, each) for name in OPTIMISERS for each in [PLAIN.get(name, {}), *SETTINGS.get(name, [])]]


def _loss(z: Tensor, r: Tensor) -> Tensor:
    out: Tensor = ((z @ Tensor(A)).abs() ** 2).sum() * 0.3 + z.real.sum() + (r * r).sum()
    return out


@pytest.mark.drawn(8)
@pytest.mark.parametrize(("name", "settings"), [case for case in CASES if OPTIMISERS[case[0]].by_parts])
def test_a_complex_parameter_is_a_pair(name: str, settings: dict[str, Any]) -> None:
    """Steps, and what is kept, are those of the real and the imaginary part as two parameters."""
    z, r = Tensor(Z, requires_grad=True), Tensor(R, requires_grad=True)
    x, y, s = (Tensor(value.copy(), requires_grad=True) for value in (Z.real, Z.imag, R))
    whole, pair = OPTIMISERS[name]([z, r], **settings), OPTIMISERS[name]([x, y, s], **settings)
    for one, loss in ((whole, lambda: _loss(z, r)), (pair, lambda: _loss(Tensor.complex(x, y), s))):

        def closure(one: Any = one, loss: Any = loss) -> Any:
            one.zero_grad(set_to_none=False)
            return loss().backward()

        for _ in range(3):
            if name == "LBFGS":
                one.step(closure)
            else:
                closure()
                one.step()
    tolerance = 1e-4 if name == "LBFGS" else 1e-6
    np.testing.assert_allclose(z.numpy(), x.numpy() + 1j * y.numpy(), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(r.numpy(), s.numpy(), rtol=tolerance, atol=tolerance)
    assert np.abs(z.numpy() - Z).max() > 0 and np.abs((z.numpy() - Z).imag).max() > 0
    for key, kept in (whole.state.get(z) or {}).items():
        re, im = pair.state[x][key].numpy(), pair.state[y][key].numpy()
        if kept.shape == z.shape:
            assert kept.dtype.name == "complex64"
            np.testing.assert_allclose(kept.numpy(), re + 1j * im, rtol=1e-5, atol=1e-6, err_msg=key)
    other = OPTIMISERS[name]([Tensor(Z, requires_grad=True), Tensor(R, requires_grad=True)], **settings)
    other.load_state_dict(whole.state_dict())
    for mine, held in zip(whole._kept, other._kept, strict=True):
        for key, value in mine.items():
            np.testing.assert_array_equal(value.numpy(), held[key].numpy())


@pytest.mark.parametrize("name", [name for name, kind in OPTIMISERS.items() if not kind.by_parts])
def test_optimisers_that_take_none(name: str) -> None:
    with pytest.raises(TypeError, match=f"^{name}: parameter 1 is complex.*real and"):
        OPTIMISERS[name]([Tensor(R.reshape(7, 1)), Tensor(Z)])


def test_each_is_here() -> None:
    taken = {name for name, kind in OPTIMISERS.items() if kind.by_parts}
    assert taken >= set("SGD Adam AdamW NAdam RAdam Adamax RMSprop Adagrad Adadelta Rprop ASGD LBFGS Lion".split())
    assert {"Adafactor", "Muon", "SparseAdam", "LAMB", "LARS"} <= set(OPTIMISERS) - taken


class _Model(nn.Module):
    def __init__(self) -> None:
        self.weight = nn.Parameter(Tensor(Z))
        self.scale = nn.Parameter(Tensor(R))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = (x @ self.weight).abs().sum() * self.scale.sum()
        return out


def test_models_with_complex_parameters() -> None:
    model, other = _Model(), _Model()
    assert [name for name, _ in model.named_parameters()] == ["weight", "scale"]
    optimizer = nn.optim.Adam(model.parameters(), lr=0.1)
    x = Tensor(RNG.uniform(-1, 1, (2, 3)).astype(np.float32)).realize()

    @TinyJit
    def step(v: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = (model(v) - 1) ** 2
        loss.backward()
        optimizer.step()
        return loss.realize()

    losses = [step(x).item() for _ in range(6)]
    assert losses[0] > losses[-1] and len(set(losses)) == 6
    for assign in (False, True):
        held = other.weight
        other.load_state_dict({name: tensor + 0 for name, tensor in model.state_dict().items()}, assign=assign)
        np.testing.assert_array_equal(other.weight.numpy(), model.weight.numpy())
        assert other.weight is held
        model.weight.assign(model.weight.detach() * 2j)
    for assign in (False, True):
        with pytest.raises(ValueError, match="complex numbers for real ones.*: scale"):
            other.load_state_dict({"weight": model.weight, "scale": Tensor(R + 1j)}, assign=assign)
    other.requires_grad_(False)
    assert [p.requires_grad for p in other.parameters()] == [False, False]


@pytest.mark.parametrize("power", [1.0, 2.0, 3.0, float("inf")])
def test_norms_of_complex_gradients(power: float) -> None:
    z, r = Tensor(Z, requires_grad=True), Tensor(R, requires_grad=True)
    _loss(z, r).backward()
    assert z.grad is not None and r.grad is not None
    before, others = z.grad.numpy(), r.grad.numpy()
    every = np.concatenate([np.abs(before).ravel(), np.abs(others)])
    want = np.linalg.norm(every, power)
    got = nn.utils.clip_grad_norm_([z, r], 0.5, power)
    assert got.dtype.name == "float32"
    np.testing.assert_allclose(got.item(), want, rtol=1e-5)
    np.testing.assert_allclose(z.grad.numpy(), before * (0.5 / want), rtol=1e-4)
    np.testing.assert_allclose(r.grad.numpy(), others * (0.5 / want), rtol=1e-4)
    with pytest.raises(TypeError, match="clip_grad_value_: a gradient is complex"):
        nn.utils.clip_grad_value_([r, z], 0.01)
    np.testing.assert_allclose(r.grad.numpy(), others * (0.5 / want), rtol=1e-4)


def test_a_gradient_scaler() -> None:
    z, r = Tensor(Z, requires_grad=True), Tensor(R, requires_grad=True)
    optimizer, scaler = nn.optim.SGD([z, r], lr=0.1), nn.amp.GradScaler(init_scale=1024.0)
    w, s = Tensor(Z, requires_grad=True), Tensor(R, requires_grad=True)
    plain = nn.optim.SGD([w, s], lr=0.1)
    scaler.scale(_loss(z, r)).backward()
    scaler.step(optimizer)
    _loss(w, s).backward()
    plain.step()
    np.testing.assert_allclose(z.numpy(), w.numpy(), rtol=1e-5)
    for value in (complex(1, np.inf), complex(np.nan, 0)):
        z.grad = Tensor(np.full_like(Z, value))
        scaler.update()
        scaler.step(optimizer)
        np.testing.assert_allclose(z.numpy(), w.numpy(), rtol=1e-5)
