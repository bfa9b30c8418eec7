"""The conformance class without pytest: what each group of it says of a device."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tg_dtype import DType, dtypes
from tg_lazy import Context

from ..device.compiled import Compiled
from ..device.dev import parse_dev
from ..device.registry import Device
from .base import Absent, Group
from .conformance import DeviceConformance, groups

PASSED, FAILED, ABSENT = "passed", "FAILED", "absent"


class Outcome(NamedTuple):
    """What a group of tests said of a device.

    Attributes:
      group: the group.
      status: ``passed``, ``FAILED``, or ``absent`` if the device has none of what all of its tests are about.
      tests: how many tests ran and passed.
      detail: what is absent, or the first failure.
      seconds: how long it took.
    """

    group: str
    status: str
    tests: int
    detail: str
    seconds: float


def claimed(device: Compiled) -> tuple[DType, ...]:
    """The dtypes that a device's kernels can work with: those of its language, and floats that fp32 stands in for."""
    renderer = device.renderer
    if renderer is None:
        return dtypes.all
    return tuple(d for d in dtypes.all if renderer.supports_dtype(d) or (dtypes.is_float(d) and d.bits < 32))


def subclass_for(setting: str) -> type[DeviceConformance]:
    """The conformance class for a ``DEV`` setting such as ``CPU:CLANG``.

    Raises:
      DeviceError: if the device cannot be opened here.
    """
    (entry,) = parse_dev(setting)
    with Context(DEV=setting):
        opened = Device[entry.device]
    parts: dict[str, object] = {"device": entry.device, "dev": setting, "dtypes": claimed(opened)}
    return type("Subject", (DeviceConformance,), parts)


def outcomes(setting: str, chosen: Callable[[str], bool] = bool) -> Iterator[Outcome]:
    """Runs the groups whose name is ``chosen`` on a device, one after another.

    Raises:
      DeviceError: if the device cannot be opened here.
    """
    cls = subclass_for(setting)
    for group, names in groups(cls).items():
        if chosen(group):
            yield _outcome(cls, group, names)


def _outcome(cls: type[Group], group: str, names: tuple[str, ...]) -> Outcome:
    start = time.perf_counter()
    passed, absent, failures = 0, [], []
    for name in names:
        subject = cls()
        subject.setup_method()
        try:
            getattr(subject, name)()
            passed += 1
        except Absent as reason:
            absent.append(str(reason))
        except Exception as error:
            failures.append(f"{name}: {error!s}".strip() or f"{name}: {traceback.format_exc(limit=-1)}")
        finally:
            subject.teardown_method()
    status = FAILED if failures else PASSED if passed else ABSENT
    detail = failures[0] if failures else absent[0] if absent else ""
    return Outcome(group, status, passed, detail, time.perf_counter() - start)
