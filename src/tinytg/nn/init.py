"""How parameters begin; see :mod:`tg_frontend.nn.init`."""

from tg_frontend.nn.init import (
    _calculate_fan_in_and_fan_out,  # noqa: F401
    calculate_gain,
    constant_,
    dirac_,
    eye_,
    kaiming_normal_,
    kaiming_uniform_,
    normal_,
    ones_,
    orthogonal_,
    sparse_,
    trunc_normal_,
    uniform_,
    xavier_normal_,
    xavier_uniform_,
    zeros_,
)

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

TYPE_CHECKING = False
if not TYPE_CHECKING:
    from tg_frontend.nn.init import __getattr__  # noqa: F401
