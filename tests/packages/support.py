"""support: what the tests of packages share."""

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAM = HERE.parent / "install" / "program.c"
WORK = Path(os.environ["TMPDIR"]).resolve()
# Programs are compiled anew, and find nothing by the caller's variables.
ENVIRONMENT = dict(os.environ, CALX_CACHE_DIR="off", CALX_PLUGIN="calx")
for name in ("CALX_JIT", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "CALX_DUMP"):
    ENVIRONMENT.pop(name, None)
GLIBC = (2, 34)
_failures = []


def check(what, good, said=""):
    print(f"{'ok' if good else 'FAILED'}: {what}", flush=True)
    if not good:
        _failures.append(what)
        print(said)


def end():
    sys.exit(1 if _failures else 0)


def run(*words, cwd=WORK, shell=False, **variables):
    done = subprocess.run(
        words[0] if shell else [str(word) for word in words], cwd=cwd,
        shell=shell, env=ENVIRONMENT | variables, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def must(*words, **options):
    code, said = run(*words, **options)
    if code != 0:
        sys.exit(f"FAILED: {words}: exit {code}\n{said}")
    return said


def check_glibc(folder):
    """No file of the folder asks for a newer glibc than GLIBC."""
    files = 0
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.read_bytes()[:4] != b"\x7fELF":
            continue
        files += 1
        versions = re.findall(r"\(GLIBC_([0-9.]+)\)", must("objdump", "-T", path))
        newest = max(tuple(map(int, v.split("."))) for v in versions)
        check(f"{path.name} runs with glibc 2.34", newest <= GLIBC, str(newest))
    check("there are files to run", files >= 2)


def check_program(what, program, compiler, **variables):
    """tests/install/program.c, built, runs and takes its compiler from there."""
    elsewhere = WORK / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    code, said = run(program, cwd=elsewhere, **variables)
    check(f"{what}: runs", code == 0 and "sum 4200.00" in said, said)
    loaded = re.search(r"^compiler (.*)$", said, re.M)
    check(f"{what}: its compiler is {compiler}",
          loaded and Path(loaded[1]) == compiler, said)
