"""Tools for gradients, parameters and sequences, by the names of ``torch.nn.utils``."""

from ..absent import refusing
from ..clipping import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from . import parametrizations, parametrize, prune, rnn, stateless
from .fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
    skip_init,
)
from .parameters import (
    parameters_to_vector,
    remove_spectral_norm,
    remove_weight_norm,
    spectral_norm,
    vector_to_parameters,
    weight_norm,
)

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "fuse_conv_bn_eval",
    "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights", "get_total_norm", "parameters_to_vector",
    "parametrizations", "parametrize", "prune",
    "remove_spectral_norm", "remove_weight_norm", "rnn", "skip_init", "spectral_norm", "stateless",
    "vector_to_parameters", "weight_norm",
]  # fmt: skip

TYPE_CHECKING = False
if not TYPE_CHECKING:  # who checks types is to see that a name is not there
    __getattr__ = refusing("nn.utils")
