#!/usr/bin/env python3
"""Is the house still one of rooms? Compares includes and calls of the tree with graph.rules.

check_graph.py [--root DIR] [--rules FILE]    one line a finding; exit status 1 when there is one
check_graph.py --list                         the same, grouped by folder
check_graph.py --draw FILE.dot|FILE.txt       rooms and the arrows between them
check_graph.py --structs                      large structs and who writes them
"""

import argparse
import os
import sys

from graph_draw import draw
from graph_rules import Rules, RulesError
from graph_structs import all_structs, judged_writers, large_structs
from graph_tree import Tree


def unknown_rooms(tree, rules):
    for room in sorted(tree.rooms - rules.height.keys()):
        yield room, f"{room}: a room that {os.path.basename(rules.path)} has no floor for"


def back_arrows(tree, rules):
    """Includes and calls to a higher floor or to the side."""
    for what, arrows in (("include", tree.includes), ("call", tree.calls)):
        for (source, target), names in sorted(arrows.items()):
            rooms = tree.files[source].room, tree.files[target].room
            if rooms[0] in rules.height and rooms[1] in rules.height:
                refusal = rules.refusal(*rooms, include=what == "include")
                if refusal:
                    yield rooms[0], f"{source} -> {target}: {', '.join(names)} ({refusal})"


def knots(arrows):
    """Tarjan: sets of more than one node that all reach one another. arrows: {node: nodes}"""
    index, low, stack, on_stack, found = {}, {}, [], set(), []

    def enter(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        return node, iter(sorted(arrows.get(node, ())))

    for start in sorted(arrows):
        work = [] if start in index else [enter(start)]
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    work.append(enter(target))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    knot = stack[stack.index(node) :]
                    del stack[len(stack) - len(knot) :]
                    on_stack.difference_update(knot)
                    if len(knot) > 1:
                        found.append(knot)
    return found


def way_between(start, end, arrows):
    """The nodes of a shortest way from start to end, both included; None: no way."""
    before, queue = {start: None}, [start]
    for node in queue:
        if node == end:
            way = [end]
            while before[way[0]] is not None:
                way.insert(0, before[way[0]])
            return way
        for target in sorted(arrows.get(node, ())):
            if target not in before:
                before[target] = node
                queue.append(target)
    return None


def shortest_circle(knot, arrows, begins):
    """The nodes of a shortest circle whose first arrow (source, target) begins() accepts."""
    ways = [
        way_between(target, source, arrows)
        for source in sorted(knot)
        for target in sorted(arrows[source] & set(knot))
        if begins(source, target)
    ]
    shortest = min(ways, key=len)
    return shortest[-1:] + shortest[:-1]


def circles(tree, rules):
    """Files that call one another in a circle: through several rooms, or many within one.

    An inline function of a header calls on behalf of every user, so headers stand for themselves here."""
    units, rooms, names = {}, {}, {}
    for (source, target), used in tree.calls.items():
        nodes = [
            file.path if file.is_header() else file.unit for file in (tree.files[source], tree.files[target])
        ]
        units.setdefault(nodes[0], set()).add(nodes[1])
        rooms.update(zip(nodes, (tree.files[source].room, tree.files[target].room)))
        names[tuple(nodes)] = used[0]
    for room in sorted(set(rooms.values())):
        within = {
            u: {t for t in targets if rooms[t] == room} for u, targets in units.items() if rooms[u] == room
        }
        for knot in knots(within):
            if len(knot) > rules.limits["units-in-a-circle"]:
                way = shortest_circle(knot, within, lambda source, target: True)
                yield room, (
                    f"{room}: {len(knot)} files call one another in circles "
                    f"({', '.join(sorted(knot))}), "
                    f"such as {shown(way, names)}"
                )
    for knot in knots(units):
        crossed = sorted({rooms[unit] for unit in knot})
        if len(crossed) > 1:
            way = shortest_circle(knot, units, lambda source, target: rooms[source] != rooms[target])
            yield crossed[0], (
                f"{', '.join(crossed)}: {len(knot)} files call one another in circles "
                f"across rooms, such as {shown(way, names)}"
            )


def shown(way, names):
    steps = zip(way, way[1:] + way[:1])
    return way[0] + "".join(f" -> {target} ({names[(source, target)]})" for source, target in steps)


def crowded_folders(tree, rules):
    counts, limit = {}, rules.limits["files-in-a-folder"]
    for file in tree.files.values():
        folder = os.path.dirname(file.path)
        counts[folder] = counts.get(folder, 0) + 1
    for folder, count in sorted(counts.items()):
        if count > limit:
            yield folder, f"{folder}: {count} source files in one folder, more than {limit}"


def shared_structs(tree, rules):
    limit = rules.limits["writers-of-a-large-struct"]
    for struct in large_structs(tree, rules.limits["fields-of-a-shared-struct"]):
        writers = judged_writers(struct)
        if len(writers) > limit:
            yield struct.file.room, (
                f"{struct.file.path}: struct {struct.name} has {struct.size} "
                f"fields and is written by {len(writers)} files: {', '.join(writers)}"
            )


def crowded_structs(tree, rules):
    """Of the library, except settings and results of the public headers, which grow at their end only."""
    limit = rules.limits["members-of-a-struct"]
    for struct in all_structs(tree):
        outside = struct.file.top == "tools" or struct.file.room.endswith("/public")
        if struct.members > limit and not outside:
            yield struct.file.room, (
                f"{struct.file.path}: struct {struct.name} has {struct.members} members, more than {limit}: "
                f"group them by subject into structs within it"
            )


CHECKS = (unknown_rooms, back_arrows, circles, crowded_folders, shared_structs, crowded_structs)


def print_grouped(findings):
    group = None
    for room, line in sorted(findings, key=lambda finding: finding[0].split("/")[0]):
        top = room.split("/")[0]
        if top != group:
            count = sum(other.split("/")[0] == top for other, _ in findings)
            print(f"{top}: {count}")
            group = top
        print(f"    {line}")


def print_structs(tree, rules):
    for struct in large_structs(tree, rules.limits["fields-of-a-shared-struct"]):
        print(f"{struct.name}: {struct.size} fields ({struct.file.path})")
        for unit, fields in sorted(struct.writers.items()):
            print(f"    {unit}: {', '.join(sorted(fields))}")


def arguments():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(here)), help="the tree to read")
    parser.add_argument("--rules", help="default: tools/scripts/graph.rules of the root, else of this script")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--draw", metavar="FILE")
    parser.add_argument("--structs", action="store_true")
    given = parser.parse_args()
    if not given.rules:
        places = os.path.join(given.root, "tools", "scripts", "graph.rules"), os.path.join(
            here, "graph.rules"
        )
        given.rules = next((place for place in places if os.path.exists(place)), places[1])
    return given


def main():
    given = arguments()
    try:
        rules = Rules(given.rules)
        tree = Tree(given.root)
        if not tree.files:
            raise RulesError(
                f"{given.root}: no source files in base, settings, formats, kernels, pipeline, ranks, train, run, tools"
            )
        if given.draw:
            draw(tree, rules, given.draw)
        if given.structs:
            print_structs(tree, rules)
        if given.draw or given.structs:
            return 0
        findings = [finding for check in CHECKS for finding in check(tree, rules)]
    except (OSError, RulesError) as error:
        print(f"check_graph: {error}", file=sys.stderr)
        return 2
    if given.list:
        print_grouped(findings)
    else:
        for _, line in findings:
            print(line)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
