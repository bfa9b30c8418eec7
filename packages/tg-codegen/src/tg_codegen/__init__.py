"""The code generator: kernel ASTs to optimised loops, to UOps, to a target's text."""

from .compile import compile_ast
from .ir.errors import EmitError
from .ir.program import BufferParam, Estimates, ProgramSpec
from .ir.uop import KOp, UOp, UOps
from .linear.interpret import interpret
from .linear.linearize import linearize
from .machine.renderer import Renderer
from .machine.target import Target
from .nest.lower import LowerError, lower
from .plan.actions import Action, ActionError, In, Mark, Outermost, Pack, Partial, Share, Split
from .plan.vocabulary import parse
from .search.beam import Step, beam_search

__all__ = [
    "Action", "ActionError", "BufferParam", "EmitError", "Estimates", "In", "KOp", "LowerError", "Mark", "Outermost",
    "Pack", "Partial", "ProgramSpec", "Renderer", "Share", "Split", "Step", "Target", "UOp", "UOps", "beam_search",
    "compile_ast", "interpret", "linearize", "lower", "parse",
]
