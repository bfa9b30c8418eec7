"""Symbolic integers, views and shape trackers: how an index of a shape becomes a position in a buffer.

See `tg_shape.expr` for the form of expressions, `tg_shape.view` and `tg_shape.shapetracker` for views.
"""

from . import render as _render
from . import rules as _rules
from . import walk as _walk
from .bounds import bounds_of, is_nonnegative, upper
from .expr import Bind, Expr, Variable, as_sint, sint, topological
from .helpers import bound_value, ceildiv, even_part, prod, resolve, smax, smin, sym_eval
from .interned import Interned
from .linear import coefficient, linear_terms, step, symbolic_stride
from .shapetracker import ShapeTracker
from .text import dumps, loads
from .toposort import toposort
from .view import View
from .walk import substitute, unbind

__all__ = [
    "Bind",
    "Expr",
    "Interned",
    "ShapeTracker",
    "Variable",
    "View",
    "as_sint",
    "bound_value",
    "bounds_of",
    "ceildiv",
    "coefficient",
    "dumps",
    "even_part",
    "is_nonnegative",
    "linear_terms",
    "loads",
    "prod",
    "resolve",
    "sint",
    "smax",
    "smin",
    "step",
    "substitute",
    "sym_eval",
    "symbolic_stride",
    "topological",
    "toposort",
    "unbind",
    "upper",
]
del _render, _rules, _walk
