"""arguments.py [--every N] PROGRAM...: a bad number, a stray word or an unknown option of an
example or a benchmark is a usage error: exit code 2, a line on standard error
that names the option and what was found, and nothing on standard output.

--every N: of each option one of N bad values, others of the next option."""

import subprocess
import sys
from pathlib import Path

WHOLE = ["x", "", "1x", "1.5", "0", "-1", "99999999999999999999", "nan"]
REAL = ["x", "", "1x", "-1", "nan", "inf", "1e99"]
# Each option that takes a number, and what none of its values may be.
NUMBERS = {
    "examples": {"epochs": WHOLE, "batch-size": WHOLE, "lr": REAL,
                 "target": REAL + ["100.5"], "seed": WHOLE[:4] + WHOLE[5:]},
    "gpt2": {"steps": WHOLE, "seed": WHOLE[:4] + WHOLE[5:]},
    "all_reduce": {"ranks": WHOLE + ["1"], "bytes": WHOLE + ["6"],
                   "seconds": REAL},
    "io": {"mb": REAL, "tensors": WHOLE, "rounds": WHOLE,
           "folder": ["x", "", "2", "-1"]},
    "mnist_ranks": {"batch": WHOLE, "seconds": REAL},
    "mnist_step": {"batch": WHOLE, "seconds": REAL},
    "overlap": {"layers": WHOLE + ["33"], "width": WHOLE, "rows": WHOLE,
                "network": REAL, "seconds": REAL},
    "program": {"seconds": REAL},
    "startup": {"rounds": WHOLE, "batch": WHOLE},
    "trace": {"engine": WHOLE + ["3"], "samples": WHOLE},
    "growth": {"most": WHOLE},
    "hlo_parse": {},
}
FILES = {"program", "hlo_parse"}  # whose words are files
failed = False


def expect(program, *arguments, pieces, code=2):
    global failed
    done = subprocess.run([program, *arguments], text=True, timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    said = done.stderr
    if done.returncode != code or not all(p in said for p in pieces):
        failed = True
        print(f"FAILED: {Path(program).name} {arguments}: exit "
              f"{done.returncode}, {said!r}; wanted {code}, {pieces}")
    return done


def examine(program, every):
    path = Path(program)
    kind = path.name if path.name in NUMBERS else "examples"
    words = ["nowhere.mlir"] if path.name == "program" else []
    for i, (name, values) in enumerate(NUMBERS[kind].items()):
        for value in values[i % every::every]:
            expect(program, *words, f"--{name}={value}",
                   pieces=[f"--{name} wants", f"found '{value}'"])
    expect(program, *words, "--frob=1", pieces=["option '--frob"])
    if path.name not in FILES:
        expect(program, "stray", pieces=["'stray'"])
        expect(program, "--seconds", pieces=["--seconds"])
    if kind == "examples":
        expect(program, "--epochs=1", "stray", pieces=["'stray'"])
        expect(program, "--epochs", pieces=["--epochs"])
        done = expect(program, "--epochs=1", "--batch-size=1048576",
                      pieces=["--batch-size"], code=1)
        if "accuracy" in done.stdout:
            sys.exit(f"FAILED: {program} tests what it has not trained")
    done = expect(program, "--help", pieces=[], code=0)
    if path.name not in done.stdout:
        sys.exit(f"FAILED: {program} --help: {done.stdout}")


programs, every = sys.argv[1:], 1
if programs[0] == "--every":
    every, programs = int(programs[1]), programs[2:]
for name in programs:
    examine(name, every)
    print(f"{'FAILED' if failed else 'ok'}: {name}")
sys.exit(1 if failed else 0)
