"""Devices, allocators, buffers, compilers and the execution of schedules."""

from tg_lazy import Context

from .allocator import Allocator, BufferOptions, LRUAllocator
from .anomaly import watched
from .buffer import Buffer, buffer_of
from .compiled import Compiled, DeviceFacts, Interpreted, Program
from .compiler import Compiler, rejected
from .counters import GlobalCounters, update_stats
from .dev import DEV, DevEntry, parse_dev
from .engine import ExecItem, capture, capturing, lower, lower_schedule, realize, run_schedule, uncaptured
from .errors import (
    AnomalyError,
    CompileError,
    DeviceError,
    DeviceUnavailable,
    DevSyntaxError,
    OutOfMemory,
    UnknownDevice,
)
from .kernels import get_runner
from .lifetimes import Usage, arrange
from .limits import runs_at_all
from .profiler import PROFILE, PROFILE_FILE, profile
from .registry import Device
from .runner import (
    BufferCopy,
    BufferXfer,
    CompiledRunner,
    CustomOp,
    EmptyOp,
    InterpretedRunner,
    Runner,
    ViewOp,
)
from .settings import BEAM, NOOPT
from .sharing import Sharing

__all__ = [
    "BEAM",
    "DEV",
    "NOOPT",
    "PROFILE",
    "PROFILE_FILE",
    "Allocator",
    "AnomalyError",
    "Buffer",
    "BufferCopy",
    "BufferOptions",
    "BufferXfer",
    "CompileError",
    "Compiled",
    "CompiledRunner",
    "Compiler",
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
    "InterpretedRunner",
    "LRUAllocator",
    "OutOfMemory",
    "Program",
    "Runner",
    "Sharing",
    "UnknownDevice",
    "Usage",
    "ViewOp",
    "arrange",
    "buffer_of",
    "capture",
    "capturing",
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
