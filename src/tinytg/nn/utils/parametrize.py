"""Tensors of layers that are computed from others; see :mod:`tg_frontend.nn.utils.parametrize`."""

from tg_frontend.nn.utils.parametrize import (
    ParametrizationList,
    cached,
    is_parametrized,
    register_parametrization,
    remove_parametrizations,
    transfer_parametrizations_and_params,
    type_before_parametrizations,
)

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

TYPE_CHECKING = False
if not TYPE_CHECKING:
    from tg_frontend.nn.utils.parametrize import __getattr__  # noqa: F401
