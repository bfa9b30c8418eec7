"""The lazy graph: ops and their specification, kernel ASTs, storage, settings, and the scheduler."""

from . import ast
from .ast.nodes import BufferArg, InvalidAST, LazyOp
from .explain import explain
from .graph.lazybuffer import LazyBuffer
from .graph.storage import Storage
from .ops import (
    ALU,
    BY_DIVIDER,
    COMMUTATIVE,
    COMPARISONS,
    CONVERSIONS,
    DIVISIONS,
    INTEGER_DIVISIONS,
    KERNEL,
    LINEAR,
    ON_INTEGERS,
    REDUCIBLE,
    SHIFTS,
    SHRINKING,
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
from .scheduler.anomaly import ANOMALY
from .scheduler.item import ScheduleItem
from .scheduler.schedule import schedule
from .settings.context import DEBUG, STRICT, Context, ContextVar, getenv
from .settings.scope import Scope

__all__ = [
    "ALU", "ANOMALY", "BY_DIVIDER", "COMMUTATIVE", "COMPARISONS", "CONVERSIONS", "DEBUG", "DIVISIONS",
    "INTEGER_DIVISIONS", "KERNEL", "LINEAR", "ON_INTEGERS", "REDUCIBLE", "SHIFTS", "SHRINKING", "SPEC", "STRICT",
    "TRANSCENDENTAL", "BufferArg", "Context", "ContextVar", "DTypeRule", "InvalidAST", "LazyBuffer", "LazyOp", "OpSpec",
    "Ops", "ScheduleItem", "Scope", "Storage", "Trait", "ast", "explain", "getenv", "group", "identity", "result_dtype",
    "schedule",
]
