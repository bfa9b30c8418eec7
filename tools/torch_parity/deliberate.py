"""What is not as in PyTorch on purpose, and why: what the table counts apart."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase


@dataclass
class Reason:
    """Differences that are meant.

    Attributes:
      names: operations, as the table names them; ``*`` stands for any part.
      found: a regular expression that the note of a sample matches, as ``differs .*gradient``.
      why: one line.
      seen: how many notes it explained in this run.
    """

    names: tuple[str, ...]
    found: str
    why: str
    seen: int = field(default=0, compare=False)

    def explains(self, name: str, note: str) -> bool:
        """Whether a difference of an operation is this one."""
        return any(fnmatchcase(name, part) for part in self.names) and re.match(self.found, note, re.DOTALL) is not None


_POINTWISE = ("atan2", "fmax", "fmin", "gcd", "heaviside", "hypot", "igamma", "igammac", "isclose", "lcm", "ldexp",
              "logaddexp", "logical_*", "maximum", "minimum", "clamp_*")  # fmt: skip
REASONS = [
    # values and gradients
    Reason(("airy_ai", "*bessel_*", "special.airy_ai"), r"differs float64.*values, ",
           "here to the last bits of float64 (mpmath), PyTorch's to 1e-7"),
    Reason(("nn.functional.hardsigmoid",), r"differs float64.*gradient",
           "the slope is 1/6; PyTorch's is 1/6 in float32"),
    Reason(("trapz", "trapezoid", "cumulative_trapezoid"), r"differs uint8\(uint8\[.*\], uint8\[.*values, ",
           "differences of unsigned bounds are negative where these fall; PyTorch's wrap"),
    Reason(("as_strided:partial_views",), r"differs ",
           "memory under another view: arguments reach this side as tensors of their own"),
    Reason(("as_strided_scatter",), r"differs .*gradient",
           "what was written over has no slope; PyTorch gives it that of the rest, and the rest none"),
    Reason(("nn.functional.ctc_loss",), r"differs .*gradient",
           "PyTorch's slope takes it that log_softmax stands before; at the logits both agree"),
    Reason(("nn.functional.max_unpool*",), r"differs .*gradient",
           "of values written to one place the last stays; PyTorch gives slopes to those that are lost"),
    Reason(("nextafter",), r"differs .*no gradient flows", "the last bit has no slope here"),
    Reason(("cov",), r"differs complex128.*aweights=float32", "weights are taken in float64; PyTorch's in float32"),
    Reason(("logsumexp",), r"differs complex64\(complex64\[\].*gradient",
           "of one number it is the weight itself; PyTorch's has the rounding of an exponential"),
    Reason(("logcumsumexp",), r"differs complex.* values, ",
           "angles are between -pi and pi; PyTorch's have turns that depend on the order of the sums"),
    Reason(("as_strided:partial_views",), r"refuses ",
           "memory under another view: arguments reach this side as tensors of their own"),
    Reason(("nn.functional.multi_head_attention_forward",), r"differs .*False, 0\.5,",
           "half of the weights are dropped, at random"),
    Reason(("linalg.pinv:hermitian",), r"differs .*gradient",
           "the samples are not symmetric: of a matrix whose lower half is read the upper has no slope"),
    Reason(("matrix_exp",), r"differs float32.*values, ",
           "1e-6 of the largest element, 1e5, which is the precision of its products; PyTorch's is half of that"),
    Reason(("linalg.lstsq",), r"differs .*shape \(0,\), here \([\d, ]*\)",
           "rank and singular values are always given; PyTorch leaves them out for some drivers"),
    Reason(("cholesky_inverse", "cholesky_solve"), r"differs .*upper=True\): gradient",
           "what stands below an upper factor is not read, and has no slope"),
    Reason(("addmv", "addbmm", "baddbmm"), r"differs int.*beta=0\.\d, alpha=0\.\d\): dtype int\d\d, here float32",
           "whole numbers times fractions are fractions; PyTorch takes the fractions for 0"),
    # what is refused
    Reason(("matrix_exp",), r"refuses (bfloat16|float16)", "matrices are of float32 or float64"),
    Reason(("nn.functional.linear_cross_entropy:*",), r"refuses .*there are no options",
           "how it is cut into pieces is decided by the compiler"),
    Reason(("nn.functional.triplet_margin_with_distance_loss",), r"refuses .*pairwise_distance\(\): argument",
           "the distance of the sample is a module of PyTorch's"),
    # what is accepted
    Reason(_POINTWISE, r"accepts .*(must be Tensor, not int|invalid combination)", "numbers stand for tensors"),
    Reason(("arange",), r"accepts .*inconsistent with step", "an empty range, as numpy's"),
    Reason(("complex",), r"accepts .*(Expected both inputs|Expected object of scalar type)", "dtypes are promoted"),
    Reason(("cov",), r"accepts .*cannot be negative", "what depends on values does not raise: NaN"),
    Reason(("gather", "scatter", "scatter_add"), r"accepts .*out of bounds",
           "what depends on values does not raise: 0 is read, nothing is written (docs/from-pytorch.md)"),
    Reason(("trace",), r"accepts .*expected a matrix", "of more axes the first two, as numpy's"),
    Reason(("scatter", "scatter_add"), r"accepts .*Expected self.dtype", "the source is cast, as an assignment does"),
    Reason(("linalg.cross",), r"accepts .*same number of dimensions", "axes are broadcast, as numpy's cross"),
    Reason(("linspace*", "logspace*"), r"accepts .*only supports 0-dimensional", "bounds of any shape, as numpy's"),
    Reason(("masked_fill",), r"accepts .*only supports a 0-dimensional", "the value is broadcast"),
    Reason(("mean",), r"accepts .*could not infer output dtype", "means of integers are floats, as numpy's"),
    Reason(("multinomial",), r"accepts .*only supports floating", "weights may be counts"),
    Reason(("nn.functional.conv*",), r"accepts .*Input type .* and bias type", "dtypes are promoted"),
    Reason(("nn.functional.conv*",), r"accepts .*negative padding", "a negative amount takes elements away, as pad()"),
    Reason(("nn.functional.embedding",), r"accepts .*'weight' must be 2-D", "rows may be of any shape"),
    Reason(("nn.functional.max_pool*",), r"accepts .*half of effective kernel",
           "no window lies in the padding alone, and that is what is asked for"),
    Reason(("nn.functional.max_pool*",), r"accepts .*Expected", "an empty axis gives an empty result"),
    Reason(("signal.windows.*",), r"accepts .*expects float32 or float64", "windows of any dtype of floats"),
    # what has no name here
    Reason(("native_*", "max_pool2d_with_indices_backward", "torch._scaled_mm*", "grid_sampler_?d", "slice",
            "constant_pad_nd"), r"missing",
           "a step of PyTorch's own, called under another name"),
    Reason(("empty_permuted", "empty_strided", "new_empty_strided", "as_strided_copy"), r"missing",
           "there is one layout"),
    Reason(("resolve_neg",), r"missing", "no tensor is negated by a bit"),
    Reason(("hash_tensor",), r"missing", "hash() gives a digest of the bytes"),
]  # fmt: skip

_WINDOWS = "bartlett blackman cosine exponential gaussian general_cosine general_hamming hamming hann kaiser nuttall"
SIGNATURES = [
    # where another argument stands
    Reason(("Tensor.add*", "Tensor.sub*"), r"alpha stands", "in Python alpha is named, whatever the schema says"),
    Reason(("Tensor.max", "Tensor.min"), r"other (stands|is not)", "a tensor where the axis stands is the other one"),
    Reason(("Tensor.copy_",), r"other (stands|is not)", "in Python it is called src"),
    Reason(("Tensor.random_",), r"to stands", "a single number is the end, as PyTorch has it"),
    Reason(("Tensor.std", "Tensor.var"), r"unbiased (stands|is not)",
           "a bool in the place of the axis is it, and so is the name"),
    Reason(("Tensor.std", "Tensor.var"), r"\w+ has to be named", "tinygrad has another order behind the axis"),
    Reason(("Tensor.to",), r"\w+ (stands|is not known|has to be named)", "arguments are told apart by their types"),
    # names that there are not
    Reason(("Tensor.*",), r"out_dtype ", "products are cast where that is wanted, with .cast()"),
    Reason(("Tensor.gather", "Tensor.to_dense"), r"(sparse_grad|masked_grad) is not", "gradients of these are dense"),
    Reason(("Tensor.is_contiguous",), r"memory_format ", "there is one layout"),
    Reason(("Tensor.stft",), r"align_to_window ", "windows begin where they begin"),
    Reason(("nn.Embedding*",), r"(_weight|_freeze) ", "from_pretrained() has them"),
    Reason(("nn.EmbeddingBag",), r"\w+ has to be named", "behind an argument that is not there"),
    Reason(("nn.Hardtanh",), r"(min_value|max_value) ", "older names of min_val and max_val"),
    Reason(("nn.functional.elu_",), r"(scale|input_scale) ", "of the schema alone: selu has them"),
    Reason(("nn.functional.*softm*",), r"(_stacklevel|dtype) ", "whose line a warning names is not for callers"),
    Reason(("nn.functional.normalize",), r"out has", "results are written with assign()"),
    Reason(("nn.*",), r"generator has", "random numbers are a function of seed and call"),
    Reason(("nn.optim.*",), r"(foreach|capturable|differentiable|maximize) has to be named",
           "speed is the compiler's; and what stands behind that is named"),
    Reason(("linalg.svd*",), r"driver ", "there is one algorithm"),
    # other defaults
    Reason(("Tensor.amax", "Tensor.amin", "Tensor.roll"), r"dims? is \[\]", "no axes are all of them, and None here"),
    Reason(("Tensor.as_strided*",), r"storage_offset is None", "0, as of a tensor that is no view"),
    Reason(("Tensor.histogram",), r"bins is 100", "numpy's 10"),
    Reason(("Tensor.nan_to_num*", "nn.functional.pad"), r"(nan|value) is None", "which is 0"),
    Reason(("Tensor.norm",), r"p is 'fro'", "which is 2"),
    Reason(("Tensor.std", "Tensor.var"), r"correction is None", "which is 1"),
    Reason(("Tensor.cov",), r"correction is 1, here None", "which is 1 unless numpy's bias says 0"),
    Reason(("nn.functional.affine_grid", "nn.functional.grid_sample"), r"align_corners is None", "which is False"),
    Reason(("nn.functional.avg_pool*",), r"stride is \[\]", "which is None"),
    Reason(("nn.functional.conv*",), r"padding is 'valid'", "of one of two ways; which is 0"),
    Reason(("nn.data.DataLoader",), r"shuffle is None", "which is False"),
    Reason(("nn.amp.GradScaler",), r"device is 'cuda'", "the device of the tensors"),
    Reason(tuple(f"signal.windows.{name}" for name in _WINDOWS.split()), r"requires_grad is False",
           "None leaves it open: no gradient unless something asks for it"),
]  # fmt: skip
"""Arguments that are not PyTorch's on purpose: what ``tools/torch_parity/signatures.py`` finds."""

MODULES = [
    Reason(("CrossMapLRN2d",), r"differs .*(gradient|values)",
           "PyTorch's running sum keeps the square of the first channel; its LocalResponseNorm agrees"),
    Reason(("Hardsigmoid",), r"differs float64.*gradient", "the slope is 1/6; PyTorch's is 1/6 in float32"),
    Reason(("LPPool*",), r"differs .*gradient.*nan is here 0", "where a norm is 0 its gradient is 0, not NaN"),
    Reason(("*Loss", "PairwiseDistance", "CosineSimilarity"), r"differs .*text ",
           "settings of losses and distances that were given are shown"),
    Reason(("Transformer*", "MultiheadAttention"), r"differs .*text ",
           "there are other parts in it than in PyTorch's: dropout is a number, projections are Linear"),
    Reason(("Transformer*",), r"differs .*attribute (activation_relu|enable_nested|mask_check)",
           "how PyTorch chooses its own fast path"),
    Reason(("LinearCrossEntropyLoss",), r"(differs .*attribute|refuses .*there are no) options",
           "the compiler decides what is cut into pieces"),
    Reason(("Unflatten",), r"differs .*text .*torch.Size", "a torch.Size is a tuple here"),
    Reason(("Embedding*",), r"accepts .*out of range", "what depends on values does not raise: rows of zeros"),
    Reason(("NLLLoss",), r"accepts .*expected scalar type", "dtypes are promoted"),
    Reason(("RNN", "GRU", "LSTM"), r"accepts .*does not match weight dtype", "dtypes are promoted"),
]  # fmt: skip
"""Layers that are not PyTorch's on purpose: what ``tools/torch_parity/modules.py`` finds."""

OPTIMISERS = [
    Reason(("*",), r"accepts .*duplicate parameters", "a parameter that is there twice is taken once; PyTorch warns"),
    Reason(("Adam", "AdamW"), r"accepts .*(betas|lr as Tensor)", "numbers and tensors of one element are taken alike"),
    Reason(("LBFGS",), r"differs .*state of parameters", "the steps that it remembers are not saved: it begins anew"),
    Reason(("LBFGS",), r"differs (float32|complex64).*step \d+: .*values",
           "twenty evaluations a step, along directions that rounding turns; float64 agrees"),
    Reason(("*LR", "*Restarts", "*Plateau"), r"differs .*no attribute",
           "a schedule is computed from the number of steps: it keeps no more than that"),
]  # fmt: skip
"""Optimisers and schedules that are not PyTorch's on purpose: what ``tools/torch_parity/optimisers.py`` finds."""
ATTRIBUTES = [
    Reason(("nbytes",), r"differs .*a method", "tinygrad's method"),
    Reason(("requires_grad",), r"differs .*False, here None", "None leaves open whether a gradient is wanted"),
    Reason(("mT", "mH"), r"differs .*a matrix is wanted, got shape \(\)",
           "the array API refuses a number; PyTorch means to"),
    Reason(("grad_dtype", "layout", "name", "output_nr", "volatile", "is_ipu", "is_maia", "is_mkldnn", "is_mtia",
            "is_sparse_csr", "is_vulkan", "is_xla", "is_xpu"), r"refuses ", "the error says what is used instead"),
]  # fmt: skip
"""Attributes of tensors that are not PyTorch's on purpose: what ``tools/torch_parity/attributes.py`` finds."""


def reason(name: str, note: str, among: list[Reason] = REASONS) -> str | None:
    """Why an operation differs as a note says; None if that is not meant."""
    found = next((one for one in among if one.explains(name, note)), None)
    if found is None:
        return None
    found.seen += 1
    return found.why
