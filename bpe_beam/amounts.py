"""Bytes and times as people read them: in progress, and in summaries."""

from __future__ import annotations


def format_bytes(count: int) -> str:
    """A number of bytes in the unit that suits it, powers of 1,000: "1.2 GB"."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if abs(size) < 999.5 or unit == "PB":
            break
        size /= 1000
    if unit == "B" or abs(size) >= 999.5:
        return f"{size:,.0f} {unit}"
    return f"{size:.3g} {unit}"


def format_seconds(seconds: float) -> str:
    """A time in the units that suit it: "0.42 s", "12.3 s", "2 min 5 s", "3 h 4 min"."""
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"
