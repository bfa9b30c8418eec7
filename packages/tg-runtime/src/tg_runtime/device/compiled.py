"""Compiled and Interpreted: what a device is to the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from tg_lazy import LazyOp
from tg_shape import Variable

from ..errors import DeviceUnavailable
from .allocator import Allocator
from .compiler import Compiler
from .dev import DevEntry

if TYPE_CHECKING:
    from tg_codegen import ProgramSpec, Renderer

    from .sharing import Sharing


class Program(Protocol):
    """A program loaded on a device."""

    def __call__(
        self,
        *bufs: Any,
        global_size: tuple[int, int, int] = (1, 1, 1),
        local_size: tuple[int, int, int] = (1, 1, 1),
        vals: Sequence[int] = (),
        wait: bool = False,
    ) -> float | None:
        """Launches it on the allocator's opaque ``bufs``; with ``wait``, returns the seconds that it ran."""


class Executable(Protocol):
    """What executes a kernel on buffers."""

    def exec(self, bufs: Sequence[Any], var_vals: Mapping[Variable, int] | None = None, /) -> float | None:
        """Executes it, waits for it and returns the seconds it took."""


class Kernels(Protocol):
    """What makes kernels for devices. Devices know it by this alone: :mod:`tg_runtime.kernels.aliases` fills it in."""

    def linearized(self, device: Compiled, ast: LazyOp) -> ProgramSpec:
        """As :meth:`Compiled.get_linearizer`."""

    def loaded(self, device: Compiled, kernel: ProgramSpec) -> Executable:
        """As :meth:`Compiled.to_program`."""

    def runner(self, device: Compiled, ast: LazyOp) -> Executable:
        """As :meth:`Compiled.get_runner`."""


class DeviceFacts(NamedTuple):
    """What a table of devices says of one.

    Attributes:
      arch: what it compiles for, or runs on.
      memory: bytes that it has; None if nobody knows, or it has none.
      interfaces: names that can stand for IFACE in ``DEV``, the default first; each with why it is unavailable, or
        None.
    """

    arch: str = ""
    memory: int | None = None
    interfaces: Mapping[str, str | None] = {}


class Compiled:
    """A device that runs compiled programs. A device class is constructed as ``Class(name, entry)``.

    Attributes:
      device: canonical name, ``CPU`` or ``CPU:1``.
      allocator: its memory.
      renderer: how kernels are written for it; None for a device that holds memory only.
      compiler: turns the renderer's text into what ``runtime`` loads.
      runtime: ``runtime(name, binary) -> Program``.
      graph: class that condenses a list of ExecItems into one launch; None if there is none.
      sharing: how other libraries use its memory where that is not the host's; None if they cannot.
      graph_from: of the class: the fewest kernels that are sooner launched as a graph than one by one.
      executes: of the class: whether its launches compute anything.
      self_timed: of the class: whether its programs tell the profiler when they ran (see
        :func:`~tg_runtime.telemetry.profiler.launch`); those of other devices are waited for while a profile is
        recorded.
      named_memory: of the class: whether text after the name says which memory it is (``DISK:/path``); after the name
        of another device there is a number.
      numbered: of the class: whether a machine may have several, among which the numbers of a ``DEV`` entry choose.
      architectures: of the class: whether a ``DEV`` entry may have an ARCH.
      kernels: of the class: what makes kernels for every device.
    """

    kernels: ClassVar[Kernels]
    graph_from: ClassVar[int] = 2
    executes: ClassVar[bool] = True
    self_timed: ClassVar[bool] = False
    named_memory: ClassVar[bool] = False
    numbered: ClassVar[bool] = False
    architectures: ClassVar[bool] = True

    def __init__(
        self,
        device: str,
        allocator: Allocator[Any],
        renderer: Renderer | None,
        compiler: Compiler | None,
        runtime: Callable[..., Program] | None,
        graph: Callable[..., Any] | None = None,
    ) -> None:
        self.device, self.allocator = device, allocator
        self.renderer, self.compiler, self.runtime, self.graph = renderer, compiler, runtime, graph
        self.sharing: Sharing | None = None
        self.programs: dict[object, Any] = {}
        self.families: dict[object, Any] = {}

    @property
    def steps_apart(self) -> int:
        """How many threads of its graphs can go through the steps of a loop each by itself; 0 for none."""
        return 0

    def ready(self) -> None:
        """Makes what launches kernels, if that takes a while: compilers' threads ask for it before any is launched."""

    def synchronize(self) -> None:
        """Waits until everything that was queued on the device is done."""

    def joins(self, step: object) -> bool:
        """Whether this device's graphs take a step that is no kernel of its own: a copy, a kernel of another device."""
        return False

    def get_linearizer(self, ast: LazyOp) -> ProgramSpec:
        """The kernel of ``ast``, optimised as the settings say, with its linear UOps and its source."""
        return self.kernels.linearized(self, ast)

    def to_program(self, kernel: ProgramSpec) -> Executable:
        """Compiles and loads a kernel.

        Raises:
          CompileError: if the device's compiler rejects it.
          DeviceError: if the device runs no programs.
        """
        return self.kernels.loaded(self, kernel)

    def get_runner(self, ast: LazyOp) -> Executable:
        """What executes ``ast``: made once for each AST and setting, as :func:`tg_runtime.get_runner`."""
        return self.kernels.runner(self, ast)

    @property
    def key(self) -> str:
        """Distinguishes configurations that compile differently."""
        renderer = "" if self.renderer is None else self.renderer.key
        return f"{type(self).__name__}|{renderer}|{'' if self.compiler is None else self.compiler.cachekey}"

    @classmethod
    def unavailable(cls, entry: DevEntry) -> str | None:
        """Why a device of this class cannot be opened on this machine, with what to do about it; None if it can.

        Looks for files and libraries only: nothing is opened.
        """
        return None

    @classmethod
    def require(cls, device: str, entry: DevEntry) -> None:
        """Raises unless a device of this class can be opened on this machine.

        Raises:
          DeviceUnavailable: if it cannot; the message says why.
        """
        problem = cls.unavailable(entry)
        if problem is not None:
            raise DeviceUnavailable.here(device, problem)

    @classmethod
    def meaningless(cls, entry: DevEntry) -> str | None:
        """The part of a ``DEV`` entry that no device of this class understands; None if there is none."""
        found: tuple[tuple[str, str, Mapping[str, str | None]], ...] = (
            ("renderer", entry.renderer, cls.renderers() if entry.renderer else {}),
            ("interface", entry.iface, cls.facts(entry).interfaces if entry.iface else {}),
        )
        for what, name, known in found:
            if name and name not in known:
                there = f"there {'is' if len(known) == 1 else 'are'} {', '.join(known)}" if known else "it has none"
                return f"it has no {what} {name}; {there}"
        if entry.arch and not cls.architectures:
            return f"it has no ARCH, so {entry.arch!r} means nothing"
        if any(entry.indices) and not cls.numbered:
            return f"there is one such device, so the numbers {','.join(map(str, entry.indices))} choose nothing"
        return None

    @classmethod
    def renderers(cls) -> Mapping[str, str | None]:
        """The renderers that can be named in ``DEV``, the default first; each with why it is unavailable, or None."""
        return {}

    @classmethod
    def facts(cls, entry: DevEntry) -> DeviceFacts:
        """What is known of the device without opening it."""
        return DeviceFacts()

    def opened_facts(self) -> DeviceFacts:
        """What is known of it now that it is open."""
        known = self.facts(DevEntry(self.device.partition(":")[0]))
        return known._replace(memory=self.allocator.limit or known.memory)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.device}>"


class Interpreted(Compiled):
    """A device that executes kernel ASTs op by op, with no program.

    Attributes:
      fxn_for_op: the function of each op.
      codegen: None: no code is generated for it.
    """

    codegen: ClassVar[None] = None

    def __init__(self, device: str, allocator: Allocator[Any], fxn_for_op: Mapping[Any, Callable[..., Any]]) -> None:
        super().__init__(device, allocator, None, None, None)
        self.fxn_for_op = fxn_for_op

    def interpret(self, ast: LazyOp) -> Callable[[Sequence[Any], Mapping[Variable, int]], None]:
        """A function that executes ``ast`` on the allocator's opaque buffers.

        Raises:
          DeviceError: if the device interprets no ASTs.
        """
        from ..errors import DeviceError

        raise DeviceError(f"{self.device} cannot interpret {ast!r}")
