"""The settings of a group of parameters: a dict as PyTorch's, in which the learning rate is a tensor."""

from __future__ import annotations

import struct
from collections.abc import MutableMapping

from tg_dtype import DType, dtypes
from tg_runtime import capturing

from ...tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Pair = tuple[float, float]


def pair(betas: Pair, b1: float | None, b2: float | None, owner: str) -> Pair:
    """The two numbers of ``betas``, or those that were given by tinygrad's names instead.

    Raises:
      TypeError: if ``betas`` is one number, as tinygrad's third argument is.

    Example:
      >>> pair((0.9, 0.999), 0.5, None, "Adam")
      (0.5, 0.999)
      >>> from tg_frontend import Tensor
      >>> [beta.item() for beta in pair(Tensor([0.5, 0.75]), None, None, "Adam")]
      [0.5, 0.75]
    """
    if isinstance(betas, Tensor) and betas.shape == (2,):
        betas = tuple(betas.unbind())
    if not isinstance(betas, (tuple, list)):
        raise TypeError(f"{owner}: betas are two numbers, got {betas!r}; b1 and b2 are given by name")
    given = dict(enumerate(betas)) | {n: value for n, value in ((0, b1), (1, b2)) if value is not None}
    return tuple(given.values())  # type: ignore[return-value]


class _Everything:
    """Contains any name."""

    def __contains__(self, name: object) -> bool:
        return True


class Group(MutableMapping[str, object]):
    """Parameters, and the settings of their steps by name.

    A setting is a number in the step that a TinyJit records, which is recorded anew when it was changed; or a tensor,
    whose number may change between replays. The learning rate is a tensor; :meth:`live` makes others so.

    Args:
      params: the parameters.
      device: where tensors of settings are.
      values: the settings.
      owner: the optimiser's name, for messages.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.1, momentum=0.5)
      >>> group = optimizer.param_groups[0]
      >>> group["lr"] = 0.25
      >>> group["lr"], group["momentum"], optimizer.lr
      (0.25, 0.5, Tensor([0.25]))
    """

    __slots__ = ("__dict__", "_device", "_owner", "_written")

    settings = _Everything()  # of a recorded step: see Optimizer.settings

    def __init__(self, params: list[Tensor], device: str, values: dict[str, Any], owner: str) -> None:
        self._device, self._owner = device, owner
        self._written: dict[str, float] = {}  # numbers as they were given, which the tensors hold rounded
        vars(self)["params"] = params
        for name, value in values.items():
            vars(self)[name] = value
        self.live("lr")

    def live(self, name: str, part: int | None = None) -> None:
        """Makes a setting, or one number of a pair, a tensor."""
        held: Any = vars(self)[name]
        if part is None:
            vars(self)[name] = self._tensor(name, held)
        elif not isinstance(held[part], Tensor):
            parts = list(held)
            parts[part] = self._tensor(f"{name}.{part}", held[part])
            vars(self)[name] = tuple(parts)

    def _tensor(self, name: str, value: Any) -> Tensor:
        if isinstance(value, Tensor):
            return value.detach().reshape(1).cast(dtypes.float32).to(self._device).contiguous()
        self._written[name] = value
        return Tensor([float(value)], device=self._device, dtype=dtypes.float32, requires_grad=False)

    def __getitem__(self, name: str) -> Any:
        held = vars(self)[name]
        if isinstance(held, tuple):
            return tuple(self._read(f"{name}.{n}", part) for n, part in enumerate(held))
        return held if name == "params" else self._read(name, held)

    def _read(self, name: str, held: Any) -> Any:
        if not isinstance(held, Tensor) or capturing():
            return held
        number, given = float(held.item()), self._written.get(name)
        return given if given is not None and _single(given) == number else number

    def given(self, name: str) -> float:
        """The number that a setting was last given by its name, without a look at the tensor that holds it."""
        known = self._written.get(name)
        return float(self[name]) if known is None else float(known)

    def __setitem__(self, name: str, value: Any) -> None:
        held = vars(self).get(name)
        if name == "lr":
            self._checked(value)
        if isinstance(held, tuple) and any(isinstance(part, Tensor) for part in held):
            for n, part in enumerate(held):
                if isinstance(part, Tensor):
                    self._write(f"{name}.{n}", part, value[n])
            new = tuple(p if isinstance(p, Tensor) else v for p, v in zip(held, value, strict=True))
            if any(a is not b and a != b for a, b in zip(held, new, strict=True) if not isinstance(a, Tensor)):
                vars(self)[name] = new
        elif isinstance(held, Tensor):
            self._write(name, held, value)
        else:
            vars(self)[name] = value

    def _checked(self, value: Any) -> None:
        if isinstance(value, Tensor):
            return
        if not isinstance(value, (int, float)):
            raise TypeError(f"{self._owner}: the learning rate is a {type(value).__name__}, not a number")
        if not value >= 0:
            raise ValueError(f"{self._owner}: the learning rate {value} is negative")

    def _write(self, name: str, held: Tensor, value: Any) -> None:
        if isinstance(value, Tensor):
            if value is not held:
                self._written.pop(name, None)
                held.assign(value.detach().reshape(1).cast(dtypes.float32).to(self._device))
            return
        if capturing():
            what = "the learning rate" if name == "lr" else name
            raise RuntimeError(
                f"{self._owner}: {what} was set to the number {value} inside of a function while TinyJit records it; "
                "every replay would set the same: set it outside, or to a tensor"
            )
        self._written[name] = value
        held.assign([float(value)])

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"{self._owner}: a setting cannot be taken out of a group")

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def __len__(self) -> int:
        return len(vars(self))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.items() if name != "params")
        return f"Group({len(self['params'])} tensors, {shown})"

    def number(self, name: str, kind: DType, part: int | None = None) -> Any:
        """A setting to compute with: a number, or a tensor of shape () and of this dtype."""
        held: Any = vars(self)[name]
        held = held if part is None else held[part]
        return held.reshape(()).cast(kind) if isinstance(held, Tensor) else held


def _single(value: float) -> float:
    """A number rounded to float32."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
