"""What each method of a tensor does with complex numbers, by its name. What has no row is refused."""

from __future__ import annotations

from ..domains import ANY
from ..ops import decompositions
from . import (
    arithmetic,
    componentwise,
    creation,
    elementary,
    formulas,
    gradients,
    products,
    reading,
    reduction,
    writing,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

RULES: dict[str, Callable[..., Any]] = {
    **{name: componentwise.alike(name) for name in componentwise.ALIKE},
    **{name: componentwise.writing(name) for name in componentwise.WRITING},
    **{name: componentwise.joining(name) for name in componentwise.JOINING},
    **{name: products.bilinear(name) for name in products.BILINEAR},
    **products.ADDED,
    **{name: componentwise.cast_to(dtype) for name, dtype in (
        ("float", "float32"), ("half", "float16"), ("bfloat16", "bfloat16"), ("double", "float64"), ("int", "int32"),
        ("long", "int64"), ("short", "int16"), ("byte", "uint8"), ("char", "int8"), ("bool", "bool"),
        ("cfloat", "complex64"), ("cdouble", "complex128"),
    )},
    # arithmetic
    "add": arithmetic.add,
    "sub": arithmetic.sub,
    "rsub": arithmetic.rsub,
    "mul": arithmetic.mul,
    "div": arithmetic.div,
    "pow": arithmetic.pow,
    "float_power": arithmetic.float_power,
    "neg": arithmetic.neg,
    "positive": arithmetic.positive,
    "reciprocal": arithmetic.reciprocal,
    "square": arithmetic.square,
    "lerp": arithmetic.lerp,
    "addcmul": arithmetic.addcmul,
    "addcdiv": arithmetic.addcdiv,
    "eq": arithmetic.eq,
    "ne": arithmetic.ne,
    # elementary functions
    **{
        name: getattr(elementary, name)
        for name in """
        abs angle sgn exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan asinh
        acosh atanh sigmoid
        """.split()
    },
    # parts
    "conj": componentwise.conj,
    "adjoint": componentwise.adjoint,
    "conj_physical": componentwise.conj,
    "resolve_conj": componentwise.itself,
    "resolve_neg": componentwise.itself,
    "view_as_real": componentwise.view_as_real,
    # movement and selection
    "view": componentwise.view,
    "pad": componentwise.pad,
    "pad_to": componentwise.pad_to,
    "diff": componentwise.diff,
    "where": componentwise.where,
    "cast": componentwise.cast,
    "to": componentwise.to,
    "type": componentwise.type_,
    "type_as": componentwise.type_as,
    "bitcast": componentwise.bitcast,
    # reductions
    **{
        name: getattr(reduction, name)
        for name in """
        sum mean nansum cumsum trace prod cumprod var std norm dist any all count_nonzero nonzero nonzero_static
        logical_not logical_and logical_or logical_xor isnan isinf isfinite isreal isclose allclose equal
        """.split()
    },
    # formulas
    **{
        name: getattr(formulas, name)
        for name in """
        silu softsign tanhshrink sinc ldexp logaddexp logsumexp logcumsumexp var_mean std_mean cov corrcoef renorm
        normalize pairwise_distance triplet_margin_loss l1_loss logspace
        """.split()
    },
    "swish": formulas.silu,
    **{name: formulas.cast_before(name) for name in ("softmax", "softmin", "log_softmax")},
    # products
    "matmul": products.matmul,
    **{name: products.strips(name) for name in ("trapezoid", "cumulative_trapezoid")},
    "vdot": products.vdot,
    "linear": products.linear,
    "einsum": products.einsum,
    **{name: products.convolution(name) for name in products.CONVOLUTIONS},
    # matrices
    **{
        name: getattr(decompositions, name)
        for name in """
        cholesky cholesky_inverse cholesky_solve det geqrf inverse logdet lu lu_solve matrix_exp matrix_power orgqr
        ormqr pinverse qr slogdet svd triangular_solve
        """.split()
    },
    # creation
    **{name: creation.constant(name) for name in ("zeros", "ones", "empty", "eye", "arange")},
    "full": creation.full,
    "scalar_tensor": creation.scalar_tensor,
    "linspace": creation.linspace,
    "rand": creation.drawn("rand"),
    "randn": creation.drawn("randn", creation.HALF),
    **{name: creation.like(name) for name in ("zeros_like", "ones_like", "empty_like", "rand_like", "randn_like")},
    "full_like": creation.full_like,
    "const_like": creation.const_like,
    **{name: creation.new(name) for name in ("new_zeros", "new_ones", "new_empty", "new_full")},
    "new": creation.new_of,
    "new_tensor": creation.new_tensor,
    # elements on the host
    "realize": reading.realize,
    "schedule": reading.schedule,
    "schedule_with_vars": reading.schedule_with_vars,
    "numpy": reading.numpy,
    "tolist": reading.tolist,
    "item": reading.item,
    # where they lie, and whether they are 0
    **{name: reading.of_real_part(name) for name in ("stride", "storage_offset", "is_contiguous")},
    "is_nonzero": reading.is_nonzero,
    # elements written
    "assign": writing.assign,
    "replace": writing.replace,
    "fill": writing.fill,
    "fill_": writing.fill_,
    "fill_diagonal_": writing.fill_diagonal_,
    "copy_": writing.copy_,
    "zero_": writing.zero_,
    "normal_": writing.normal_,
    "uniform_": writing.uniform_,
    # gradients
    "requires_grad_": gradients.requires_grad_,
    "register_hook": gradients.register_hook,
    "register_post_accumulate_grad_hook": gradients.register_post_accumulate_grad_hook,
    "retain_grad": gradients.retain_grad,
    "detach_": gradients.detach_,
    "backward": gradients.backward,
    "gradient": gradients.gradient,
}  # fmt: skip

OPERATORS: dict[str, Callable[..., Any]] = {
    "__add__": arithmetic.add,
    "__sub__": arithmetic.sub,
    "__mul__": arithmetic.mul,
    "__truediv__": arithmetic.div,
    "__pow__": arithmetic.pow,
    "__matmul__": products.matmul,
    "__rmatmul__": products.rmatmul,
    "__getitem__": componentwise.getitem,
    "__setitem__": writing.setitem,
    "__iter__": componentwise.iterate,
    "__iadd__": writing.in_place("add", "+="),
    "__isub__": writing.in_place("sub", "-="),
    "__imul__": writing.in_place("mul", "*="),
    "__itruediv__": writing.in_place("div", "/="),
    "__ipow__": writing.in_place("pow", "**="),
    "__imatmul__": writing.in_place("matmul", "@="),
    "__array__": reading.array,
    "__buffer__": reading.buffer,
    "__reduce__": reading.reduce,
    "__dlpack__": reading.dlpack,
    "__dlpack_device__": reading.dlpack_device,
    "__repr__": reading.text_of,
    "_repr_html_": reading.html_of,
}

OF_ELEMENTS = frozenset("sum mean nansum prod cumsum cumprod var std norm any all count_nonzero".split())
"""Methods of which no argument is complex but the tensor itself."""

KEPT = frozenset(ANY).union(
    """
    numel real imag T mT H mH shape dtype device ndim grad requires_grad is_realized is_sparse lazydata training is_leaf
    grad_fn retains_grad itemsize is_cuda is_mps is_cpu is_meta is_nested is_quantized data
    """.split()
)
"""Public names whose meaning for complex numbers follows from others, or that have a property of their own."""

KEPT_OPERATORS = frozenset(
    """
    __abs__ __neg__ __radd__ __rsub__ __rmul__ __rtruediv__ __rpow__ __eq__ __ne__ __len__ __bool__ __complex__
    __format__ __hash__ __array_ufunc__ __float__ __int__ __index__
    """.split()
)
"""Operators that are made of the methods with rows."""
