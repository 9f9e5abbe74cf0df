#!/usr/bin/env python3
"""Fails if modules of a crate import each other in a cycle, and names each cycle.

    python3 tests/cycles.py core/src policy/src            prints each crate's graph and its cycles
    python3 tests/cycles.py --check core/src policy/src    prints cycles only

A module is a top-level module of the crate, with all that its folder holds. An import is any path
in its code that begins with `crate::` or `super::`. A name that `lib.rs` exports counts as the
module from which `lib.rs` takes it. Comments, strings, tests and `lib.rs` itself don't count.
"""

import pathlib
import re
import sys

NOISE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(\#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'""", re.S
)
TEST = re.compile(r"#\[(?:cfg\((?:all\()?test\b|test\])")
NAME = re.compile(r"[A-Za-z_]\w*")


def block_end(text, start):
    """The end of the item that begins at `start`: past its `;` or its closing brace."""
    depth = 0
    for at in range(start, len(text)):
        if text[at] in "{[(":
            depth += 1
        elif text[at] in "}])":
            depth -= 1
            if depth == 0 and text[at] == "}":
                return at + 1
        elif text[at] == ";" and depth == 0:
            return at + 1
    return len(text)


def without_tests(text):
    """The code without comments, strings, and items under `cfg(test)`; and its modules in files
    that are only for tests."""
    text = NOISE.sub('""', text)
    only_tests = set()
    while found := TEST.search(text):
        end = block_end(text, text.index("]", found.start()) + 1)
        item = text[found.start() : end]
        only_tests.update(re.findall(r"\bmod\s+(\w+)\s*;", item))
        text = text[: found.start()] + text[end:]
    return text, only_tests


def heads(text, start):
    """The names that may follow `crate::` at `start`: one, or those of a group in braces."""
    if text[start : start + 1] != "{":
        name = NAME.match(text, start)
        return [name[0]] if name else []
    end, depth, names, fresh = block_end(text, start), 0, [], True
    for part in re.finditer(r"[{},]|[A-Za-z_]\w*", text[start:end]):
        if part[0] in "{}":
            depth += 1 if part[0] == "{" else -1
        elif part[0] == ",":
            fresh = fresh or depth == 1
        elif depth == 1 and fresh:
            names.append(part[0])
            fresh = False
    return names


def inline_modules(text):
    """Where modules in braces begin and end."""
    found = re.finditer(r"\bmod\s+\w+\s*(?=\{)", text)
    return [(m.end(), block_end(text, m.end())) for m in found]


def imports(text, depth):
    """The names at the crate's root that the code of a module at `depth` reaches."""
    for found in re.finditer(r"\bcrate\s*::\s*", text):
        yield from heads(text, found.end())
    inline = inline_modules(text)
    for found in re.finditer(r"\b((?:super\s*::\s*)+)", text):
        inside = sum(start < found.start() < end for start, end in inline)
        if found[1].count("super") == depth + inside:
            yield from heads(text, found.end())


def exports(text):
    """Which module each name comes from that `lib.rs` exports."""
    names = {}
    for found in re.finditer(r"\buse\s+(?:crate::|self::)?(\w+)::([^;]*);", text):
        names.update(dict.fromkeys(NAME.findall(found[2]), found[1]))
    return names


def graph(src):
    """The modules that each top-level module of a crate imports."""
    root, _ = without_tests((src / "lib.rs").read_text())
    files = {path: without_tests(path.read_text()) for path in sorted(src.rglob("*.rs"))}
    skipped = {path.parent / path.stem / name for path, (_, only) in files.items() for name in only}
    skipped |= {src / "tests"} | {src / name for name in files[src / "lib.rs"][1]}
    known = exports(root)
    edges = {}
    for path, (text, _) in files.items():
        module = path.with_suffix("")
        if module.name == "mod":
            module = module.parent
        parts = module.relative_to(src).parts
        if path == src / "lib.rs" or any(s == module or s in module.parents for s in skipped):
            continue
        edges.setdefault(parts[0], set())
        for name in imports(text, len(parts)):
            edges[parts[0]].add(known.get(name, name))
    return {
        module: {to for to in reached if to in edges and to != module}
        for module, reached in edges.items()
    }


def components(edges):
    """The strongly connected components of more than one module (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for to in sorted(edges[node]):
            if to not in index:
                visit(to)
            if to in stack:
                low[node] = min(low[node], low[to])
        if low[node] == index[node]:
            at = stack.index(node)
            found.append(stack[at:])
            del stack[at:]

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return [sorted(group) for group in found if len(group) > 1]


def shortest_cycle(edges, start):
    """The shortest way from a module back to itself."""
    ways, seen = [[start]], set()
    for way in ways:
        for to in sorted(edges[way[-1]]):
            if to == start:
                return way + [start]
            if to not in seen:
                seen.add(to)
                ways.append(way + [to])
    return None


def cycles(edges):
    """The shortest cycle through each module that is in one, each cycle once."""
    found = {}
    for group in components(edges):
        for module in group:
            way = shortest_cycle(edges, module)
            found.setdefault(frozenset(zip(way, way[1:])), way)
    return list(found.values())


def main(arguments):
    check = "--check" in arguments
    folders = [pathlib.Path(a) for a in arguments if a != "--check"]
    if not folders:
        sys.exit(__doc__)
    failed = 0
    for src in folders:
        edges = graph(src)
        if not check:
            for module, reached in sorted(edges.items()):
                print(f"{src}: {module} -> {', '.join(sorted(reached)) or 'nothing'}")
        found = cycles(edges)
        failed += len(found)
        for way in found:
            print(f"{src}: cycle {' -> '.join(way)}")
        if not found:
            print(f"{src}: no cycle between its {len(edges)} modules")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
