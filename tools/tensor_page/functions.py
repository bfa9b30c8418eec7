"""Calls of what the fuzzer does not draw: methods of complex and random numbers, and functions of the other rooms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Written:
    """Arguments, numpy's arrays among them, and what numpy says; see :class:`tools.tensor_page.samples.Sample`."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    reference: Callable[..., Any] | None = None
    drawn: bool = False
    magnitude: bool = False
    parts: int | None = None


def some(*shape: int, low: int = -16, high: int = 16) -> Array:
    """Eighths between ``low / 8`` and ``high / 8``, none of them 0."""
    random = np.random.default_rng([*shape, low + 99, high])
    eighths = random.integers(low, high, shape)
    return np.where(eighths == 0, high, eighths) / 8


def positive(*shape: int) -> Array:
    """Eighths between 0 and 1."""
    return some(*shape, low=1, high=7)


def whole(*shape: int, high: int = 3) -> Array:
    """Integers from 0 to below ``high``."""
    return np.random.default_rng([*shape, high]).integers(0, high, shape)


def pairs(*shape: int) -> Array:
    """Complex numbers."""
    return some(*shape) + 1j * some(*shape, high=12)


def call(*args: Any, reference: Callable[..., Any] | None = None, **kwargs: Any) -> tuple[Written, ...]:
    """One call."""
    return (Written(args, kwargs, reference),)


def random(*args: Any, **kwargs: Any) -> tuple[Written, ...]:
    """One call of what draws numbers."""
    return (Written(args, kwargs, drawn=True),)


def signs(*args: Any, parts: int | None = None, **kwargs: Any) -> tuple[Written, ...]:
    """One call of what may choose signs."""
    return (Written(args, kwargs, magnitude=True, parts=parts),)


M, SQUARE, ROWS = some(2, 3), some(3, 3) + 4 * np.eye(3), some(4, 3)
DEFINITE = SQUARE @ SQUARE.T
LOWER = np.linalg.cholesky(DEFINITE)
TRIANGLE = np.triu(some(3, 3) / 4, 1) + np.diag([1.0, 2.0, 3.5])  # whose eigenvalues have an order that all give them
IMAGE, CLIP, SEQUENCE = some(2, 4, 6, 5), some(1, 2, 4, 5, 6), some(2, 4, 7)



def _scattered(x: Array, mask: Array, source: Array) -> Array:
    out = x.copy()
    out[mask] = source.reshape(-1)[: int(mask.sum())]
    return out


METHODS: dict[str, tuple[Written, ...]] = {
    "angle": call(M, reference=np.angle) + call(pairs(2, 3), reference=np.angle),
    "complex": call(M, some(2, 3, high=9), reference=lambda a, b: a + 1j * b),
    "polar": call(positive(2, 3), M, reference=lambda a, b: a * np.exp(1j * b)),
    "conj": call(M, reference=np.conj) + call(pairs(2, 3), reference=np.conj),
    "conj_physical": call(pairs(2, 3), reference=np.conj),
    "resolve_conj": call(pairs(2, 3), reference=lambda x: x),
    "resolve_neg": call(M, reference=lambda x: x) + call(pairs(2, 3), reference=lambda x: x),
    "unravel_index": call(whole(2, 3, high=12), (3, 4), reference=lambda x, shape: np.unravel_index(x, shape)),
    "ravel_multi_index": call(whole(2, 3), (3, 3), reference=lambda x, dims: np.ravel_multi_index(tuple(x), dims)),
    "histogramdd": call(M.T, 3, [-2.0, 2.0, -2.0, 2.0],
                        reference=lambda x, bins, _: np.histogramdd(x, bins, [(-2.0, 2.0), (-2.0, 2.0)])),
    "segment_reduce": call(M, "sum", lengths=np.array([1, 0, 1]),
                           reference=lambda x, _, lengths: np.stack([x[0], x[0] * 0, x[1]])),
    "sgn": call(M, reference=np.sign) + call(pairs(2, 3), reference=lambda x: x / np.abs(x)),
    "isreal": call(pairs(2, 3), reference=np.isreal),
    "view_as_real": call(pairs(2, 3), reference=lambda x: np.stack([x.real, x.imag], -1)),
    "view_as_complex": call(some(3, 2), reference=lambda x: x[..., 0] + 1j * x[..., 1]),
    "cfloat": call(M, reference=lambda x: x.astype(np.complex64)),
    "cdouble": call(M, reference=lambda x: x.astype(np.complex128)),
    "stft": call(some(16), 8, hop_length=4, window=positive(8), return_complex=True),
    "istft": call(pairs(5, 4), 8, window=positive(8), hop_length=4),
    "nextafter": call(M, some(2, 3, high=9)),
    "bitcast": call(M, "int32", reference=lambda x, _: x.astype(np.float32).view(np.int32))
    + call(whole(2, 3), "float32", reference=lambda x, _: x.astype(np.int32).view(np.float32)),
    "equal": call(M, M.copy(), reference=np.array_equal),
    "allclose": call(M, M + 1e-9, reference=np.allclose),
    "const_like": call(M, 2.0, reference=np.full_like),
    "fill_": call(M, 2.0, reference=np.full_like),
    "zero_": call(M, reference=np.zeros_like),
    "copy_": call(M, some(2, 3, high=9), reference=lambda x, y: y),
    "fill_diagonal_": call(SQUARE, 2.0, reference=lambda x, v: np.where(np.eye(3, dtype=bool), v, x)),
    "assign": call(M, some(2, 3, high=9), reference=lambda x, y: y),
    "detach": call(M, reference=lambda x: x),
    "where": call(M > 0, M, some(2, 3, high=9), reference=np.where),
    "masked_scatter": call(M, M > 0, some(6, high=9), reference=_scattered),
    "rand": random(2, 3), "randn": random(2, 3), "rand_like": random(M), "randn_like": random(M),
    "randint": random(2, 3, high=5), "randint_like": random(M, 0, 5), "randperm": random(7),
    "normal": random(2, 3), "uniform": random(2, 3), "scaled_uniform": random(2, 3), "glorot_uniform": random(2, 3),
    "xavier_uniform": random(2, 3), "xavier_normal": random(2, 3), "kaiming_uniform": random(2, 3),
    "kaiming_normal": random(2, 3), "bernoulli": random(positive(2, 3)), "multinomial": random(positive(5), 2),
    "dropout": random(M), "poisson": random(positive(2, 3)),
    "binomial": random(whole(2, 3, high=9).astype(np.float32), np.float32(0.3) + np.zeros((2, 3), np.float32)),
    "exponential": random(M), "cauchy": random(M), "geometric": random(M, 0.5),
    "log_normal": random(M), "exponential_": random(M), "cauchy_": random(M), "geometric_": random(M, 0.5),
    "log_normal_": random(M), "normal_": random(M), "uniform_": random(M), "bernoulli_": random(M, 0.5),
    "random_": random(M, 5),
}  # fmt: skip

_LINALG: dict[str, tuple[Written, ...]] = {
    "cholesky": call(DEFINITE), "cholesky_ex": call(DEFINITE), "cholesky_inverse": call(LOWER),
    "cholesky_solve": call(some(3, 2), LOWER), "cond": call(SQUARE), "det": call(SQUARE),
    "eig": (Written((TRIANGLE,), parts=1),), "eigvals": call(TRIANGLE), "eigh": signs(DEFINITE),
    "eigvalsh": call(DEFINITE), "householder_product": call(some(4, 2), positive(2)),
    "inv": call(SQUARE), "inv_ex": call(SQUARE), "lstsq": (Written((ROWS, some(4, 2)), parts=1),),
    "ldl_factor": call(DEFINITE), "ldl_factor_ex": call(SQUARE),
    "ldl_solve": call(SQUARE, np.array([2, 2, 3], np.int32), some(3, 2)), "lobpcg": signs(DEFINITE, 1),
    "lu_unpack": call(SQUARE, np.array([2, 2, 3], np.int32)), "pca_lowrank": signs(ROWS, 3),
    "svd_lowrank": signs(ROWS, 3), "lu": call(SQUARE), "lu_factor": call(SQUARE), "lu_factor_ex": call(SQUARE),
    "lu_solve": call(SQUARE, np.array([2, 2, 3], np.int32), some(3, 2)), "matrix_exp": call(SQUARE / 4),
    "matrix_norm": call(M), "matrix_power": call(SQUARE, 3), "matrix_rank": call(M), "matrix_transpose": call(M),
    "multi_dot": call([some(2, 3), some(3, 4), some(4, 2)]), "outer": call(some(3), some(2, high=9)),
    "pinv": call(ROWS), "qr": signs(ROWS),
    "slogdet": call(SQUARE), "solve": call(SQUARE, some(3, 2)), "solve_ex": call(SQUARE, some(3, 2)),
    "solve_triangular": call(LOWER, some(3, 2), upper=False), "svd": signs(ROWS, full_matrices=False),
    "svdvals": call(ROWS), "tensordot": call(some(2, 3), some(3, 4), axes=1),
    "tensorinv": call(SQUARE.reshape(3, 1, 3), 2), "tensorsolve": call(SQUARE, some(3)), "trace": call(M),
    "vecdot": call(M, some(2, 3, high=9)), "vector_norm": call(M),
}  # fmt: skip
_POLYNOMIALS = "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w " \
    "hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p " \
    "shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v " \
    "shifted_chebyshev_polynomial_w"  # fmt: skip
_SPECIAL: dict[str, tuple[Written, ...]] = {
    **{name: call(positive(2, 3), 3) for name in _POLYNOMIALS.split()},
    **{name: call(positive(2, 3)) for name in
       "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 entr erfcx expit gammaln i0e i1 i1e log_ndtr "
       "modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 ndtr ndtri psi "
       "scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0".split()},
    "gammainc": call(positive(2, 3), some(2, 3, low=2)), "gammaincc": call(positive(2, 3), some(2, 3, low=2)),
    "multigammaln": call(positive(2, 3) + 2, 2), "xlog1py": call(M, positive(2, 3)),
    "zeta": call(positive(2, 3) + 2, positive(2, 3)),
}  # fmt: skip
_FFT: dict[str, tuple[Written, ...]] = {
    **{name: call(some(3, 6)) for name in
       "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 hfft2 ihfft2 fftn ifftn rfftn irfftn hfftn ihfftn "
       "fftshift ifftshift".split()},
    "fftfreq": call(7, 0.5), "rfftfreq": call(6, 0.5),
}  # fmt: skip


def _distance(a: Any, b: Any) -> Any:
    return (a - b).abs().sum(-1)


_FUNCTIONAL: dict[str, tuple[Written, ...]] = {
    "grouped_mm": call(some(2, 3, 4), some(2, 4, 5)),
    "scaled_mm": call(some(3, 4), some(4, 2), positive(1), 0, positive(1), 0, output_dtype="float32",
                      reference=lambda a, b, scale_a, _a, scale_b, _b, **_: a @ b * scale_a * scale_b),
    "adaptive_avg_pool1d": call(SEQUENCE, 3), "adaptive_avg_pool2d": call(IMAGE, 3),
    "adaptive_avg_pool3d": call(CLIP, 2), "adaptive_max_pool1d": call(SEQUENCE, 3),
    "adaptive_max_pool2d": call(IMAGE, 3), "adaptive_max_pool3d": call(CLIP, 2),
    "affine_grid": call(some(2, 2, 3), [2, 1, 3, 4], align_corners=False),
    "alpha_dropout": random(M, training=True), "dropout1d": random(SEQUENCE), "dropout2d": random(IMAGE),
    "dropout3d": random(CLIP), "feature_alpha_dropout": random(IMAGE, training=True), "gumbel_softmax": random(M),
    "rrelu": call(M), "batch_norm": call(SEQUENCE, some(4), positive(4)),
    "bilinear": call(some(3, 2), some(3, 4), some(5, 2, 4), some(5)),
    "ctc_loss": call(np.log(positive(6, 2, 4) / 4), whole(2, 3, high=2) + 1, np.array([6, 6]), np.array([3, 2])),
    "embedding_bag": call(whole(2, 3, high=4), some(4, 3)), "fold": call(some(1, 8, 6), (3, 4), 2),
    "fractional_max_pool2d": random(IMAGE, 2, output_size=2), "fractional_max_pool3d": random(CLIP, 2, output_size=2),
    "grid_sample": call(IMAGE, positive(2, 3, 3, 2), align_corners=False), "group_norm": call(IMAGE, 2),
    "instance_norm": call(IMAGE), "layer_norm": call(IMAGE, (5,)), "local_response_norm": call(IMAGE, 3),
    "lp_pool1d": call(SEQUENCE, 2.0, 2), "lp_pool2d": call(IMAGE, 2.0, 2), "lp_pool3d": call(CLIP, 2.0, 2),
    "multilabel_margin_loss": call(some(2, 4), np.array([[1, 0, -1, 2], [3, -1, 0, 1]])),
    "rms_norm": call(M, (3,)), "rrelu_": call(M), "conv_tbc": call(some(5, 2, 3), some(2, 3, 4), some(4)),
    "multi_head_attention_forward": call(
        some(3, 2, 4), some(5, 2, 4), some(5, 2, 4), 4, 2, some(12, 4), some(12), None, None, False, 0.0, some(4, 4),
        some(4),
    ),
    "linear_cross_entropy": call(some(3, 4), some(5, 4), whole(3, high=5)),
    **{f"adaptive_max_pool{n}d_with_indices": call(x, 2) for n, x in enumerate((SEQUENCE, IMAGE, CLIP), 1)},
    **{f"max_pool{n}d_with_indices": call(x, 2) for n, x in enumerate((SEQUENCE, IMAGE, CLIP), 1)},
    **{f"fractional_max_pool{n}d_with_indices": random(x, 2, output_size=2) for n, x in ((2, IMAGE), (3, CLIP))},
    "triplet_margin_with_distance_loss":
        call(M, some(2, 3, high=9), some(2, 3, high=7), distance_function=_distance),
    "upsample": call(IMAGE, scale_factor=2), "upsample_bilinear": call(IMAGE, scale_factor=2),
    "upsample_nearest": call(IMAGE, scale_factor=2),
}  # fmt: skip
FUNCTIONS = {
    f"{room}.{name}": calls
    for room, table in (("linalg", _LINALG), ("special", _SPECIAL), ("fft", _FFT), ("nn.functional", _FUNCTIONAL))
    for name, calls in table.items()
}
