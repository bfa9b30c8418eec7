"""Devices, allocators, buffers, compilers and the execution of schedules."""

from tg_lazy import Context

from .anomaly.mode import watched
from .device.allocator import Allocator, BufferOptions, LRUAllocator
from .device.compiled import Compiled, DeviceFacts, Interpreted, Program
from .device.compiler import Compiler, rejected
from .device.dev import DEV, DevEntry, parse_dev
from .device.launch import Launch, LoadedProgram
from .device.limits import runs_at_all
from .device.registry import Device
from .device.sharing import Sharing
from .errors import (
    AnomalyError,
    CompileError,
    DeviceError,
    DeviceUnavailable,
    DevSyntaxError,
    OutOfMemory,
    UnknownDevice,
)
from .execution.capture import capture, capturing, uncaptured
from .execution.engine import realize
from .execution.graph import Place, Walk
from .execution.item import ExecItem
from .execution.lifetimes import Usage, arrange
from .execution.loop import Body, BranchRunner, Condition, LoopRunner
from .execution.lower import lower, lower_schedule
from .execution.run import run_schedule
from .kernels.aliases import CompiledASTRunner, InterpretedASTRunner, JITRunner
from .kernels.compile_ahead import foreseeing
from .kernels.programs import get_runner
from .kernels.runner import CompiledRunner, InterpretedRunner
from .kernels.settings import BEAM, NOOPT
from .memory.buffer import Buffer, buffer_of
from .steps.other import CustomOp, EmptyOp, ViewOp
from .steps.runner import Runner
from .steps.transfer import BufferCopy, BufferXfer
from .telemetry.counters import GlobalCounters, update_stats
from .telemetry.profiler import PROFILE, PROFILE_FILE, profile

__all__ = [
    "BEAM",
    "DEV",
    "NOOPT",
    "PROFILE",
    "PROFILE_FILE",
    "Allocator",
    "AnomalyError",
    "Body",
    "BranchRunner",
    "Buffer",
    "BufferCopy",
    "BufferOptions",
    "BufferXfer",
    "CompileError",
    "Compiled",
    "CompiledASTRunner",
    "CompiledRunner",
    "Compiler",
    "Condition",
    "Context",
    "CustomOp",
    "DevEntry",
    "DevSyntaxError",
    "Device",
    "DeviceError",
    "DeviceFacts",
    "DeviceUnavailable",
    "EmptyOp",
    "ExecItem",
    "GlobalCounters",
    "Interpreted",
    "InterpretedASTRunner",
    "InterpretedRunner",
    "JITRunner",
    "LRUAllocator",
    "Launch",
    "LoadedProgram",
    "LoopRunner",
    "OutOfMemory",
    "Place",
    "Program",
    "Runner",
    "Sharing",
    "UnknownDevice",
    "Usage",
    "ViewOp",
    "Walk",
    "arrange",
    "buffer_of",
    "capture",
    "capturing",
    "foreseeing",
    "get_runner",
    "lower",
    "lower_schedule",
    "parse_dev",
    "profile",
    "realize",
    "rejected",
    "run_schedule",
    "runs_at_all",
    "uncaptured",
    "update_stats",
    "watched",
]
