"""Every method of Tensor: how a call of it is drawn, and what numpy says that it computes.

Each module adds its rows to the table when it is imported. Their order decides what a seed draws.
"""

# isort: off
from . import elementwise, movement, reductions, indexing, products, creation, values, arrangement, losses, order
from . import parts, special, windows, copies, decompositions

# isort: on
from .not_drawn import NOT_A_COMPUTATION, NOT_DRAWN, RANDOM, RANDOM_TESTS
from .table import MOST, ROWS, Array, Call, Pool, Ref, Value

__all__ = [
    "MOST", "NOT_A_COMPUTATION", "NOT_DRAWN", "RANDOM", "RANDOM_TESTS", "ROWS", "Array", "Call", "Pool", "Ref", "Value",
    "arrangement", "copies", "creation", "decompositions", "elementwise", "indexing", "losses", "movement",
    "order", "parts", "products", "reductions", "special", "values", "windows",
]  # fmt: skip
