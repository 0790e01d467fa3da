"""How sizes, times and money are written everywhere: short, rounded, never more certain than they are."""

from __future__ import annotations

from datetime import datetime


def tokens(count: int) -> str:
    """`950`, `12.4k`, `128k`, `1.05M`."""
    if count < 1000:
        return str(count)
    if count < 99_950:
        return f"{count / 1000:.1f}k".replace(".0k", "k")
    if count < 999_500:
        return f"{count / 1000:.0f}k"
    return f"{count / 1e6:.2f}M".replace(".00M", "M")


def percent(share: float) -> str:
    """`0 %`, `0.4 %`, `7 %`: whole percents, but never nothing for something."""
    value = share * 100
    if 0 < value < 0.95:
        return f"{max(value, 0.1):.1f} %"
    return f"{value:.0f} %"


def percent_less(before: int, after: int) -> str:
    """By how much `after` is smaller: `70 %`."""
    return percent(1 - after / before) if before else percent(0.0)


def money(dollars: float | None) -> str:
    """`$0.0123`; `cost unknown` where a price is unknown (never 0)."""
    if dollars is None:
        return "cost unknown"
    if dollars == 0:
        return "$0"
    return f"${dollars:.2f}" if dollars >= 1 else f"${dollars:.4f}" if dollars < 0.01 else f"${dollars:.3f}"


def duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min 05 s`, `1 h 02 min`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def clock(at: float, *, date: bool = False) -> str:
    """The local time of a moment in Unix seconds: `14:05:09`, with `date` `2026-11-21 14:05:09`."""
    moment = datetime.fromtimestamp(at).astimezone()
    return moment.strftime("%Y-%m-%d %H:%M:%S" if date else "%H:%M:%S")


def plural(count: int, noun: str, nouns: str = "") -> str:
    """`1 message`, `3 messages`, `2 summaries`."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"
