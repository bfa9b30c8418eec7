"""The lazy graph: ops and their specification, kernel ASTs, storage, settings, and the scheduler."""

from . import ast
from .anomaly import ANOMALY
from .ast import BufferArg, InvalidAST, LazyOp
from .context import DEBUG, STRICT, Context, ContextVar, getenv
from .explain import explain
from .item import ScheduleItem
from .lazybuffer import LazyBuffer
from .ops import (
    ALU,
    COMMUTATIVE,
    KERNEL,
    REDUCIBLE,
    SPEC,
    TRANSCENDENTAL,
    DTypeRule,
    Ops,
    OpSpec,
    Trait,
    group,
    identity,
    result_dtype,
)
from .schedule import schedule
from .scope import Scope
from .storage import Storage

__all__ = [
    "ALU", "ANOMALY", "COMMUTATIVE", "DEBUG", "KERNEL", "REDUCIBLE", "SPEC", "STRICT", "TRANSCENDENTAL", "BufferArg",
    "Context", "ContextVar", "DTypeRule", "InvalidAST", "LazyBuffer", "LazyOp", "OpSpec", "Ops", "ScheduleItem",
    "Scope", "Storage", "Trait", "ast", "explain", "getenv", "group", "identity", "result_dtype", "schedule",
]
