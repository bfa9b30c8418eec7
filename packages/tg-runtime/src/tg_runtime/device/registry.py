"""The registry of devices: found through entry points, loaded by name on first use, opened once.

A package offers a device by an entry point in the group ``tg.devices``, whose value is a subclass of
:class:`~tg_runtime.device.compiled.Compiled`. Listing devices loads their classes but opens nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tg_lazy import DEBUG

from ..errors import DeviceError, DeviceUnavailable, DevSyntaxError, UnknownDevice
from ..host.locks import fork_safe_lock
from .compiled import Compiled, DeviceFacts
from .dev import DEV, DevEntry, parse_dev

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "tg.devices"
AUTOMATIC = "CPU"


class DeviceRow(NamedTuple):
    """A line of the table of devices.

    Attributes:
      name: device name.
      source: distribution and class that offer it.
      problem: why it cannot be opened here, None if it can.
      renderers: its renderers, each with why it is unavailable, or None.
      facts: what else is known without opening it.
    """

    name: str
    source: str
    problem: str | None
    renderers: dict[str, str | None]
    facts: DeviceFacts = DeviceFacts()


class Registry:
    """``Device``: ``Device["CPU"]`` is the opened device, ``Device.DEFAULT`` the name of the default one."""

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._points: dict[str, list[EntryPoint]] | None = None
        self._classes: dict[str, type[Compiled]] = {}
        self._opened: dict[tuple[str, DevEntry], Compiled] = {}
        # what DEV said when _quick, _default and _entries were filled
        self._seen: str | None = None
        self._quick: dict[str, Compiled] = {}
        self._default = AUTOMATIC
        self._entries: dict[str, DevEntry] = {}

    @property
    def DEFAULT(self) -> str:
        """The canonical name of the default device: the first that ``DEV`` names, else CPU."""
        if self._seen is not DEV.value:
            self._read_setting()
        return self._default

    def _read_setting(self) -> None:
        with self._lock:
            setting = DEV.value
            parsed = parse_dev(setting)
            default = parsed[0].device or AUTOMATIC if parsed else AUTOMATIC
            entries = {entry.device or AUTOMATIC: entry for entry in parsed}
            for name in entries:
                if name not in self._entry_points():
                    raise UnknownDevice(f"DEV={setting!r}: {self._unknown(name)}")
            self._entries, self._default = entries, default
            self._quick = {}
            self._seen = setting

    def canonicalize(self, name: str | None) -> str:
        """The canonical form of a device name: capitals, no ``:0``. None is the default device.

        After the name comes a number, or, with a device whose memory has names, such a name (``DISK:/path``).

        >>> Device.canonicalize("cpu:0"), Device.canonicalize("cpu:1")
        ('CPU', 'CPU:1')

        Raises:
          ValueError: if the name is empty, or what follows it is no number.
          UnknownDevice: if what follows it is no number, and no package offers such a device.
        """
        if name is None:
            return self.DEFAULT
        base, colon, rest = name.partition(":")
        base = base.upper()
        if not base:
            raise ValueError(f"{name!r} is not a device name; write CPU or CPU:1")
        if rest.isdecimal():
            return base if int(rest) == 0 else f"{base}:{int(rest)}"
        if colon and not self.load(base).named_memory:
            raise ValueError(
                f"{name!r} is not a device name: after {base}: comes a number, as in {base}:1; renderers are chosen by "
                "DEV: DEV=CPU:CLANG in the environment, or Context(DEV='CPU:CLANG')"
            )
        return f"{base}{colon}{rest}"

    def entry(self, name: str) -> DevEntry:
        """How ``DEV`` says the device is to be opened."""
        if self._seen is not DEV.value:
            self._read_setting()
        base = name.partition(":")[0].upper()
        return self._entries.get(base) or DevEntry(base)

    def __getitem__(self, name: str) -> Compiled:
        """The device of that name, opened if need be.

        Raises:
          ValueError: if it is not a device's name; see :meth:`canonicalize`.
          UnknownDevice: if no package offers it; the message lists what there is.
          DeviceUnavailable: if this machine lacks what it needs, or ``DEV`` asks for what the device has not; the
            message says what.
        """
        if self._seen is DEV.value:
            found = self._quick.get(name)
            if found is not None:
                return found
        return self._open(self.canonicalize(name), name)

    def _open(self, canonical: str, name: str) -> Compiled:
        entry = self.entry(canonical)
        with self._lock:
            device = self._opened.get((canonical, entry))
            if device is None:
                cls = self.load(canonical)
                problem = cls.meaningless(entry) or cls.unavailable(entry)
                if problem is not None:
                    raise DeviceUnavailable.here(canonical, problem)
                device = cls(canonical, entry)  # type: ignore[call-arg, arg-type]
                if DEBUG.value >= 1:
                    print(f"opened device {canonical}{f' as {entry}' if str(entry) != canonical else ''}")
                self._opened[canonical, entry] = device
            self._quick[name] = device
            return device

    def opened(self) -> list[Compiled]:
        """The devices that are open."""
        return list(self._opened.values())

    def names(self) -> list[str]:
        """The names of all devices that installed packages offer."""
        return sorted(self._entry_points())

    def _entry_points(self) -> dict[str, list[EntryPoint]]:
        if self._points is None:
            from importlib.metadata import entry_points

            points: dict[str, list[EntryPoint]] = {}
            for point in entry_points(group=GROUP):
                same = points.setdefault(point.name.upper(), [])
                # an editable install may be found twice: by its own path and by the installer's
                if all(_origin(point) != _origin(other) for other in same):
                    same.append(point)
            self._points = points
        return self._points

    def offered_by(self, name: str) -> list[str]:
        """The distributions that offer a device; usually one.

        >>> Device.offered_by("CPU:1")
        ['tg-runtime']
        """
        return [_distribution(point) for point in self._entry_points().get(name.partition(":")[0].upper(), [])]

    def refresh(self) -> None:
        """Looks again for packages that offer devices; devices already open stay open."""
        with self._lock:
            self._points, self._seen = None, None
            self._classes.clear()

    def load(self, name: str) -> type[Compiled]:
        """The class of a device, imported if need be; the device is not opened.

        Raises:
          UnknownDevice: if no package offers it.
          DeviceError: if two packages claim the name, or the class cannot be imported.
        """
        base = name.partition(":")[0].upper()
        found = self._classes.get(base)
        if found is not None:
            return found
        points = self._entry_points().get(base)
        if not points:
            raise UnknownDevice(self._unknown(base))
        if len(points) > 1:
            claims = " and ".join(f"{_distribution(p)} ({p.value})" for p in points)
            raise DeviceError(f"the device {base} is claimed by {claims}; uninstall all but one")
        try:
            cls = points[0].load()
        except (ImportError, AttributeError) as error:
            raise DeviceError(f"the device {base} of {_distribution(points[0])} does not import: {error}") from error
        if not (isinstance(cls, type) and issubclass(cls, Compiled)):
            raise DeviceError(f"the device {base}: {points[0].value} is not a subclass of tg_runtime.Compiled")
        self._classes[base] = cls
        return cls

    def table(self) -> list[DeviceRow]:
        """All devices that installed packages offer, and why each cannot be opened here. Opens nothing.

        Raises:
          DevSyntaxError, UnknownDevice: if ``DEV`` cannot be read, or names a device that there is not.
        """
        rows = []
        for name, points in sorted(self._entry_points().items()):
            source = ", ".join(f"{_distribution(p)} ({p.value})" for p in points)
            entry = self.entry(name)
            problem = self._problem(name, entry)
            try:
                cls = self.load(name)
            except DeviceError:
                rows.append(DeviceRow(name, source, problem, {}))
                continue
            rows.append(DeviceRow(name, source, problem, dict(cls.renderers()), cls.facts(entry)))
        return rows

    def available(self) -> list[str]:
        """The names of the devices that can be opened here. Opens nothing.

        Raises:
          DevSyntaxError, UnknownDevice: if ``DEV`` cannot be read, or names a device that there is not.
        """
        return [name for name in sorted(self._entry_points()) if self._problem(name, self.entry(name)) is None]

    def _problem(self, name: str, entry: DevEntry) -> str | None:
        """Why a device cannot be opened here, None if it can."""
        try:
            cls = self.load(name)
            return cls.meaningless(entry) or cls.unavailable(entry)
        except (DeviceError, DevSyntaxError) as error:
            return str(error)

    def _unknown(self, name: str) -> str:
        lines = [f"there is no device {name}. There are:"]
        self._seen, seen = DEV.value, self._seen  # the table must not read the setting that is being refused
        try:
            lines += [f"  {row.name:<8} {row.problem or 'available'}" for row in self.table()]
        finally:
            self._seen = seen
        return "\n".join(lines)


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "an unnamed package"


def _origin(point: EntryPoint) -> tuple[str, str]:
    return _distribution(point), point.value


Device = Registry()
