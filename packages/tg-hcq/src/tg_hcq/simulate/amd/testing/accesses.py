"""What accesses of lanes do, once more, in Python's integers: by the names of the instructions.

Sources: AMD, "RDNA3 Instruction Set Architecture", 16.12 and 16.15; "RDNA4" and "CDNA3", the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ...engine.testing import DOUBLE, HALF, SINGLE, Format
from .scalars import signed


@dataclass(frozen=True)
class Access:
    """What a lane of an instruction does.

    Attributes:
      kind: ``load``, ``store`` or ``atomic``.
      nbytes: of a lane; of each of a pair.
      signed: whether the sign is extended.
      half: ``""``, ``"low"`` or ``"high"``.
      stride: bytes that an offset of a pair counts; 0 for no pair.
      atomic: what is stored, of what was there and of data.
      operands: of data.
    """

    kind: str
    nbytes: int
    signed: bool = False
    half: str = ""
    stride: int = 0
    atomic: Callable[[int, int, int], int] | None = None
    operands: int = 1


_SIZES = {
    "byte": 1, "short": 2, "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16, "b8": 1, "b16": 2, "b32": 4,
    "b64": 8, "b96": 12, "b128": 16, "u8": 1, "i8": 1, "u16": 2, "i16": 2, "ubyte": 1, "sbyte": 1, "ushort": 2,
    "sshort": 2,
}  # fmt: skip


def access(name: str) -> Access | None:
    """What an instruction does; None if that is not specified here."""
    space, _, rest = name.partition("_")
    if space == "ds":
        return _local(rest)
    if match := re.fullmatch(r"(load|store)_d16(_hi)?_(\w+)", rest):
        verb, high, kind = match.groups()
        return Access(verb, _SIZES[kind], kind[0] == "i", "high" if high else "low")
    if match := re.fullmatch(r"(load|store)_([a-z]+)_d16(_hi)?", rest):
        verb, kind, high = match.groups()
        return Access(verb, _SIZES[kind], kind[0] == "s" and kind != "short", "high" if high else "low")
    if match := re.fullmatch(r"(load|store)_([a-z0-9]+)", rest):
        verb, kind = match.groups()
        sign = kind in ("i8", "i16", "sbyte", "sshort")
        return Access(verb, _SIZES[kind], sign) if kind in _SIZES else None
    if match := re.fullmatch(r"atomic_(\w+)", rest):
        return _atomic(match[1])
    return None


def _local(rest: str) -> Access | None:
    if match := re.fullmatch(r"(read|write|load|store)(?:2|_2addr)(st64|_stride64)?_b(32|64)", rest):
        verb, far, bits = match.groups()
        kind = {"read": "load", "write": "store"}.get(verb, verb)
        return Access(kind, int(bits) // 8, stride=int(bits) // 8 * (64 if far else 1))
    if match := re.fullmatch(r"(read|write|load|store)_([a-z0-9]+)(_d16)?(_hi)?", rest):
        verb, kind, half, high = match.groups()
        verb = {"read": "load", "write": "store"}.get(verb, verb)
        where = ("high" if high else "low") if half else ""
        return Access(verb, _SIZES[kind], kind[0] == "i", where) if kind in _SIZES else None
    return _atomic(rest.replace("_rtn", ""))


def _float(bits: int) -> Format:
    return SINGLE if bits == 32 else DOUBLE


def _less(form: Format, x: int, y: int) -> bool:
    if form.is_nan(x) or form.is_nan(y):
        return False
    keys = [-(n ^ form.sign) if n & form.sign else n for n in (x, y)]
    return keys[0] < keys[1]


def _extreme(way: str, bits: int) -> Callable[[int, int, int], int]:
    form = _float(bits)
    return lambda old, data, _: data if (_less(form, data, old) if way == "min" else _less(form, old, data)) else old


def _number(way: str, bits: int) -> Callable[[int, int, int], int]:
    form = _float(bits)

    def stored(old: int, data: int, _: int) -> int:
        if form.is_nan(data):
            return form.nan if form.is_nan(old) else old
        if form.is_nan(old):
            return data
        rank = [(-(n ^ form.sign) - 1 if n & form.sign else n) for n in (data, old)]  # -0 before +0
        return data if (rank[0] < rank[1] if way == "min" else rank[0] > rank[1]) else old

    return stored


def _packed(form: str) -> Callable[[int, int, int], int]:
    def stored(old: int, data: int, _: int) -> int:
        of = HALF if form == "f16" else Format(8, 7)
        return sum(of.add(old >> shift & 0xFFFF, data >> shift & 0xFFFF) << shift for shift in (0, 16))

    return stored


_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "add": lambda old, data: old + data, "sub": lambda old, data: old - data, "rsub": lambda old, data: data - old,
    "and": lambda old, data: old & data, "or": lambda old, data: old | data, "xor": lambda old, data: old ^ data,
    "swap": lambda old, data: data, "inc": lambda old, data: 0 if old >= data else old + 1,
    "dec": lambda old, data: data if old == 0 or old > data else old - 1,
    "csub": lambda old, data: max(old - data, 0), "sub_clamp": lambda old, data: max(old - data, 0),
    "cond_sub": lambda old, data: old - data if old >= data else old,
}  # fmt: skip


def _atomic(name: str) -> Access | None:
    name = re.sub(r"^(wrxchg|storexchg)", "swap", name)
    if match := re.fullmatch(r"([a-z_]+?)_?(x2|[uib](?:32|64))?", name):
        op, suffix = match.groups()
        nbytes = 8 if suffix and suffix.endswith(("2", "4")) and suffix in ("x2", "u64", "i64", "b64") else 4
        bits = 8 * nbytes
        if op in _INTEGERS:
            return Access("atomic", nbytes, atomic=lambda old, data, _: _INTEGERS[op](old, data) % (1 << bits))
        if extreme := re.fullmatch(r"([us])?(min|max)", op):
            sign = extreme[1] == "s" or bool(suffix and suffix[0] == "i")
            best = min if extreme[2] == "min" else max
            return Access("atomic", nbytes, atomic=lambda old, data, _: best(
                old, data, key=lambda n: signed(n, bits) if sign else n))  # fmt: skip
        if op in ("cmpswap", "cmpstore"):
            return Access("atomic", nbytes, atomic=lambda old, new, wanted: new if old == wanted else old, operands=2)
        if op == "cmpst":
            return Access("atomic", nbytes, atomic=lambda old, wanted, new: new if old == wanted else old, operands=2)
        if op == "mskor":
            return Access("atomic", nbytes, atomic=lambda old, mask, new: old & ~mask | new, operands=2)
        if op == "wrap":
            return Access("atomic", nbytes, operands=2, atomic=lambda old, low, step: (
                old - low if old >= low else old + step) % (1 << bits))  # fmt: skip
    if match := re.fullmatch(r"f(min|max)(_x2)?", name):
        bits = 64 if match[2] else 32
        return Access("atomic", bits // 8, atomic=_extreme(match[1], bits))
    if match := re.fullmatch(r"(min|max)(_num)?_f(32|64)", name):
        bits = int(match[3])
        return Access("atomic", bits // 8, atomic=(_number if match[2] else _extreme)(match[1], bits))
    if match := re.fullmatch(r"add_f(32|64)", name):
        form = _float(int(match[1]))
        return Access("atomic", int(match[1]) // 8, atomic=lambda old, data, _: form.add(old, data))
    if match := re.fullmatch(r"pk_add_(f16|bf16)", name):
        return Access("atomic", 4, atomic=_packed(match[1]))
    return None


def same(name: str, got: bytes, wanted: bytes) -> bool:
    """Whether bytes are the same, but for payloads of NaN that float atomics make."""
    if got == wanted:
        return True
    forms: dict[str, tuple[Format, int]] = {
        "bf16": (Format(8, 7), 2), "f16": (Format(5, 10), 2), "f64": (DOUBLE, 8), "f32": (SINGLE, 4)}  # fmt: skip
    form, size = next((found for key, found in forms.items() if key in name), (SINGLE, 0))
    if not size:
        return False
    first, second = (
        [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)] for data in (got, wanted)
    )
    return all(a == b or (form.is_nan(a) and form.is_nan(b)) for a, b in zip(first, second, strict=True))
