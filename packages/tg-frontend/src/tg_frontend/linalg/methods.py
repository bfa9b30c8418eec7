"""What the methods of Tensor are made of that decompose matrices; see :mod:`tg_frontend.ops.decompositions`."""

from __future__ import annotations

from .checked import lu_factor_ex
from .cholesky import cholesky, cholesky_inverse, cholesky_solve
from .elimination import det, inv, lu_factor, lu_solve, slogdet
from .orthogonal import householder_product, qr, reflected_by, reflections
from .products import matrix_exp, matrix_power, pinv
from .spectral import svd, svdvals
from .triangular import solve_triangular

__all__ = [
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "det",
    "householder_product",
    "inv",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matrix_exp",
    "matrix_power",
    "pinv",
    "qr",
    "reflected_by",
    "reflections",
    "slogdet",
    "solve_triangular",
    "svd",
    "svdvals",
]
