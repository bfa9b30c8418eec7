"""Mixed precision: products in 16 bits, what sums up or grows fast in 32, as PyTorch chooses."""

from __future__ import annotations

from functools import update_wrapper
from inspect import getattr_static

from tg_dtype import DType, dtypes
from tg_lazy.graph.origin import WRAPPERS

from ..array.base import Base
from ..autograd.differentiation import MODE, Precision, Switch
from ..host.coerce import to_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    C = TypeVar("C", bound=type)

LOW = frozenset(
    "__matmul__ __rmatmul__ matmul dot linear mm mv bmm addmm addmv addr addbmm baddbmm chain_matmul multi_dot einsum "
    "tensordot "
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d prelu scaled_dot_product_attention".split()
)
"""What is computed in the lower precision: products and convolutions."""
WIDE = frozenset(
    "__pow__ __rpow__ pow acos asin arccos arcsin cosh sinh tan exp exp2 expm1 log log2 log10 log1p erfinv reciprocal "
    "rsqrt sum prod cumsum cumprod logcumsumexp logsumexp norm renorm dist cdist pdist softmax log_softmax softmin "
    "softplus layernorm layer_norm group_norm normalize cosine_similarity cosine_embedding_loss cross_entropy "
    "sparse_categorical_crossentropy nll_loss binary_crossentropy_logits binary_cross_entropy_with_logits l1_loss "
    "mse_loss huber_loss smooth_l1_loss kl_div poisson_nll_loss gaussian_nll_loss margin_ranking_loss "
    "hinge_embedding_loss multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss soft_margin_loss "
    "triplet_margin_loss triplet_margin_with_distance_loss ctc_loss var std var_mean std_mean".split()
)
"""What is computed in float32 at least: sums, powers, exponentials, norms, losses."""
REFUSED = frozenset(("binary_crossentropy", "binary_cross_entropy"))
"""Logarithms of probabilities that 16 bits have rounded to 0 or 1."""
HOST_LOW = LOW - {"dot", "mv", "addmv", "addr"} | {"vecdot", "conv_tbc"}
"""As :data:`LOW`, for ``device_type="cpu"``."""
HOST_WIDE = frozenset(
    "prod trace quantile nanquantile cdist stft polar cholesky cholesky_ex cholesky_inverse cholesky_solve inverse inv "
    "inv_ex pinverse lu lu_solve geqrf ormqr orgqr householder_product qr svd svdvals eig eigh eigvals eigvalsh solve "
    "solve_ex lstsq cond matrix_rank tensorinv tensorsolve triangular_solve grid_sample pad avg_pool3d "
    "adaptive_avg_pool3d max_pool3d adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d max_unpool1d "
    "max_unpool2d max_unpool3d l1_loss mse_loss huber_loss smooth_l1_loss kl_div cross_entropy "
    "sparse_categorical_crossentropy nll_loss linear_cross_entropy cosine_embedding_loss hinge_embedding_loss "
    "poisson_nll_loss margin_ranking_loss soft_margin_loss triplet_margin_loss multi_margin_loss "
    "multilabel_margin_loss ctc_loss binary_crossentropy binary_cross_entropy binary_crossentropy_logits "
    "binary_cross_entropy_with_logits svd_lowrank pca_lowrank".split()
)
"""As :data:`WIDE`, for ``device_type="cpu"``: decompositions, pools of volumes, losses; no sums, no powers."""
NAMES = LOW | WIDE | REFUSED | HOST_LOW | HOST_WIDE | frozenset(
    "embedding_bag avg_pool1d avg_pool2d nanmean det logdet slogdet matrix_exp lobpcg".split()
)
"""What is in a list, and what is made of operations that are: these, and what the other list has, are computed as they
are without autocast."""


_HOST = "CPU"
_COPYING = frozenset(("reflect", "replicate", "symmetric", "edge"))  # modes of pad that are in a list


def autocast(
    cls: type[Base], device_type: str | None = None, dtype: DType | str | None = None, enabled: bool = True,
    cache_enabled: bool | None = None,
) -> Switch:  # fmt: skip
    """A ``with`` block (or decorator) in which products and convolutions are computed in 16 bits.

    Operations cast their operands: products and convolutions to ``dtype``; sums, powers, exponentials, norms, softmax
    and losses to float32; elsewhere dtypes meet as always. These are PyTorch's lists for cards; for a ``device_type``
    "cpu" they are its others: losses, decompositions and pools of volumes in float32, while sums, powers, exponentials,
    norms and softmax keep the dtype that they are given. Float64 stays as it is. Gradients flow through the casts,
    and have the dtype of what they belong to: parameters stay in float32. A TinyJit that was recorded in another
    precision raises an error. ``backward`` belongs behind the block.

    Args:
      device_type: cast only tensors there, "CUDA" for instance; all of them if not given. A dtype may stand here, too.
      dtype: float16 or bfloat16; if not given, float16 for a ``device_type`` "cuda", else bfloat16.
      enabled: False for a block in which nothing is cast, inside another.
      cache_enabled: accepted, and without effect: casts are part of the kernels.

    Raises:
      ValueError: if ``dtype`` is no float of 16 bits.
      TypeError: if the device is no name.

    Example:
      >>> from tg_frontend import Tensor
      >>> x, w = Tensor.ones(2, 3), Tensor.ones(3, 4)
      >>> with Tensor.autocast(dtype="bfloat16"):
      ...     y = x @ w
      ...     print(y.dtype.name, y.softmax().dtype.name, (y + x.sum(1, True)).dtype.name)
      bfloat16 float32 float32
      >>> (x @ w).dtype.name
      'float32'
    """
    if dtype is None and (isinstance(device_type, DType) or hasattr(dtypes, str(device_type))):
        device_type, dtype = None, device_type
    if device_type is not None and not isinstance(device_type, str):
        raise TypeError(f"autocast: device_type is the name of a device, got a {type(device_type).__name__}")
    if not enabled:
        return Switch(MODE, "precision", None)
    device = None if device_type is None else str(device_type).partition(":")[0].upper()
    kind = to_dtype(dtype) if dtype is not None else dtypes.float16 if device == "CUDA" else dtypes.bfloat16
    if kind not in (dtypes.float16, dtypes.bfloat16):
        raise ValueError(f"autocast: float16 or bfloat16 is wanted, got {kind.name}")
    return Switch(MODE, "precision", Precision(kind, device))


def _cast(value: Any, precision: Precision, wanted: DType) -> Any:
    if isinstance(value, Base):
        kind = value.dtype
        fits = kind.kind == "float" and kind.itemsize <= 4 and kind is not wanted
        there = precision.device is None or value.device.partition(":")[0] == precision.device
        if not fits or not there or (wanted is dtypes.float32 and kind.itemsize != 2):
            return value
        return value.cast(wanted)  # type: ignore[attr-defined]
    if type(value) in (list, tuple):
        return type(value)(_cast(part, precision, wanted) for part in value)
    return value


def _unlisted(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call is not what is in the lists by that name."""
    if name == "dot":  # of two vectors: in the wider of their dtypes, as PyTorch has it
        return all(getattr(value, "ndim", 0) == 1 for value in args)
    if name == "einsum":  # of one tensor: no product
        return sum(isinstance(value, Base) for value in args) == 1
    return name == "pad" and not any(type(one) is str and one in _COPYING for one in (*args, *kwargs.values()))


def adapting(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function whose operands are cast under :func:`autocast` as its name says."""

    def method(*args: Any, **kwargs: Any) -> Any:
        precision = MODE.precision
        if precision is None:
            return function(*args, **kwargs)
        host = precision.device == _HOST
        low, wide = name in (HOST_LOW if host else LOW), name in (HOST_WIDE if host else WIDE)
        if not host and name in REFUSED:
            raise RuntimeError(
                f"{name}: under autocast probabilities may have been rounded to 0 or 1: take the logits and "
                "binary_cross_entropy_with_logits, or a block of autocast(enabled=False)"
            )
        wanted = precision.dtype if low else dtypes.float32
        if not (low or wide) or _unlisted(name, args, kwargs):
            with Switch(MODE, "precision", None):
                return function(*args, **kwargs)
        args = tuple([_cast(value, precision, wanted) for value in args])
        kwargs = {key: _cast(value, precision, wanted) for key, value in kwargs.items()}
        with Switch(MODE, "precision", None):
            return function(*args, **kwargs)

    WRAPPERS.add(method.__code__)
    return update_wrapper(method, function)


def adapted(kind: C) -> C:
    """A class whose methods of these names are :func:`adapting`."""
    for name in NAMES:
        if hasattr(kind, name):
            found = getattr_static(kind, name)
            wrap = type(found) if isinstance(found, (classmethod, staticmethod)) else None
            method = adapting(found.__func__ if wrap else found, name)
            setattr(kind, name, wrap(method) if wrap else method)
    return kind


def adapted_names(module: dict[str, Any], names: Sequence[str], every: bool = False) -> None:
    """Makes those functions of a module :func:`adapting` that are in a list; or all that are named."""
    for name in names:
        if every or name in NAMES:
            module[name] = adapting(module[name], name)
