"""Call every method of Tensor on every device that is here, and write what came out.

    python -m tools.tensor_page                               # everything, on every device; minutes
    python -m tools.tensor_page --only Tensor.sin linalg.qr   # some; what else is known stays
    python -m tools.tensor_page --new                         # what was not run yet on some device
    python -m tools.tensor_page --dev CPU NUMPY               # on some devices; what others said stays
    python -m tools.tensor_page --new --minutes 30            # as much as that allows; the same again goes on
    python -m tools.tensor_page --page                        # the page alone, from what is known

Methods are called as the fuzzer calls them (``tests/fuzz/methods``), other functions as ``functions.py`` says, with
operands of each kind of number. Values are compared with numpy's, with PyTorch's where it is installed, and else from
device to device; gradients with differences, three times over. The results are kept in ``docs/tensor.json``, and
``docs/tensor.md`` is written from them. The status is 1 if something was wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict

from . import measure, page, references
from .samples import operations

EACH = 10
"""After so many operations the results are written."""


def main(argv: Sequence[str]) -> int:
    """Runs, prints what is wrong, and writes the page."""
    parser = argparse.ArgumentParser(prog="tensor_page", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", help="operations, as the page names them")
    parser.add_argument("--new", action="store_true", help="on each device, what was not run on it")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start nothing after this long")
    parser.add_argument("--dev", nargs="*", default=list(measure.DEVICES), help="settings of DEV")
    parser.add_argument("--share", default="0/1", help="the I-th of N parts of them, as I/N")
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args(argv)
    every = operations()
    names = [] if options.page else every if options.only is None else options.only
    part, parts = map(int, options.share.split("/"))
    names = names[part::parts]
    for device in options.dev:
        if names and measure.missing(device):
            print(f"{device}: {measure.missing(device)}", file=sys.stderr)
    here = [device for device in options.dev if not measure.missing(device)]
    known, begun = page.results(), time.monotonic()
    good, fresh = True, {}
    try:
        for name in names:
            devices = [device for device in here if not (options.new and page.was_run(known, name, device))]
            if not devices or time.monotonic() - begun > 60 * options.minutes:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fresh[name] = asdict(measure.measure(name, devices))
            good &= not fresh[name]["problems"]
            for problem in fresh[name]["problems"]:
                print(f"{name}: {problem}", flush=True)
            if len(fresh) % EACH == 0:
                kept(fresh)
    finally:  # what was found stays when the run is stopped
        kept(fresh | {name: {} for name in page.others()})
    return 0 if good else 1


def kept(fresh: dict[str, page.Json]) -> None:
    """Writes what was found beside what is known."""
    known = page.results()
    for name, row in fresh.items():
        known[name] = page.merged(known.get(name, {}), row, names_of(name))
    wanted = {*operations(), *page.others()}
    page.write({name: row for name, row in sorted(known.items()) if name in wanted})


def names_of(name: str) -> dict[str, str]:
    """The names that numpy and PyTorch have; of the latter none if it is not installed."""
    found = {"numpy": references.numpy_name(name)}
    return found | ({"torch": references.torch_name(name)} if references.torch() is not None else {})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
