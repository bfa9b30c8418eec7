"""Layers that find out their sizes: what they become, what they load, and what uses them too early."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit, nn

SPACE = (5, 7, 3)
LAZY = [name for name in nn.__all__ if name.startswith("Lazy")]
CONVOLUTIONS = [name for name in LAZY if "Conv" in name]


def made(name: str) -> tuple[Any, Any, tuple[int, ...], int]:
    """A layer, what it becomes, the shape of an input, and the axis that tells its size."""
    plain: Any = getattr(nn, name.removeprefix("Lazy"))
    if name == "LazyLinear":
        return nn.LazyLinear(3), plain, (2, 5, 11), 2
    args = (3, 2) if name in CONVOLUTIONS else ()
    return getattr(nn, name)(*args), plain, (2, 11, *SPACE[: int(name[-2])]), 1


def drawn(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(7).standard_normal(shape).astype(np.float32))


@pytest.mark.parametrize("name", LAZY)
def test_the_first_input_makes_the_plain_layer(name: str) -> None:
    layer, plain, shape, axis = made(name)
    assert layer.has_uninitialized_params() and isinstance(layer, plain) is False
    parameters = list(layer.parameters())
    x = drawn(*shape)
    out = layer(x)
    assert type(layer) is plain and "_made_with" not in vars(layer)
    first = {"in_features", "in_channels", "num_features"} & set(vars(layer))
    assert [getattr(layer, key) for key in first] == [shape[axis]]
    assert {id(p) for p in parameters} == {id(p) for p in layer.parameters()}, "an optimiser would hold others"
    settings = {key: value for key, value in vars(layer).items() if not isinstance(value, Tensor)}
    size = shape[axis]
    rest = (3,) if name == "LazyLinear" else (3, 2) if name in CONVOLUTIONS else (1e-5, 0.1, True, True)
    other = plain(size, *rest)
    assert settings == {key: value for key, value in vars(other).items() if not isinstance(value, Tensor)}
    other.load_state_dict(layer.state_dict())
    np.testing.assert_array_equal(other(x).numpy(), out.numpy())


@pytest.mark.parametrize("name", [name for name in LAZY if "BatchNorm" not in name])
def test_an_input_without_a_batch_tells_the_same_size(name: str) -> None:
    layer, _, shape, _ = made(name)
    state = {key: value.shape for key, value in plain_state(layer, drawn(*shape[1:])).items()}
    again, _, _, _ = made(name)
    assert state == {key: value.shape for key, value in plain_state(again, drawn(*shape)).items()}


def plain_state(layer: Any, x: Tensor) -> dict[str, Tensor]:
    layer(x)
    state: dict[str, Tensor] = layer.state_dict()
    return state


@pytest.mark.parametrize("name", LAZY)
def test_a_state_gives_the_sizes_and_the_first_input_has_to_fit(name: str) -> None:
    layer, plain, shape, axis = made(name)
    source, _, _, _ = made(name)
    x = drawn(*shape)
    expected = source(x)
    layer.load_state_dict(source.state_dict())
    assert not layer.has_uninitialized_params()
    wrong, _, _, _ = made(name)
    wrong.load_state_dict(source.state_dict())
    np.testing.assert_array_equal(layer(x).numpy(), expected.numpy())
    assert type(layer) is plain
    other = list(shape)
    other[axis] += 2
    with pytest.raises(ValueError, match=f"{name}: .* was loaded; an input of shape"):
        wrong(drawn(*other))


EARLY: dict[str, Callable[[Any, Path], object]] = {
    "an optimiser": lambda model, path: nn.optim.SGD(model.parameters(), lr=0.1),
    "Adam": lambda model, path: nn.optim.Adam(model.parameters()),
    "a file": lambda model, path: nn.state.safe_save(model.state_dict(), str(path / "x.safetensors")),
    "a vector": lambda model, path: nn.utils.parameters_to_vector(model.parameters()),
    "nn.init": lambda model, path: nn.init.ones_(model[0].weight),
    "its shape": lambda model, path: model[0].weight.shape,
    "a sum": lambda model, path: model[0].weight + 1,
    "a product": lambda model, path: Tensor.ones(3) * model[0].weight,
    "numpy": lambda model, path: model[0].weight.numpy(),
    "a complete layer": lambda model, path: nn.Linear(2, 3).load_state_dict(model[0].state_dict()),
}


@pytest.mark.parametrize("what", EARLY)
def test_what_needs_elements_says_that_there_are_none(what: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no shape"):
        EARLY[what](nn.Sequential(nn.LazyLinear(3)), tmp_path)


def test_copies_and_states_without_elements() -> None:
    model = nn.Sequential(nn.LazyConv2d(4, 3, groups=2), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(3))
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        other.load_state_dict(model.state_dict())  # of which nothing but the count of batches is known
        assert all(layer.has_uninitialized_params() for layer in (other[0], other[1], other[3]))
        assert other(drawn(2, 6, 5, 5)).shape == (2, 3) and other[0].weight.shape == (4, 3, 3, 3)
    assert model[0].has_uninitialized_params(), "copies are filled by themselves"


def test_the_device_the_dtype_and_the_wish_for_a_gradient_are_kept() -> None:
    layer = nn.LazyLinear(3, dtype="float16", device="NUMPY")  # type: ignore[call-arg]
    assert (layer.weight.dtype.name, layer.weight.device) == ("float16", "NUMPY")
    layer = nn.LazyLinear(3).to("float64").requires_grad_(False)
    assert layer(drawn(2, 5).double()).dtype.name == "float64" and layer.weight.requires_grad is False
    layer = nn.LazyLinear(3)
    layer(drawn(2, 5)).sum().backward()
    assert layer.weight.grad is not None and layer.bias.grad.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("wishes", [[True], [False], [None], [False, True], [True, False]])
def test_a_wish_for_a_gradient_before_there_are_elements(wishes: list[bool | None]) -> None:
    one = nn.UninitializedParameter()
    whole, layer = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d()), nn.LazyLinear(3)
    for wish in wishes:
        layer.weight.requires_grad = wish
        one.requires_grad_(bool(wish))
        whole.requires_grad_(bool(wish))
    (layer(drawn(2, 5)).sum() + layer.bias.sum()).backward()
    assert (layer.weight.grad is None) == (wishes[-1] is False)
    if not wishes[-1]:
        whole(drawn(2, 5))
        assert not any(p.requires_grad for p in whole.parameters()) and not one.requires_grad
        return
    whole(drawn(2, 5)).square().sum().backward()
    assert all(p.grad is not None for p in whole.parameters()) and one.requires_grad
    assert not any(b.requires_grad for b in whole.buffers())
    whole_number = nn.UninitializedParameter(dtype="int32")
    with pytest.raises(TypeError, match="int32 has no gradient"):
        whole_number.requires_grad = True


def test_hooks_and_recording() -> None:
    layer, seen = nn.LazyLinear(3), []
    with layer.register_forward_pre_hook(lambda layer, args: seen.append(type(layer).__name__)):
        layer(drawn(2, 5))
    assert seen == ["Linear"]
    lazy = nn.LazyLinear(3)
    step = TinyJit(lambda x: lazy(x).realize())
    for _ in range(4):
        x = drawn(2, 5)
        np.testing.assert_allclose(step(x).numpy(), lazy(x).numpy(), rtol=1e-6)


def test_inputs_that_tell_nothing() -> None:
    for layer in (nn.LazyLinear(3), nn.LazyConv1d(3, 2), nn.LazyBatchNorm1d()):
        with pytest.raises(ValueError, match="does not tell"):
            layer(Tensor(1.0))
    with pytest.raises(ValueError, match="groups"):
        nn.LazyConv2d(4, 2, groups=2)(drawn(2, 3, 5, 5))
