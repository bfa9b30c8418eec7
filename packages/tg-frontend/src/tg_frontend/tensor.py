"""Tensor: the class that a person uses. Its table of contents: every operation, by subject.

To add an operation, write a function of an :class:`~tg_frontend.array.Array` in the module of its subject in
``tg_frontend.ops``, and a line here; its arguments, docstring and examples come with it.
"""

from __future__ import annotations

from . import ops
from .array import (
    Array,
    arithmetic,
    bits,
    casts,
    comparison,
    computing,
    division,
    joining,
    movement,
    operands,
    pairs,
    power,
    selection,
)
from .complex import complex_class
from .constructor import constructor
from .domains import NUMBERS
from .fourier import spectra
from .interchange import exchange, namespace, web
from .keywords import public
from .ops.autocast import adapted
from .ops.in_place import in_place, view_in_place
from .special import error, gamma, incomplete_gamma, modified_bessel, tapers

TYPE_CHECKING = False


@adapted
@public
class Tensor(Array):
    """A multi-dimensional array whose elements are computed when they are asked for.

    Args:
      data: a number; nested lists or tuples of numbers; a numpy array, which is copied; bytes or a memoryview of
        elements of ``dtype`` (uint8 if it is not given); a ``pathlib.Path``, whose file is read when it is asked for,
        likewise; a ``LazyBuffer``; None for no elements.
      device: where the elements live, the default device if not given; of a path, its file.
      dtype: a dtype or its name. If not given: of numbers by kind, of arrays their own.
      requires_grad: whether ``backward`` gives this tensor a ``grad``; None leaves it open: an optimiser may decide.

    Attributes:
      lazydata: the graph of this tensor.
      requires_grad: see above.
      grad: what ``backward`` has added up, or None.
      training: of the class: whether layers behave as in training; see :meth:`train`.

    Raises:
      ValueError: if the lists are ragged, or the bytes no whole number of elements.
      OSError: if a file cannot be read.
      TypeError: if the data is something else; or a gradient is wanted of integers.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([[1.0, 2.0], [3.0, 4.0]])
      >>> (x + 1).sum(axis=0)
      Tensor([6., 8.])
    """

    __slots__ = ()

    _numbers = NUMBERS

    # *** creation ***

    empty = constructor(ops.creation.empty)
    full = constructor(ops.creation.full)
    zeros = constructor(ops.creation.zeros)
    ones = constructor(ops.creation.ones)
    arange = constructor(ops.ranges.arange)
    linspace = constructor(ops.ranges.linspace)
    scalar_tensor = constructor(ops.creation.scalar_tensor)
    eye = constructor(ops.creation.eye)
    full_like = ops.creation.full_like
    const_like = ops.creation.const_like
    zeros_like = ops.creation.zeros_like
    ones_like = ops.creation.ones_like
    empty_like = ops.creation.empty_like
    meshgrid = ops.creation.meshgrid
    logspace = constructor(ops.ranges.logspace)
    tril_indices = constructor(ops.creation.tril_indices)
    triu_indices = constructor(ops.creation.triu_indices)
    new = ops.new.new
    new_empty = ops.new.new_empty
    new_tensor = ops.new.new_tensor
    new_zeros = ops.new.new_zeros
    new_ones = ops.new.new_ones
    new_full = ops.new.new_full
    fill = ops.filling.fill
    fill_ = ops.filling.fill_
    zero_ = ops.filling.zero_
    one_hot = ops.gather_scatter.one_hot
    bartlett_window = constructor(tapers.bartlett_window)
    blackman_window = constructor(tapers.blackman_window)
    hamming_window = constructor(tapers.hamming_window)
    hann_window = constructor(tapers.hann_window)
    kaiser_window = constructor(tapers.kaiser_window)

    # *** complex numbers ***

    polar = ops.complex_numbers.polar
    view_as_complex = pairs.view_as_complex
    view_as_real = ops.complex_numbers.view_as_real
    is_complex = ops.complex_numbers.is_complex
    is_conj = ops.complex_numbers.is_conj
    isreal = ops.complex_numbers.isreal
    conj = ops.complex_numbers.conj
    conj_physical = ops.complex_numbers.conj_physical
    resolve_conj = ops.complex_numbers.resolve_conj
    is_neg = ops.complex_numbers.is_neg
    resolve_neg = ops.complex_numbers.resolve_neg
    angle = ops.complex_numbers.angle
    sgn = ops.complex_numbers.sgn
    _complex_class = classmethod(complex_class)

    # *** random numbers ***

    manual_seed = staticmethod(ops.random.manual_seed)
    get_rng_state = constructor(ops.random.get_rng_state)
    set_rng_state = staticmethod(ops.random.set_rng_state)
    rand = constructor(ops.random.rand)
    uniform = constructor(ops.random.uniform)
    randn = constructor(ops.random.randn)
    normal = constructor(ops.random.normal)
    randint = constructor(ops.random.randint)
    rand_like = ops.random.rand_like
    randn_like = ops.random.randn_like
    randint_like = ops.random.randint_like
    scaled_uniform = constructor(ops.initialization.scaled_uniform)
    glorot_uniform = constructor(ops.initialization.glorot_uniform)
    kaiming_uniform = constructor(ops.initialization.kaiming_uniform)
    kaiming_normal = constructor(ops.initialization.kaiming_normal)
    randperm = constructor(ops.sampling.randperm)
    multinomial = ops.sampling.multinomial
    dropout = ops.sampling.dropout
    bernoulli = ops.sampling.bernoulli
    exponential = ops.distributions.exponential
    cauchy = ops.distributions.cauchy
    geometric = ops.distributions.geometric
    log_normal = ops.distributions.log_normal
    poisson = ops.poisson.poisson
    binomial = ops.binomial.binomial
    exponential_ = ops.distributions.exponential_
    cauchy_ = ops.distributions.cauchy_
    geometric_ = ops.distributions.geometric_
    log_normal_ = ops.distributions.log_normal_
    normal_ = ops.distributions.normal_
    uniform_ = ops.distributions.uniform_
    bernoulli_ = ops.distributions.bernoulli_
    random_ = ops.distributions.random_

    # *** row-sparse tensors ***

    coalesce = ops.row_sparse.coalesce
    indices = ops.row_sparse.indices
    values = ops.row_sparse.values
    is_coalesced = ops.row_sparse.is_coalesced
    to_dense = ops.row_sparse.to_dense

    # *** what a tensor is ***

    dim = ops.describing.dim
    nelement = ops.describing.nelement
    stride = ops.describing.stride
    storage_offset = ops.describing.storage_offset
    is_contiguous = ops.describing.is_contiguous
    is_same_size = ops.describing.is_same_size
    is_floating_point = ops.describing.is_floating_point
    is_signed = ops.describing.is_signed
    is_nonzero = ops.describing.is_nonzero
    get_device = ops.describing.get_device
    cpu = ops.describing.cpu
    cuda = ops.describing.cuda
    to_device = ops.describing.to_device

    # *** movement ***

    repeat = ops.repetition.repeat
    repeat_interleave = ops.repetition.repeat_interleave
    roll = ops.repetition.roll
    rearrange = ops.rearrange.rearrange
    unfold = ops.windows.unfold
    diagonal = ops.diagonal.diagonal
    diag = ops.diagonal.diag
    diag_embed = ops.diagonal.diag_embed
    diagflat = ops.diagonal.diagflat
    tril = ops.diagonal.tril
    triu = ops.diagonal.triu
    movedim = ops.axes.movedim
    ravel = ops.axes.ravel
    t = ops.axes.t
    broadcast_tensors = ops.axes.broadcast_tensors
    narrow = ops.axes.narrow
    select = ops.axes.select
    expand_as = ops.axes.expand_as
    view_as = ops.axes.view_as
    reshape_as = ops.axes.reshape_as
    type_as = ops.axes.type_as
    result_type = operands.result_type
    broadcast_to = ops.axes.broadcast_to
    tile = ops.axes.tile
    flipud = ops.axes.flipud
    fliplr = ops.axes.fliplr
    rot90 = ops.axes.rot90
    atleast_1d = ops.axes.atleast_1d
    atleast_2d = ops.axes.atleast_2d
    atleast_3d = ops.axes.atleast_3d
    hstack = ops.joined.hstack
    vstack = ops.joined.vstack
    dstack = ops.joined.dstack
    column_stack = ops.joined.column_stack
    tensor_split = ops.joined.tensor_split
    hsplit = ops.joined.hsplit
    vsplit = ops.joined.vsplit
    dsplit = ops.joined.dsplit
    block_diag = ops.joined.block_diag
    cartesian_prod = ops.combinatorics.cartesian_prod
    combinations = ops.combinatorics.combinations
    vander = ops.combinatorics.vander
    pixel_shuffle = ops.shuffle.pixel_shuffle
    pixel_unshuffle = ops.shuffle.pixel_unshuffle
    channel_shuffle = ops.shuffle.channel_shuffle
    diagonal_copy = ops.copies.diagonal_copy
    expand_copy = ops.copies.expand_copy
    narrow_copy = ops.copies.narrow_copy
    permute_copy = ops.copies.permute_copy
    squeeze_copy = ops.copies.squeeze_copy
    t_copy = ops.copies.t_copy
    transpose_copy = ops.copies.transpose_copy
    unfold_copy = ops.copies.unfold_copy
    unsqueeze_copy = ops.copies.unsqueeze_copy
    view_copy = ops.copies.view_copy
    unbind_copy = ops.copies.unbind_copy
    split_with_sizes_copy = ops.copies.split_with_sizes_copy
    as_strided = ops.strided.as_strided
    as_strided_scatter = ops.strided.as_strided_scatter

    # *** indexing and selection ***

    __getitem__ = ops.indexing.__getitem__
    __iter__ = ops.indexing.__iter__
    __setitem__ = ops.index_writing.__setitem__
    gather = ops.gather_scatter.gather
    scatter = ops.gather_scatter.scatter
    scatter_add = ops.gather_scatter.scatter_add
    scatter_reduce = ops.gather_scatter.scatter_reduce
    embedding = ops.row_sparse.embedding
    index_select = ops.lookup.index_select
    take = ops.lookup.take
    take_along_dim = ops.lookup.take_along_dim
    put = ops.slice_update.put
    masked_scatter = ops.slice_update.masked_scatter
    select_scatter = ops.slice_update.select_scatter
    slice_scatter = ops.slice_update.slice_scatter
    diagonal_scatter = ops.slice_update.diagonal_scatter
    index_add = ops.index_update.index_add
    index_copy = ops.index_update.index_copy
    index_fill = ops.index_update.index_fill
    index_put = ops.index_update.index_put
    index_reduce = ops.index_update.index_reduce
    bincount = ops.histogram.bincount
    histc = ops.histogram.histc
    histogram = ops.histogram.histogram
    histogramdd = ops.histogram.histogramdd
    masked_select = ops.selection.masked_select
    nonzero = ops.selection.nonzero
    nonzero_static = ops.selection.nonzero_static
    unravel_index = ops.flat_positions.unravel_index
    ravel_multi_index = ops.flat_positions.ravel_multi_index
    broadcast_shapes = staticmethod(ops.flat_positions.broadcast_shapes)

    # *** elementary functions ***

    sign = ops.elementary.sign
    square = ops.elementary.square
    sqrt = ops.elementary.sqrt
    rsqrt = ops.elementary.rsqrt
    exp = ops.elementary.exp
    exp2 = ops.elementary.exp2
    log = ops.elementary.log
    log2 = ops.elementary.log2
    log10 = ops.elementary.log10
    expm1 = ops.elementary.expm1
    log1p = ops.elementary.log1p
    sin = ops.elementary.sin
    cos = ops.elementary.cos
    tan = ops.elementary.tan
    asin = ops.elementary.asin
    acos = ops.elementary.acos
    atan = ops.elementary.atan
    atan2 = ops.elementary.atan2
    sinh = ops.elementary.sinh
    cosh = ops.elementary.cosh
    tanh = ops.elementary.tanh
    asinh = ops.elementary.asinh
    acosh = ops.elementary.acosh
    atanh = ops.elementary.atanh
    erf = ops.special.erf
    erfc = ops.special.erfc
    hypot = ops.special.hypot
    sinc = ops.special.sinc
    logit = ops.special.logit
    xlogy = ops.special.xlogy
    lgamma = gamma.lgamma
    digamma = gamma.digamma
    polygamma = gamma.polygamma
    mvlgamma = gamma.mvlgamma
    igamma = incomplete_gamma.igamma
    igammac = incomplete_gamma.igammac
    erfinv = error.erfinv
    i0 = modified_bessel.i0
    deg2rad = ops.special.deg2rad
    rad2deg = ops.special.rad2deg
    clip = ops.elementwise.clip
    clamp = ops.elementwise.clamp
    clamp_min = ops.elementwise.clamp_min
    clamp_max = ops.elementwise.clamp_max
    lerp = ops.elementwise.lerp
    copysign = ops.elementwise.copysign
    logaddexp = ops.elementwise.logaddexp
    logaddexp2 = ops.elementwise.logaddexp2
    positive = ops.numbers.positive
    __pos__ = ops.numbers.__pos__
    frac = ops.numbers.frac
    signbit = ops.numbers.signbit
    nan_to_num = ops.numbers.nan_to_num
    heaviside = ops.numbers.heaviside
    gcd = ops.numbers.gcd
    lcm = ops.numbers.lcm
    fmax = ops.numbers.fmax
    fmin = ops.numbers.fmin
    float_power = ops.numbers.float_power
    ldexp = ops.numbers.ldexp
    frexp = ops.numbers.frexp
    nextafter = ops.numbers.nextafter
    rsub = ops.filling.rsub
    sum_to_size = ops.filling.sum_to_size
    addcmul = ops.products.addcmul
    addcdiv = ops.products.addcdiv
    ceil = ops.rounding.ceil
    round = ops.rounding.round
    __round__ = ops.rounding.__round__
    isnan = ops.predicates.isnan
    isinf = ops.predicates.isinf
    isfinite = ops.predicates.isfinite
    isposinf = ops.predicates.isposinf
    isneginf = ops.predicates.isneginf
    isclose = ops.predicates.isclose
    allclose = ops.predicates.allclose
    equal = ops.predicates.equal

    # *** reductions, scans, sorting ***

    var = ops.statistics.var
    var_mean = ops.statistics.var_mean
    std = ops.statistics.std
    std_mean = ops.statistics.std_mean
    cov = ops.statistics.cov
    corrcoef = ops.statistics.corrcoef
    diff = ops.differences.diff
    trapezoid = ops.differences.trapezoid
    cumulative_trapezoid = ops.differences.cumulative_trapezoid
    norm = ops.similarity.norm
    renorm = ops.similarity.renorm
    amax = ops.reductions.amax
    amin = ops.reductions.amin
    aminmax = ops.reductions.aminmax
    count_nonzero = ops.reductions.count_nonzero
    nansum = ops.reductions.nansum
    nanmean = ops.reductions.nanmean
    segment_reduce = ops.segments.segment_reduce
    softmax = ops.softmax.softmax
    log_softmax = ops.softmax.log_softmax
    softmin = ops.softmax.softmin
    logsumexp = ops.softmax.logsumexp
    cumsum = ops.scan.cumsum
    cumprod = ops.scan.cumprod
    cummax = ops.scan.cummax
    cummin = ops.scan.cummin
    logcumsumexp = ops.scan.logcumsumexp
    sort = ops.sorting.sort
    argsort = ops.sorting.argsort
    msort = ops.sorting.msort
    topk = ops.topk.topk
    searchsorted = ops.searching.searchsorted
    bucketize = ops.searching.bucketize
    isin = ops.searching.isin
    unique = ops.unique.unique
    unique_consecutive = ops.unique.unique_consecutive
    mode = ops.unique.mode
    kthvalue = ops.order_statistics.kthvalue
    median = ops.order_statistics.median
    nanmedian = ops.order_statistics.nanmedian
    quantile = ops.order_statistics.quantile
    nanquantile = ops.order_statistics.nanquantile

    # *** products ***

    dot = ops.linear.dot
    matmul = ops.linear.matmul
    __matmul__ = ops.linear.__matmul__
    __rmatmul__ = ops.linear.__rmatmul__
    __imatmul__ = ops.linear.__imatmul__
    linear = ops.linear.linear
    sequential = ops.linear.sequential
    outer = ops.products.outer
    inner = ops.products.inner
    vdot = ops.products.vdot
    tensordot = ops.products.tensordot
    kron = ops.products.kron
    cross = ops.products.cross
    trace = ops.products.trace
    mm = ops.products.mm
    mv = ops.products.mv
    bmm = ops.products.bmm
    addmm = ops.products.addmm
    addmv = ops.products.addmv
    addr = ops.products.addr
    baddbmm = ops.products.baddbmm
    addbmm = ops.products.addbmm
    einsum = constructor(ops.einsum.einsum)
    stft = spectra.stft
    istft = spectra.istft

    # *** decompositions of matrices ***

    adjoint = ops.decompositions.adjoint
    cholesky = ops.decompositions.cholesky
    cholesky_inverse = ops.decompositions.cholesky_inverse
    cholesky_solve = ops.decompositions.cholesky_solve
    det = ops.decompositions.det
    geqrf = ops.decompositions.geqrf
    inverse = ops.decompositions.inverse
    logdet = ops.decompositions.logdet
    lu = ops.decompositions.lu
    lu_solve = ops.decompositions.lu_solve
    matrix_exp = ops.decompositions.matrix_exp
    matrix_power = ops.decompositions.matrix_power
    orgqr = ops.decompositions.orgqr
    ormqr = ops.decompositions.ormqr
    pinverse = ops.decompositions.pinverse
    qr = ops.decompositions.qr
    slogdet = ops.decompositions.slogdet
    svd = ops.decompositions.svd
    newton_schulz = ops.decompositions.newton_schulz
    triangular_solve = ops.decompositions.triangular_solve

    # *** hashes ***

    keccak = ops.hashing.keccak
    hash = ops.hashing.hash

    # *** networks ***

    relu = ops.activation.relu
    relu6 = ops.activation.relu6
    sigmoid = ops.activation.sigmoid
    logsigmoid = ops.activation.logsigmoid
    hardsigmoid = ops.activation.hardsigmoid
    hardswish = ops.activation.hardswish
    hardtanh = ops.activation.hardtanh
    leaky_relu = ops.activation.leaky_relu
    elu = ops.activation.elu
    celu = ops.activation.celu
    selu = ops.activation.selu
    gelu = ops.activation.gelu
    quick_gelu = ops.activation.quick_gelu
    silu = ops.activation.silu
    swish = ops.activation.swish
    mish = ops.activation.mish
    softplus = ops.activation.softplus
    softsign = ops.activation.softsign
    glu = ops.activation.glu
    tanhshrink = ops.activation.tanhshrink
    softshrink = ops.activation.softshrink
    hardshrink = ops.activation.hardshrink
    threshold = ops.activation.threshold
    prelu = ops.activation.prelu
    layernorm = ops.normalization.layernorm
    batchnorm = ops.normalization.batchnorm
    normalize = ops.normalization.normalize
    scaled_dot_product_attention = ops.attention.scaled_dot_product_attention
    conv1d = ops.convolution.conv1d
    conv2d = ops.convolution.conv2d
    conv3d = ops.convolution.conv3d
    conv_transpose1d = ops.convolution.conv_transpose1d
    conv_transpose2d = ops.convolution.conv_transpose2d
    conv_transpose3d = ops.convolution.conv_transpose3d
    avg_pool1d = ops.pooling.avg_pool1d
    avg_pool2d = ops.pooling.avg_pool2d
    avg_pool3d = ops.pooling.avg_pool3d
    max_pool1d = ops.pooling.max_pool1d
    max_pool2d = ops.pooling.max_pool2d
    max_pool3d = ops.pooling.max_pool3d
    max_unpool1d = ops.pooling.max_unpool1d
    max_unpool2d = ops.pooling.max_unpool2d
    max_unpool3d = ops.pooling.max_unpool3d
    interpolate = ops.interpolation.interpolate
    binary_crossentropy = ops.loss.binary_crossentropy
    binary_crossentropy_logits = ops.loss.binary_crossentropy_logits
    sparse_categorical_crossentropy = ops.loss.sparse_categorical_crossentropy
    cross_entropy = ops.loss.cross_entropy
    nll_loss = ops.loss.nll_loss
    l1_loss = ops.regression.l1_loss
    mse_loss = ops.regression.mse_loss
    huber_loss = ops.regression.huber_loss
    smooth_l1_loss = ops.regression.smooth_l1_loss
    poisson_nll_loss = ops.regression.poisson_nll_loss
    gaussian_nll_loss = ops.regression.gaussian_nll_loss
    kl_div = ops.regression.kl_div
    margin_ranking_loss = ops.ranking.margin_ranking_loss
    hinge_embedding_loss = ops.ranking.hinge_embedding_loss
    soft_margin_loss = ops.ranking.soft_margin_loss
    cosine_embedding_loss = ops.ranking.cosine_embedding_loss
    triplet_margin_loss = ops.ranking.triplet_margin_loss
    multi_margin_loss = ops.ranking.multi_margin_loss
    multilabel_soft_margin_loss = ops.ranking.multilabel_soft_margin_loss
    cosine_similarity = ops.similarity.cosine_similarity
    pairwise_distance = ops.similarity.pairwise_distance
    cdist = ops.similarity.cdist
    pdist = ops.similarity.pdist
    dist = ops.similarity.dist

    # *** in place, by PyTorch's names ***

    abs_ = in_place(arithmetic.abs)
    absolute_ = in_place(arithmetic.abs)
    acos_ = in_place(ops.elementary.acos)
    acosh_ = in_place(ops.elementary.acosh)
    add_ = in_place(arithmetic.add)
    addbmm_ = in_place(ops.products.addbmm)
    addcdiv_ = in_place(ops.products.addcdiv)
    addcmul_ = in_place(ops.products.addcmul)
    addmm_ = in_place(ops.products.addmm)
    addmv_ = in_place(ops.products.addmv)
    addr_ = in_place(ops.products.addr)
    arccos_ = in_place(ops.elementary.acos)
    arccosh_ = in_place(ops.elementary.acosh)
    asin_ = in_place(ops.elementary.asin)
    arcsin_ = in_place(ops.elementary.asin)
    asinh_ = in_place(ops.elementary.asinh)
    arcsinh_ = in_place(ops.elementary.asinh)
    atan2_ = in_place(ops.elementary.atan2)
    arctan2_ = in_place(ops.elementary.atan2)
    atan_ = in_place(ops.elementary.atan)
    arctan_ = in_place(ops.elementary.atan)
    atanh_ = in_place(ops.elementary.atanh)
    arctanh_ = in_place(ops.elementary.atanh)
    baddbmm_ = in_place(ops.products.baddbmm)
    bitwise_and_ = in_place(bits.bitwise_and)
    bitwise_left_shift_ = in_place(bits.lshift)
    bitwise_not_ = in_place(bits.bitwise_not)
    bitwise_or_ = in_place(bits.bitwise_or)
    bitwise_right_shift_ = in_place(bits.rshift)
    bitwise_xor_ = in_place(bits.bitwise_xor)
    ceil_ = in_place(ops.rounding.ceil)
    clamp_ = in_place(ops.elementwise.clamp)
    clamp_max_ = in_place(ops.elementwise.clamp_max)
    clamp_min_ = in_place(ops.elementwise.clamp_min)
    clip_ = in_place(ops.elementwise.clip)
    copysign_ = in_place(ops.elementwise.copysign)
    conj_physical_ = in_place(ops.complex_numbers.conj_physical)
    cos_ = in_place(ops.elementary.cos)
    cosh_ = in_place(ops.elementary.cosh)
    cumprod_ = in_place(ops.scan.cumprod)
    cumsum_ = in_place(ops.scan.cumsum)
    deg2rad_ = in_place(ops.special.deg2rad)
    digamma_ = in_place(gamma.digamma)
    div_ = in_place(division.div)
    divide_ = in_place(division.div)
    eq_ = in_place(comparison.eq)
    erf_ = in_place(ops.special.erf)
    erfc_ = in_place(ops.special.erfc)
    erfinv_ = in_place(error.erfinv)
    exp2_ = in_place(ops.elementary.exp2)
    exp_ = in_place(ops.elementary.exp)
    expm1_ = in_place(ops.elementary.expm1)
    trunc_ = in_place(division.trunc)
    fix_ = in_place(division.trunc)
    float_power_ = in_place(ops.numbers.float_power)
    floor_ = in_place(division.floor)
    floor_divide_ = in_place(division.floor_divide)
    fmod_ = in_place(division.fmod)
    frac_ = in_place(ops.numbers.frac)
    ge_ = in_place(comparison.ge)
    gt_ = in_place(comparison.gt)
    greater_ = in_place(comparison.gt)
    greater_equal_ = in_place(comparison.ge)
    heaviside_ = in_place(ops.numbers.heaviside)
    gcd_ = in_place(ops.numbers.gcd)
    lcm_ = in_place(ops.numbers.lcm)
    hypot_ = in_place(ops.special.hypot)
    i0_ = in_place(modified_bessel.i0)
    igamma_ = in_place(incomplete_gamma.igamma)
    igammac_ = in_place(incomplete_gamma.igammac)
    index_add_ = in_place(ops.index_update.index_add)
    index_copy_ = in_place(ops.index_update.index_copy)
    index_fill_ = in_place(ops.index_update.index_fill)
    index_put_ = in_place(ops.index_update.index_put)
    index_reduce_ = in_place(ops.index_update.index_reduce)
    ldexp_ = in_place(ops.numbers.ldexp)
    le_ = in_place(comparison.le)
    lerp_ = in_place(ops.elementwise.lerp)
    lt_ = in_place(comparison.lt)
    less_ = in_place(comparison.lt)
    less_equal_ = in_place(comparison.le)
    lgamma_ = in_place(gamma.lgamma)
    log10_ = in_place(ops.elementary.log10)
    log1p_ = in_place(ops.elementary.log1p)
    log2_ = in_place(ops.elementary.log2)
    log_ = in_place(ops.elementary.log)
    logical_and_ = in_place(bits.logical_and)
    logical_not_ = in_place(bits.logical_not)
    logical_or_ = in_place(bits.logical_or)
    logical_xor_ = in_place(bits.logical_xor)
    logit_ = in_place(ops.special.logit)
    masked_fill_ = in_place(selection.masked_fill)
    masked_scatter_ = in_place(ops.slice_update.masked_scatter)
    mul_ = in_place(arithmetic.mul)
    multiply_ = in_place(arithmetic.mul)
    mvlgamma_ = in_place(gamma.mvlgamma)
    nan_to_num_ = in_place(ops.numbers.nan_to_num)
    ne_ = in_place(comparison.ne)
    neg_ = in_place(arithmetic.neg)
    negative_ = in_place(arithmetic.neg)
    nextafter_ = in_place(ops.numbers.nextafter)
    not_equal_ = in_place(comparison.ne)
    polygamma_ = in_place(gamma.polygamma)
    pow_ = in_place(power.pow)
    put_ = in_place(ops.slice_update.put)
    rad2deg_ = in_place(ops.special.rad2deg)
    reciprocal_ = in_place(arithmetic.reciprocal)
    relu_ = in_place(ops.activation.relu)
    remainder_ = in_place(division.remainder)
    renorm_ = in_place(ops.similarity.renorm)
    round_ = in_place(ops.rounding.round)
    rsqrt_ = in_place(ops.elementary.rsqrt)
    scatter_ = in_place(ops.gather_scatter.scatter)
    scatter_add_ = in_place(ops.gather_scatter.scatter_add)
    scatter_reduce_ = in_place(ops.gather_scatter.scatter_reduce)
    sigmoid_ = in_place(ops.activation.sigmoid)
    sgn_ = in_place(ops.complex_numbers.sgn)
    sign_ = in_place(ops.elementary.sign)
    sin_ = in_place(ops.elementary.sin)
    sinc_ = in_place(ops.special.sinc)
    sinh_ = in_place(ops.elementary.sinh)
    sqrt_ = in_place(ops.elementary.sqrt)
    square_ = in_place(ops.elementary.square)
    sub_ = in_place(arithmetic.sub)
    subtract_ = in_place(arithmetic.sub)
    tan_ = in_place(ops.elementary.tan)
    tanh_ = in_place(ops.elementary.tanh)
    tril_ = in_place(ops.diagonal.tril)
    triu_ = in_place(ops.diagonal.triu)
    true_divide_ = in_place(division.div)
    xlogy_ = in_place(ops.special.xlogy)
    elu_ = in_place(ops.activation.elu)
    selu_ = in_place(ops.activation.selu)
    celu_ = in_place(ops.activation.celu)
    leaky_relu_ = in_place(ops.activation.leaky_relu)
    hardtanh_ = in_place(ops.activation.hardtanh)
    threshold_ = in_place(ops.activation.threshold)
    dropout_ = in_place(ops.sampling.dropout)
    squeeze_ = view_in_place(movement.squeeze)
    unsqueeze_ = view_in_place(movement.unsqueeze)
    transpose_ = view_in_place(movement.transpose)
    swapaxes_ = view_in_place(movement.transpose)
    swapdims_ = view_in_place(movement.transpose)
    t_ = view_in_place(ops.axes.t)
    copy_ = ops.filling.copy_
    detach_ = ops.filling.detach_
    fill_diagonal_ = ops.filling.fill_diagonal_
    # *** precision ***

    autocast = classmethod(ops.autocast.autocast)

    # *** other libraries ***

    from_blob = constructor(exchange.from_blob)
    from_dlpack = constructor(exchange.from_dlpack)
    from_url = constructor(web.from_url)
    __dlpack__ = exchange.__dlpack__
    __dlpack_device__ = exchange.__dlpack_device__
    __array_namespace__ = namespace.__array_namespace__
    __array_function__ = namespace.__array_function__

    # *** other names of the same ***

    absolute = arithmetic.abs
    ndimension = ops.describing.dim
    negative = arithmetic.neg
    subtract = arithmetic.sub
    multiply = arithmetic.mul
    divide = division.div
    true_divide = division.div
    greater = comparison.gt
    greater_equal = comparison.ge
    less = comparison.lt
    less_equal = comparison.le
    not_equal = comparison.ne
    bitwise_left_shift = bits.lshift
    bitwise_right_shift = bits.rshift
    concat = joining.cat
    concatenate = joining.cat
    swapaxes = movement.transpose
    swapdims = movement.transpose
    fix = division.trunc
    arccos = ops.elementary.acos
    arcsin = ops.elementary.asin
    arctan = ops.elementary.atan
    arctan2 = ops.elementary.atan2
    arccosh = ops.elementary.acosh
    arcsinh = ops.elementary.asinh
    arctanh = ops.elementary.atanh
    ger = ops.products.outer
    argwhere = ops.selection.nonzero
    unsafe_chunk = joining.chunk
    unsafe_split = joining.split
    split_with_sizes = joining.split
    unsafe_split_with_sizes = joining.split
    alias_copy = computing.clone
    moveaxis = ops.axes.movedim
    trapz = ops.differences.trapezoid
    take_along_axis = ops.lookup.take_along_dim
    row_stack = ops.joined.vstack
    image_dot = ops.linear.dot
    image_conv2d = ops.convolution.conv2d
    binary_cross_entropy = ops.loss.binary_crossentropy
    binary_cross_entropy_with_logits = ops.loss.binary_crossentropy_logits

    if not TYPE_CHECKING:
        __getattr__ = ops.absent.refused

    # *** casts, named like Python's types: nothing below may be annotated with those ***

    type = ops.describing.type
    float = casts.float
    half = casts.half
    bfloat16 = casts.bfloat16
    double = casts.double
    int = casts.int
    long = casts.long
    short = casts.short
    byte = casts.byte
    char = casts.char
    bool = casts.bool
    cfloat = ops.complex_numbers.cfloat
    cdouble = ops.complex_numbers.cdouble
    complex = ops.complex_numbers.complex
