#!/usr/bin/env python3
"""Applies each seeded fault of mutants.txt, builds the test program that must notice it, and runs the named tests.

    integration/mutants/mutants.py --build build/release [--alone] [--again] [--list] [NAME...]

Faults whose tests are of different suites are built together, because building takes most of the time; --alone builds
one at a time, so that no fault can be caught by the failure of another. A run can be interrupted: faults that were
caught are kept in BUILD/mutants.results and not repeated for the same sources (--again repeats all). The sources are
restored after every build, also on Ctrl-C. Exits 1 if a fault was not caught.
"""
import argparse
import fnmatch
import hashlib
import os
import re
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TEST_TIMEOUT_SECONDS = 600


class Mutant:
    def __init__(self, name):
        self.name, self.file, self.why, self.program, self.filter = name, "", "", "", ""
        self.old, self.new = [], []

    def apply_to(self, text):
        old, new = "\n".join(self.old), "\n".join(self.new)
        if not old or text.count(old) != 1:
            raise ValueError(f"{self.name}: its text occurs {text.count(old) if old else 0} times in {self.file}")
        return text.replace(old, new)


def read_mutants(path):
    mutants = []
    for line in open(path, encoding="utf-8").read().splitlines():
        if line.startswith("## "):
            mutants.append(Mutant(line[3:].strip()))
        elif not mutants or not line:
            continue
        elif line.startswith("- "):
            mutants[-1].old.append(line[2:])
        elif line.startswith("+ "):
            mutants[-1].new.append(line[2:])
        elif line.startswith("file: "):
            mutants[-1].file = line[6:]
        elif line.startswith("why: "):
            mutants[-1].why = line[5:]
        elif line.startswith("test: "):
            mutants[-1].program, mutants[-1].filter = line[6:].split(" ", 1)
        else:
            raise ValueError(f"{mutants[-1].name}: cannot read: {line}")
    return mutants


def suites_of(test_filter):
    """The suites that a filter of GoogleTest names."""
    return {part.split(".")[0] for part in test_filter.split(":")}


def stale(mutants, texts):
    """A line for each block that no longer fits the sources."""
    for mutant in mutants:
        try:
            mutant.apply_to(texts[mutant.file])
        except ValueError as fault:
            yield str(fault)
    tests = ""
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name != "build" and not name.startswith(".")]
        for name in files:
            if name.endswith("_test.cc"):
                with open(os.path.join(folder, name), encoding="utf-8") as source:
                    tests += source.read()
    known = set(re.findall(r"^TEST(?:_F|_P)?\((\w+),", tests, re.MULTILINE))
    known |= set(re.findall(r"^TYPED_TEST\((\w+),", tests, re.MULTILINE))
    for mutant in mutants:
        for suite in suites_of(mutant.filter):
            if not any(fnmatch.fnmatchcase(name, suite) for name in known):
                yield f"{mutant.name}: no suite of tests is named {suite}"


def run(command, log, timeout=None):
    with open(log, "ab") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return -1
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            raise


def digest(mutant, text):
    parts = [text, *mutant.old, *mutant.new, mutant.program, mutant.filter]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def groups(mutants, texts, alone):
    """Lists of faults to build together: one program, no suite in common, and every text still there."""
    result = []
    for mutant in mutants:
        suites = set(re.split(r"[:.*]+", mutant.filter)) - {""}
        for group in [] if alone else result:
            if group["program"] != mutant.program or group["suites"] & suites:
                continue
            try:
                changed = mutant.apply_to(group["texts"].get(mutant.file, texts[mutant.file]))
            except ValueError:
                continue
            break
        else:
            group = {"program": mutant.program, "suites": set(), "texts": {}, "mutants": []}
            result.append(group)
            changed = mutant.apply_to(texts[mutant.file])
        group["suites"] |= suites
        group["texts"][mutant.file] = changed
        group["mutants"].append(mutant)
    return result


def write(path, text):
    with open(path, "w", encoding="utf-8") as source:
        source.write(text)


def judge(group, texts, build, log):
    """The result of each fault by name: caught, NOT CAUGHT or DOES NOT COMPILE."""
    try:
        for file, text in group["texts"].items():
            write(os.path.join(ROOT, file), text)
        if run(["ninja", "-C", build, f"tests/{group['program']}"], log) != 0:
            return {mutant.name: "DOES NOT COMPILE" for mutant in group["mutants"]}
        result = {}
        for mutant in group["mutants"]:
            program = os.path.join(build, "tests", mutant.program)
            failed = run([program, "--gtest_fail_fast", f"--gtest_filter={mutant.filter}"], log, TEST_TIMEOUT_SECONDS)
            result[mutant.name] = "caught" if failed != 0 else "NOT CAUGHT"
        return result
    finally:
        # With a new time, so that the next build does not keep objects of the faults.
        for file in group["texts"]:
            write(os.path.join(ROOT, file), texts[file])


def interrupt(*_):
    raise KeyboardInterrupt


def main():
    signal.signal(signal.SIGTERM, interrupt)  # so that sources are restored
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    parser.add_argument("--alone", action="store_true", help="build one fault at a time")
    parser.add_argument("--again", action="store_true", help="repeat what has a result")
    parser.add_argument("--list", action="store_true", help="print the table; as always, check first that its blocks fit the sources")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    mutants = [m for m in read_mutants(os.path.join(HERE, "mutants.txt")) if not options.names or m.name in options.names]
    texts = {m.file: open(os.path.join(ROOT, m.file), encoding="utf-8").read() for m in mutants}
    # Before anything is built.
    if faults := list(stale(mutants, texts)):
        print("\n".join(faults))
        return 1
    if options.list:
        for mutant in mutants:
            print(f"{mutant.name:20} {mutant.file:42} {mutant.program} {mutant.filter}: {mutant.why}")
        return 0
    known = {}
    results = os.path.join(build, "mutants.results")
    if os.path.exists(results) and not options.again:
        known = dict(line.split("\t")[:2] for line in open(results, encoding="utf-8").read().splitlines())
    log = os.path.join(build, "mutants.log")
    keys = {mutant.name: digest(mutant, texts[mutant.file]) for mutant in mutants}

    def settle(open_mutants, alone):
        for number, group in enumerate(plan := groups(open_mutants, texts, alone)):
            names = [mutant.name for mutant in group["mutants"]]
            print(f"[{number + 1}/{len(plan)}] {' '.join(names)}", file=sys.stderr, flush=True)
            found = judge(group, texts, build, log)
            if len(names) > 1 and "DOES NOT COMPILE" in found.values():
                settle(group["mutants"], True)
                continue
            for name in names:
                known[keys[name]] = found[name]
                with open(results, "a", encoding="utf-8") as file:
                    file.write(f"{keys[name]}\t{found[name]}\t{name}\n")

    # A fault that was not caught is tried again: the test may have changed.
    settle([mutant for mutant in mutants if known.get(keys[mutant.name]) != "caught"], options.alone)
    outcome = {mutant.name: known[keys[mutant.name]] for mutant in mutants}
    for mutant in mutants:
        print(f"{outcome[mutant.name]:16} {mutant.name:20} {mutant.file:42} {mutant.filter}")
    caught = sum(result == "caught" for result in outcome.values())
    print(f"{caught} of {len(mutants)} faults caught")
    return 0 if caught == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
