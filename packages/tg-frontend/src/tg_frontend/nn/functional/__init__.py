"""Functions of neural networks by PyTorch's names and signatures: ``import tinytg.nn.functional as F``.

Those that are methods of Tensor with the same arguments are these methods;
others take PyTorch's order (:mod:`.ordered`).
"""

from ...array.movement import pad
from ...domains import BOTH
from ...keywords import offered
from ...ops.activation import (
    celu,
    elu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    logsigmoid,
    mish,
    prelu,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softshrink,
    softsign,
    tanhshrink,
    threshold,
)
from ...ops.attention import scaled_dot_product_attention
from ...ops.autocast import adapted_names
from ...ops.convolution import conv1d, conv3d, conv_transpose1d, conv_transpose3d
from ...ops.elementary import tanh
from ...ops.gather_scatter import one_hot
from ...ops.loss import nll_loss
from ...ops.normalization import normalize
from ...ops.pooling import max_pool1d, max_pool3d, max_unpool1d, max_unpool3d
from ...ops.ranking import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_soft_margin_loss,
    soft_margin_loss,
    triplet_margin_loss,
)
from ...ops.regression import gaussian_nll_loss, huber_loss, kl_div, l1_loss, mse_loss, poisson_nll_loss, smooth_l1_loss
from ...ops.shuffle import channel_shuffle, pixel_shuffle, pixel_unshuffle
from ...ops.similarity import cosine_similarity, pairwise_distance, pdist
from .absent import refused
from .adaptive import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
)
from .arranged import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    conv2d,
    conv_transpose2d,
    cross_entropy,
    gelu,
    linear,
    log_softmax,
    max_pool2d,
    max_unpool2d,
    softmax,
    softmin,
    softplus,
)
from .attention import multi_head_attention_forward
from .columns import fold, unfold
from .dropping import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
    gumbel_softmax,
    rrelu,
)
from .fractional import fractional_max_pool2d, fractional_max_pool3d
from .grids import affine_grid, grid_sample
from .grouped import grouped_mm
from .indexed import (
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d_with_indices,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d_with_indices,
    max_pool1d_with_indices,
    max_pool2d_with_indices,
    max_pool3d_with_indices,
)
from .lookup import bilinear, embedding, embedding_bag
from .losses import ctc_loss, linear_cross_entropy, multilabel_margin_loss, triplet_margin_with_distance_loss
from .normalization import batch_norm, group_norm, instance_norm, layer_norm, local_response_norm, rms_norm
from .ordered import ORDERS, arrange
from .resampling import interpolate, upsample, upsample_bilinear, upsample_nearest
from .scaled import ScalingType, SwizzleType, scaled_mm
from .sequences import conv_tbc
from .written import celu_, elu_, hardtanh_, leaky_relu_, relu_, rrelu_, selu_, threshold_

__all__ = [
    "ScalingType",
    "SwizzleType",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "affine_grid",
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "celu_",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "ctc_loss",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "elu_",
    "embedding",
    "embedding_bag",
    "feature_alpha_dropout",
    "fold",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "gaussian_nll_loss",
    "gelu",
    "glu",
    "grid_sample",
    "group_norm",
    "grouped_mm",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "leaky_relu_",
    "linear",
    "linear_cross_entropy",
    "local_response_norm",
    "log_softmax",
    "logsigmoid",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "mish",
    "mse_loss",
    "multi_head_attention_forward",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "pdist",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson_nll_loss",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rms_norm",
    "rrelu",
    "rrelu_",
    "scaled_dot_product_attention",
    "scaled_mm",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

arrange(globals())
_OFFERED = [name for name in __all__ if name not in ORDERS and name not in ("ScalingType", "SwizzleType")]
_NUMBERS = {
    **dict.fromkeys("linear conv2d conv_transpose2d bilinear".split(), "any"),
    **dict.fromkeys("softmax softmin log_softmax fold unfold rms_norm".split(), "any"),
    # those that are methods
    **{name: "both" for name in _OFFERED if name in BOTH and ".nn." not in globals()[name].__module__},
}
offered(globals(), _OFFERED, "functional", _NUMBERS)
adapted_names(globals(), __all__)

TYPE_CHECKING = False
if not TYPE_CHECKING:  # who checks types is to see that a name is not there
    __getattr__ = refused
