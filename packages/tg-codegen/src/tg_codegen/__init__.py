"""The code generator: kernel ASTs to optimised loops, to UOps, to a target's text."""

from .actions import Action, ActionError, Mark, Outermost, Pack, Partial, Share, Split, parse
from .compile import compile_ast
from .errors import EmitError
from .interpret import interpret
from .linearize import linearize
from .lower import LowerError, lower
from .program import BufferParam, Estimates, ProgramSpec
from .renderer import Renderer
from .search import Step, beam_search
from .target import Target
from .uop import KOp, UOp, UOps

__all__ = [
    "Action", "ActionError", "BufferParam", "EmitError", "Estimates", "KOp", "LowerError", "Mark", "Outermost", "Pack",
    "Partial", "ProgramSpec", "Renderer", "Share", "Split", "Step", "Target", "UOp", "UOps", "beam_search",
    "compile_ast", "interpret", "linearize", "lower", "parse",
]
