"""What goes wrong on a machine: told in words, with nothing lost that need not be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops
from tg_runtime import CompileError, DevEntry, Device, OutOfMemory, buffer_of, realize
from tg_runtime.backends.cpu import fault
from tg_runtime.backends.cpu.pool import ir_compiler
from tg_runtime.backends.opencl.device import CLDevice
from tg_runtime.compilers.clang import ClangCompiler
from tg_runtime.compilers.llvm import LLVMCompiler, available
from tg_runtime.host.tools import c_compiler

needs_compiler = pytest.mark.skipif(ir_compiler() is None, reason="neither llvmlite nor clang is here")
needs_clang = pytest.mark.skipif(c_compiler() is None, reason="clang is not here")
needs_llvm = pytest.mark.skipif(not available(), reason="llvmlite is not here")
_CL_PROBLEM = CLDevice.unavailable(DevEntry("CL"))
DEVICES = ["CPU", pytest.param("CL", marks=pytest.mark.skipif(bool(_CL_PROBLEM), reason=f"OpenCL: {_CL_PROBLEM}"))]


def program(text: str, *arguments: str, cpus: str = "2") -> subprocess.Popen[str]:
    """A process that runs a program of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", text, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "CPU_COUNT": cpus},
    )  # fmt: skip


# memory


@needs_compiler
def test_out_of_memory_tells_who_holds_what() -> None:
    """The largest buffers, each with the line that made it, and the sum of all others."""
    x = LazyBuffer.iota(1 << 20, dtypes.int32, "CPU")
    held = x.alu(Ops.ADD, x)
    realize([held])
    line = f"{__file__}:{held.origin[1]}"
    assert held.storage is not None
    with pytest.raises(OutOfMemory) as caught:
        Device["CPU"].allocator.alloc(1 << 60)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("CPU: out of memory: 1.00 EiB asked") or "1152921504606846976 bytes" in lines[0]
    mine = [row for row in lines[1:] if repr(buffer_of(held.storage)) in row]
    assert mine
    assert mine[0].strip().startswith("4.00 MiB  <Buffer CPU 1048576 x int32")
    assert mine[0].endswith(f"made at {line}")


LITTLE_MEMORY = """
import os, resource, sys
from tg_runtime.compilers.llvm import LLVMCompiler
compiler, lines = LLVMCompiler(), int(sys.argv[2])
child = os.fork()  # which compiles another kernel: the imports are the same
if child == 0:
    lines = int(sys.argv[3])
elif os.waitpid(child, 0)[1]:
    sys.exit("the child ended badly")
sums = "".join(f"  %s{n+1} = fadd <8 x float> %s{n}, %a\\n" for n in range(lines))
head = "define void @f(ptr %p, <8 x float> %a, <8 x float> %s0) {\\n"
text = f"{head}{sums}  store <8 x float> %s{lines}, ptr %p\\n  ret void\\n}}\\n"
compiler.compile(head + "  ret void\\n}\\n")
before = resource.getrlimit(resource.RLIMIT_AS)
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (int(sys.argv[1]) << 20), before[1]))
try:
    compiler.compile(text)
    print("compiled")
except MemoryError as error:
    assert "compiling a kernel with LLVM may need" in str(error), error
    print("refused")
resource.setrlimit(resource.RLIMIT_AS, before)
assert compiler.compile(text)
"""


BOTH = {"compiled", "refused"}


@pytest.mark.drawn(3)
@needs_llvm
@pytest.mark.skipif(sys.platform != "linux", reason="the limits are Linux's")
@pytest.mark.parametrize("mib", [1, 5, 23, 47, 67, 200])
def test_no_process_ends_because_a_compiler_has_no_memory(mib: int) -> None:
    child = program(LITTLE_MEMORY, str(mib), "10", "3001")
    out, error = child.communicate(timeout=120)
    assert child.returncode == 0, error
    found = out.split()
    assert len(found) == 2 and set(found) <= ({"compiled"} if mib == 200 else {"refused"} if mib < 60 else BOTH), out


# sources


@needs_clang
def test_the_line_of_a_rejected_c_source(cache_folder: Path) -> None:
    with pytest.raises(CompileError, match=r"\.c, line 2: return missing;") as caught:
        ClangCompiler().compile("int f(void) {\n  return missing;\n}\n")
    assert caught.value.line == 2
    assert caught.value.path is not None
    assert Path(caught.value.path).read_text().splitlines()[1] == "  return missing;"


@needs_llvm
def test_the_line_of_a_rejected_llvm_source(cache_folder: Path) -> None:
    with pytest.raises(CompileError, match=r"\.ll, line 3: ") as caught:
        LLVMCompiler().compile("define void @f() {\n  %x = add i32 1, 2\n  %y = add i32 %z, 1\n  ret void\n}\n")
    assert caught.value.line == 3


# faults of the processor

WILD = """
import faulthandler, sys
from tg_runtime import Device
from tg_runtime.compilers.clang import ClangCompiler
from tg_runtime.backends.cpu.program import CPUProgram
if sys.argv[2] == "traced":
    faulthandler.enable()
source = "void wild(int *p, int core) { if (core == CORE) p[1LL << 40] = 1; }".replace("CORE", sys.argv[1])
other = ClangCompiler().compile("void other(void) {}")
others = [CPUProgram("other", other) for _ in range(100)]
kernel = CPUProgram("wild", ClangCompiler().compile(source))
del others
threads = int(sys.argv[1]) + 1
kernel(Device["CPU"].allocator.alloc(64), global_size=(threads, 1, 1), vals=() if threads > 1 else (0,))
"""


@needs_clang
@pytest.mark.skipif(sys.platform != "linux", reason="signals are handled on Linux")
@pytest.mark.parametrize("how", ["plain", "traced"])
@pytest.mark.parametrize("core", [0, 1])
def test_a_kernel_that_faults_is_named(core: int, how: str) -> None:
    """Whichever thread runs it; the process ends as it would have, and other handlers see the signal, too."""
    done = program(WILD, str(core), how)
    _, told = done.communicate(timeout=100)
    assert done.returncode == -signal.SIGSEGV
    assert told.count("tinytg: the kernel wild of the CPU was stopped by the processor at the address 0x") == 1, told
    assert "If its source is yours, so is the fault" in told
    assert ("Fatal Python error: Segmentation fault" in told) == (how == "traced")


@needs_clang
@pytest.mark.skipif(sys.platform != "linux", reason="signals are handled on Linux")
def test_a_fault_elsewhere_is_not_ours() -> None:
    done = program(
        "import ctypes\nfrom tg_runtime import Device\nfrom tg_runtime.backends.cpu.program import CPUProgram\n"
        "from tg_runtime.compilers.clang import ClangCompiler\n"
        "kernel = CPUProgram('tame', ClangCompiler().compile('void tame(void) {}'))\nkernel()\nctypes.string_at(0)\n"
    )
    _, told = done.communicate(timeout=100)
    assert done.returncode == -signal.SIGSEGV
    assert "tinytg" not in told


@needs_compiler
def test_rows_of_the_table_are_used_again() -> None:
    compiler = ir_compiler()
    table = fault.fault_table(compiler)
    if table is None:
        pytest.skip("there is no handler here")
    rows = [table.add(f"kernel{i}", 1 << 40, 16) for i in range(300)]
    assert len(set(rows)) == 300
    for row in rows:
        table.remove(row)
    again = [table.add("again", 1 << 40, 16) for _ in range(300)]
    assert set(again) == set(rows)
    for row in again:
        table.remove(row)


# Ctrl-C

INTERRUPTED = """
import sys
from tg_dtype import dtypes
from tg_lazy import Context, LazyBuffer, Ops
from tg_runtime import Device, buffer_of, realize
device = sys.argv[1]
count = 20_000_000 if device == "CL" else 200_000_000  # one work-item of OpenCL takes seconds for the fewer
def long(n):
    x = LazyBuffer.iota(n, dtypes.int32, device)
    for _ in range(40):
        x = x.alu(Ops.IDIV, LazyBuffer.const(3, dtypes.int32, (n,), device)).alu(Ops.ADD, x)
    return x.reduce(Ops.MAX, (0,))
with Context(NOOPT=1):
    small = long(1000)
    realize([small])
    try:
        print("ready", flush=True)
        for _ in range(1000):
            realize([long(count)])
            Device[device].synchronize()
        print("never interrupted", flush=True)
    except KeyboardInterrupt:
        again = long(1001)
        realize([again])
        assert buffer_of(again.storage).tobytes()
        print("interrupted, and works", flush=True)
"""


@needs_compiler
@pytest.mark.parametrize("device", DEVICES)
def test_ctrl_c_during_a_long_launch(device: str) -> None:
    """It is raised where the launch was made, as soon as that is done, and the device goes on working."""
    done = program(INTERRUPTED, device, cpus="1")
    assert done.stdout is not None
    assert done.stdout.readline() == "ready\n"
    time.sleep(0.5)
    done.send_signal(signal.SIGINT)
    out, told = done.communicate(timeout=200)
    assert (done.returncode, out) == (0, "interrupted, and works\n"), told


# several processes

SHARED = """
import sys
from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops
from tg_runtime import buffer_of, realize
device, seed = sys.argv[1], int(sys.argv[2])
for n in range(200, 200 + int(sys.argv[3])):
    x = LazyBuffer.iota(n, dtypes.int32, device)
    y = x.alu(Ops.MUL, LazyBuffer.const(seed, dtypes.int32, (n,), device)).reduce(Ops.ADD, (0,))
    realize([y])
    assert buffer_of(y.storage).as_buffer().cast("i")[0] == seed * n * (n - 1) // 2, n
print("right")
"""


@needs_compiler
@pytest.mark.parametrize("device", DEVICES)
def test_processes_share_a_device(device: str) -> None:
    """Three at once, which also read and write one cache of compiled kernels."""
    sizes = "2" if device == "CL" else "15"  # an OpenCL driver takes a second to compile a kernel
    running = [program(SHARED, device, str(seed), sizes) for seed in (1, 2, 2)]
    for process in running:
        out, told = process.communicate(timeout=200)
        assert (process.returncode, out) == (0, "right\n"), told


DEEP = """
from tg_runtime import Device
from tg_runtime.backends.cpu.pool import ir_compiler
from tg_runtime.backends.cpu.program import CPUProgram
ir = '''define void @deep(ptr %p, i64 %x) "probe-stack"="inline-asm" {
  %a = alloca [1000000000 x i8]
  %q = getelementptr i8, ptr %a, i64 %x
  store volatile i8 2, ptr %q
  ret void
}'''
CPUProgram("deep", ir_compiler().compile(ir))(Device["CPU"].allocator.alloc(4), vals=(7,))
"""


DEEP_IN_A_WORKER = """
import platform
from tg_runtime import Device
from tg_runtime.backends.cpu.pool import ir_compiler
from tg_runtime.backends.cpu.program import CPUProgram
process, thread = {'x86_64': (39, 186), 'aarch64': (172, 178)}[platform.machine()]
call = 'call i64 @syscall(i64 %d, i64 0, i64 0, i64 0, i64 0, i64 0, i64 0)'
ir = '''declare i64 @syscall(i64, i64, i64, i64, i64, i64, i64)
define private void @far(i64 %x) noinline "probe-stack"="inline-asm" {
  %a = alloca [1000000000 x i8]
  %q = getelementptr i8, ptr %a, i64 %x
  store volatile i8 2, ptr %q
  ret void
}
define void @deep(ptr %p, i32 %core) {
  %process = ''' + call % process + '''
  %thread = ''' + call % thread + '''
  %callers = icmp eq i64 %process, %thread
  br i1 %callers, label %wait, label %fall
wait:
  %ever = load volatile i32, ptr %p
  br label %wait
fall:
  %x = zext i32 %core to i64
  call void @far(i64 %x)
  ret void
}'''
CPUProgram("deep", ir_compiler().compile(ir))(Device["CPU"].allocator.alloc(4), global_size=(2, 1, 1))
"""


@needs_compiler
@pytest.mark.skipif(sys.platform != "linux", reason="signals are handled on Linux")
def test_a_kernel_without_stack_is_named_on_a_worker_too() -> None:
    done = program(DEEP_IN_A_WORKER)
    _, told = done.communicate(timeout=60)
    assert done.returncode == -signal.SIGSEGV, told
    assert "the kernel deep of the CPU was stopped by the processor" in told


@needs_compiler
@pytest.mark.skipif(sys.platform != "linux", reason="signals are handled on Linux")
def test_a_kernel_without_stack_is_named() -> None:
    """The handler has a stack of its own; a large frame is touched page by page and cannot jump over the guard."""
    done = program(DEEP)
    _, told = done.communicate(timeout=60)
    assert done.returncode == -signal.SIGSEGV
    assert "the kernel deep of the CPU was stopped by the processor" in told


@needs_compiler
@pytest.mark.parametrize(("system", "machine"), [("linux", "riscv64"), ("darwin", "x86_64"), ("win32", "x86_64")])
def test_elsewhere_there_is_no_table(monkeypatch: pytest.MonkeyPatch, system: str, machine: str) -> None:
    compiler = ir_compiler()
    monkeypatch.setattr(fault, "_tables", [])
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert fault.fault_table(compiler) is None


def test_without_a_compiler_there_is_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fault, "_tables", [])
    assert fault.fault_table(None) is None
