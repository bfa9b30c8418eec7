"""The differentiable functions: what the lazy graph computes forward, and which gradient flows back.

Every differentiable method of ``Tensor`` is made of these. A function is a small object: its constructor takes the
parameters that are not tensors, :meth:`Function.forward` takes the operands' ``LazyBuffer`` and keeps what the
gradient needs, :meth:`Function.backward` takes the gradient of the result and gives one gradient an operand.
Operands arrive with the shapes and dtypes that the graph needs (broadcast, promoted); checking what a person typed
is the business of the methods.

Gradients at points where there is more than one: ``Max`` and ``Maximum`` split evenly between ties, ``Relu`` gives 0
at 0, ``Trunc`` and ``Step`` give 0 everywhere.
"""

from .arithmetic import Add, Atan2, Div, Maximum, Mul, Pow, Sub, Where
from .base import Function, Grads, held, splat, total, widened
from .division import FloorDiv, Fmod, Remainder
from .elementary import SLOPES, Elementary
from .lookup import Chosen, Take, TakeAlong
from .memory import UNRECORDED, Beside, Cast, Contiguous, ContiguousBackward, Copy, Same
from .movement import Became, Cat, Expand, Flip, Pad, Part, Permute, Put, Reshape, Seen, Shrink, Stride
from .reduction import Max, Prod, Sum
from .row_sparse import Lookup, RowSparse, row_dtype, summed
from .running import RunningProduct
from .scattering import Scatter, ScatterAdd, ScatterMax, ScatterProd
from .unary import Abs, Neg, Reciprocal, Relu, Sigmoid, Softplus, Sqrt, Step, Trunc

__all__ = [
    "SLOPES",
    "UNRECORDED",
    "Abs",
    "Add",
    "Atan2",
    "Became",
    "Beside",
    "Cast",
    "Cat",
    "Chosen",
    "Contiguous",
    "ContiguousBackward",
    "Copy",
    "Div",
    "Elementary",
    "Expand",
    "Flip",
    "FloorDiv",
    "Fmod",
    "Function",
    "Grads",
    "Lookup",
    "Max",
    "Maximum",
    "Mul",
    "Neg",
    "Pad",
    "Part",
    "Permute",
    "Pow",
    "Prod",
    "Put",
    "Reciprocal",
    "Relu",
    "Remainder",
    "Reshape",
    "RowSparse",
    "RunningProduct",
    "Same",
    "Scatter",
    "ScatterAdd",
    "ScatterMax",
    "ScatterProd",
    "Seen",
    "Shrink",
    "Sigmoid",
    "Softplus",
    "Sqrt",
    "Step",
    "Stride",
    "Sub",
    "Sum",
    "Take",
    "TakeAlong",
    "Trunc",
    "Where",
    "held",
    "row_dtype",
    "splat",
    "summed",
    "total",
    "widened",
]
