"""Tools for parameters and sequences; see :mod:`tg_frontend.nn.utils`."""

from tg_frontend.nn.utils import (
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
    get_total_norm,
    parameters_to_vector,
    remove_spectral_norm,
    remove_weight_norm,
    skip_init,
    spectral_norm,
    vector_to_parameters,
    weight_norm,
)

from . import parametrizations, parametrize, prune, rnn, stateless

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]

TYPE_CHECKING = False
if not TYPE_CHECKING:
    from tg_frontend.nn.utils import __getattr__  # noqa: F401
