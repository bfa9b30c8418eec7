"""Names that other libraries have on their tensors and this one has not: what is used here instead."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

_SPARSE = "only gradients of tables are sparse, by whole rows (embedding(sparse=True)); other tensors are dense"
_QUANTISED = "tensors hold no scales: keep integers beside a scale, (x / scale).round().clamp(-128, 127).cast('int8')"
_STORAGE = (
    "a tensor has no storage of a size of its own: a shape is changed by reshape(), pad() and shrink(), contents by "
    "assign(); memory is shared through DLPack"
)
_ELEMENTWISE = "no function of Python sees single elements: write it as an expression of tensors, which is fused"
_DEVICE = "ask for .device, and move with to()"
_LAYOUT = "ask for stride() and is_contiguous(); elements are reached through numpy()"
_GROUPS = {
    _SPARSE: "to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc sparse_dim dense_dim "
    "crow_indices col_indices ccol_indices row_indices sparse_mask sparse_resize_ sparse_resize_and_clear_ smm "
    "sspaddmm is_sparse_csr resize_as_sparse_ layout",
    _QUANTISED: "dequantize int_repr q_scale q_zero_point q_per_channel_axis q_per_channel_scales "
    "q_per_channel_zero_points qscheme",
    _STORAGE: "storage untyped_storage storage_type set_ resize resize_ resize_as resize_as_ is_set_to "
    "new_empty_strided data_ptr const_data_ptr",
    _ELEMENTWISE: "apply_ map_ map2_",
    _DEVICE: "is_xla is_xpu is_ipu is_maia is_mkldnn is_mtia is_vulkan ipu xpu mtia to_mkldnn",
    _LAYOUT: "strides flags base ctypes dim_order setflags getfield setfield byteswap",
    "work on a device is not in streams that one chooses": "record_stream",
    "memory of the host is shared with processes by files and DLPack": "is_shared share_memory_ is_pinned pin_memory",
    "axes have no names": "name names refine_names align_to align_as rename rename_ has_names",
    "tensors are not nested: pad them to one shape": "to_padded_tensor",
    "it is numpy().tobytes(), or numpy().tofile(file)": "tobytes tofile",
    "it is clone()": "copy",
    "it is cast(dtype)": "astype",
    "it is conj()": "conjugate",
    "it is max() - min()": "ptp",
    "it is sort(), topk() or kthvalue()": "partition",
    "it is argsort() or topk()": "argpartition",
    "it is flatten(), or reshape(-1)": "flat",
    "a condition in square brackets chooses: x[condition]": "compress",
    "it is gather() of stacked tensors": "choose",
    "nn.state.safe_save keeps tensors in files": "dump dumps",
    "complex numbers have parts of float32 or float64: cfloat()": "chalf",
    "it is hash()": "hash_tensor",
    "it is as_strided(), which gives a view": "as_strided_",
    "Tensor is not derived from: Function has gradients of one's own": "as_subclass",
    "it is linalg.eig or linalg.eigvals": "eig",
    "it is linalg.eigh or linalg.eigvalsh": "symeig",
    "it is linalg.lstsq": "lstsq",
    "it is linalg.solve": "solve",
    "it is linalg.matrix_rank": "matrix_rank",
    "it is linalg.multi_dot": "chain_matmul",
    "inference is Tensor.no_grad()": "is_inference volatile",
    "a gradient has its tensor's dtype": "grad_dtype",
    "an index in square brackets, or index_put()": "index",
    "tensors are on one device of one process": "is_distributed shard shard_ shard_like",
    "load_state_dict() of a module does it": "module_load",
    "it is the place of a tensor among a function's results, which nothing here asks for": "output_nr",
    "draw with multinomial(), and weigh the logarithms of probabilities": "reinforce",
    "it is the gradient of a slice, which backward() takes": "slice_inverse",
    "it is requires_grad, of which an optimiser or requires_grad_() decides": "is_param is_param_ as_param",
    "the graph is lazydata, of which schedule() makes kernels": "uop alu call ufix usum uprod linear_with_vars "
    "schedule_linear",
    "the greatest sizes of a Variable are its bounds": "max_shape max_numel",
    "it is full() or const_like()": "const",
    "it is empty()": "invalids",
    "rand() and randint() draw, from threefry, as manual_seed() says": "random_bits threefry",
    "nothing here decodes films": "decode_hevc_frame",
}
INSTEAD = {
    "callify": "TinyJit records a function with its kernels, and replays them",
    "custom_kernel": (
        "a kernel is written as a Tensor expression, which is fused; loops are scan and while_loop, gradients of one's "
        "own are Function; UOps are compiled by tg_codegen, beneath tensors"
    ),
    **{name: said for said, names in _GROUPS.items() for name in names.split()},
}
"""What is used instead, by the name that is not there."""


def refused(x: Any, name: str) -> NoReturn:
    """Called for what is not found: says what is used instead, where that is known."""
    said = f"{type(x).__name__!r} object has no attribute {name!r}"
    raise AttributeError(f"{said}: {INSTEAD[name]}" if name in INSTEAD else said, name=name, obj=x)
