"""Which settings the text of a layer shows, and in which order: those of PyTorch's layers.

Names stand in order. One with ``*`` before it is shown without its name; one with ``?`` behind it only where it is not
what it is by default; one with ``!`` behind it as Python writes it, in quotes if it is a word. Source: ``extra_repr``
of the layers of PyTorch 2.13.
"""

_CONVOLUTION = (
    "*in_channels *out_channels kernel_size stride padding? dilation? output_padding? groups? bias? padding_mode?"
)
_RUNNING = "*num_features eps momentum affine bias track_running_stats"
_CELL = "*input_size *hidden_size bias? nonlinearity?"
_RECURRENT = "*input_size *hidden_size proj_size? num_layers? bias? batch_first? dropout? bidirectional?"
_TABLE = "*num_embeddings *embedding_dim"
_GROUPS = {
    _CONVOLUTION: "Conv",
    _RUNNING: "BatchNorm InstanceNorm1d",
    _RECURRENT: "RNNBase",
    _CELL: "RNNCell",
    "*input_size *hidden_size bias?": "GRUCell LSTMCell",
    "in_features out_features bias": "Linear",
    "in1_features in2_features out_features bias": "Bilinear",
    "*num_groups *num_channels eps affine bias": "GroupNorm",
    "*normalized_shape eps elementwise_affine bias": "LayerNorm",
    "*normalized_shape eps elementwise_affine": "RMSNorm",
    "*size alpha beta k": "LocalResponseNorm CrossMapLRN2d",
    "kernel_size stride padding dilation ceil_mode": "MaxPool1d MaxPool2d MaxPool3d",
    "kernel_size stride padding": "MaxUnpool1d MaxUnpool2d MaxUnpool3d AvgPool1d AvgPool2d AvgPool3d",
    "norm_type kernel_size stride ceil_mode": "LPPool1d LPPool2d LPPool3d",
    "output_size": "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d "
    "AdaptiveMaxPool3d",
    "": "FractionalMaxPool2d FractionalMaxPool3d",
    "p inplace": "Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout",
    "inplace?": "ReLU ReLU6 SELU SiLU Mish",
    "alpha inplace?": "ELU CELU",
    "threshold value inplace?": "Threshold",
    "lower upper inplace?": "RReLU",
    "min_val max_val inplace?": "Hardtanh",
    "negative_slope inplace?": "LeakyReLU",
    "beta threshold": "Softplus",
    "*lambd": "Hardshrink Softshrink",
    "num_parameters": "PReLU",
    "dim": "GLU Softmin Softmax LogSoftmax",
    "approximate!": "GELU",
    "padding value": "ConstantPad1d ConstantPad2d ConstantPad3d",
    "*padding": "Pad",
    f"{_TABLE} padding_idx? max_norm? norm_type? scale_grad_by_freq? sparse?": "Embedding",
    f"{_TABLE} max_norm? norm_type? scale_grad_by_freq? mode! padding_idx?": "EmbeddingBag",
    "scale_factor? size? mode!": "Upsample",
    "upscale_factor": "PixelShuffle",
    "downscale_factor": "PixelUnshuffle",
    "groups": "ChannelShuffle",
    "start_dim end_dim": "Flatten",
    "dim unflattened_size": "Unflatten",
    "output_size kernel_size dilation padding stride": "Fold",
    "kernel_size dilation padding stride": "Unfold",
}
SHOWN = {name: spec for spec, names in _GROUPS.items() for name in names.split()}
"""By the name of a class; those that inherit from it are shown alike."""
