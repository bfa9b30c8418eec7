"""Linear algebra, by PyTorch's names: ``tinytg.linalg``.

Matrices are the last two axes, of float32, float64, complex64 or complex128; all others count them. Whatever a matrix
is, nothing raises for its values, which are computed later: a singular one gives infinities or NaN, and so says it.
"""

from ..keywords import offered
from ..ops.above import Above
from ..ops.autocast import adapted_names
from . import methods
from .checked import cholesky_ex, inv_ex, lu_factor_ex, solve_ex
from .cholesky import cholesky, cholesky_inverse, cholesky_solve
from .contractions import matrix_transpose, outer, tensordot, trace
from .elimination import det, inv, lu, lu_factor, lu_solve, lu_unpack, slogdet, solve
from .general import eig, eigvals
from .ldl import ldl_factor, ldl_factor_ex, ldl_solve
from .lobpcg import lobpcg
from .lowrank import pca_lowrank, svd_lowrank
from .matrices import LinAlgError
from .norms import cond, matrix_norm, norm, vector_norm
from .orthogonal import householder_product, qr
from .products import (
    cross,
    diagonal,
    lstsq,
    matmul,
    matrix_exp,
    matrix_power,
    matrix_rank,
    multi_dot,
    pinv,
    tensorinv,
    tensorsolve,
    vander,
    vecdot,
)
from .spectral import eigh, eigvalsh, svd, svdvals
from .triangular import solve_triangular

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cholesky_inverse",
    "cholesky_solve",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lobpcg",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "lu_unpack",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pca_lowrank",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svd_lowrank",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vander",
    "vecdot",
    "vector_norm",
]

_REAL = ("lobpcg",)
Above.linalg = methods
_OFFERED = [name for name in __all__ if name != "LinAlgError"]
offered(globals(), _OFFERED, "linalg", dict.fromkeys((name for name in _OFFERED if name not in _REAL), "any"))
# a decomposition is computed whole: its products are not cast
adapted_names(globals(), [name for name in _OFFERED if name != "matrix_power"], every=True)
