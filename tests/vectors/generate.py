#!/usr/bin/env python3
"""Writes the shared test vectors beside this file.

    python3 tests/vectors/generate.py            write *.json
    python3 tests/vectors/generate.py --check    fail if the files are not what would be written

What is due is computed by `model/`, a plain and slow reading of the contract in exact arithmetic;
`cases/` holds the cases, with literal values reasoned by hand that the model has to agree with.
"""

import importlib
import json
import pathlib
import pkgutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import cases  # noqa: E402
from model.limiter import Limiter  # noqa: E402
from model.refused import Refused  # noqa: E402

SILENT = ("refund", "settle", "cancel", "reset", "reset_all", "set_wall")


class Wrong(Exception):
    """The model and a literal value disagree, or a case is malformed."""


def main():
    files = {f"{name}.json": text(module) for name, module in themes()}
    names = [case["name"] for _, module in themes() for case in module.cases()]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise Wrong(f"names are not unique: {sorted(twice)}")
    return check(files) if "--check" in sys.argv[1:] else write(files, len(names))


def themes():
    found = [module.name for module in pkgutil.iter_modules(cases.__path__) if module.name != "dsl"]
    return [(name, importlib.import_module(f"cases.{name}")) for name in sorted(found)]


def write(files, number):
    for name, content in files.items():
        (HERE / name).write_text(content, encoding="utf-8")
    print(f"{number} cases in {len(files)} files")


def check(files):
    stored = {path.name: path.read_text(encoding="utf-8") for path in HERE.glob("*.json")}
    differ = sorted(name for name in files.keys() | stored.keys()
                    if files.get(name) != stored.get(name))
    if differ:
        sys.exit(f"not as generated: {', '.join(differ)}; run python3 tests/vectors/generate.py")


def text(module):
    """One line for each step, so that a difference reads well."""
    found = ",\n".join(case_text(played(case)) for case in module.cases())
    return f'{{"about": {line(module.ABOUT)},\n "cases": [\n{found}\n]}}\n'


def case_text(case):
    head = [f' "{name}": {line(value)}' for name, value in case.items() if name != "steps"]
    if "steps" in case:
        steps = ",\n".join("   " + line(step) for step in case["steps"])
        head.append(f' "steps": [\n{steps}\n  ]')
    return "  {" + ",\n  ".join(head).lstrip() + "}"


def line(value):
    return json.dumps(value, ensure_ascii=True)


def played(case):
    """The case with all expectations filled in."""
    if "policy_error" in case:
        return case
    limiter = Limiter(case["policy"], case["start_ms"], case.get("wall_ms", 0))
    try:
        return case | {"steps": [played_step(limiter, step) for step in case["steps"]]}
    except Exception as error:
        raise Wrong(f"{case['name']}: {error}") from error


def played_step(limiter, step):
    due, leave = step["_due"], step["_leave"]
    shown = {name: value for name, value in step.items() if not name.startswith("_")}
    if "error" in step:
        return shown | refusal(limiter, shown)
    answers = [answer(limiter, shown, leave) for _ in range(step.get("repeat", 1))]
    agree(shown, answers, due)
    if step["op"] in SILENT or answers[0] is ...:
        return shown
    return shown | {"expect": common(answers)}


def refusal(limiter, step):
    """The step must be an error; which one is the case's own word, or the
    model's if it is `True`."""
    try:
        limiter.apply(step)
    except Refused as refused:
        if step["error"] is not True and step["error"] != str(refused):
            raise Wrong(f"{step}: refused for {refused}") from refused
        return {"error": str(refused)}
    raise Wrong(f"{step} was not refused")


def answer(limiter, step, leave):
    found = limiter.apply(step)
    return without(found, leave) if isinstance(found, dict) else found


def without(found, leave):
    """Fields that are left open, by the model (`...`) or by the case, are not expected.

    Where a time or what is left is open, so is the list that tells the same of each limit.
    """
    if {"remaining", "retry_after_ms", "reset_after_ms"} & set(leave):
        leave = (*leave, "limits")
    return {name: value for name, value in found.items() if value is not ... and name not in leave}


def agree(step, answers, due):
    for found in answers if due is not ... else []:
        if not covers(found, due):
            raise Wrong(f"{step}: by hand {due}, by the model {found}")


def covers(found, due):
    if isinstance(due, dict) and isinstance(found, dict):
        return all(name in found and covers(found[name], value) for name, value in due.items())
    return found == due


def common(answers):
    """What all repetitions of a step have in common."""
    first = answers[0]
    if not isinstance(first, dict):
        if any(found != first for found in answers):
            raise Wrong(f"repetitions differ: {answers}")
        return first
    return {name: value for name, value in first.items()
            if all(found.get(name, ...) == value for found in answers)}


if __name__ == "__main__":
    try:
        main()
    except Wrong as wrong:
        sys.exit(f"generate.py: {wrong}")
