"""A record as a picture: for each workload, how fast every library is beside the fastest of the others."""

from __future__ import annotations

from html import escape
from math import log2

from .libraries import OURS
from .record import Record, best_peer, workload_of
from .workloads import WORKLOADS

COLOURS = {
    "tinytg": "#d6336c", "numpy": "#1971c2", "torch": "#e8590c", "torch.compile": "#f59f00", "jax": "#2f9e44",
    "tinygrad": "#7048e8", "llama.cpp": "#495057",
}  # fmt: skip
LABELS, RIGHT, ROW, TOP, WIDTH = 300, 20, 20, 64, 980
SLOWEST, FASTEST = -7.0, 4.0
"""Ends of the axis, as powers of two."""


def place(ratio: float) -> float:
    """Where a ratio lies on the axis, which is logarithmic; what is beyond an end lies on it."""
    power = min(max(log2(ratio), SLOWEST), FASTEST)
    return LABELS + (power - SLOWEST) / (FASTEST - SLOWEST) * (WIDTH - LABELS - RIGHT)


def svg(record: Record) -> str:
    """The picture as SVG. A dot is a library, a bar the machine's limit; the vertical line is the best peer."""
    rows = [row for row in record.rows if best_peer(row) is not None and row.name in WORKLOADS]
    height = TOP + ROW * len(rows) + 16
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    x = float(LABELS)
    for name in (n for n in COLOURS if any(n in row.results and row.results[n].status == "ok" for row in rows)):
        out.append(f'<circle cx="{x:.0f}" cy="16" r="5" fill="{COLOURS[name]}"/>')
        out.append(f'<text x="{x + 9:.0f}" y="20" fill="#212529">{name}</text>')
        x += 26 + 7.5 * len(name)
    out.append(f'<rect x="{x:.0f}" y="10" width="3" height="12" fill="#868e96"/>')
    out.append(f'<text x="{x + 9:.0f}" y="20" fill="#212529">limit of the machine</text>')
    for power in range(int(SLOWEST), int(FASTEST) + 1):
        at = place(2.0**power)
        label = f"{2**power}×" if power >= 0 else f"1/{2**-power}"
        stroke = "#495057" if power == 0 else "#dee2e6"
        out.append(f'<line x1="{at:.1f}" y1="{TOP - 14}" x2="{at:.1f}" y2="{height - 10}" stroke="{stroke}"/>')
        out.append(f'<text x="{at:.1f}" y="{TOP - 20}" text-anchor="middle" fill="#495057">{label}</text>')
    for i, row in enumerate(rows):
        found = best_peer(row)
        assert found is not None
        best = found[1].seconds or 0.0
        y = TOP + ROW * i + ROW // 2 - 4
        if i % 2 == 0:
            out.append(f'<rect x="0" y="{y - ROW // 2}" width="{WIDTH}" height="{ROW}" fill="#000000" opacity="0.03"/>')
        out.append(f'<text x="{LABELS - 12}" y="{y + 4}" text-anchor="end" fill="#212529">{escape(row.name)}</text>')
        workload = workload_of(row)
        if row.limit:
            at = place(best * row.limit / workload.work)
            out.append(f'<rect x="{at - 1.5:.1f}" y="{y - 7}" width="3" height="14" fill="#868e96"/>')
        for name in sorted(row.results, key=lambda n: n == OURS):
            outcome = row.results[name]
            if outcome.status != "ok" or not outcome.seconds:
                continue
            radius = 6 if name == OURS else 4
            ratio = best / outcome.seconds
            title = f"{name}: {ratio:.2f} of the speed of {found[0]}"
            out.append(
                f'<circle cx="{place(ratio):.1f}" cy="{y}" r="{radius}" fill="{COLOURS[name]}">'
                f"<title>{escape(title)}</title></circle>"
            )
    out.append("</svg>")
    return "\n".join(out) + "\n"
