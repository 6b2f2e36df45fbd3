#!/usr/bin/env python3
"""affected.py BUILD-FOLDER FILE...: what a change of the files can affect.

Prints one line for each target that has to be built again and is linked, `program PATH`, and for each test of ctest whose
sources or libraries are affected, `test NAME` (several tests are one program). Reads ninja's own graph (build.ninja and
`ninja -t deps`), so that it knows generated code and headers as the build does, and tests.txt (CMakeLists.txt writes it).
Order-only inputs do not count: they never make a target out of date.
"""
import collections
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def unescape(text):
    return text.replace("$ ", " ").replace("$:", ":").replace("$$", "$")


def read_edges(build):
    """Outputs by input, from the `build` statements."""
    users = collections.defaultdict(set)
    with open(os.path.join(build, "build.ninja"), encoding="utf-8") as file:
        for line in file:
            if not line.startswith("build "):
                continue
            outputs, _, inputs = line[len("build "):].rstrip("\n").partition(": ")
            outputs = re.split(r"(?<!\$) ", outputs.replace(" | ", " "))
            inputs = re.split(r"(?<!\$) ", inputs.split(" || ")[0])[1:]
            for source in inputs:
                if source != "|" and source:
                    users[unescape(source)].update(unescape(name) for name in outputs if name)
    # `ninja -t deps` knows what a merged source includes only after it has been compiled.
    for merged in [name for name in users if "/merged/" in name and name.endswith(".cc")]:
        with open(os.path.join(build, merged), encoding="utf-8") as file:
            for source in re.findall(r'^#include "(.*)"$', file.read(), re.MULTILINE):
                for root in (build, ROOT):
                    users[os.path.join(root, source)].add(merged)
    return users


def read_headers(build, users):
    """Adds what the compiler said each object includes. Returns the objects that it has compiled."""
    deps = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    target, compiled = None, set()
    for line in deps.splitlines():
        if line.startswith("    "):
            users[os.path.normpath(os.path.join(build, line.strip()))].add(target)
        elif ": #deps" in line:
            target = line.split(": #deps")[0]
            compiled.add(target)
    return compiled


def reachable(build, users, files):
    """What depends on the files, as paths from the build folder."""
    def spellings(name):
        path = os.path.normpath(os.path.join(build, name))
        return {name, path, os.path.relpath(path, build)}

    seen, waiting = set(), list(files)
    while waiting:
        for spelling in spellings(waiting.pop()):
            for user in users.get(spelling, ()):
                if user not in seen:
                    seen.add(user)
                    waiting.append(user)
    return {os.path.relpath(os.path.normpath(os.path.join(build, name)), build) for name in seen}


def affected_tests(build, users, targets):
    """Lines of tests.txt: name, program, and what the test is made of: sources and libraries; nothing means all of the program."""
    libraries = {os.path.basename(name) for name in targets if name.endswith(".a")}
    with open(os.path.join(build, "tests.txt"), encoding="utf-8") as file:
        for name, program, *parts in map(str.split, file):
            if os.path.join("tests", program) not in targets:
                continue
            sources = [os.path.join(ROOT, part) for part in parts if part.endswith(".cc")]
            if (not parts or libraries.intersection(f"lib{part}.a" for part in parts) or
                    any(name in targets for name in reachable(build, users, sources) if name.endswith(".o"))):
                yield name


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = os.path.abspath(sys.argv[1])
    users = read_edges(build)
    compiled = read_headers(build, users)
    # What was never compiled has to be, and nothing is known of its headers.
    changed = {name for outputs in users.values() for name in outputs if name.endswith(".o")} - compiled
    changed.update(os.path.abspath(name) for name in sys.argv[2:])
    targets = reachable(build, users, changed)
    for target in sorted(targets):
        if os.path.dirname(target) in ("bin", "objects", "tests"):
            print("program", target)
    for name in affected_tests(build, users, targets):
        print("test", name)


if __name__ == "__main__":
    main()
