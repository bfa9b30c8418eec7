"""Methods of complex numbers: rows of their own, and those of floats that are right for complex numbers as they stand.

Arguments near poles and branch cuts are left out: there rounding decides what is right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import ROWS
from .table import Array, Call, Pool, Ref, Row

OWN: dict[str, Row] = {}
"""Rows of complex numbers alone, or which take the place of those of floats."""
AS_FLOATS = frozenset(
    """
    addbmm addcdiv addcmul addmm addmv addr adjoint all any as_strided as_strided_scatter atleast_1d atleast_2d
    atleast_3d baddbmm block_diag bmm broadcast_tensors broadcast_to cartesian_prod cat channel_shuffle cholesky
    cholesky_inverse cholesky_solve chunk clone column_stack combinations contiguous contiguous_backward conv1d conv2d
    conv3d conv_transpose1d conv_transpose2d conv_transpose3d count_nonzero cov cross cumprod cumsum
    cumulative_trapezoid det diag diag_embed diagflat diagonal diagonal_copy diagonal_scatter diff dist dot dsplit
    dstack einsum eq expand expand_as expand_copy fill flatten flip fliplr flipud full_like gather hsplit hstack
    index_add index_copy index_fill index_put index_select inner inverse isclose isfinite isinf isnan kron l1_loss
    ldexp lerp linear logical_and logical_not logical_or logical_xor lu lu_solve masked_fill masked_scatter
    masked_select matmul matrix_exp matrix_power mean meshgrid mm movedim mul mv nan_to_num nansum narrow narrow_copy ne
    neg new_full new_ones new_zeros nonzero nonzero_static norm ones_like orgqr ormqr outer pad pad_to
    pairwise_distance permute permute_copy pinverse pixel_shuffle pixel_unshuffle positive prod put qr ravel rearrange
    repeat repeat_interleave reshape reshape_as roll rot90 rsub scatter scatter_add select select_scatter shrink
    shrink_to slice_scatter slogdet split split_with_sizes_copy square squeeze squeeze_copy stack sub sum sum_to_size
    svd t t_copy take take_along_dim tensor_split tensordot tile trace transpose transpose_copy trapezoid
    triangular_solve tril triplet_margin_loss triu type_as unbind unbind_copy unflatten unfold unfold_copy unsqueeze
    unsqueeze_copy vdot view view_as view_copy vsplit vstack where zeros_like
    """.split()
)
"""Rows of floats that are drawn with complex operands, too."""
NOT_DRAWN = {
    "arange": "of integers and floats; a complex dtype is a cast",
    "eye": "of no operands; a complex dtype is a cast",
    "linspace": "drawn as logspace, of which it gives the exponents",
    "empty": "has no values", "empty_like": "has no values", "new_empty": "has no values", "new": "has no values",
    "rand": "random", "rand_like": "random", "randn": "random", "randn_like": "random", "normal_": "random",
    "uniform_": "random",
    "bitcast": "refused: complex numbers are two tensors of floats",
    "softmax": "refused: there is no order", "softmin": "refused: there is no order",
    "log_softmax": "refused: there is no order",
    "bfloat16": "a cast, as float", "half": "a cast, as float", "int": "a cast, as long", "short": "a cast, as long",
    "byte": "a cast, as long", "char": "a cast, as long",
    "detach": "of graphs", "detach_": "of graphs, as which the fuzzer graphs draws it",
    "requires_grad_": "of graphs", "retain_grad": "of graphs",
    "register_hook": "of graphs, as which the fuzzer graphs draws it",
    "register_post_accumulate_grad_hook": "of graphs",
    "backward": "of graphs", "gradient": "of graphs",
    "assign": "writes", "copy_": "writes, as which the fuzzer graphs draws it",
    "replace": "writes", "fill_": "writes", "fill_diagonal_": "writes", "zero_": "writes",
    "to_": "moves between devices", "to": "moves between devices; a dtype is a cast",
    "to_dense": "of row-sparse tensors",
    "realize": "computes what is drawn", "schedule": "of what is to be computed",
    "schedule_with_vars": "of what is to be computed",
    "numpy": "how results are read", "tolist": "how results are read",
    "item": "how results are read",
    "allclose": "a bool: isclose of all elements", "equal": "a bool: eq of all elements",
    "geqrf": "compared as qr: which signs LAPACK's reflections have is not the same in each of its versions",
    "stride": "says where elements lie", "storage_offset": "says where elements lie",
    "is_contiguous": "says where elements lie", "is_nonzero": "a bool: whether the only element is 0",
    "type": "a cast, or the name of the dtype",
    "swish": "another name of silu",
}  # fmt: skip
"""Methods that take complex numbers and are not drawn, and why."""


class ComplexPool(Pool):
    """Draws complex inputs where a pool draws floats; some stay real, so that both kinds meet."""

    def floats(self, *shape: int) -> int:
        number = super().floats(*shape)
        if self.pick.random() < 0.3:
            return number
        imaginary = self.values.pop(super().floats(*shape)).array
        return self.make(self.values.pop(number).array + 1j * imaginary)


def _own(name: str, draw: Callable[[Pool, int], Call | None], **facts: bool) -> None:
    assert name not in OWN and name not in AS_FLOATS, name
    OWN[name] = Row(draw, **facts)


def _is_complex(array: Array) -> bool:
    return array.dtype.kind == "c"


def _unary(name: str, reference: Callable[[Array], Any], within: Callable[[Array], Any] | None = None,
           **facts: bool) -> None:  # fmt: skip
    """A function of complex numbers that ``within`` accepts."""

    def draw(pool: Pool, i: int) -> Call | None:
        array = pool.values[i].array
        if not _is_complex(array) or (within is not None and not np.all(within(array))):
            return None
        return Call(name, (Ref(i),), {}, reference)

    _own(name, draw, **facts)


def _off_cut(z: Array) -> Any:
    """Not near 0, nor near the negative real axis."""
    return (np.abs(z) >= 0.1) & ((z.real > 0) | (np.abs(z.imag) >= 0.1))


def _small(z: Array) -> Any:
    return np.abs(z) <= 4


def _sides(z: Array) -> Any:
    """Not near the cuts from 1 and -1 outwards, nor near these."""
    return _small(z) & ((np.abs(z.imag) >= 0.1) | (np.abs(z.real) <= 0.9)) & (np.abs(z * z - 1) >= 0.1)


def _ends(z: Array) -> Any:
    """Not near those from i and -i."""
    return _sides(z * 1j)


def _sigmoid(z: Array) -> Array:
    return 1 / (1 + np.exp(-z))


def _no_pole(z: Array) -> Any:
    return _small(z) & (np.abs(1 + np.exp(-z)) >= 0.1)


_unary("abs", np.abs, lambda z: np.abs(z) >= 0.1, smooth=True)
_unary("angle", np.angle, _off_cut, smooth=True)
_unary("sgn", lambda z: z / np.abs(z), lambda z: np.abs(z) >= 0.1, smooth=True)
for _name in ("exp", "exp2", "expm1", "sin", "cos", "sinh", "cosh"):
    _unary(_name, getattr(np, _name), _small, smooth=True)
for _name in ("log", "log2", "log10", "sqrt"):
    _unary(_name, getattr(np, _name), _off_cut, smooth=True)
_unary("rsqrt", lambda z: 1 / np.sqrt(z), _off_cut, smooth=True)
_unary("log1p", np.log1p, lambda z: _off_cut(z + 1), smooth=True)
_unary("tan", np.tan, lambda z: _small(z) & (np.abs(np.cos(z)) >= 0.1), smooth=True)
_unary("tanh", np.tanh, lambda z: _small(z) & (np.abs(np.cosh(z)) >= 0.1), smooth=True)
_unary("asin", np.arcsin, _sides, smooth=True)
_unary("acos", np.arccos, _sides, smooth=True)
_unary("atanh", np.arctanh, _sides, smooth=True)
_unary("atan", np.arctan, _ends, smooth=True)
_unary("asinh", np.arcsinh, _ends, smooth=True)
_unary("acosh", np.arccosh, lambda z: _sides(z) & (np.abs(z.imag) >= 0.1), smooth=True)
_unary("sigmoid", _sigmoid, _no_pole, smooth=True)
_unary("silu", lambda z: z * _sigmoid(z), _no_pole, smooth=True)
_unary("tanhshrink", lambda z: z - np.tanh(z), lambda z: _small(z) & (np.abs(np.cosh(z)) >= 0.1), smooth=True)
_unary("softsign", lambda z: z / (1 + np.abs(z)), lambda z: np.abs(z) >= 0.1, smooth=True)
_unary("sinc", np.sinc, lambda z: np.abs(z) <= 1.5, smooth=True)
_unary("reciprocal", lambda z: 1 / z, lambda z: np.abs(z) >= 0.1, smooth=True)
_unary("conj", np.conj, exact=True, smooth=True)
_unary("conj_physical", np.conj, exact=True, smooth=True)
_unary("resolve_conj", lambda z: z, exact=True, smooth=True)
_unary("resolve_neg", lambda z: z, exact=True, smooth=True)
_unary("real", np.real, exact=True, smooth=True)
_unary("imag", np.imag, exact=True, smooth=True)
_unary("H", lambda z: z.conj().T, lambda z: z.ndim == 2, exact=True, smooth=True)
_unary("mH", lambda z: np.swapaxes(z, -1, -2).conj(), lambda z: z.ndim >= 2, exact=True, smooth=True)
_unary("mT", lambda z: np.swapaxes(z, -1, -2), lambda z: z.ndim >= 2, exact=True, smooth=True)
_unary("T", np.transpose, exact=True, smooth=True)
_unary("isreal", np.isreal, exact=True, wants_exact=True)
_unary("view_as_real", lambda z: np.stack([z.real, z.imag], -1), exact=True, smooth=True)
_unary("cfloat", lambda z: z, exact=True)
_unary("cdouble", lambda z: z, exact=True, smooth=True)
_unary("float", np.real, exact=True)
_unary("double", np.real, exact=True)
_unary("long", lambda z: np.trunc(z.real).astype(np.int64), exact=True, wants_exact=True)
_unary("bool", lambda z: z != 0, exact=True, wants_exact=True)


def _cast(pool: Pool, i: int) -> Call | None:
    """To complex numbers, of whatever."""
    dtype = pool.pick.choice(["complex64", "complex128"])
    return Call("cast", (Ref(i), dtype), {}, lambda x, _: x.astype(np.complex128))


_own("cast", _cast, exact=True)

NUMBERS = (1j, -0.5j, 2 - 1j, -1.5 + 0.5j, 2, -0.5, True)
"""Weak operands: none of them widens a dtype."""


def _either(name: str, reference: Callable[[Any, Any], Any], nonzero: bool = False, **facts: bool) -> None:
    """A method of two operands, of which one is complex: a tensor, or a number."""

    def draw(pool: Pool, i: int) -> Call | None:
        array = pool.values[i].array
        if pool.pick.random() < 0.4:
            other: Any = pool.pick.choice(NUMBERS)
            if not _is_complex(array) and not isinstance(other, complex):
                return None
            operand: Array = np.asarray(other)
        else:
            j = pool.like(i, "fib")
            if j is None or not (_is_complex(array) or _is_complex(pool.values[j].array)):
                return None
            other, operand = Ref(j), pool.values[j].array
        if nonzero and np.any(np.abs(operand.astype(complex)) < 0.1):
            return None
        return Call(name, (Ref(i), other), {}, lambda x, y: reference(np.asarray(x) * 1, np.asarray(y) * 1))

    _own(name, draw, **facts)


_either("add", np.add, exact=True, smooth=True)
_either("__rsub__", lambda x, y: y - x, exact=True, smooth=True)
_either("__radd__", np.add, exact=True, smooth=True)
_either("__rmul__", np.multiply, exact=True, smooth=True)
_either("__mul__", np.multiply, exact=True, smooth=True)
_either("__sub__", np.subtract, exact=True, smooth=True)
_either("div", np.divide, nonzero=True, smooth=True)
_either("__truediv__", np.divide, nonzero=True, smooth=True)


def _under(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not _is_complex(array) or np.any(np.abs(array) < 0.1):
        return None
    return Call("__rtruediv__", (Ref(i), pool.pick.choice(NUMBERS)), {}, lambda x, y: y / x)


def _power(name: str) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        array = pool.values[i].array
        if not np.all(_small(array)) or array.dtype.kind == "b":
            return None
        exponent: Any = pool.pick.choice([0, 1, 2, 3, 5])
        if array.dtype.kind in "fc" and np.all(_off_cut(array.astype(complex))):
            exponent = pool.pick.choice([-1, -2, 0.5, -0.5, 2.5, 1j, 2 - 1j, 0j, 2 + 0j])
        if not _is_complex(array) and not isinstance(exponent, complex):
            return None
        return Call(name, (Ref(i), exponent), {}, lambda x, e: np.power(x.astype(complex), e))

    _own(name, draw, smooth=True)


def _raised(pool: Pool, i: int) -> Call | None:
    """A number to complex powers."""
    array = pool.values[i].array
    if not _is_complex(array) or np.any(np.abs(array) > 3):
        return None
    return Call("__rpow__", (Ref(i), pool.pick.choice([2, 0.5, 1 + 1j, 3j])), {}, lambda x, b: np.power(b + 0j, x))


_own("__rtruediv__", _under, smooth=True)
_power("pow")
_power("float_power")
_own("__rpow__", _raised, smooth=True)


def _made(name: str, reference: Callable[[Array, Array], Any], smooth: bool = True) -> None:
    """A complex tensor of two tensors of floats."""

    def draw(pool: Pool, i: int) -> Call | None:
        shape = [pool.pick.randint(1, 5) for _ in range(pool.pick.randint(0, 3))]
        a, b = (Pool.floats(pool, *shape) for _ in range(2))
        return Call(name, (Ref(a), Ref(b)), {}, reference)

    _own(name, draw, smooth=smooth, wide=True)


_made("complex", lambda a, b: a + 1j * b)
_made("polar", lambda a, b: a * np.exp(1j * b))


def _paired(pool: Pool, i: int) -> Call:
    shape = [pool.pick.randint(1, 5) for _ in range(pool.pick.randint(0, 2))]
    return Call("view_as_complex", (Ref(Pool.floats(pool, *shape, 2)),), {}, lambda x: x[..., 0] + 1j * x[..., 1])


_own("view_as_complex", _paired, exact=True, smooth=True, wide=True)


def _spread(name: str, of: Callable[[Array, Any], Any]) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        array = pool.values[i].array
        if not _is_complex(array) or not array.size:
            return None
        axes = pool.axes(array)
        chosen = range(array.ndim) if axes is None else (axes,) if isinstance(axes, int) else axes
        if np.prod([array.shape[a] for a in chosen]) < 2 or np.var(array, axis=axes).min() < 0.05:
            return None
        kwargs = {"axis": axes, "keepdim": pool.pick.random() < 0.5, "correction": pool.pick.choice([0, 1])}
        return Call(name, (Ref(i),), kwargs, lambda x, axis, keepdim, correction: of(x, {
            "axis": axis, "keepdims": keepdim, "ddof": correction}))  # fmt: skip

    _own(name, draw, smooth=True)


def _mean(x: Array, how: dict[str, Any]) -> Any:
    return np.mean(x, axis=how["axis"], keepdims=how["keepdims"])


_spread("var", lambda x, how: np.var(x, **how))
_spread("std", lambda x, how: np.std(x, **how))
_spread("var_mean", lambda x, how: (np.var(x, **how), _mean(x, how)))
_spread("std_mean", lambda x, how: (np.std(x, **how), _mean(x, how)))


def _along(name: str, reference: Callable[[Array, int], Any], within: Callable[[Array, int], Any],
           keyword: str = "axis") -> None:  # fmt: skip
    def draw(pool: Pool, i: int) -> Call | None:
        array = pool.values[i].array
        if not _is_complex(array) or not array.ndim or not 0 < array.size <= 500:
            return None
        axis = pool.axis(array)
        if not np.all(within(array, axis)):
            return None
        return Call(name, (Ref(i),), {keyword: axis}, lambda x, **kw: reference(x, *kw.values()))

    _own(name, draw, smooth=True)


def _of_sums(z: Array, axis: int) -> Any:
    return _small(z).all() and np.all(_off_cut(np.cumsum(np.exp(z), axis)))


_along("logsumexp", lambda z, axis: np.log(np.exp(z).sum(axis)),
       lambda z, axis: _small(z).all() and np.all(_off_cut(np.exp(z).sum(axis))))  # fmt: skip
_along("logcumsumexp", lambda z, axis: np.log(np.cumsum(np.exp(z), axis)), _of_sums)
_along("normalize", lambda z, axis: z / np.linalg.norm(z, axis=axis, keepdims=True),
       lambda z, axis: np.linalg.norm(z, axis=axis) >= 0.1, "dim")  # fmt: skip


def _logaddexp(pool: Pool, i: int) -> Call | None:
    j = pool.like(i, "f")
    if j is None or not _is_complex(pool.values[i].array):
        return None
    a, b = (pool.values[n].array for n in (i, j))
    # of the sum of both the argument is taken behind the greater one, which may be a turn from that of numpy
    near = np.abs(a.imag) < 1.5
    if not (np.all(_small(a)) and np.all(_small(b)) and near.all() and np.all(np.abs(b.imag) < 1.5)):
        return None
    return Call("logaddexp", (Ref(i), Ref(j)), {}, lambda x, y: np.log(np.exp(x) + np.exp(y)))


_own("logaddexp", _logaddexp, smooth=True)


def _renorm(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not _is_complex(array) or array.ndim < 2 or not array.size:
        return None
    axis = pool.axis(array) % array.ndim

    def length(z: Array) -> Any:
        return np.sqrt((np.abs(z) ** 2).sum(tuple(k for k in range(z.ndim) if k != axis), keepdims=True))

    def reference(z: Array, *more: Any) -> Array:
        return np.where(length(z) > 1.5, z * 1.5 / (length(z) + 1e-7), z)

    near = np.any(np.abs(length(array) - 1.5) < 1e-3)
    return None if near else Call("renorm", (Ref(i), 2, axis, 1.5), {}, reference)


def _corrcoef(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    fits = _is_complex(array) and array.ndim == 2 and len(array) > 1 and array.size
    return Call("corrcoef", (Ref(i),), {}, np.corrcoef) if fits and np.all(array.var(1) > 0.1) else None


def _logdet(pool: Pool, _: int) -> Call:
    n = pool.pick.choice([1, 2, 3])
    i = pool.floats(n, n)
    i = pool.make(pool.values[i].array / 4 + 3 * np.eye(n) + 0j)
    return Call("logdet", (Ref(i),), {}, lambda z: np.log(np.linalg.det(z)))


def _logspace(pool: Pool, _: int) -> Call:
    ends = pool.pick.choice([(1j, 2), (0, 1 - 1j), (-1 + 0.5j, 1j)])
    return Call("logspace", (*ends, pool.pick.randint(2, 6)), {}, lambda a, b, n: 10 ** np.linspace(a, b, n))


_own("renorm", _renorm)
_own("corrcoef", _corrcoef)
_own("logdet", _logdet, wide=True, smooth=True)
_own("logspace", _logspace)


def _constant(name: str, reference: Callable[..., Any], number: bool) -> None:
    def draw(pool: Pool, _: int) -> Call:
        shape = tuple(pool.pick.randint(1, 4) for _ in range(pool.pick.randint(0, 3)))
        value = (pool.pick.choice([1j, 2 - 1j, 3]),) if number else ()
        kind = {"dtype": pool.pick.choice(["complex64", "complex128"])}
        return Call(name, (shape, *value), kind, lambda *args, dtype: reference(*args).astype(complex))

    _own(name, draw, exact=True)


_constant("zeros", np.zeros, False)
_constant("ones", np.ones, False)
_constant("full", np.full, True)


def _scalar(pool: Pool, _: int) -> Call:
    value = pool.pick.choice([1j, 2 - 1j])
    return Call("scalar_tensor", (value,), {"dtype": "complex128"}, lambda z, dtype: np.asarray(z))


_own("scalar_tensor", _scalar, exact=True)
_own("const_like", lambda pool, i: Call("const_like", (Ref(i), 2 - 1j), {}, lambda x, v: np.full(x.shape, v))
     if _is_complex(pool.values[i].array) else None, exact=True)  # fmt: skip
_own("new_tensor", lambda pool, i: Call("new_tensor", (Ref(i), [1j, 2.0]), {"dtype": "complex128"},
                                        lambda x, v, dtype: np.array(v)), exact=True)  # fmt: skip


TABLE: dict[str, Row] = {**{name: ROWS[name] for name in sorted(AS_FLOATS)}, **OWN}
"""Every row that is drawn."""
