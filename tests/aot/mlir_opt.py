"""mlir_opt.py FOLDER: mlir-opt on every program that the tests and examples left
in the folder of dumps.

Programs are told apart by the hash in their names. Left out and counted are those
with element types that MLIR 19 does not have. mlir-opt knows no StableHLO: it
checks the syntax, the types, that values are defined before use and used with
their types, and functions.
"""

import os
import re
import subprocess
import sys
import tempfile

NEWER = re.compile(rb"f8E3M4|f8E8M0FNU|f4E2M1FN|f6E2M3FN|f6E3M2FN")
NAME = re.compile(r"\d{5}-([0-9a-f]{12})\.mlir$")
AT_ONCE = 100  # programs
LEAST = 400


def programs(folder):
    found = {}
    for name in sorted(os.listdir(folder) if os.path.isdir(folder) else []):
        match = NAME.match(name)
        if match:
            found.setdefault(match[1], os.path.join(folder, name))
    return list(found.values())


def read(path):
    with open(path, "rb") as file:
        return file.read()


def takes(texts):
    """Whether mlir-opt takes them all, and what it says."""
    with tempfile.NamedTemporaryFile(suffix=".mlir") as file:
        file.write(b"\n// -----\n".join(texts))
        file.flush()
        done = subprocess.run(
            ["mlir-opt-19", "--allow-unregistered-dialect",
             "--split-input-file", file.name, "-o", os.devnull],
            capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stderr


def main():
    known = [path for path in programs(sys.argv[1])
             if not NEWER.search(read(path))]
    newer = len(programs(sys.argv[1])) - len(known)
    good, text = takes([b"func.func @f() { %0 = foo.bar }"])
    assert not good, "mlir-opt takes anything"
    refused = 0
    for at in range(0, len(known), AT_ONCE):
        some = known[at:at + AT_ONCE]
        if takes([read(path) for path in some])[0]:
            continue
        for path in some:
            good, text = takes([read(path)])
            if not good:
                refused += 1
                print(f"REFUSED {path}:\n{text[:2000]}")
    print(f"mlir-opt: {len(known)} programs, {refused} refused; {newer} left out, "
          "with element types that MLIR 19 does not have")
    if len(known) < LEAST:
        print(f"there should be at least {LEAST}")
        return 1
    return 1 if refused else 0


sys.exit(main())
