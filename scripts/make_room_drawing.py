"""Draw the rooms of the package, docs/pictures/rooms.svg, from the table in docs/architecture.md.

Run it as `python scripts/make_room_drawing.py` after the table has changed; a test compares both.

A room is on the lowest floor above all rooms that it may import. An arrow leads from a room to one
that it may import, unless a longer way leads there too.
"""

from __future__ import annotations

import re
import textwrap
from html import escape
from math import fsum
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "pictures" / "rooms.svg"
BOX, LANE, FLOOR, HEIGHT = 200, 40, 96, 60
"""The widths of a box and of the lane of an arrow, the heights of a floor and of a box."""

Graph = dict[str, set[str]]


def rooms_of(page: str) -> tuple[dict[str, str], Graph]:
    """Return the purpose of each room, in a few words, and the rooms that it may import."""
    section = page.partition("\n## The rooms\n")[2].partition("\n## ")[0]
    groups = re.findall(r"^- \*(\w+)\*: (.*)$", section, re.MULTILINE)
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \|([^|]*)\|$", section, re.MULTILINE)
    purposes = {room: re.split(r"[,;:(]", purpose)[0].strip(" `") for room, purpose, _ in rows}
    graph = {}
    for room, _, cell in rows:
        for name, members in groups:
            cell = cell.replace(f"*{name}*", members)
        graph[room] = set(re.findall(r"`(\w+)`", cell))
    return purposes, graph


def shortened(graph: Graph) -> Graph:
    """Return the graph without arrows to rooms that a longer way reaches; rooms come in order."""
    reached: Graph = {}
    for room, targets in graph.items():
        reached[room] = targets.union(*(reached[target] for target in targets))
    return {
        room: {t for t in targets if not any(t in reached[other] for other in targets)}
        for room, targets in graph.items()
    }


def with_lanes(graph: Graph) -> tuple[list[list[str]], list[tuple[str, str]]]:
    """Return the nodes of each floor, and the pairs of neighbours on floors.

    An arrow over several floors has a lane, a node of its own, on each floor between.
    """
    floor: dict[str, int] = {}
    for room, targets in graph.items():
        floor[room] = max((floor[target] + 1 for target in targets), default=0)
    floors: list[list[str]] = [[] for _ in range(max(floor.values()) + 1)]
    for room, number in floor.items():
        floors[number].append(room)
    links = []
    for room, targets in graph.items():
        for target in sorted(targets):
            upper = room
            for number in range(floor[room] - 1, floor[target], -1):
                lane = f"{room}>{target}>{number}"
                floors[number].append(lane)
                links.append((upper, lane))
                upper = lane
            links.append((upper, target))
    return floors, links


def width(node: str) -> int:
    return LANE if ">" in node else BOX


def placed(floors: list[list[str]], links: list[tuple[str, str]]) -> dict[str, float]:
    """Return the middle of each node, near its neighbours on the floors above and below it."""
    near: dict[str, list[str]] = {node: [] for nodes in floors for node in nodes}
    for upper, lower in links:
        near[upper].append(lower)
        near[lower].append(upper)
    middle = {node: float(i * BOX) for nodes in floors for i, node in enumerate(nodes)}
    for sweep in range(60):
        for nodes in floors if sweep % 2 else floors[::-1]:
            wanted = {n: fsum(middle[o] for o in near[n]) / max(1, len(near[n])) for n in nodes}
            if sweep < 40:
                nodes.sort(key=lambda node: (wanted[node], node))
            right = -1e9
            for node in nodes:
                middle[node] = max(wanted[node], right + width(node) / 2)
                right = middle[node] + width(node) / 2 + 12
            shift = fsum(middle[n] - wanted[n] for n in nodes) / len(nodes)
            for node in nodes:
                middle[node] -= shift
    left = min(middle[node] - width(node) / 2 for node in middle)
    return {node: round(x - left + 10) for node, x in middle.items()}


def drawing(page: str) -> str:
    """Return the drawing of a page's table as SVG."""
    purposes, graph = rooms_of(page)
    floors, links = with_lanes(shortened(graph))
    x = placed(floors, links)
    top = {
        node: 10 + FLOOR * (len(floors) - 1 - number)
        for number, nodes in enumerate(floors)
        for node in nodes
    }
    shown = []
    for upper, lower in links:
        begin, end = top[upper] + HEIGHT, top[lower]
        half = (begin + end) / 2
        way = f"M{x[upper]} {begin}C{x[upper]} {half} {x[lower]} {half} {x[lower]} {end}"
        if ">" in lower:
            way += f"V{end + HEIGHT}"
        head = "" if ">" in lower else ' marker-end="url(#head)"'
        shown.append(f'<path d="{way}" fill="none" stroke="#888"{head}/>')
    for room, purpose in purposes.items():
        left, y = x[room] - BOX // 2, top[room]
        shown += [
            f'<rect x="{left}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="4" fill="#eef3f8" '
            'stroke="#456"/>',
            f'<text x="{x[room]}" y="{y + 19}" font-size="14" font-weight="bold">{room}</text>',
        ]
        for i, line in enumerate(textwrap.wrap(purpose, 32, max_lines=2, placeholder=" …")):
            shown.append(
                f'<text x="{x[room]}" y="{y + 35 + 15 * i}" font-size="11">{escape(line)}</text>'
            )
    wide = max(x[node] + width(node) // 2 for node in x) + 10
    high = FLOOR * len(floors)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" '
        'font-family="sans-serif" text-anchor="middle" fill="#222">\n'
        f'<rect width="{wide}" height="{high}" fill="#fff"/>\n'
        '<marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L8 4L0 8z" fill="#888"/></marker>\n'
        + "\n".join(shown)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(drawing(PAGE.read_text("utf-8")), "utf-8")
