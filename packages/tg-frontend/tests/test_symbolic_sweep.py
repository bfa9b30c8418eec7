"""Every method of Tensor on sizes that a variable gives, in a record: right for each value, or refused when it is made.

What is recorded with one value of the variable is replayed with others and compared with the same on plain numbers.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import JitError, Tensor, TinyJit
from tg_frontend.jit.record import Record
from tg_frontend.keywords import other_names
from tg_shape import Variable

N = Variable("n", 2, 9)
SHORT = Variable("short", 1, 8)
SIZES = (5, 2, 9, 7, 3)
RNG = np.random.default_rng(3)
DATA = RNG.uniform(0.1, 0.9, (4, 9)).astype(np.float32)
SQUARE = RNG.uniform(-1, 1, (9, 9)).astype(np.float32)
OTHER = RNG.uniform(0.1, 0.9, (4, 9)).astype(np.float32)
COUNTS = RNG.integers(0, 4, (4, 9)).astype(np.int32)
IMAGE = RNG.uniform(-1, 1, (2, 3, 9, 8)).astype(np.float32)

Case = tuple[str, Callable[..., Any]]

ALIKE = (
    "erfc expm1 log1p lgamma digamma erfinv i0 "
    "abs acos acosh asin asinh atan atanh ceil celu cos cosh elu erf exp exp2 floor gelu hardsigmoid hardswish "
    "hardtanh isfinite isinf isnan leaky_relu log log10 log2 logical_not logsigmoid mish neg quick_gelu "
    "reciprocal relu relu6 round rsqrt selu sigmoid sign silu sin sinh softplus softsign sqrt square swish tan "
    "tanh trunc contiguous clone contiguous_backward detach float half double int long short bool bfloat16 "
    "zeros_like ones_like sum max min mean std var prod any all argmax argmin softmax log_softmax softmin "
    "logsumexp logcumsumexp cumsum cumprod cummax cummin flatten numel nbytes size normalize layernorm std_mean "
    "var_mean T sort argsort nonzero dropout dot topk diag expand flip transpose permute squeeze unsqueeze repeat "
    "median nanmedian msort repeat_interleave chunk split len "
    "amax amin aminmax count_nonzero nansum nanmean positive frac signbit nan_to_num frexp sinc logit deg2rad rad2deg "
    "isposinf isneginf t diff trapezoid cumulative_trapezoid norm cov corrcoef diag_embed diagflat byte char "
    "glu tanhshrink softshrink hardshrink ravel atleast_1d atleast_2d atleast_3d flipud fliplr rot90"
).split()
BINARY = (
    "atan2 divmod floor_divide remainder lt gt le ge logical_and logical_or logical_xor fmax fmin heaviside hypot "
    "igamma igammac "
    "xlogy float_power ldexp expand_as view_as reshape_as type_as hstack vstack dstack column_stack block_diag inner "
    "kron l1_loss mse_loss huber_loss smooth_l1_loss poisson_nll_loss kl_div hinge_embedding_loss soft_margin_loss "
    "multilabel_soft_margin_loss cosine_similarity pairwise_distance cdist dist logaddexp2 broadcast_tensors "
    "add sub mul div maximum minimum pow copysign eq ne lerp logaddexp isclose allclose fmod mod idiv "
    "binary_crossentropy binary_crossentropy_logits where masked_select masked_fill"
).split()

AXES = (
    "sum max mean std var prod any all argmax argmin softmax log_softmax softmin logsumexp logcumsumexp cumsum cumprod "
    "cummax cummin sort argsort median nanmedian flip unsqueeze squeeze normalize std_mean var_mean"
).split()


def calls(method: str, *more: Any) -> Callable[..., Any]:
    """A function that calls a method of its first argument."""
    return lambda x, *others: getattr(x, method)(*others, *more)


CASES: dict[str, Case] = {
    **{method: ("x", calls(method)) for method in ALIKE if hasattr(Tensor, method)},
    **{method: ("xy", calls(method)) for method in BINARY},
    **{f"{method} of axis {axis}": ("x", calls(method, axis)) for method in AXES for axis in (0, 1)},
}
CASES |= {
    "len": ("x", lambda x: x.T * len(x.T)),
    "T": ("x", lambda x: x.T + 0),
    "mT": ("m", lambda m: m.mT + 0),
    "index_select": ("xi", lambda x, i: x.index_select(0, i[:, 0])),
    "index_select of the size": ("xi", lambda x, i: x.index_select(1, i[:, 0].minimum(1))),
    "take": ("xi", lambda x, i: x.take(i)),
    "take_along_dim": ("xi", lambda x, i: x.take_along_dim(i, 0)),
    "put": ("xi", lambda x, i: x.put(i[:, 0], Tensor.ones(4))),
    "masked_scatter": ("x", lambda x: x.masked_scatter(x > 0.5, Tensor.arange(40).float())),
    "select_scatter": ("x", lambda x: x.select_scatter(x[1] * 2, 0, 0)),
    "slice_scatter": ("x", lambda x: x.slice_scatter(x[1:3] * 2, 0, 0, 2)),
    "diagonal_scatter": ("s", lambda s: s.diagonal_scatter(s.diagonal() * 2)),
    "cartesian_prod": ("x", lambda x: x[0].cartesian_prod(x[1])),
    "combinations": ("x", lambda x: x[0].combinations()),
    "vander": ("x", lambda x: x[0].vander(3)),
    "renorm": ("x", lambda x: x.renorm(2, 0, 1.0)),
    "pdist": ("x", lambda x: x.pdist()),
    "pixel_shuffle": ("x", lambda x: x.reshape(4, 1, x.shape[1]).pixel_shuffle(1)),
    "pixel_unshuffle": ("x", lambda x: x.reshape(1, 4, x.shape[1]).pixel_unshuffle(1)),
    "channel_shuffle": ("x", lambda x: x.reshape(1, 4, x.shape[1]).channel_shuffle(2)),
    "clamp_min": ("x", lambda x: x.clamp_min(0.3)),
    "clamp_max": ("x", lambda x: x.clamp_max(0.3)),
    "equal": ("x", lambda x: Tensor(float(x.equal(x))) + x),
    "new_zeros": ("x", lambda x: x.new_zeros(x.shape[1]) + x[0]),
    "new_ones": ("x", lambda x: x.new_ones(x.shape[1]) + x[0]),
    "new_full": ("x", lambda x: x.new_full((x.shape[1],), 2.0) + x[0]),
    "new": ("x", lambda x: x.new(x.shape[1]) * 0 == x[0] * 0),
    "new_empty": ("x", lambda x: x.new_empty(x.shape[1]) * 0 == x[0] * 0),
    "logspace": ("x", lambda x: Tensor.logspace(0, 1, x.shape[1]) + x[0]),
    "tril_indices": ("x", lambda x: Tensor.tril_indices(x.shape[1]).sum() + x),
    "triu_indices": ("x", lambda x: Tensor.triu_indices(x.shape[1]).sum() + x),
    "randint_like": ("x", lambda x: x.randint_like(0, 3) < 9),
    "bernoulli": ("x", lambda x: x.bernoulli(0.5) < 9),
    "exponential": ("x", lambda x: x.exponential() >= 0),
    "cauchy": ("x", lambda x: x.cauchy() < 1e9),
    "geometric": ("x", lambda x: x.geometric(0.5) >= 1),
    "poisson": ("x", lambda x: x.abs().poisson() >= 0),
    "binomial": ("x", lambda x: x.abs().floor().binomial(x.sigmoid()) >= 0),
    "log_normal": ("x", lambda x: x.log_normal() >= 0),
    "exponential_": ("x", lambda x: (x + 0).contiguous().exponential_() >= 0),
    "cauchy_": ("x", lambda x: (x + 0).contiguous().cauchy_() < 1e9),
    "geometric_": ("x", lambda x: (x + 0).contiguous().geometric_(0.5) >= 1),
    "log_normal_": ("x", lambda x: (x + 0).contiguous().log_normal_() >= 0),
    "normal_": ("x", lambda x: (x + 0).contiguous().normal_() < 99),
    "uniform_": ("x", lambda x: (x + 0).contiguous().uniform_() < 2),
    "bernoulli_": ("x", lambda x: (x + 0).contiguous().bernoulli_() < 9),
    "random_": ("x", lambda x: (x + 0).contiguous().random_(3) < 9),
    "hann_window": ("x", lambda x: Tensor.hann_window(x.shape[1]) + x[0]),
    "hamming_window": ("x", lambda x: Tensor.hamming_window(x.shape[1]) + x[0]),
    "blackman_window": ("x", lambda x: Tensor.blackman_window(x.shape[1]) + x[0]),
    "bartlett_window": ("x", lambda x: Tensor.bartlett_window(x.shape[1]) + x[0]),
    "kaiser_window": ("x", lambda x: Tensor.kaiser_window(x.shape[1]) + x[0]),
    "diagonal_copy": ("s", lambda s: s.diagonal_copy()),
    "expand_copy": ("x", lambda x: x.unsqueeze(0).expand_copy(3, -1, -1)),
    "narrow_copy": ("x", lambda x: x.narrow_copy(1, 0, 2)),
    "permute_copy": ("x", lambda x: x.permute_copy(1, 0)),
    "squeeze_copy": ("x", lambda x: x.squeeze_copy()),
    "t_copy": ("x", lambda x: x.t_copy()),
    "transpose_copy": ("x", lambda x: x.transpose_copy(0, 1)),
    "unfold_copy": ("x", lambda x: x.unfold_copy(1, 2, 1)),
    "unsqueeze_copy": ("x", lambda x: x.unsqueeze_copy(0)),
    "view_copy": ("x", lambda x: x.view_copy(2, 2, -1)),
    "unbind_copy": ("x", lambda x: x.unbind_copy(0)),
    "split_with_sizes_copy": ("x", lambda x: x.split_with_sizes_copy([1, 3])),
    "as_strided": ("x", lambda x: x.as_strided((2, 3), (1, 1))),
    "as_strided_scatter": ("x", lambda x: x.as_strided_scatter(Tensor.ones(2), (2,), (2,))),
    "fill": ("x", lambda x: x.fill(2.0) + x),
    "fill_": ("x", lambda x: (x + 0).contiguous().fill_(2.0)),
    "zero_": ("x", lambda x: (x + 0).contiguous().zero_()),
    "nonzero_static": ("x", lambda x: x.nonzero_static(size=3)),
    "nextafter": ("xy", lambda x, y: x.nextafter(y)),
    "rsub": ("xy", lambda x, y: x.rsub(y)),
    "sum_to_size": ("x", lambda x: x.sum_to_size(4, 1)),
    "embedding": ("x", lambda x: x.embedding(Tensor([[1, 0], [-1, 1]]))),
    "numel": ("x", lambda x: Tensor(x.numel()) + 0),
    "nbytes": ("x", lambda x: Tensor(x.nbytes()) + 0),
    "size": ("x", lambda x: x * x.size(1)),
    "full_like": ("x", lambda x: x.full_like(3.0) + x),
    "const_like": ("x", lambda x: x.const_like(2.0) + x),
    "empty_like": ("x", lambda x: x.empty_like() * 0 == x * 0),
    "rand_like": ("x", lambda x: x.rand_like() < 2),
    "randn_like": ("x", lambda x: x.randn_like() < 99),
    "arange": ("x", lambda x: Tensor.arange(x.shape[1]) + x[0]),
    "zeros": ("x", lambda x: Tensor.zeros(x.shape[1]) + x[0]),
    "ones": ("x", lambda x: Tensor.ones(x.shape[1]) + x[0]),
    "full": ("x", lambda x: Tensor.full((x.shape[1],), 2.0) + x[0]),
    "eye": ("x", lambda x: Tensor.eye(x.shape[1]) + x[0]),
    "linspace": ("x", lambda x: Tensor.linspace(0, 1, x.shape[1]) + x[0]),
    "rand": ("x", lambda x: Tensor.rand(x.shape[1]) < x[0] + 2),
    "randn": ("x", lambda x: Tensor.randn(x.shape[1]) < x[0] + 99),
    "randint": ("x", lambda x: Tensor.randint(x.shape[1], high=3) < x[0] + 9),
    "randperm": ("x", lambda x: Tensor.randperm(x.shape[1]).sum() + x[0]),
    "uniform": ("x", lambda x: Tensor.uniform(x.shape[1]) < x[0] + 9),
    "normal": ("x", lambda x: Tensor.normal(x.shape[1]) < x[0] + 99),
    "glorot_uniform": ("x", lambda x: Tensor.glorot_uniform(4, x.shape[1]) < x + 9),
    "kaiming_uniform": ("x", lambda x: Tensor.kaiming_uniform(4, x.shape[1]) < x + 9),
    "kaiming_normal": ("x", lambda x: Tensor.kaiming_normal(4, x.shape[1]) < x + 99),
    "scaled_uniform": ("x", lambda x: Tensor.scaled_uniform(4, x.shape[1]) < x + 9),
    "clamp": ("x", lambda x: x.clamp(0.2, 0.5)),
    "clip": ("x", lambda x: x.clip(0.2, 0.5)),
    "cast": ("x", lambda x: x.cast("float64")),
    "bitcast": ("x", lambda x: x.bitcast("int32")),
    "matmul": ("xy", lambda x, y: x.matmul(y.T)),
    "matmul over the size": ("xy", lambda x, y: x.T.matmul(y)),
    "einsum": ("xy", lambda x, y: Tensor.einsum("an,bn->ab", x, y)),
    "linear": ("x", lambda x: x.T.linear(Tensor.ones(4, 2), Tensor.ones(2))),
    "sequential": ("x", lambda x: x.sequential([Tensor.relu, lambda t: t + 1])),
    "bitwise_and": ("i", lambda i: i.bitwise_and(3)),
    "bitwise_or": ("i", lambda i: i.bitwise_or(4)),
    "bitwise_xor": ("i", lambda i: i.bitwise_xor(5)),
    "bitwise_not": ("i", lambda i: i.bitwise_not()),
    "lshift": ("i", lambda i: i.lshift(2)),
    "gcd": ("i", lambda i: i.gcd(6)),
    "lcm": ("i", lambda i: i.lcm(6)),
    "rshift": ("i", lambda i: i.rshift(1)),
    "one_hot": ("i", lambda i: i.one_hot(4)),
    "gather": ("xi", lambda x, i: x.gather(0, i)),
    "gather along the size": ("xi", lambda x, i: x.gather(1, i.minimum(1))),
    "scatter": ("xi", lambda x, i: x.scatter(0, i, 5.0)),
    "scatter along the size": ("xi", lambda x, i: x.scatter(1, i.minimum(1), 5.0)),
    "scatter_reduce": ("xi", lambda x, i: x.scatter_reduce(0, i, x, "sum")),
    "scatter_add": ("xi", lambda x, i: x.scatter_add(0, i, x)),
    "index_add": ("xi", lambda x, i: x.index_add(0, i[:, 0], x[: i.shape[0]])),
    "index_copy": ("xi", lambda x, i: x.index_copy(0, i[:, 0], x[: i.shape[0]])),
    "index_fill": ("xi", lambda x, i: x.index_fill(0, i[:, 0], 7.0)),
    "index_reduce": ("xi", lambda x, i: x.index_reduce(0, i[:, 0], x[: i.shape[0]], "amax")),
    "index_put": ("xi", lambda x, i: x.index_put((i[:, 0],), 7.0)),
    "bincount": ("i", lambda i: i.flatten().bincount(minlength=9)),
    "histc": ("x", lambda x: x.histc(5, -1, 1)),
    "histogram": ("x", lambda x: x.histogram(5, range=(-1.0, 1.0))),
    "index": ("xi", lambda x, i: x[i[:, 0]]),
    "index of the size": ("xi", lambda x, i: x.T[i[:, 0].minimum(1)]),
    "slice": ("x", lambda x: x[:, 1:]),
    "slice from the end": ("x", lambda x: x[:, -1]),
    "step": ("x", lambda x: x[:, ::-1]),
    "setitem": ("x", lambda x: (lambda y: (y.__setitem__((slice(None), 1), 7.0), y)[1])(x.clone())),
    "assign": ("x", lambda x: x.clone().assign(x * 2)),
    "repeat along the size": ("x", lambda x: x.repeat(1, 2)),
    "repeat_interleave": ("x", lambda x: x.repeat_interleave(2, 1)),
    "reshape": ("x", lambda x: x.reshape(2, 2, x.shape[1])),
    "reshape to one": ("x", lambda x: x.reshape(-1)),
    "reshape of the size": ("x", lambda x: x.reshape(-1, 2)),
    "view": ("x", lambda x: x.view(2, 2, -1)),
    "unflatten": ("x", lambda x: x.unflatten(0, (2, 2))),
    "rearrange": ("x", lambda x: x.rearrange("(a b) n -> n a b", a=2)),
    "expand": ("x", lambda x: x.unsqueeze(0).expand(3, -1, -1)),
    "permute": ("x", lambda x: x.permute(1, 0)),
    "transpose": ("x", lambda x: x.transpose(0, 1)),
    "pad": ("x", lambda x: x.pad(((0, 0), (1, 2)))),
    "pad_to": ("x", lambda x: x.pad_to((4, 12))),
    "shrink": ("x", lambda x: x.shrink(((1, 3), (0, 2)))),
    "shrink_to": ("x", lambda x: x.shrink_to((2, 2))),
    "cat": ("xy", lambda x, y: x.cat(y, dim=1)),
    "stack": ("xy", lambda x, y: x.stack(y)),
    "meshgrid": ("xy", lambda x, y: x[0].meshgrid(y[0])),
    "roll": ("x", lambda x: x.roll(1, 1) * 2),
    "roll back": ("x", lambda x: x.roll(-2, 1) * 2),
    "roll far": ("x", lambda x: x.roll(4, 1) * 2),
    "roll flat": ("x", lambda x: x.roll(3) * 2),
    "repeat": ("x", lambda x: x.repeat(2, 1)),
    "split": ("x", lambda x: x.split(2, 1)),
    "split of another axis": ("x", lambda x: [part * 2 for part in x.split(2, 0)]),
    "chunk": ("x", lambda x: x.chunk(2, 1)),
    "unbind": ("x", lambda x: x.unbind(1)),
    "unbind of another axis": ("x", lambda x: [part * 2 for part in x.unbind(0)]),
    "unfold": ("x", lambda x: x.unfold(1, 2, 1)),
    "topk": ("x", lambda x: x.topk(2, 1)),
    "topk of another axis": ("x", lambda x: x.topk(2, 0)),
    "topk of more than there may be": ("x", lambda x: x.topk(3, 1)),
    "mode": ("x", lambda x: x.mode(1)),
    "searchsorted": ("xy", lambda x, y: x.sort(1)[0].searchsorted(y)),
    "bucketize": ("xy", lambda x, y: x.bucketize(y[0].sort()[0])),
    "isin": ("xy", lambda x, y: x.isin(y[0])),
    "unique": ("x", lambda x: x.unique()),
    "unique_consecutive": ("x", lambda x: x.unique_consecutive()),
    "kthvalue": ("x", lambda x: x.kthvalue(2, 1)),
    "quantile": ("x", lambda x: x.quantile(0.4, 1)),
    "nanquantile": ("x", lambda x: x.nanquantile([0.4, 0.6], 0)),
    "tril": ("s", lambda s: s.tril()),
    "triu": ("s", lambda s: s.triu(1)),
    "diag": ("x", lambda x: x[0].diag()),
    "diagonal": ("s", lambda s: s.diagonal() * 2),
    "diagonal above": ("s", lambda s: s.diagonal(1) * 2),
    "diagonal below": ("s", lambda s: s.diagonal(-2) * 2),
    "diagonal of a rectangle": ("x", lambda x: x.diagonal() * 2),
    "multinomial": ("x", lambda x: x.multinomial(2) < 9),
    "masked_select": ("x", lambda x: x.masked_select(x > 0.5, size=4)),
    "masked_fill": ("x", lambda x: x.masked_fill(x > 0.5, 2.0)),
    "where": ("xy", lambda x, y: (x > 0.5).where(x, y)),
    "nonzero": ("x", lambda x: x.nonzero(size=3)),
    "layernorm": ("x", lambda x: x.layernorm()),
    "batchnorm": ("x", lambda x: x.T.batchnorm(None, None, x.T.mean(0), x.T.std(0))),
    "conv2d": ("m", lambda m: m.conv2d(Tensor.ones(2, 3, 3, 3))),
    "conv2d padded": ("m", lambda m: m.conv2d(Tensor.ones(2, 3, 3, 3), padding=1)),
    "conv_transpose2d": ("m", lambda m: m.conv_transpose2d(Tensor.ones(3, 2, 2, 2))),
    "max_pool2d": ("m", lambda m: m.max_pool2d(2)),
    "avg_pool2d": ("m", lambda m: m.avg_pool2d(2)),
    "conv1d": ("m", lambda m: m[:, 0].conv1d(Tensor.ones(2, m.shape[2], 3))),
    "conv1d of a batch": ("m", lambda m: m[:, 0].transpose(0, 1).conv1d(Tensor.ones(4, 2, 3))),
    "conv_transpose1d": ("m", lambda m: m[:, 0].transpose(0, 1).conv_transpose1d(Tensor.ones(2, 2, 2))),
    "max_pool1d": ("m", lambda m: m[:, 0].max_pool1d(2)),
    "avg_pool1d": ("m", lambda m: m[:, 0].avg_pool1d(2)),
    "max_unpool1d": ("m", lambda m: m[:, 0].max_unpool1d(m[:, 0].cast("int32") * 0, 2)),
    "conv3d": ("m", lambda m: m.unsqueeze(1).conv3d(Tensor.ones(2, 1, 2, 2, 2))),
    "conv_transpose3d": ("m", lambda m: m.unsqueeze(1).conv_transpose3d(Tensor.ones(1, 2, 2, 2, 2))),
    "max_pool3d": ("m", lambda m: m.unsqueeze(0).max_pool3d(2)),
    "avg_pool3d": ("m", lambda m: m.unsqueeze(0).avg_pool3d(2)),
    "max_unpool3d": ("m", lambda m: m.unsqueeze(0).max_unpool3d(m.unsqueeze(0).cast("int32") * 0, 2)),
    "max_unpool2d": ("m", lambda m: m.max_unpool2d(m.cast("int32") * 0, 2)),
    "interpolate": ("m", lambda m: m.interpolate((4, 4))),
    "interpolate of a batch": ("m", lambda m: m.transpose(0, 2).interpolate((5, 3), mode="bilinear")),
    "max_pool2d of a batch": ("m", lambda m: m.transpose(0, 2).max_pool2d(2, return_indices=True)),
    "max_unpool2d of a batch": ("m", lambda m: _pooled_and_back(m.transpose(0, 2))),
    "interpolate nearest": ("m", lambda m: m.interpolate((4, 4), mode="nearest")),
    "cross_entropy": ("xi", lambda x, i: x.T.cross_entropy(i[0])),
    "cross_entropy smooth": ("xi", lambda x, i: x.T.cross_entropy(i[0], label_smoothing=0.1)),
    "sparse_categorical_crossentropy": ("xi", lambda x, i: x.T.sparse_categorical_crossentropy(i[0])),
    "cross_entropy of probabilities": ("xy", lambda x, y: x.T.cross_entropy(y.T, label_smoothing=0.1)),
    "nll_loss": ("xi", lambda x, i: x.T.log_softmax(1).nll_loss(i[0])),
    "scaled_dot_product_attention": ("xy", lambda x, y: x.T.scaled_dot_product_attention(y.T, y.T, is_causal=True)),
    "dot": ("xy", lambda x, y: x[0].dot(y[0])),
    "angle": ("x", lambda x: x.angle()),
    "sgn": ("x", lambda x: x.sgn()),
    "isreal": ("x", lambda x: x.isreal()),
    "real": ("x", lambda x: x.real),
    "H": ("s", lambda x: x.H),
    "mH": ("s", lambda x: x.mH),
    "conj": ("x", lambda x: x.conj()),
    "conj_physical": ("x", lambda x: x.conj_physical()),
    "resolve_conj": ("x", lambda x: x.resolve_conj()),
    "resolve_neg": ("x", lambda x: x.resolve_neg()),
    "segment_reduce": ("x", lambda x: x.segment_reduce("sum", lengths=Tensor([1, 3]))),
    "unravel_index": ("i", lambda i: i.unravel_index((2, 9))),
    "ravel_multi_index": ("i", lambda i: i.unsqueeze(0).ravel_multi_index((9,), "wrap")),
    "histogramdd": ("x", lambda x: x.T.histogramdd(2, [-1.0, 1.0] * 4)[0].sum() + x),
    "scalar_tensor": ("x", lambda x: Tensor.scalar_tensor(2.0) + x),
    "adjoint": ("x", lambda x: x.adjoint() * 2),
    **{name: ("s", calls(name)) for name in "det geqrf inverse logdet lu pinverse qr slogdet svd".split()},
    "cholesky": ("s", lambda s: (s @ s.T + 1).cholesky()),
    "cholesky_inverse": ("s", lambda s: s.cholesky_inverse()),
    "cholesky_solve": ("s", lambda s: s.cholesky_solve(s)),
    "lu_solve": ("s", lambda s: s.lu_solve(*s.lu())),
    "matrix_exp": ("s", lambda s: s.matrix_exp()),
    "matrix_power": ("s", lambda s: s.matrix_power(3)),
    "matrix_power inverted": ("s", lambda s: s.matrix_power(-1)),
    "orgqr": ("s", lambda s: s.orgqr(s[0])),
    "ormqr": ("s", lambda s: s.ormqr(s[0], s)),
    "triangular_solve": ("s", lambda s: s.triangular_solve(s)),
    "newton_schulz": ("s", lambda s: s.newton_schulz(2, (1.5, -0.5))),
    "keccak": ("i", lambda i: i.cast("uint8").keccak()),
    "hash": ("x", lambda x: x.hash()),
    "addcmul": ("xy", lambda x, y: x.addcmul(y, x)),
    "addcdiv": ("xy", lambda x, y: x.addcdiv(y, x)),
    "polygamma": ("x", lambda x: x.polygamma(2)),
    "mvlgamma": ("x", lambda x: (x + 1).mvlgamma(2)),
    "threshold": ("x", lambda x: x.threshold(0.5, 2.0)),
    "prelu": ("x", lambda x: x.prelu(Tensor([0.25]))),
    "movedim": ("x", lambda x: x.movedim(0, 1)),
    "narrow": ("x", lambda x: x.narrow(1, 0, 2)),
    "select": ("x", lambda x: x.select(1, 1)),
    "broadcast_to": ("x", lambda x: x.unsqueeze(0).broadcast_to(3, 4, x.shape[1])),
    "tile": ("x", lambda x: x.tile(2)),
    "tensor_split": ("x", lambda x: [part * 2 for part in x.tensor_split(2)]),
    "tensor_split along the size": ("x", lambda x: x.tensor_split(2, 1)),
    "hsplit": ("x", lambda x: x.hsplit((1,))),
    "vsplit": ("x", lambda x: [part * 2 for part in x.vsplit(2)]),
    "dsplit": ("x", lambda x: x.unsqueeze(2).dsplit(1)),
    "outer": ("xy", lambda x, y: x[0].outer(y[1])),
    "vdot": ("xy", lambda x, y: x[0].vdot(y[1])),
    "tensordot": ("xy", lambda x, y: x.tensordot(y, ((0,), (0,)))),
    "cross": ("xy", lambda x, y: x[:3].cross(y[:3], dim=0)),
    "trace": ("s", lambda s: s.trace()),
    "mm": ("xy", lambda x, y: x.mm(y.T)),
    "mv": ("xy", lambda x, y: x.mv(y[0])),
    "bmm": ("xy", lambda x, y: x.unsqueeze(0).bmm(y.T.unsqueeze(0))),
    "addmm": ("xy", lambda x, y: Tensor([1.0]).addmm(x, y.T)),
    "addmv": ("xy", lambda x, y: Tensor([1.0]).addmv(x, y[0])),
    "addr": ("xy", lambda x, y: Tensor([1.0]).addr(x[0], y[0])),
    "baddbmm": ("xy", lambda x, y: Tensor([1.0]).baddbmm(x.unsqueeze(0), y.T.unsqueeze(0))),
    "addbmm": ("xy", lambda x, y: Tensor([1.0]).addbmm(x.unsqueeze(0), y.T.unsqueeze(0))),
    "gaussian_nll_loss": ("xy", lambda x, y: x.gaussian_nll_loss(y, y)),
    "margin_ranking_loss": ("xy", lambda x, y: x.margin_ranking_loss(y, y)),
    "cosine_embedding_loss": ("xy", lambda x, y: x.cosine_embedding_loss(y, Tensor([1, -1, 1, 1]))),
    "triplet_margin_loss": ("xy", lambda x, y: x.triplet_margin_loss(y, x * y)),
    "multi_margin_loss": ("xi", lambda x, i: x.T.multi_margin_loss(i[0])),
    "gradient": ("x", lambda x: (x * x).sum().gradient(x)[0] if x.requires_grad_(False) is None else x * 2),
    "backward": ("xy", lambda x, y: _grad(x, y)),
    "shape": ("x", lambda x: x / x.shape[1]),
    "ndim": ("x", lambda x: x * x.ndim),
    "realize": ("x", lambda x: (x * 2).realize().sum(1)),
    "to": ("x", lambda x: x.to("NUMPY:1").to("NUMPY") + 1),
    "item": ("x", lambda x: x * x.sum().item()),
    "tolist": ("x", lambda x: x * len(x.tolist()[0])),
    "numpy": ("x", lambda x: x * x.numpy().shape[1]),
    "data": ("x", lambda x: x * x.data().shape[1]),
}


def _pooled_and_back(x: Tensor) -> Tensor:
    maxima, places = x.max_pool2d((2, 1), return_indices=True)
    whole: Tensor = maxima.max_unpool2d(places, (2, 1))
    return whole


def _grad(x: Tensor, y: Tensor) -> Tensor:
    a = (x + 0).requires_grad_()
    (a * y * a).mean().backward()
    assert a.grad is not None
    return a.grad


NOT_HERE = {
    # attributes, constructors from data, and what says nothing of elements
    "device", "dtype", "grad", "is_realized", "lazydata", "requires_grad", "training", "element_size", "empty",
    "is_floating_point", "is_neg", "broadcast_shapes", "register_post_accumulate_grad_hook",
    "from_blob", "from_dlpack", "manual_seed", "no_grad", "train", "replace", "requires_grad_",
    "enable_grad", "from_url", "register_hook", "retain_grad", "set_grad_enabled",
    "schedule", "schedule_with_vars", "to_", "get_rng_state", "set_rng_state",
    "copy_", "cpu", "cuda", "detach_", "dim", "get_device", "grad_fn", "is_complex", "is_conj", "is_contiguous",
    "is_cpu", "is_cuda", "is_leaf", "is_meta", "is_mps", "is_nested", "is_nonzero", "is_quantized", "retains_grad",
    "is_same_size", "is_signed", "itemsize", "nelement", "new_tensor",
    "result_type", "storage_offset", "stride", "to_device", "type", "autocast", "fill_diagonal_",
    # complex numbers, whose parts are tensors of these methods
    "cdouble", "cfloat", "complex", "polar", "imag", "view_as_complex", "view_as_real", "stft", "istft",
    # what is asked of row-sparse gradients
    "coalesce", "indices", "is_coalesced", "is_sparse", "to_dense", "values",
}  # fmt: skip


def _inputs(kinds: str, size: int, symbolic: bool, variable: Variable = N) -> list[Tensor]:
    n: Any = variable.bind(size) if symbolic else size
    out = []
    for kind in kinds:
        if kind == "s":
            out.append(Tensor(SQUARE)[:n, :n])
        elif kind == "m":
            out.append(Tensor(IMAGE)[:, :, :n])
        else:
            out.append(Tensor({"x": DATA, "y": OTHER, "i": COUNTS}[kind])[:, :n])
    return [t if symbolic else t.contiguous().realize() for t in out]


def _arrays(value: Any) -> list[Any]:
    if isinstance(value, Tensor):
        return [value.numpy()]
    return [array for part in value for array in _arrays(part)] if isinstance(value, (list, tuple)) else [value]


def test_every_method_is_here() -> None:
    here = {name.split(" ")[0] for name in CASES} | NOT_HERE
    public = {name for name, _ in inspect.getmembers(Tensor) if not name.startswith("_")} - set(other_names(Tensor))
    assert public <= here, f"no case for {sorted(public - here)}"


REFUSED = (RuntimeError, ValueError, TypeError, NotImplementedError, IndexError)


@pytest.mark.drawn(70)
@pytest.mark.parametrize("name", CASES)
def test_the_value_is_that_of_the_replay(name: str) -> None:
    kinds, function = CASES[name]
    jitted: Any = TinyJit(function)
    record: Record | None = None
    for count, size in enumerate(SIZES):
        try:
            with_numbers = _arrays(function(*_inputs(kinds, size, False)))
        except REFUSED:
            with_numbers = None  # wrong with numbers, too
        try:
            got = jitted(*_inputs(kinds, size, True))
        except (*REFUSED, JitError) as error:
            assert count < 2 and jitted.captured is None and str(error), f"{name}: a replay failed: {error}"
            return
        record = jitted.captured
        assert (record is not None) == (count > 0)
        if with_numbers is None:
            continue
        ours = _arrays(got)
        assert len(ours) == len(with_numbers)
        for a, b in zip(ours, with_numbers, strict=True):
            assert np.shape(a) == np.shape(b), f"{name} at {size}"
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=f"{name} at {size}")


def _slopes(kinds: str, function: Callable[..., Any], size: int, symbolic: bool) -> Any:
    """The gradient of a weighted sum of floats that a case gives, for its first operand; None if none flows."""
    given = _inputs(kinds, size, symbolic, SHORT)
    given[0] = (given[0] + 0).requires_grad_()
    out = function(*given)
    total = Tensor(0.0)
    for part in out if isinstance(out, (list, tuple)) else [out]:
        if isinstance(part, Tensor) and part.is_floating_point():
            weights = [Tensor.arange(dim).reshape(dim, *(1,) * (part.ndim - 1 - axis)) % 3 + 1
                       for axis, dim in enumerate(part.shape)]  # fmt: skip
            for weight in weights:
                part = part * weight
            total = total + part.sum()
    if not total.requires_grad:
        return None
    total.backward()
    return None if given[0].grad is None else given[0].grad.numpy()


SMOOTH = [name for name, (kinds, _) in CASES.items() if kinds[0] in "xsm" and name not in ("gradient", "backward")]


@pytest.mark.drawn(10)
@pytest.mark.parametrize("name", SMOOTH)
def test_the_gradient_is_that_of_a_number(name: str) -> None:
    """With a value of the variable, and with as many elements."""
    for size in (5, 1):
        try:
            wanted = _slopes(*CASES[name], size, False)
            found = _slopes(*CASES[name], size, True)
        except REFUSED:
            continue
        assert (found is None) == (wanted is None)
        if found is not None and np.isfinite(wanted).all():
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5, err_msg=f"{name} at {size}")


WORKS = [
    "cumsum of axis 1", "cumprod of axis 1", "cummax of axis 1", "cumsum", "diagonal", "diagonal above", "roll",
    "roll back", "softmax", "mean", "var", "sum of axis 0", "matmul over the size", "cat", "cross_entropy", "arange",
    "logcumsumexp of axis 1", "conv2d", "backward", "scaled_dot_product_attention", "sort of axis 0", "sort of axis 1",
    "argsort of axis 0", "argsort", "topk", "topk of another axis", "interpolate of a batch", "max_pool2d of a batch",
    "median of axis 1", "kthvalue", "quantile", "mode", "searchsorted",
    "max_unpool2d of a batch", "cross_entropy of probabilities", "split of another axis", "multinomial",
    "masked_select", "randperm",
]  # fmt: skip


REFUSED_HERE = [
    "len", "interpolate", "diagonal of a rectangle", "roll far", "split", "topk of more than there may be",
    "max_unpool2d",
]  # fmt: skip


@pytest.mark.parametrize("name", WORKS)
def test_what_works(name: str) -> None:
    """These are recorded, and not refused."""
    kinds, function = CASES[name]
    jitted: Any = TinyJit(function)
    for size in SIZES:
        jitted(*_inputs(kinds, size, True))
    assert jitted.captured is not None


@pytest.mark.parametrize("name", REFUSED_HERE)
def test_what_is_refused_says_why(name: str) -> None:
    kinds, function = CASES[name]
    jitted: Any = TinyJit(function)
    jitted(*_inputs(kinds, 5, True))
    with pytest.raises(RuntimeError, match="was wanted as a number inside of a function while TinyJit records it"):
        jitted(*_inputs(kinds, 5, True))


def test_a_variable_without_a_value(backend: str) -> None:
    with pytest.raises(ValueError, match="the variable u"):
        Tensor(Variable("u", 0, 10)).item()
    with pytest.raises(ValueError, match="the variable u"):
        (Tensor(Variable("u", 0, 10)) * 2).realize()
    with pytest.raises(ValueError, match=r"\bu\b"):
        Tensor.zeros(Variable("u", 1, 10)).tolist()
    with pytest.raises(ValueError, match=r"\bu\b"):
        Tensor([1.0, 2.0, 3.0])[Variable("u", 0, 2)].item()


def _moved(draw: random.Random) -> tuple[str, Callable[[Tensor], Tensor]]:
    k, a, b = draw.randint(-3, 3), draw.randint(0, 2), draw.randint(0, 2)
    kinds: dict[str, Callable[[Tensor], Tensor]] = {
        f"roll {k}": lambda x: x.roll(k, 0), "flip": lambda x: x.flip(0), f"pad {a} {b}": lambda x: x.pad((a, b)),
        "repeat": lambda x: x.repeat(2), f"from {a}": lambda x: x[a:], "twice": lambda x: x * 2,
        "cat": lambda x: x.cat(x.flip(0), dim=0), "pairs": lambda x: x.repeat(2).reshape(2, -1).permute(1, 0).flatten(),
    }  # fmt: skip
    return draw.choice(list(kinds.items()))


@pytest.mark.parametrize("seed", [*range(12), 583])
def test_movements_of_a_size_that_varies(backend: str, seed: int) -> None:
    """Chains of them, and the first and the last element of each, are what they are with the size as a number."""
    draw = random.Random(seed)
    steps = [_moved(draw) for _ in range(draw.randint(2, 4))]
    data = np.arange(1, 9, dtype=np.float32)
    for size in (3, 6, 8):
        try:
            with_symbol = Tensor(data)[: Variable("n", 3, 8).bind(size)]
            for _, step in steps:
                with_symbol = step(with_symbol)
        except REFUSED:
            return
        with_number = Tensor(data[:size])
        for _, step in steps:
            with_number = step(with_number)
        want = with_number.numpy()
        if not want.size:
            continue
        said = f"{[name for name, _ in steps]} at {size}"
        np.testing.assert_array_equal(with_symbol[0:1].numpy(), want[:1], err_msg=said)
        np.testing.assert_array_equal(with_symbol.flip(0)[0:1].numpy(), want[-1:], err_msg=said)
        np.testing.assert_array_equal(with_symbol.numpy(), want, err_msg=said)
