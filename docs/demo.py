#!/usr/bin/env python3
"""Draws what `cargo run --release -p tidegate --example openclaw` prints.

Usage: docs/demo.py < output > docs/demo.svg
"""

from __future__ import annotations

import re
import sys
from html import escape

CELL, ROW, LEFT, TOP = 9, 44, 236, 64
DARK, GREY = "#1f2328", "#59636e"
COLOURS = {"#": "#2da44e", "+": "#d4a72c", "-": "#cf222e", " ": "#d0d7de"}
LEGEND = [("#", "all allowed"), ("+", "some denied"), ("-", "all denied"), (" ", "nothing sent")]


def senders(text: str) -> list[tuple[str, ...]]:
    """(channel, name, what, chart, summary) of each sender."""
    form = r"^(\S+) +(\S+) +(.+)\n  ([#+ -]+)\n  (sent .+)$"
    return re.findall(form, text, re.M)


def words(x: int, y: int, text: str, size: int = 13, fill: str = DARK, more: str = "") -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{fill}"{more}>{escape(text)}</text>'


def box(x: int, y: int, width: int, height: int, fill: str) -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}"/>'


def draw(text: str) -> str:
    rows = senders(text)
    if not rows:
        sys.exit("docs/demo.py: this is not the demo's output")
    columns = max(len(chart) for *_, chart, _ in rows)
    width, height = LEFT + columns * CELL + 16, TOP + len(rows) * ROW + 28
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"',
        f'  width="{width}" height="{height}" font-family="system-ui, sans-serif" role="img">',
        "<title>Ten minutes of chat under one policy: who was allowed, and when</title>",
        box(0, 0, width, height, "#ffffff"),
        words(16, 26, "Ten minutes of chat under one policy", 15, more=' font-weight="600"'),
    ]
    at = LEFT
    for symbol, meaning in LEGEND:
        out += [box(at, 36, 10, 10, COLOURS[symbol]), words(at + 15, 45, meaning, 11, GREY)]
        at += 32 + 7 * len(meaning)
    for index, (channel, name, what, chart, summary) in enumerate(rows):
        y = TOP + index * ROW
        out.append(words(16, y + 13, f"{channel} · {name}"))
        out.append(words(16, y + 29, what.strip(), 11, GREY))
        for column, symbol in enumerate(chart.ljust(columns)):
            out.append(box(LEFT + column * CELL, y + 1, CELL - 1, 14, COLOURS[symbol]))
        out.append(words(LEFT, y + 29, summary.rsplit(";", 1)[0], 11, GREY))
    total = text.strip().splitlines()[-1].partition(": ")[2]
    out.append(words(16, height - 12, total, 12))
    return "\n".join([*out, "</svg>", ""])


if __name__ == "__main__":
    sys.stdout.write(draw(sys.stdin.read()))
