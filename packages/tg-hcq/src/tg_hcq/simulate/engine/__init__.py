"""An engine for software GPUs: decoded instructions as records, their handlers and the dispatch loop in native code."""

from __future__ import annotations

from .code import Instruction, Undecodable
from .emitter import MASK, Emitter, Operand, either, scalar, vector
from .fault import EngineFault, Fault, HungWave
from .hostile import HostileMachine
from .instruction_set import InstructionSet
from .ir import F16, F32, F64, I1, I8, I16, I32, I64, Type, Value
from .launch import NO_LIMIT, Launch
from .machine import Dispatch, Machine
from .memory import AddressSpace, Memory
from .native import Engine, engine
from .state import LITERAL, Access, FaultKind, Half, Layout, Operation, Scope, Space, Status
from .trace import Step, Trace
from .transfers import Shape
from .wave import Wave

__all__ = [
    "F16", "F32", "F64", "I1", "I8", "I16", "I32", "I64", "LITERAL", "MASK", "NO_LIMIT", "Access", "AddressSpace",
    "Dispatch",
    "Emitter", "Engine", "EngineFault", "Fault", "FaultKind", "Half", "HostileMachine", "HungWave", "Instruction",
    "InstructionSet", "Launch", "Layout", "Machine", "Memory", "Operand", "Operation", "Scope", "Shape", "Space",
    "Status", "Step", "Trace", "Type", "Undecodable", "Value", "Wave", "either", "engine", "scalar", "vector",
]  # fmt: skip
