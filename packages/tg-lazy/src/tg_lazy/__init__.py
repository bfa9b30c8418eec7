"""The lazy graph: ops and their specification, kernel ASTs, storage, settings, and (as they land) the scheduler."""

from . import ast
from .ast import BufferArg, InvalidAST, LazyOp
from .context import DEBUG, Context, ContextVar, getenv
from .ops import ALU, COMMUTATIVE, KERNEL, REDUCIBLE, SPEC, TRANSCENDENTAL, DTypeRule, Ops, OpSpec, Trait, group
from .ops import identity, result_dtype
from .storage import Storage

__all__ = [
    "ALU", "COMMUTATIVE", "DEBUG", "KERNEL", "REDUCIBLE", "SPEC", "TRANSCENDENTAL", "BufferArg", "Context",
    "ContextVar", "DTypeRule", "InvalidAST", "LazyOp", "OpSpec", "Ops", "Storage", "Trait", "ast", "getenv", "group",
    "identity", "result_dtype",
]
