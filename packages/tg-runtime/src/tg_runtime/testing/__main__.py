"""Runs the conformance class on devices: ``python -m tg_runtime.testing [--group TEXT] [DEV…]``.

Each DEV is a setting of one device (``CPU:CLANG``, ``CL``, ``MOCK+CUDA:PTX``); with none, every device that can be
opened here is taken. A line a group is printed, and the exit status is 1 if any failed. ``--json`` prints one JSON
object a group, for programs.
"""

from __future__ import annotations

import argparse
import json
import sys

from ..device.compiled import Interpreted
from ..device.registry import Device
from ..errors import DeviceError
from .report import FAILED, outcomes


def everything() -> list[str]:
    """The devices that run kernels and can be opened here; files and shared memory hold bytes only."""
    classes = ((name, Device.load(name)) for name in Device.available())
    return [name for name, cls in classes if cls.renderers() or issubclass(cls, Interpreted)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tg_runtime.testing", description=(__doc__ or "").split(":")[0])
    parser.add_argument("devices", nargs="*", metavar="DEV", help="devices (if none, all that can be opened here)")
    parser.add_argument("--group", default="", metavar="TEXT", help="only groups whose name contains TEXT")
    parser.add_argument("--json", action="store_true", help="print one JSON object a group")
    arguments = parser.parse_args()
    failed = False
    for setting in arguments.devices or everything():
        try:
            for outcome in outcomes(setting, lambda group: arguments.group in group):
                failed |= outcome.status == FAILED
                if arguments.json:
                    print(json.dumps({"device": setting, **outcome._asdict()}), flush=True)
                else:
                    group, status, tests, detail, seconds = outcome
                    numbers = f"{tests:>2} tests {seconds:7.2f} s"
                    print(f"{setting:<16} {group:<18} {status:<7} {numbers}  {detail}", flush=True)
        except DeviceError as error:
            failed = True
            print(f"{setting}: {error}", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
