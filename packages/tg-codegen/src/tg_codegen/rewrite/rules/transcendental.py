"""Functions out of arithmetic that every vector unit has, for fp32 and fp64; narrower floats go through fp32.

None is further off than 2.5 units in the last place, whether MULACC is fused or not (``python -m tools.accuracy``
measures it; ``docs/accuracy.md`` is what it found). None branches, but for what only very large arguments need
(:func:`~tg_codegen.rewrite.rules.number.rarely`). The polynomials are Remez's (``tools/minimax.py``). Subnormal
arguments and results are right, and so are NaN, infinities and the sign of zero.
"""

from __future__ import annotations

from collections.abc import Callable

from tg_dtype import dtypes
from tg_lazy import Ops

from ...ir.uop import UOp
from ...machine.renderer import Renderer
from .error_function import erf, erfc
from .exponential import cosh, exp, exp2, expm1, sinh, tanh
from .logarithm import TEN, TWO, acosh, asinh, atanh, log, log1p
from .number import Format, Number, format_for
from .power import power
from .remainder import remainder
from .trigonometric import acos, asin, atan, sine, tan

FUNCTIONS: dict[Ops, Callable[[Number, Format], Number]] = {
    Ops.EXP: exp,
    Ops.EXP2: exp2,
    Ops.EXPM1: expm1,
    Ops.LOG: log,
    Ops.LOG2: lambda x, f: log(x, f, TWO),
    Ops.LOG10: lambda x, f: log(x, f, TEN),
    Ops.LOG1P: log1p,
    Ops.SIN: lambda x, f: sine(x, f, 0),
    Ops.COS: lambda x, f: sine(x, f, 1),
    Ops.TAN: tan,
    Ops.ASIN: asin,
    Ops.ACOS: acos,
    Ops.ATAN: atan,
    Ops.SINH: sinh,
    Ops.COSH: cosh,
    Ops.TANH: tanh,
    Ops.ASINH: asinh,
    Ops.ACOSH: acosh,
    Ops.ATANH: atanh,
    Ops.ERF: erf,
    Ops.ERFC: erfc,
}
PAIRS: dict[Ops, Callable[[Number, Number, Format], Number]] = {Ops.POW: power, Ops.MOD: remainder}


def transcendental(root: UOp, renderer: Renderer) -> UOp:
    """One of the functions, or MOD, of any floats as arithmetic."""
    assert isinstance(root.op, Ops)
    scalar = root.dtype.scalar()
    if scalar not in (dtypes.float32, dtypes.float64):
        wide = tuple(x.cast(dtypes.float32) for x in root.src)
        return UOp(root.op, wide[0].dtype, wide).cast(scalar)
    f = format_for(scalar, renderer)
    x = Number(root.src[0])
    if root.op in PAIRS:
        return PAIRS[root.op](x, Number(root.src[1]), f).uop
    return FUNCTIONS[root.op](x, f).uop
