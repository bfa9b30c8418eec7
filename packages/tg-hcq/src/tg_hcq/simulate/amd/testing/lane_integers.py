"""What integer instructions do in a lane, in Python's integers, from the manuals.

Source: AMD, "RDNA3 Instruction Set Architecture", chapter 16; names of gfx9 and RDNA 2 beside those of RDNA 3.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator

from .rules import Rule, rule

_B16, _B32, _B64 = "b16", "b32", "b64"


def signed(x: int, bits: int) -> int:
    """A pattern as a number with a sign."""
    return x - (x >> bits - 1 << bits)


def number(x: int, sign: str, bits: int) -> int:
    """A pattern as a number with or without a sign."""
    return signed(x & (1 << bits) - 1, bits) if sign == "i" else x & (1 << bits) - 1


def bound(x: int, sign: str, bits: int) -> int:
    """The nearest number of so many bits."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if sign == "i" else (0, (1 << bits) - 1)
    return min(max(x, low), high)


def rules() -> Iterator[Rule]:
    """The specification of each instruction, by a pattern of its names."""
    yield from _bits()
    yield from _arithmetic()
    yield from _orders()
    yield from _fields()
    yield from _bytes()
    yield from _packed()


def _bits() -> Iterator[Rule]:
    two: dict[str, Callable[[int, int], int]] = {
        "and": operator.and_, "or": operator.or_, "xor": operator.xor, "xnor": lambda x, y: ~(x ^ y),
    }  # fmt: skip
    for name, of in two.items():
        for kind in (_B16, _B32):
            yield rule(f"v_{name}_{kind}", [kind], [kind] * 2, lambda env, x, y, of=of: of(x, y))
    for kind in (_B16, _B32, _B64):
        yield rule(f"v_mov_{kind}", [kind], [kind], lambda env, x: x)
        yield rule(f"v_not_{kind}", [kind], [kind], lambda env, x: ~x)
    yield rule("v_accvgpr_(read|write|mov)(_b32)?", [_B32], [_B32], lambda env, x: x)
    yield rule("v_or3_b32", [_B32], [_B32] * 3, lambda env, x, y, z: x | y | z)
    yield rule("v_xor3_b32", [_B32], [_B32] * 3, lambda env, x, y, z: x ^ y ^ z)
    yield rule("v_and_or_b32", [_B32], [_B32] * 3, lambda env, x, y, z: (x & y) | z)
    yield rule("v_bfi_b32", [_B32], [_B32] * 3, lambda env, x, y, z: (y & x) | (z & ~x))
    for kind, source in ((_B32, "f32"), (_B16, "f16")):
        yield rule(f"v_cndmask_{kind}", [kind], [source, source, "mask"], lambda env, x, y, c: y if c else x,
                   plain=True)  # fmt: skip
        yield rule(f"v_bitop3_{kind}", [kind], [kind] * 3, _bitop)
    yield rule("v_pack_b32_f16", [_B32], ["f16", "f16"], lambda env, x, y: x | y << 16, plain=True)


def _bitop(env: Rule.Environment, x: int, y: int, z: int) -> int:
    table, found = int(env.assembly.modifiers.get("bitop3", "0"), 0), 0
    for bit in range(32):
        index = (x >> bit & 1) << 2 | (y >> bit & 1) << 1 | (z >> bit & 1)
        found |= (table >> index & 1) << bit
    return found


def _arithmetic() -> Iterator[Rule]:
    for op, of in (("add", operator.add), ("sub", operator.sub), ("subrev", lambda x, y: y - x)):
        for bits in (16, 32):
            for sign in "ui":

                def total(env: Rule.Environment, x: int, y: int, of: Callable[[int, int], int] = of,
                          sign: str = sign, bits: int = bits) -> int:  # fmt: skip
                    found = of(number(x, sign, bits), number(y, sign, bits))
                    return bound(found, sign, bits) if env.clamps else found

                kind = f"b{bits}"
                yield rule(f"v_{op}(_nc)?_{sign}{bits}", [kind], [kind] * 2, total, clamps=True)
        for pattern, takes in ((f"v_{op}_co_u32", False), (f"v_{op.replace('sub', 'subb')}c?(_co_ci|_co)_u32", True)):
            if takes:
                pattern = {"add": "v_add(_co_ci|c_co)_u32", "sub": "v_sub(_co_ci|b_co)_u32",
                           "subrev": "v_sub(rev_co_ci|brev_co)_u32"}[op]  # fmt: skip

            def with_carry(env: Rule.Environment, x: int, y: int, carry: int = 0,
                           of: Callable[[int, int], int] = of, op: str = op) -> tuple[int, int]:  # fmt: skip
                found = of(x, y) + (carry if op == "add" else -carry)
                return found, int(found < 0 or found > 0xFFFFFFFF)

            yield rule(pattern, [_B32, "mask"], [_B32, _B32, *["mask"] * takes], with_carry)
    three: dict[str, Callable[[int, int, int], int]] = {
        "add3_u32": lambda x, y, z: x + y + z, "xad_u32": lambda x, y, z: (x ^ y) + z,
        "add_lshl_u32": lambda x, y, n: (x + y) << n % 32, "lshl_add_u32": lambda x, n, y: (x << n % 32) + y,
        "lshl_or_b32": lambda x, n, y: x << n % 32 | y,
    }  # fmt: skip
    for name, compute in three.items():
        yield rule(f"v_{name}", [_B32], [_B32] * 3, lambda env, x, y, z, of=compute: of(x, y, z))
    yield rule("v_lshl_add_u64", [_B64], [_B64, _B32, _B64], lambda env, x, n, y: (x << n % 8) + y)
    yield rule("v_add(_nc)?_u64", [_B64], [_B64] * 2, lambda env, x, y: x + y)
    for bits in (16, 32, 64):
        kind, count = f"b{bits}", "b16" if bits == 16 else _B32
        yield rule(f"v_lshlrev_b{bits}", [kind], [count, kind], lambda env, n, x, b=bits: x << n % b)
        yield rule(f"v_lshrrev_b{bits}", [kind], [count, kind], lambda env, n, x, b=bits: x >> n % b)
        yield rule(f"v_ashrrev_i{bits}", [kind], [count, kind], lambda env, n, x, b=bits: signed(x, b) >> n % b)
    yield rule("v_alignbit_b32", [_B32], [_B32] * 3, lambda env, x, y, n: (x << 32 | y) >> n % 32)
    yield rule("v_alignbyte_b32", [_B32], [_B32] * 3, lambda env, x, y, n: (x << 32 | y) >> 8 * (n % 4))
    yield rule("v_mul_lo_u32", [_B32], [_B32] * 2, lambda env, x, y: x * y)
    yield rule("v_mul_lo_u16", [_B16], [_B16] * 2, lambda env, x, y: x * y)
    for sign in "ui":
        yield rule(f"v_mul_hi_{sign}32", [_B32], [_B32] * 2,
                   lambda env, x, y, s=sign: number(x, s, 32) * number(y, s, 32) >> 32)  # fmt: skip
        yield rule(f"v_mul_{sign}32_{sign}24", [_B32], [_B32] * 2,
                   lambda env, x, y, s=sign: number(x, s, 24) * number(y, s, 24))  # fmt: skip
        yield rule(f"v_mul_hi_{sign}32_{sign}24", [_B32], [_B32] * 2,
                   lambda env, x, y, s=sign: number(x, s, 24) * number(y, s, 24) >> 32)  # fmt: skip

        def mad24(env: Rule.Environment, x: int, y: int, z: int, s: str = sign) -> int:
            found = number(x, s, 24) * number(y, s, 24) + number(z, s, 32)
            return bound(found, s, 32) if env.clamps else found

        yield rule(f"v_mad_{sign}32_{sign}24", [_B32], [_B32] * 3, mad24, clamps=True)
        yield rule(f"v_mad_{sign}32_{sign}16", [_B32], [_B16, _B16, _B32],
                   lambda env, x, y, z, s=sign: number(x, s, 16) * number(y, s, 16) + z)  # fmt: skip
        yield rule(f"v_mad(_legacy)?_{sign}16", [_B16], [_B16] * 3, lambda env, x, y, z: x * y + z)

        def mad64(env: Rule.Environment, x: int, y: int, z: int, s: str = sign) -> tuple[int, int]:
            found = number(x, s, 32) * number(y, s, 32) + number(z, s, 64)
            return found, found >> 64 & 1

        yield rule(f"v_mad(_co)?_{sign}64_{sign}32", [_B64, "mask"], [_B32, _B32, _B64], mad64)


def _orders() -> Iterator[Rule]:
    for sign in "ui":
        for bits in (16, 32):
            kind = f"b{bits}"

            def key(x: int, s: str = sign, b: int = bits) -> int:
                return number(x, s, b)

            shapes: dict[str, Callable[..., int]] = {
                "min": lambda *v, k=key: min(v, key=k), "max": lambda *v, k=key: max(v, key=k),
                "min3": lambda *v, k=key: min(v, key=k), "max3": lambda *v, k=key: max(v, key=k),
                "med3": lambda *v, k=key: sorted(v, key=k)[1],
                "maxmin": lambda x, y, z, k=key: min(max(x, y, key=k), z, key=k),
                "minmax": lambda x, y, z, k=key: max(min(x, y, key=k), z, key=k),
            }  # fmt: skip
            for name, of in shapes.items():
                count = 2 if name in ("min", "max") else 3
                yield rule(f"v_{name}_{sign}{bits}", [kind], [kind] * count, lambda env, *v, of=of: of(*v))
        for bits in (16, 32, 64):
            tests: dict[str, Callable[[int, int], bool]] = {
                "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
                "ge": operator.ge, "f": lambda x, y: False, "t": lambda x, y: True,
            }  # fmt: skip
            for name, test in tests.items():

                def outcome(env: Rule.Environment, *v: int, t: Callable[[int, int], bool] = test, s: str = sign,
                            b: int = bits) -> int:  # fmt: skip
                    return int(t(*(number(x, s, b) for x in v)))

                yield rule(f"v_cmpx?_{name}_{sign}{bits}", ["mask"], [f"b{bits}"] * 2, outcome)


def _fields() -> Iterator[Rule]:
    yield rule("v_bfe_u32", [_B32], [_B32] * 3, lambda env, x, o, w: x >> o % 32 & (1 << w % 32) - 1)

    def extract(env: Rule.Environment, x: int, o: int, w: int) -> int:
        field = signed(x, 32) >> o % 32 & (1 << w % 32) - 1
        return signed(field, w % 32) if w % 32 else 0

    yield rule("v_bfe_i32", [_B32], [_B32] * 3, extract)
    yield rule("v_bfm_b32", [_B32], [_B32] * 2, lambda env, w, o: (1 << w % 32) - 1 << o % 32)
    yield rule("v_bfrev_b32", [_B32], [_B32], lambda env, x: int(f"{x:032b}"[::-1], 2))
    yield rule("v_(clz_i32_u32|ffbh_u32)", [_B32], [_B32], lambda env, x: 32 - x.bit_length() if x else -1)
    yield rule("v_(ctz_i32_b32|ffbl_b32)", [_B32], [_B32], lambda env, x: (x & -x).bit_length() - 1)

    def same_signs(env: Rule.Environment, x: int) -> int:
        text = f"{x:032b}"
        run = re.match(r"0*|1*" if text[0] == "0" else r"1*", text)
        return -1 if run is None or len(run[0]) == 32 else len(run[0])

    yield rule("v_(cls_i32|ffbh_i32)", [_B32], [_B32], same_signs)
    yield rule("v_bcnt_u32_b32", [_B32], [_B32] * 2, lambda env, x, y: x.bit_count() + y)
    yield rule("v_mbcnt_lo_u32_b32", [_B32], [_B32] * 2,
               lambda env, x, y: (x & (1 << env.lane) - 1).bit_count() + y)  # fmt: skip
    yield rule("v_mbcnt_hi_u32_b32", [_B32], [_B32] * 2,
               lambda env, x, y: (x & (1 << max(env.lane - 32, 0)) - 1).bit_count() + y)  # fmt: skip

    def pair(x: int, y: int) -> int:
        return x & 0xFFFF | y << 16

    for sign in "ui":
        yield rule(f"v_cvt_pk_{sign}16_{sign}32", [_B32], [_B32] * 2,
                   lambda env, *v, s=sign: pair(*(bound(number(x, s, 32), s, 16) for x in v)))  # fmt: skip
    yield rule("v_cvt_i32_i16", [_B32], [_B16], lambda env, x: signed(x, 16))
    yield rule("v_cvt_u32_u16", [_B32], [_B16], lambda env, x: x)

    def byte(x: int) -> int:
        return bound(signed(x & 0xFFFF, 16), "u", 8)

    yield rule("v_sat_pk_u8_i16", [_B16], [_B32], lambda env, x: byte(x) | byte(x >> 16) << 8)
    for sign in "ui":
        yield rule(f"v_ashr_pk_{sign}8_i32", [_B16], [_B32] * 3, lambda env, x, y, n, s=sign: sum(
            (bound(signed(v, 32) >> n % 32, s, 8) & 0xFF) << at for at, v in ((0, x), (8, y))))  # fmt: skip
    yield rule("v_prng_b32", [_B32], [_B32], lambda env, x: x << 1 ^ (197 if x >> 31 else 0))


def _bytes() -> Iterator[Rule]:
    def parts(x: int, bits: int) -> list[int]:
        return [x >> at & (1 << bits) - 1 for at in range(0, 32, bits)]

    def sad(x: int, y: int, bits: int) -> int:
        return sum(abs(a - b) for a, b in zip(parts(x, bits), parts(y, bits), strict=True))

    yield rule("v_sad_u8", [_B32], [_B32] * 3, lambda env, x, y, z: sad(x, y, 8) + z)
    yield rule("v_sad_hi_u8", [_B32], [_B32] * 3, lambda env, x, y, z: (sad(x, y, 8) << 16) + z)
    yield rule("v_sad_u16", [_B32], [_B32] * 3, lambda env, x, y, z: sad(x, y, 16) + z)
    yield rule("v_sad_u32", [_B32], [_B32] * 3, lambda env, x, y, z: abs(x - y) + z)
    yield rule("v_msad_u8", [_B32], [_B32] * 3, lambda env, x, y, z: sum(
        abs(a - b) for a, b in zip(parts(x, 8), parts(y, 8), strict=True) if b) + z)  # fmt: skip
    for name, counts in (("qsad", lambda a, b: abs(a - b)), ("mqsad", lambda a, b: abs(a - b) if b else 0)):

        def four(env: Rule.Environment, x: int, y: int, z: int, of: Callable[[int, int], int] = counts) -> int:
            found = 0
            for i in range(4):
                total = sum(of(x >> 8 * (i + j) & 255, y >> 8 * j & 255) for j in range(4)) + (z >> 16 * i & 0xFFFF)
                found |= (total & 0xFFFF) << 16 * i
            return found

        yield rule(f"v_{name}_pk_u16_u8", ["b64"], ["b64", _B32, "b64"], four)
    yield rule("v_lerp_u8", [_B32], [_B32] * 3, lambda env, x, y, z: sum(
        (a + b + (c & 1) >> 1) << 8 * i
        for i, (a, b, c) in enumerate(zip(parts(x, 8), parts(y, 8), parts(z, 8), strict=True))))  # fmt: skip

    def permute(env: Rule.Environment, x: int, y: int, selectors: int) -> int:
        data = [*parts(y, 8), *parts(x, 8)]
        signs = [data[2 * i + 1] >> 7 for i in range(4)]
        found = 0
        for i, s in enumerate(parts(selectors, 8)):
            byte = data[s] if s < 8 else 255 * signs[s - 8] if s < 12 else 0 if s == 12 else 255
            found |= byte << 8 * i
        return found

    yield rule("v_perm_b32", [_B32], [_B32] * 3, permute)

    def products(x: int, y: int, b: int, s: str, t: str) -> int:
        return sum(number(p, s, b) * number(q, t, b) for p, q in zip(parts(x, b), parts(y, b), strict=True))

    for count, bits in ((2, 16), (4, 8), (8, 4)):
        for sign in "ui":
            parts_of = "pi16" if bits == 16 else _B32
            yield rule(f"v_dot{count}c?_{sign}32_{sign}{bits}", [_B32], [parts_of, parts_of, _B32],
                       lambda env, x, y, z, b=bits, s=sign: products(x, y, b, s, s) + z)  # fmt: skip

        def mixed(env: Rule.Environment, x: int, y: int, z: int, b: int = bits) -> int:
            first, second = ("i" if env.assembly.bits("neg_lo", i) else "u" for i in (0, 1))
            return products(x, y, b, first, second) + z

        yield rule(f"v_dot{count}_i32_iu{bits}", [_B32], [_B32] * 3, mixed)


def _packed() -> Iterator[Rule]:
    def both(of: Callable[..., int]) -> Callable[..., int]:
        def found(env: Rule.Environment, *values: int) -> int:
            low, high = ([v >> at & 0xFFFF for v in values] for at in (0, 16))
            return of(env, *low) & 0xFFFF | (of(env, *high) & 0xFFFF) << 16

        return found

    for op, of in (("add", operator.add), ("sub", operator.sub)):
        for sign in "ui":

            def total(env: Rule.Environment, x: int, y: int, of: Callable[[int, int], int] = of, s: str = sign) -> int:
                found = of(number(x, s, 16), number(y, s, 16))
                return bound(found, s, 16) if env.clamps else found

            yield rule(f"v_pk_{op}_{sign}16", ["pi16"], ["pi16"] * 2, both(total), clamps=True)
    yield rule("v_pk_mul_lo_u16", ["pi16"], ["pi16"] * 2, both(lambda env, x, y: x * y))
    yield rule("v_pk_mad_[iu]16", ["pi16"], ["pi16"] * 3, both(lambda env, x, y, z: x * y + z))
    yield rule("v_pk_lshlrev_b16", ["pi16"], ["pi16"] * 2, both(lambda env, n, x: x << n % 16))
    yield rule("v_pk_lshrrev_b16", ["pi16"], ["pi16"] * 2, both(lambda env, n, x: x >> n % 16))
    yield rule("v_pk_ashrrev_i16", ["pi16"], ["pi16"] * 2, both(lambda env, n, x: signed(x, 16) >> n % 16))
    for sign in "ui":
        for name, pick in (("min", min), ("max", max)):
            yield rule(f"v_pk_{name}_{sign}16", ["pi16"], ["pi16"] * 2,
                       both(lambda env, x, y, s=sign, p=pick: p(x, y, key=lambda v: number(v, s, 16))))  # fmt: skip
