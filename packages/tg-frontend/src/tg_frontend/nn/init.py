"""How parameters begin, by the names of ``torch.nn.init``: each writes to a tensor and returns it."""

from __future__ import annotations

import math

from ..autograd.differentiation import MODE, Switch
from ..host.transfer import number_of
from ..linalg import qr
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_",
    "orthogonal_", "sparse_", "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_",
]  # fmt: skip

_GAINS = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}


def _written(tensor: Tensor, value: Any) -> Tensor:
    with Switch(MODE, "recording", False):
        tensor.assign(value.cast(tensor.dtype) if isinstance(value, Tensor) else value)
    return tensor


def _normal(tensor: Tensor, mean: float, std: float) -> Tensor:
    return _written(tensor, Tensor.normal(*tensor.shape, mean=mean, std=std, device=tensor.device))


def _fans(tensor: Tensor, what: str) -> tuple[int, int]:
    """Over how many inputs an output sums, and into how many outputs an input goes."""
    if tensor.ndim < 2:
        raise ValueError(f"{what}: a tensor of shape {tensor.shape}; two axes at least are wanted")
    window = math.prod(int(size) for size in tensor.shape[2:])
    return int(tensor.shape[1]) * window, int(tensor.shape[0]) * window


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """What the functions here count, by the name under which PyTorch's programs take it though it is private."""
    return _fans(tensor, "_calculate_fan_in_and_fan_out")


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By which the deviation of weights is multiplied before a nonlinearity.

    Args:
      nonlinearity: "linear", "conv2d" and the like, "sigmoid", "tanh", "relu", "leaky_relu" or "selu".
      param: the slope of "leaky_relu"; 0.01 if not given.

    Raises:
      ValueError: if there is no such nonlinearity, or the slope is no number.

    Example:
      >>> from tg_frontend import nn
      >>> round(nn.init.calculate_gain("leaky_relu", 0.2), 4)
      1.3868
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else number_of(param)
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"calculate_gain: the slope of leaky_relu is a number, got {param!r}")
        return math.sqrt(2 / (1 + slope**2))
    if nonlinearity in _GAINS or nonlinearity.startswith("conv"):
        return _GAINS.get(nonlinearity, 1.0)
    raise ValueError(f"calculate_gain: no nonlinearity {nonlinearity!r}; there are leaky_relu, {', '.join(_GAINS)}")


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Numbers drawn uniformly between two bounds.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> bool((nn.init.uniform_(Tensor.zeros(99), 2.0, 3.0) >= 2).all().item())
      True
    """
    return _written(tensor, Tensor.uniform(*tensor.shape, low=a, high=b, device=tensor.device))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Numbers drawn from a normal distribution.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.init.normal_(Tensor.zeros(2), mean=3.0, std=0.0)
      Tensor([3., 3.])
    """
    return _normal(tensor, mean, std)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: None = None
) -> Tensor:
    """Numbers drawn from a normal distribution, without those outside of two bounds.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> bool((nn.init.trunc_normal_(Tensor.zeros(99), a=-0.5, b=0.5).abs() <= 0.5).all().item())
      True
    """
    low, high = ((1 + math.erf((bound - mean) / std / math.sqrt(2))) / 2 for bound in (a, b))
    drawn = Tensor.uniform(*tensor.shape, low=2 * low - 1, high=2 * high - 1, device=tensor.device)
    return _written(tensor, (drawn.erfinv() * (std * math.sqrt(2)) + mean).clip(a, b))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One number everywhere.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.init.constant_(Tensor.zeros(2), 0.5)
      Tensor([0.5, 0.5])
    """
    return _written(tensor, tensor.detach().full_like(val))


def ones_(tensor: Tensor) -> Tensor:
    """Ones.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.init.ones_(Tensor.zeros(2))
      Tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.init.zeros_(Tensor.ones(2))
      Tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """The identity, as far as it goes: of a matrix.

    Raises:
      ValueError: if the tensor is no matrix.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.init.eye_(Tensor.zeros(2, 3))
      Tensor([[1., 0., 0.],
              [0., 1., 0.]])
    """
    if tensor.ndim != 2:
        raise ValueError(f"eye_: a tensor of shape {tensor.shape} is no matrix")
    rows, columns = (int(size) for size in tensor.shape)
    return _written(tensor, Tensor.eye(rows, columns, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Weights of a convolution that gives its input, as far as there are channels.

    Raises:
      ValueError: if the tensor has not 3 to 5 axes, or the groups do not divide its first.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.init.dirac_(Tensor.zeros(1, 1, 3))
      Tensor([[[0., 1., 0.]]])
    """
    if tensor.ndim not in (3, 4, 5) or int(tensor.shape[0]) % groups:
        raise ValueError(f"dirac_: a tensor of shape {tensor.shape} for {groups} groups")
    outputs, inputs, *window = (int(size) for size in tensor.shape)
    each = outputs // groups
    flat = Tensor.eye(each, inputs, device=tensor.device).repeat(groups, 1)
    middle = [(size // 2, size - size // 2 - 1) for size in window]
    return _written(tensor, flat.reshape(outputs, inputs, *(1,) * len(window)).pad([None, None, *middle]))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: None = None) -> Tensor:
    """Uniform within gain * sqrt(6 / (fan in + fan out)) (Glorot and Bengio, 2010).

    Raises:
      ValueError: if the tensor has fewer than 2 axes.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> bool((nn.init.xavier_uniform_(Tensor.zeros(2, 4)).abs() <= 1).all().item())
      True
    """
    inputs, outputs = _fans(tensor, "xavier_uniform_")
    bound = gain * math.sqrt(6 / (inputs + outputs))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: None = None) -> Tensor:
    """Normal of deviation gain * sqrt(2 / (fan in + fan out)) (Glorot and Bengio, 2010).

    Raises:
      ValueError: if the tensor has fewer than 2 axes.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.init.xavier_normal_(Tensor.zeros(2, 4)).shape
      (2, 4)
    """
    inputs, outputs = _fans(tensor, "xavier_normal_")
    return _normal(tensor, 0.0, gain * math.sqrt(2 / (inputs + outputs)))


def _deviation(tensor: Tensor, a: float, mode: str, nonlinearity: str, what: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"{what}: mode {mode!r}; there are fan_in and fan_out")
    return calculate_gain(nonlinearity, a) / math.sqrt(_fans(tensor, what)[mode == "fan_out"])


def kaiming_uniform_(
    tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: None = None
) -> Tensor:
    """Uniform within gain * sqrt(3 / fan) (He et al., 2015).

    Args:
      a: the slope of "leaky_relu".
      mode: "fan_in" keeps the variance of values, "fan_out" that of gradients.
      nonlinearity: see :func:`calculate_gain`.

    Raises:
      ValueError: if the tensor has fewer than 2 axes, or there is no such mode or nonlinearity.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> bool((nn.init.kaiming_uniform_(Tensor.zeros(2, 6)).abs() <= 1).all().item())
      True
    """
    bound = math.sqrt(3) * _deviation(tensor, a, mode, nonlinearity, "kaiming_uniform_")
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(
    tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: None = None
) -> Tensor:
    """Normal of deviation gain / sqrt(fan) (He et al., 2015). See :func:`kaiming_uniform_`.

    Raises:
      ValueError: if the tensor has fewer than 2 axes, or there is no such mode or nonlinearity.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.init.kaiming_normal_(Tensor.zeros(2, 6), mode="fan_out").shape
      (2, 6)
    """
    return _normal(tensor, 0.0, _deviation(tensor, a, mode, nonlinearity, "kaiming_normal_"))


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: None = None) -> Tensor:
    """Rows, or columns if there are fewer, at right angles and of length ``gain`` (Saxe et al., 2014).

    All axes but the first count as columns.

    Raises:
      ValueError: if the tensor has fewer than 2 axes.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> w = nn.init.orthogonal_(Tensor.zeros(2, 3))
      >>> bool((w @ w.T).allclose(Tensor.eye(2), atol=1e-5))
      True
    """
    if tensor.ndim < 2:
        raise ValueError(f"orthogonal_: a tensor of shape {tensor.shape}; two axes at least are wanted")
    rows = int(tensor.shape[0])
    columns = int(tensor.numel()) // max(1, rows)
    if not rows * columns:
        return tensor
    drawn = Tensor.randn(max(rows, columns), min(rows, columns), device=tensor.device)
    q, r = qr(drawn)
    q = q * r.diagonal().sign()  # else the distribution would be that of the algorithm
    return _written(tensor, (q if rows >= columns else q.T).reshape(tensor.shape) * gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: None = None) -> Tensor:
    """Normal, but for a share of each column that is 0 (Martens, 2010).

    Raises:
      ValueError: if the tensor is no matrix.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> (nn.init.sparse_(Tensor.zeros(10, 3), 0.25) == 0).sum(0)
      Tensor([3, 3, 3], dtype=int64)
    """
    if tensor.ndim != 2:
        raise ValueError(f"sparse_: a tensor of shape {tensor.shape} is no matrix")
    rows = int(tensor.shape[0])
    order = Tensor.rand(*tensor.shape, device=tensor.device).argsort(0).argsort(0)
    drawn = Tensor.normal(*tensor.shape, mean=0.0, std=std, device=tensor.device)
    return _written(tensor, (order < math.ceil(sparsity * rows)).where(0, drawn))


if not TYPE_CHECKING:  # who checks types is to see that a name is not there

    def __getattr__(name: str) -> Callable[..., Tensor]:
        """PyTorch's older names, without an underscore."""
        if f"{name}_" in __all__:
            from warnings import warn

            warn(f"nn.init.{name} is an older name of nn.init.{name}_", FutureWarning, stacklevel=2)
            found: Callable[..., Tensor] = globals()[f"{name}_"]
            return found
        raise AttributeError(f"module 'tg_frontend.nn.init' has no attribute {name!r}")
