#!/usr/bin/env python3
"""affected.py BUILD-FOLDER FILE...: what a change of the files can affect.

Prints one line for each target that has to be built again and is linked: `program NAME`, `test NAME`. Reads ninja's own
graph (build.ninja and `ninja -t deps`), so that it knows generated code and headers as the build does. Order-only inputs do
not count: they never make a target out of date.
"""
import collections
import os
import re
import subprocess
import sys


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
    return users


def read_headers(build, users):
    """Adds what the compiler said each object includes."""
    deps = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    target = None
    for line in deps.splitlines():
        if line.startswith("    "):
            users[os.path.normpath(os.path.join(build, line.strip()))].add(target)
        elif ": #deps" in line:
            target = line.split(": #deps")[0]


def affected(build, files):
    build = os.path.abspath(build)
    users = read_edges(build)
    read_headers(build, users)

    def spellings(name):
        path = os.path.normpath(os.path.join(build, name))
        return {name, path, os.path.relpath(path, build)}

    seen, waiting = set(), [os.path.abspath(name) for name in files]
    while waiting:
        for spelling in spellings(waiting.pop()):
            for user in users.get(spelling, ()):
                if user not in seen:
                    seen.add(user)
                    waiting.append(user)
    return {os.path.relpath(os.path.normpath(os.path.join(build, name)), build) for name in seen}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for target in sorted(affected(sys.argv[1], sys.argv[2:])):
        folder, name = os.path.split(target)
        if folder == "tests":
            print("test", name)
        elif folder == "bin":
            print("program", name)


if __name__ == "__main__":
    main()
