"""64-bit integers in WGSL: functions on ``vec2<u32>``, low word first. A name that ends in ``i64`` is of the signed."""

from __future__ import annotations

_Z = "vec2<u32>(0u, 0u)"
_ZEROS = "let zeros = select(countLeadingZeros(a.y), 32u + countLeadingZeros(a.x), a.y == 0u);"


def _f(name: str, parameters: str, result: str, body: str) -> str:
    return f"fn tg_{name}({parameters}) -> {result} {{ {body} }}"


_V = "vec2<u32>"
_AB = f"a: {_V}, b: {_V}"

HELPERS: dict[str, str] = {
    "add64": _f(
        "add64", _AB, _V,
        "let low = a.x + b.x; return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));",
    ),
    "sub64": _f("sub64", _AB, _V, "return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));"),
    # The high word of the product of the low ones, by halves.
    "mul64": _f(
        "mul64", _AB, _V,
        "let al = a.x & 65535u; let ah = a.x >> 16u; let bl = b.x & 65535u; let bh = b.x >> 16u; "
        "let p = al * bh; let q = ah * bl; let middle = ((al * bl) >> 16u) + (p & 65535u) + (q & 65535u); "
        "let high = ah * bh + (p >> 16u) + (q >> 16u) + (middle >> 16u); "
        "return vec2<u32>(a.x * b.x, high + a.x * b.y + a.y * b.x);",
    ),
    "shl64": _f(
        "shl64", f"a: {_V}, n: u32", _V,
        "if (n == 0u) { return a; } if (n >= 32u) { return vec2<u32>(0u, a.x << (n - 32u)); } "
        "return vec2<u32>(a.x << n, (a.y << n) | (a.x >> (32u - n)));",
    ),
    "shr_u64": _f(
        "shr_u64", f"a: {_V}, n: u32", _V,
        "if (n == 0u) { return a; } if (n >= 32u) { return vec2<u32>(a.y >> (n - 32u), 0u); } "
        "return vec2<u32>((a.x >> n) | (a.y << (32u - n)), a.y >> n);",
    ),
    "shr_i64": _f(
        "shr_i64", f"a: {_V}, n: u32", _V,
        "let high = bitcast<i32>(a.y); if (n == 0u) { return a; } "
        "if (n >= 32u) { return vec2<u32>(bitcast<u32>(high >> (n - 32u)), bitcast<u32>(high >> 31u)); } "
        "return vec2<u32>((a.x >> n) | (a.y << (32u - n)), bitcast<u32>(high >> n));",
    ),
    "lt_u64": _f("lt_u64", _AB, "bool", "return a.y < b.y || (a.y == b.y && a.x < b.x);"),
    "lt_i64": _f(
        "lt_i64", _AB, "bool",
        "let p = bitcast<i32>(a.y); let q = bitcast<i32>(b.y); return p < q || (p == q && a.x < b.x);",
    ),
    "max_u64": _f("max_u64", _AB, _V, "return select(a, b, tg_lt_u64(a, b));"),
    "max_i64": _f("max_i64", _AB, _V, "return select(a, b, tg_lt_i64(a, b));"),
    # Quotient and remainder. What is shifted out of the remainder makes it larger than any divisor.
    "divide64": _f(
        "divide64", _AB, "vec4<u32>",
        "if (a.y == 0u && b.y == 0u) { return vec4<u32>(a.x / b.x, 0u, a.x % b.x, 0u); } "
        f"var q = {_Z}; var r = {_Z}; {_ZEROS} "
        "for (var k = 63i - i32(zeros); k >= 0i; k -= 1i) { "
        "let n = u32(k); let carry = r.y >> 31u; let bit = (select(a.x, a.y, n >= 32u) >> (n & 31u)) & 1u; "
        "r = vec2<u32>((r.x << 1u) | bit, (r.y << 1u) | (r.x >> 31u)); "
        "if (carry == 1u || !tg_lt_u64(r, b)) { r = tg_sub64(r, b); "
        "if (n >= 32u) { q.y |= 1u << (n & 31u); } else { q.x |= 1u << n; } } } "
        "return vec4<u32>(q, r);",
    ),
    "div_u64": _f("div_u64", _AB, _V, f"if (all(b == {_Z})) {{ return b; }} return tg_divide64(a, b).xy;"),
    "mod_u64": _f("mod_u64", _AB, _V, f"if (all(b == {_Z})) {{ return b; }} return tg_divide64(a, b).zw;"),
    "abs64": _f("abs64", f"a: {_V}", _V, f"return select(a, tg_sub64({_Z}, a), bitcast<i32>(a.y) < 0i);"),
    "div_i64": _f(
        "div_i64", _AB, _V,
        f"if (all(b == {_Z})) {{ return b; }} let q = tg_divide64(tg_abs64(a), tg_abs64(b)).xy; "
        f"return select(q, tg_sub64({_Z}, q), bitcast<i32>(a.y ^ b.y) < 0i);",
    ),
    "mod_i64": _f(
        "mod_i64", _AB, _V,
        f"if (all(b == {_Z})) {{ return b; }} let r = tg_divide64(tg_abs64(a), tg_abs64(b)).zw; "
        f"return select(r, tg_sub64({_Z}, r), bitcast<i32>(a.y) < 0i);",
    ),
    "i32_to_i64": _f(
        "i32_to_i64", "x: i32", _V, "return vec2<u32>(bitcast<u32>(x), bitcast<u32>(x >> 31u));",
    ),
    # The 32 leading bits, of which the last tells whether anything was dropped, rounded to 24.
    "u64_to_f32": _f(
        "u64_to_f32", f"a: {_V}", "f32",
        "if (a.y == 0u && a.x < 16777216u) { return f32(a.x); } "
        f"{_ZEROS} let b = tg_shl64(a, zeros); let top = b.y | select(0u, 1u, b.x != 0u); "
        "let rest = top & 255u; var kept = top >> 8u; "
        "if (rest > 128u || (rest == 128u && (kept & 1u) == 1u)) { kept += 1u; } "
        "return f32(kept) * bitcast<f32>((167u - zeros) << 23u);",
    ),
    "i64_to_f32": _f(
        "i64_to_f32", f"a: {_V}", "f32",
        "let size = tg_u64_to_f32(tg_abs64(a)); return select(size, -size, bitcast<i32>(a.y) < 0i);",
    ),
    # The integer part of a finite magnitude below 2**64.
    "whole64": _f(
        "whole64", "x: f32", _V,
        "let bits = bitcast<u32>(x) & 0x7fffffffu; let e = i32(bits >> 23u) - 127i; "
        f"if (e < 0i) {{ return {_Z}; }} let m = (bits & 0x7fffffu) | 0x800000u; "
        "if (e <= 23i) { return vec2<u32>(m >> u32(23i - e), 0u); } "
        "return tg_shl64(vec2<u32>(m, 0u), u32(e - 23i));",
    ),
    "f32_to_u64": _f(
        "f32_to_u64", "x: f32", _V,
        f"if ((bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u || x <= 0.0f) {{ return {_Z}; }} "
        "if (x >= 18446744073709551616.0f) { return vec2<u32>(0xffffffffu, 0xffffffffu); } return tg_whole64(x);",
    ),
    "f32_to_i64": _f(
        "f32_to_i64", "x: f32", _V,
        f"if ((bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u) {{ return {_Z}; }} "
        "if (x >= 9223372036854775808.0f) { return vec2<u32>(0xffffffffu, 0x7fffffffu); } "
        "if (x <= -9223372036854775808.0f) { return vec2<u32>(0u, 0x80000000u); } "
        f"let size = tg_whole64(x); return select(size, tg_sub64({_Z}, size), x < 0.0f);",
    ),
}  # fmt: skip
