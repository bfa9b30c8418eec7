"""The conformance class: what a device must do for the layers above to be right on it, in groups with names."""

from __future__ import annotations

from .arithmetic import Casts, Elementwise, Reductions
from .base import Group
from .images import Images
from .indices import Indices
from .launches import Faults, Graphs, Launches
from .memory import Copies, SubBuffers
from .shapes import ManyBuffers, OddShapes, Schedules, Symbolic, Views
from .updates import Updates
from .workgroups import LocalMemory


class DeviceConformance(
    Copies, SubBuffers, Elementwise, Casts, Reductions, Views, OddShapes, Symbolic, ManyBuffers, Indices, LocalMemory,
    Updates, Images, Schedules, Graphs, Launches, Faults,
):  # fmt: skip
    """Subclass it, set ``device`` (and ``dev``), and let pytest collect the subclass.

    ``python -m tg_runtime.testing DEV`` runs it without pytest, and prints a line for each of :func:`groups`. What is
    there to be set is told by :class:`~tg_runtime.testing.base.Group`.

    Example:
      >>> from tg_runtime.testing import DeviceConformance
      >>> class TestNumpy(DeviceConformance):
      ...     device = "NUMPY"
    """


def groups(cls: type[Group] = DeviceConformance) -> dict[str, tuple[str, ...]]:
    """The tests of each group, in the order in which the class names them.

    >>> groups()["casts"]
    ('test_casts', 'test_bitcasts', 'test_bytes_of_bools')
    """
    parts = [part for part in cls.__mro__ if issubclass(part, Group) and vars(part).get("group")]
    return {part.group: tuple(name for name in vars(part) if name.startswith("test_")) for part in parts}
