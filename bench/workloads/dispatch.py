"""What it costs to start a kernel."""

from __future__ import annotations

from ..workload import Goal, Registry, Workload

KERNELS = 200


def register(registry: Registry) -> None:
    """Appends the workloads of this module."""
    registry.add(
        Workload(
            "tiny op, eager", "dispatch", lambda library: library.tiny(), "us", quick=True,
            goals=(Goal("seconds", 50e-6, "first"), Goal("seconds", 20e-6)),
        )  # fmt: skip
    )
    registry.add(
        Workload(
            f"{KERNELS} kernels replayed, per kernel", "dispatch", lambda library: library.chain(KERNELS, 16), "us",
            work=KERNELS, quick=True, goals=(Goal("seconds", 5e-6, "first"), Goal("seconds", 0.5e-6)),
        )  # fmt: skip
    )
