"""Plans for machines that are not at hand, run by an emulator: odd sizes, each result beside numpy's.

Where ``tests/test_other_machines.py`` of tg-codegen looks at what is planned for such machines, this looks at what the
kernels compute there: QEMU plays the processor, one thread after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tg_codegen import Target
from tg_codegen.render.llvm import LLVMRenderer
from tg_lazy import Context
from tg_runtime import Device, parse_dev
from tg_runtime.device.launch import Launch
from tg_runtime.emulators.qemu.guest import GuestProgram
from tg_runtime.memory.host import HostMemory
from tinytg import Tensor

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Machine:
    """What kernels are planned for, and what runs them.

    Attributes:
      setting: the emulated device, as ``DEV`` names it.
      vector_bytes: of a vector register that is planned for.
      registers: how many there are.
      threads: how many the plan divides loops among.
    """

    setting: str
    vector_bytes: int
    registers: int
    threads: int

    def target(self, emulated: Target) -> Target:
        """The emulated machine with the shape that is planned for."""
        return replace(
            emulated, vector_bytes=self.vector_bytes, registers=self.registers, threads=self.threads, cpu=EAGER)

    @property
    def lacking(self) -> str:
        """Why it cannot be played here; empty if it can."""
        (entry,) = parse_dev(self.setting)
        return Device.load(entry.device).unavailable(entry) or ""


EAGER = replace(Target().cpu, thread_cycles=8)
"""Costs of a machine that divides among its threads what is as small as here."""
MACHINES = {
    "NEON, 4 threads": Machine("QEMU+CPU:LLVM:aarch64", 16, 32, 4),
    "SVE, 4 threads": Machine("QEMU+CPU:LLVM:aarch64,neoverse-v1", 32, 32, 4),
    "AVX2, 8 threads": Machine("QEMU+CPU:LLVM:x86_64,haswell", 32, 16, 8),
    "no vectors": Machine("QEMU+CPU:LLVM:riscv64,-v", 4, 32, 1),
}


def softmax(x: Array) -> Array:
    """Over the last axis."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    found: Array = powers / powers.sum(-1, keepdims=True)
    return found


def convolved(x: Array, w: Array) -> Array:
    """Windows of 3 by 3 over images (b, c, h, w), padded by one, with weights (o, c, 3, 3)."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    found: Array = np.einsum("bchwij,ocij->bohw", seen, w)
    return found


def attended(q: Array, k: Array, v: Array) -> Array:
    """Causal attention."""
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    found: Array = softmax(np.where(np.tri(q.shape[-2]) > 0, scores, -np.inf)) @ v
    return found


ROWS = (3, 0, 41, 7, 41, 12, 5)
PROGRAMS: dict[str, tuple[Sequence[tuple[int, ...]], Callable[..., Tensor], Callable[..., Array]]] = {
    "product": (((37, 53), (53, 29)), lambda x, y: x @ y, lambda x, y: x @ y),
    "convolution": (((2, 5, 13, 11), (7, 5, 3, 3)), lambda x, w: x.conv2d(w, padding=1), convolved),
    "softmax": (((17, 101),), lambda x: x.softmax(-1), softmax),
    "concatenation": (((9, 21), (9, 33), (9, 17)), lambda *x: x[0].cat(*x[1:], dim=1),
                      lambda *x: np.concatenate(x, 1)),
    "sort": (((9, 37),), lambda x: x.sort(-1)[0], lambda x: np.sort(x, -1)),
    "running sum": (((5, 131),), lambda x: x.cumsum(1), lambda x: x.cumsum(1)),
    "rows of a table": (((42, 19),), lambda x: x[Tensor(list(ROWS))], lambda x: x[list(ROWS)]),
    "attention": (((2, 3, 19, 8),) * 3, lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True), attended),
}


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A machine that is planned for, open as ``CPU``."""
    found = MACHINES[request.param]
    if found.lacking:
        pytest.skip(found.lacking)
    with Context(DEV=found.setting, FALLBACK=0):
        device = Device["CPU"]
        assert device.renderer is not None
        monkeypatch.setattr(device, "renderer", LLVMRenderer(found.target(device.renderer.target)))
        yield request.param


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_planned_for_it_computes(machine: str, name: str) -> None:
    shapes, compute, oracle = PROGRAMS[name]
    rng = np.random.default_rng(len(name))
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    got = compute(*(Tensor(array, device="CPU") for array in arrays)).numpy()
    np.testing.assert_allclose(got, oracle(*arrays), rtol=1e-4, atol=1e-5)


def test_threads_have_their_shares(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels that run are those that were planned: in as many threads as the machine has."""
    launched: list[int] = []
    launch = GuestProgram.launch

    def counted(self: GuestProgram, bufs: Sequence[HostMemory], how: Launch) -> float | None:
        launched.append(how.groups[0])
        return launch(self, bufs, how)

    monkeypatch.setattr(GuestProgram, "launch", counted)
    x = np.arange(41 * 67, dtype=np.float32).reshape(41, 67)
    assert (Tensor(x, device="CPU") * 2 + 1).numpy().tolist() == (x * 2 + 1).tolist()
    assert max(launched) == MACHINES[machine].threads
