"""Dtypes under autocast: PyTorch's lists for processors, from its runs, and those for cards, from its documentation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tools.torch_parity.autocast import FILE, REASONS, differences

from tinytg import Tensor, linalg, nn

F: Any = nn.functional
RECORDED = json.loads(FILE.read_text(encoding="utf-8"))
_NAMES = sorted(RECORDED)
_SHARES = [_NAMES[n::8] for n in range(8)]
CARDS: dict[str, tuple[Any, str, str]] = {
    "matmul": (lambda x: x @ x.T, "low", "low"), "mv": (lambda x: x.mv(x[0]), "low", "same"),
    "linear": (lambda x: F.linear(x, x), "low", "low"), "dot": (lambda x: x[0].dot(x[0]), "same", "same"),
    "exp": (lambda x: x.exp(), "wide", "same"), "pow": (lambda x: x**2.0, "wide", "same"),
    "softmax": (lambda x: x.softmax(-1), "wide", "same"), "sum": (lambda x: x.sum(), "wide", "same"),
    "layer_norm": (lambda x: F.layer_norm(x, (3,)), "wide", "same"), "prod": (lambda x: x.prod(), "wide", "wide"),
    "norm": (lambda x: x.norm(), "wide", "same"), "cumsum": (lambda x: x.cumsum(0), "wide", "same"),
    "mse_loss": (lambda x: F.mse_loss(x, x + 1), "wide", "wide"), "cdist": (lambda x: x.cdist(x), "wide", "wide"),
    "kl_div": (lambda x: F.kl_div(x, x), "wide", "wide"), "trace": (lambda x: x.trace(), "same", "wide"),
    "quantile": (lambda x: x.float().quantile(0.5), "wide", "wide"), "tanh": (lambda x: x.tanh(), "same", "same"),
    "avg_pool2d": (lambda x: F.avg_pool2d(x.reshape(1, 1, 3, 3), 2), "same", "same"),
    "avg_pool3d": (lambda x: F.avg_pool3d(x.reshape(1, 1, 1, 3, 3), (1, 2, 2)), "same", "wide"),
    "reflected": (lambda x: F.pad(x, (1, 1), mode="reflect"), "same", "wide"),
    "padded": (lambda x: F.pad(x, (1, 1)), "same", "same"), "relu": (lambda x: x.relu(), "same", "same"),
}  # fmt: skip
"""Calls, and in which dtype cards and processors compute them: 16 bits, float32, or that which is given."""


def test_most_are_recorded() -> None:
    cases = [case for each in RECORDED.values() for case in each]
    changed = [case for case in cases if case["plain"] != case["cast"]]
    assert len(RECORDED) > 450 and len(changed) > 80


@pytest.mark.drawn(1)
@pytest.mark.parametrize("share", range(8))
def test_processors(share: int) -> None:
    """A difference that has no reason is a mistake, and a reason without a difference is out of date."""
    names = {name: RECORDED[name] for name in _SHARES[share]}
    found = differences(names)
    assert set(found) == set(REASONS) & set(names), found


@pytest.mark.parametrize("name", CARDS)
@pytest.mark.parametrize("given", ["float32", "bfloat16"])
def test_cards_and_processors(name: str, given: str) -> None:
    call, *wanted = CARDS[name]
    x = (Tensor.rand(3, 3) + 0.1).cast(given)
    for place, want in zip((None, "cpu"), wanted, strict=True):
        if name == "quantile":
            given = "float32"
        with Tensor.autocast(place, "bfloat16"):
            got = call(x).dtype.name
        assert got == {"low": "bfloat16", "wide": "float32", "same": given}[want], place
    with Tensor.autocast("cuda", "bfloat16"):  # of tensors that are elsewhere
        assert call(x).dtype.name == call(x).dtype.name == (given if name != "quantile" else "float32")


def test_decompositions_are_computed_whole() -> None:
    """The products inside of one are not cast, wherever it is called."""
    x = Tensor.rand(3, 3) + Tensor.eye(3) * 3
    calls: dict[str, Any] = {name: getattr(linalg, name) for name in
             ("svd", "qr", "eig", "inv", "cholesky", "matrix_exp", "slogdet")}
    calls |= {f"Tensor.{name}": getattr(Tensor, name) for name in
              ("inverse", "det", "logdet", "pinverse")}  # fmt: skip
    for name, call in calls.items():
        wide = _first(call(x))
        for place in (None, "cpu"):
            with Tensor.autocast(place, "bfloat16"):
                got = _first(call(x))
            assert got.dtype is wide.dtype, name
            assert got.isclose(wide, rtol=1e-6, atol=1e-6).all().item(), name


def _first(found: Any) -> Tensor:
    tensor: Tensor = found[0] if isinstance(found, tuple) else found
    return tensor


def test_probabilities_are_refused_on_cards_alone() -> None:
    x = Tensor.rand(3)
    with Tensor.autocast("cpu", "bfloat16"):
        assert F.binary_cross_entropy(x, x).dtype.name == "float32"
    with Tensor.autocast(dtype="bfloat16"), pytest.raises(RuntimeError, match="with_logits"):
        F.binary_cross_entropy(x, x)
