"""The code generator: kernel ASTs to optimised loops, to UOps, to a target's text."""

from .compile import compile_ast
from .ir.errors import EmitError
from .ir.program import BufferParam, Estimates, ProgramSpec
from .ir.shares import Shares
from .ir.uop import KOp, UOp, UOps
from .linear.interpret import interpret
from .linear.linearize import linearize
from .machine.renderer import Renderer
from .machine.target import Target
from .nest.lower import LowerError, lower
from .plan.actions import Action, ActionError, In, Mark, Outermost, Pack, Share, Split, SplitReduction
from .plan.vocabulary import parse_action
from .search.beam import SearchState, beam_search

__all__ = [
    "Action", "ActionError", "BufferParam", "EmitError", "Estimates", "In", "KOp", "LowerError", "Mark", "Outermost",
    "Pack", "ProgramSpec", "Renderer", "SearchState", "Share", "Shares", "Split", "SplitReduction", "Target", "UOp",
    "UOps", "beam_search", "compile_ast", "interpret", "linearize", "lower", "parse_action",
]
