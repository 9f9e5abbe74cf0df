#!/usr/bin/env python3
"""Checks that prose is easy to read: Markdown, and the comments of sources.

    python3 tests/prose.py                all files, as `make lint` does
    python3 tests/prose.py core README.md only these files and folders
    python3 tests/prose.py --list core    the median of each file, too

No sentence has more than LONGEST words. In a text of at least FEW sentences, half of them have at
most MEDIAN words. Tests and benches keep to the first rule only. `docs/notes` is history and is
not read.
"""

import io
import re
import statistics
import sys
import tokenize

import tidy

LONGEST = 35
MEDIAN = 16
FEW = 5
NO_MEDIAN = {"tests", "test", "benches", "fuzz"}

FENCE = re.compile(r"^(```|~~~)")
# Headings, tables, drawings, and what only tools read.
NOT_PROSE = re.compile(r"^(#|\||---|===|[┌│└├╔║╚]|<!--|</?\w+[ >]|@)")
# An item of a list, or an option of a command.
ITEM = re.compile(r"^([-*]|\d+\.|--[\w-]+)\s+")
# One argument of a Python function begins a text of its own, and so does a note on an ordering.
FIELD = re.compile(r"^(\*{0,2}\w+|ORDERING|SAFETY|ABI):\s")
LINE_COMMENT = re.compile(r"^\s*//[/!]?(?:\s(.*))?$")
BLOCK_COMMENT = re.compile(r"^\s*(?:/\*+!?|\*(?!/))\s?(.*?)(?:\*/)?\s*$")
END_OF_SENTENCE = re.compile(r"(?<=[.!?:])[\"')]*\s+(?=[A-Z`*\"(\[])")
WORD = re.compile(r"[\w'’`./:-]*\w[\w'’`./:-]*")


def comment_lines(text):
    """Each line as the text of a comment, or empty. A comment behind code is not prose."""
    for line in text.splitlines():
        found = LINE_COMMENT.match(line) or BLOCK_COMMENT.match(line)
        yield (found[1] or "") if found else ""


def python_lines(text):
    """The same of Python: comments on lines of their own, and docstrings."""
    lines = [""] * (len(text.splitlines()) + 1)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        first, column = token.start
        if token.line[:column].strip():
            continue
        if token.type == tokenize.COMMENT:
            lines[first - 1] = token.string.lstrip("#! ")
        elif token.type == tokenize.STRING and '"""' in token.string[:4]:
            inside = token.string.split('"""', 1)[1].removesuffix('"""')
            lines[first - 1 : token.end[0]] = inside.split("\n")
    return lines


def paragraphs(lines, is_markdown):
    """Pieces of prose, each with the number of its first line."""
    fenced, block, start = False, [], 0
    for number, line in enumerate([*lines, ""], 1):
        text = line.strip()
        fence = FENCE.match(text)
        fenced ^= bool(fence)
        stops = fenced or fence or not text or NOT_PROSE.match(text)
        if stops or ITEM.match(text) or (FIELD.match(text) and not is_markdown):
            if block:
                yield start, " ".join(block)
            block = []
        if not stops:
            start = start if block else number
            block.append(ITEM.sub("", text))


def sentences(path):
    """The sentences of a file: line, number of words, text."""
    text = path.read_text()
    is_markdown = path.suffix == ".md"
    if is_markdown:
        lines = text.splitlines()
    elif path.suffix in (".py", ".pyi"):
        lines = python_lines(text)
    else:
        lines = comment_lines(text)
    for number, block in paragraphs(lines, is_markdown):
        for sentence in END_OF_SENTENCE.split(block):
            words = len(WORD.findall(sentence))
            if words > 2:
                yield number, words, sentence


def main(arguments):
    folders = [argument for argument in arguments if argument != "--list"]
    found = []
    for path in tidy.tracked(*folders):
        name = tidy.named(path)
        if name.startswith("docs/notes/") or path.suffix not in tidy.SOURCES | {".md"}:
            continue
        read = list(sentences(path))
        for number, words, text in read:
            if words > LONGEST:
                found.append(f"{name}:{number}: {words} words, not {LONGEST} at most: {text[:60]}…")
        if len(read) < FEW:
            continue
        median = statistics.median_low(words for _, words, _ in read)
        if "--list" in arguments:
            print(f"{name}: {len(read)} sentences, median {median} words")
        if median > MEDIAN and not NO_MEDIAN & set(name.split("/")):
            found.append(f"{name}: a sentence has {median} words, not {MEDIAN}, in the median")
    print("\n".join(found) if found else "prose: no sentence is too long")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
