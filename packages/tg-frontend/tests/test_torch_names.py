"""Methods by PyTorch's names, keywords included: values and gradients beside PyTorch's, where that is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tg_frontend import Tensor

torch: Any = pytest.importorskip("torch")
RNG = np.random.default_rng(1)
Array = npt.NDArray[Any]


def f(*shape: int) -> Array:
    return RNG.uniform(-2, 2, shape).astype(np.float32)


X, Y, V, W, SQUARE = f(3, 5), f(3, 5), f(5), f(5), f(5, 5)
BATCH, OTHERS = f(2, 3, 7), f(2, 7, 5)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5], np.float32)
BESIDE = np.array([1, np.nan, np.nan, 0.0, np.inf, -0.0, 3], np.float32)
SIGNS = np.where(RNG.uniform(size=(3, 5)) < 0.5, -1, 1).astype(np.float32)
DEFINITE = np.stack([each @ each.T + 2 * np.eye(5, dtype=np.float32) for each in f(2, 5, 5) / 2])
CLASSES = RNG.integers(0, 5, 3)
COUNTS = RNG.integers(0, 5, (3, 5)).astype(np.float32)
CASES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *((name, (X, Y), {}) for name in "lt gt le ge logical_and logical_or logical_xor fmax fmin hypot xlogy".split()),
    *((name, (SPECIAL, BESIDE), {}) for name in "fmax fmin hypot xlogy logical_and lt ge".split()),
    *((name, (x,), {}) for name in "frac signbit nan_to_num sinc deg2rad rad2deg frexp".split() for x in (X, SPECIAL)),
    ("frexp", (np.array([1e-40, 3e-39, 1e38, 0.3, -7], np.float32),), {}),
    ("ldexp", (X, np.array([1, 2, -3, 0, 12], np.float32)), {}), ("float_power", (np.abs(X), 2.5), {}),
    ("logit", (np.abs(X) / 2.1,), {}), ("logit", (X,), {"eps": 0.1}),
    ("addcmul", (X, Y, X), {"value": 0.5}), ("addcdiv", (X, Y, X), {"value": 0.5}),
    ("movedim", (BATCH, 0, -1), {}), ("movedim", (BATCH, (0, 1), (2, 0)), {}), ("ravel", (X,), {}),
    ("narrow", (X, 1, 1, 3), {}), ("select", (X, 1, -2), {}), ("tile", (X, (2,)), {}), ("tile", (X, (2, 1, 3)), {}),
    ("flipud", (X,), {}), ("fliplr", (X,), {}), ("broadcast_to", (V, (3, 5)), {}),
    *(("rot90", (BATCH, turns, axes), {}) for turns in range(-5, 6) for axes in ((1, 2), (2, 0))),
    ("tensor_split", (f(7, 2), 3), {}), ("tensor_split", (f(7, 2), (1, -2, 9)), {}),
    ("tensor_split", (f(2, 7), 10), {"dim": 1}), ("hsplit", (f(2, 4), 2), {}), ("vsplit", (f(4, 2), (1, 3)), {}),
    ("dsplit", (f(1, 2, 4), 2), {}), ("outer", (V, W), {}), ("inner", (X, Y), {}), ("inner", (V, W), {}),
    ("kron", (X, SQUARE), {}), ("kron", (V, X), {}), ("vdot", (V, W), {}), ("trace", (SQUARE,), {}),
    ("mm", (X, SQUARE), {}), ("mv", (SQUARE, V), {}), ("bmm", (BATCH, OTHERS), {}),
    ("cross", (f(4, 3), f(4, 3)), {"dim": -1}), ("cross", (f(3, 4), f(3, 4)), {"dim": 0}),
    ("tensordot", (f(2, 3, 4), f(4, 3, 5)), {"dims": ([1, 2], [1, 0])}), ("tensordot", (X, SQUARE), {"dims": 0}),
    ("tensordot", (f(2, 3, 4), f(3, 4, 6)), {"dims": 2}), ("addmm", (f(5), X, SQUARE), {"beta": 0.5, "alpha": 2}),
    ("addmv", (f(5), SQUARE, V), {"beta": 2}), ("addr", (X, f(3), V), {}),
    ("baddbmm", (f(2, 3, 5), BATCH, OTHERS), {"alpha": 0.3}), ("addbmm", (f(3, 5), BATCH, OTHERS), {}),
    *((name, (X,), {"dim": (0, 1), "keepdim": True}) for name in ("amax", "amin")), ("aminmax", (X,), {"dim": 1}),
    ("count_nonzero", (np.array([[0, 1], [2, np.nan]], np.float32),), {"dim": 1}), ("nansum", (BESIDE,), {}),
    ("nanmean", (np.stack([BESIDE[1:3], BESIDE[:2]]),), {"dim": 1}), ("cdist", (f(2, 3, 4), f(2, 5, 4)), {}),
    *((name, (DEFINITE,), {}) for name in "adjoint cholesky cholesky_inverse det geqrf inverse logdet lu "
      "pinverse qr slogdet".split()),
    *((name, (DEFINITE[0],), {"upper": True}) for name in ("cholesky", "cholesky_inverse")),
    ("pinverse", (X,), {"rcond": 0.6}), ("matrix_power", (DEFINITE, -2), {}), ("matrix_power", (DEFINITE, 3), {}),
    ("cholesky_solve", (f(2, 5, 3), DEFINITE), {}), ("cholesky_solve", (f(2, 5, 3), DEFINITE), {"upper": True}),
    ("lu_solve", (f(2, 5, 3), DEFINITE, np.tile(np.arange(1, 6, dtype=np.int32), (2, 1))), {}),
    ("qr", (f(5, 3),), {"some": True}), ("geqrf", (X,), {}),
    ("orgqr", (f(5, 3), f(3) / 4), {}), ("ormqr", (f(5, 3) / 2, f(3) / 2, f(5, 2)), {"transpose": True}),
    ("ormqr", (f(5, 3) / 2, f(3) / 2, f(2, 5)), {"left": False}),
    ("matrix_exp", (DEFINITE / 8,), {}), ("svd", (DEFINITE,), {"compute_uv": False}),
    *(("triangular_solve", (f(5, 2), DEFINITE[0]), {"upper": a, "transpose": b, "unitriangular": c})
      for a in (False, True) for b in (False, True) for c in (False, True)),
    ("cdist", (X, Y), {"p": 1.0}), ("cdist", (X, Y), {"p": float("inf")}), ("dist", (X, Y), {"p": 3}),
]  # fmt: skip
FUNCTIONAL: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *((name, (X, np.abs(Y)), {"reduction": how}) for how in ("mean", "sum", "none")
      for name in "l1_loss mse_loss huber_loss smooth_l1_loss kl_div".split()),
    ("kl_div", (X, Y), {"reduction": "batchmean", "log_target": True}), ("huber_loss", (X, Y), {"delta": 0.3}),
    ("smooth_l1_loss", (X, Y), {"beta": 0.3}), ("poisson_nll_loss", (X, COUNTS), {"full": True}),
    ("poisson_nll_loss", (np.abs(X), COUNTS), {"log_input": False}),
    ("gaussian_nll_loss", (X, Y, np.abs(f(3, 5))), {"full": True}),
    ("margin_ranking_loss", (X, Y, SIGNS), {"margin": 0.2}), ("hinge_embedding_loss", (X, SIGNS), {}),
    ("soft_margin_loss", (X, SIGNS), {}), ("cosine_embedding_loss", (X, Y, SIGNS[:, 0]), {"margin": 0.1}),
    ("triplet_margin_loss", (X, Y, f(3, 5)), {}), ("triplet_margin_loss", (X, Y, f(3, 5)), {"swap": True, "p": 1.5}),
    ("multi_margin_loss", (X, CLASSES), {}),
    ("multi_margin_loss", (X, CLASSES), {"p": 2, "weight": np.abs(V), "margin": 0.7}),
    ("multilabel_soft_margin_loss", (X, (SIGNS > 0).astype(np.float32)), {"weight": np.abs(V)}),
    ("cosine_similarity", (X, Y), {}), ("pairwise_distance", (X, Y), {}), ("threshold", (X, 0.1, 20.0), {}),
    *((name, (f(3, 4),), {}) for name in "glu tanhshrink softshrink hardshrink".split()),
    ("prelu", (X, f(5)), {}), ("prelu", (X, f(1)), {}),
]  # fmt: skip
OWN_GRADIENT = ("geqrf", "cholesky_inverse")  # PyTorch has none; and one for what is beside the triangle


def _listed(out: Any) -> list[Any]:
    return list(out) if isinstance(out, (tuple, list)) else [out]


def _compare(theirs: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    def made(value: Any, of: Callable[[Array], Any]) -> Any:
        return of(value) if isinstance(value, np.ndarray) else value

    differentiable = args[0].dtype == np.float32 and np.isfinite(args[0]).all() and name not in OWN_GRADIENT
    a = [made(arg, torch.from_numpy) for arg in args]
    b = [made(arg, Tensor) for arg in args]
    if differentiable:
        a[0], b[0] = a[0].clone().requires_grad_(), Tensor(args[0], requires_grad=True)
    want = _listed(theirs(*a, **{key: made(value, torch.from_numpy) for key, value in kwargs.items()}))
    got = _listed(getattr(Tensor, name)(*b, **{key: made(value, Tensor) for key, value in kwargs.items()}))
    for x, y in zip(want, got, strict=True):
        array = x.detach().numpy()
        assert array.dtype == y.numpy().dtype
        np.testing.assert_allclose(y.numpy(), array, rtol=2e-5, atol=2e-6)
    if differentiable and any(x.requires_grad for x in want):
        sum((x * x).sum() for x in want if x.is_floating_point()).backward()
        first, *rest = [(y * y).sum() for y in got if y.is_floating_point()]
        sum(rest, first).backward()
        np.testing.assert_allclose(b[0].grad.numpy(), a[0].grad.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore:torch.(cholesky|lu|qr|svd|lu_solve|triangular_solve) is deprecated:UserWarning")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_methods(case: tuple[str, tuple[Any, ...], dict[str, Any]]) -> None:
    _compare(getattr(torch, case[0], None) or getattr(torch.Tensor, case[0]), *case)


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides:UserWarning")
@pytest.mark.parametrize("case", FUNCTIONAL, ids=lambda case: case[0])
def test_functions_of_networks(case: tuple[str, tuple[Any, ...], dict[str, Any]]) -> None:
    _compare(getattr(torch.nn.functional, case[0]), *case)
