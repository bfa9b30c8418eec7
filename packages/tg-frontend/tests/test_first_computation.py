"""What a process computes first is planned as what it computes later: the device is open then, and has its limits."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tg_runtime import Device

PROGRAM = """
from tg_frontend import Tensor, fft
from tg_runtime import GlobalCounters

def transform():
    return len(fft.fft(Tensor.empty(1 << 20, dtype="complex64")).schedule())

def rows():
    before = GlobalCounters.kernel_count
    (Tensor.zeros(2003, 2003).contiguous().softmax() @ Tensor.ones(2003, 61).contiguous()).realize()
    return GlobalCounters.kernel_count - before

print({name}(), {name}())
"""


@pytest.mark.parametrize("name", ("transform", "rows"))
def test_the_first_computation_has_as_many_kernels_as_the_second(name: str) -> None:
    if "CPU" not in Device.available():
        pytest.skip("the device CPU is not available here")
    command = [sys.executable, "-c", PROGRAM.format(name=name)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, "DEV": "CPU", "DEBUG": "0"}
    )
    assert not done.returncode, done.stderr[-2000:]
    first, second = done.stdout.split()
    assert first == second
