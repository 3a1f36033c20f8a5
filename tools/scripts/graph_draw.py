"""Draws rooms by floors and the arrows between them, as text or for Graphviz.

The number at an arrow says how many pairs of files there are.
"""


def room_arrows(tree):
    """{(room, room): pairs of files} from includes and calls, but for public headers, which all may use."""
    pairs = {}
    for source, target in list(tree.includes) + list(tree.calls):
        source, target = tree.files[source], tree.files[target]
        if source.room != target.room and not target.room.endswith("/public"):
            pairs.setdefault((source.room, target.room), set()).add((source.unit, target.unit))
    return {rooms: len(found) for rooms, found in pairs.items()}


def draw(tree, rules, path):
    arrows = room_arrows(tree)
    text = as_dot(tree, rules, arrows) if path.endswith(".dot") else as_text(tree, rules, arrows)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def refused(rules, source, target):
    known = source in rules.height and target in rules.height
    return known and rules.refusal(source, target, include=False) is not None


def as_text(tree, rules, arrows):
    lines = []
    for floor in rules.house:
        for top in floor:
            lines.append(f"{top}")
            for rooms in rules.floors.get(top, []):
                for room in rooms:
                    if room in tree.rooms:
                        lines += room_lines(rules, arrows, room)
    return "\n".join(lines) + "\n"


def room_lines(rules, arrows, room):
    inside, outside = [], []
    for (source, target), count in sorted(arrows.items()):
        if source == room:
            mark = "!" if refused(rules, source, target) else ""
            same = target.split("/")[0] == room.split("/")[0]
            (inside if same else outside).append(f"{mark}{target} {count}")
    lines = [f"    {room}"]
    lines += ["        -> " + ", ".join(inside)] if inside else []
    lines += ["        => " + ", ".join(outside)] if outside else []
    return lines


def as_dot(tree, rules, arrows):
    lines = ["digraph house {", "    rankdir=TB; node [shape=box];"]
    for top, floors in rules.floors.items():
        lines.append(f'    subgraph "cluster_{top}" {{ label="{top}";')
        for rooms in floors:
            here = [f'"{room}";' for room in rooms if room in tree.rooms]
            lines.append(f"        {{ rank=same; {' '.join(here)} }}")
        lines.append("    }")
    for (source, target), count in sorted(arrows.items()):
        colour = ' color="red"' if refused(rules, source, target) else ""
        lines.append(f'    "{source}" -> "{target}" [label="{count}"{colour}];')
    return "\n".join(lines + ["}"]) + "\n"
