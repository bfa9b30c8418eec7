"""Which numbers the methods of Tensor take. Those that are not named here refuse complex ones."""

from __future__ import annotations

BOTH = tuple(
    """
    __add__ __matmul__ __mul__ __pow__ __sub__ __truediv__ abs acos acosh add addbmm addcdiv addcmul addmm addmv
    addr adjoint all allclose angle any arange as_strided as_strided_scatter asin asinh assign atan atanh atleast_1d
    atleast_2d atleast_3d backward baddbmm bfloat16 bitcast block_diag bmm bool broadcast_tensors broadcast_to byte
    cartesian_prod cast cat cdouble cfloat channel_shuffle char cholesky cholesky_inverse cholesky_solve chunk clone
    column_stack combinations conj conj_physical const_like contiguous contiguous_backward conv1d conv2d conv3d
    conv_transpose1d conv_transpose2d conv_transpose3d copy_ corrcoef cos cosh count_nonzero cov cross cumprod
    cumsum cumulative_trapezoid det detach detach_ diag diag_embed diagflat diagonal diagonal_copy diagonal_scatter
    diff dist div dot double dsplit dstack einsum empty empty_like eq equal exp exp2 expand expand_as expand_copy
    expm1 eye fill fill_ fill_diagonal_ flatten flip fliplr flipud float float_power full full_like gather geqrf
    gradient half hsplit hstack index_add index_copy index_fill index_put index_select inner int inverse
    is_contiguous is_nonzero isclose isfinite isinf isnan isreal item kron l1_loss ldexp lerp linear linspace log
    log10 log1p log2 log_softmax logaddexp logcumsumexp logdet logical_and logical_not logical_or logical_xor
    logspace logsumexp long lu lu_solve masked_fill masked_scatter masked_select matmul matrix_exp matrix_power mean
    meshgrid mm movedim mul mv nan_to_num nansum narrow narrow_copy ne neg new new_empty new_full new_ones
    new_tensor new_zeros nonzero nonzero_static norm normal_ normalize numpy ones ones_like orgqr ormqr outer pad
    pad_to pairwise_distance permute permute_copy pinverse pixel_shuffle pixel_unshuffle positive pow prod put qr
    rand rand_like randn randn_like ravel realize rearrange reciprocal register_hook
    register_post_accumulate_grad_hook renorm repeat repeat_interleave replace requires_grad_ reshape reshape_as
    resolve_conj resolve_neg retain_grad roll rot90 rsqrt rsub scalar_tensor scatter scatter_add schedule
    schedule_with_vars select select_scatter sgn short shrink shrink_to sigmoid silu sin sinc sinh slice_scatter
    slogdet softmax softmin softsign split split_with_sizes_copy sqrt square squeeze squeeze_copy stack std std_mean
    storage_offset stride sub sum sum_to_size svd swish t t_copy take take_along_dim tan tanh tanhshrink
    tensor_split tensordot tile to to_ to_dense tolist trace transpose transpose_copy trapezoid triangular_solve
    tril triplet_margin_loss triu type type_as unbind unbind_copy unflatten unfold unfold_copy uniform_ unsqueeze
    unsqueeze_copy var var_mean vdot view view_as view_as_real view_copy vsplit vstack where zero_ zeros zeros_like
    """.split()
)
"""Methods that have a rule for complex numbers in ``tg_frontend.complex.table``, beside what they do with real ones."""

ANY = tuple(
    """
    complex cpu cuda dim element_size enable_grad from_blob from_dlpack get_device get_rng_state is_complex is_conj
    is_floating_point is_same_size is_signed istft manual_seed nbytes nelement no_grad numel polar result_type
    sequential set_grad_enabled set_rng_state size stft to_device train view_as_complex __init__ is_neg
    broadcast_shapes
    """.split()
)
"""Methods that need none."""

NUMBERS = {**dict.fromkeys(BOTH, "both"), **dict.fromkeys(ANY, "any")}
