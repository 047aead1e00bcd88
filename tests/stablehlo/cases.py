"""Upstream's test programs on a PJRT plugin, and a table of how they went.

  cases.py CALX [--plugin NAME|PATH] [--ref] [--only TEXT] [--failures]
           [--minimum CLASS=N]... [--timeout SECONDS] [--every N]

Reads CALX_SHARED/stablehlo_cases/list.tsv, takes the checks out of each static
program with CALX_SHARED/tools/stablehlo/stablehlo_judge.py (which needs
python3-numpy), runs what remains through `calx hlo run --batch --isolate`, and
judges the results. Each program is run as it is and, where it makes its inputs
in a function, also with these as arguments, so that nothing can be computed
when it is compiled. A file passes when all its programs pass in both forms.

--ref sets CALX_CPU_REF=1: our engine interprets everything. Without --plugin,
CALX_PLUGIN says which. The engine tells who runs a program's operations through
CALX_CPU_STATS: a line "name compiled library interpreted" per compilation.

--every N: one file of N, unless CALX_TEST_LONG=1; the minimums are of all files.

Fails when a class has fewer passes than its minimum, and at any crash or hang.
"""
import argparse
import collections
import multiprocessing
import os
import subprocess
import sys
import tempfile

CLASSES = ("static", "static_chlo")
# Each form of a program: its folder's ending, whether inputs are arguments.
FORMS = (("", False), (".lifted", True))

Program = collections.namedtuple("Program", "file text checks inputs out")


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("calx")
    parser.add_argument("--plugin", default=os.environ.get("CALX_PLUGIN"))
    parser.add_argument("--ref", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--failures", action="store_true")
    parser.add_argument("--minimum", action="append", default=[])
    parser.add_argument("--timeout", type=int, default=60)
    parser.add_argument("--every", type=int, default=1)
    arguments = parser.parse_args()
    if os.environ.get("CALX_TEST_LONG") == "1":
        arguments.every = 1
    return arguments


# ---- preparing and judging, in processes of their own ------------------------

def load_judge(shared):
    global J, E
    sys.path.insert(0, os.path.join(shared, "tools", "stablehlo"))
    sys.dont_write_bytecode = True
    import stablehlo_eval as E
    import stablehlo_judge as J
    E.MODE = "f32"


def inputs_of(text, index, checks, stem):
    evaluator = E.Eval(J.R.parse_text(text)[index])
    paths = []
    if checks["inputs"]:
        values = evaluator.call(evaluator.fn["inputs"], [])
        for k, value in enumerate(values):
            paths.append(f"{stem}.in{k}")
            with open(paths[-1], "wb") as f:
                f.write(J.dump(value, E))
    return paths


def prepare(job):
    """One file: its programs in both forms, or why there are none."""
    name, path, work = job
    with open(path, encoding="utf8") as f:
        text = f.read()
    programs = []
    try:
        for form, lift in FORMS:
            for i, (program, checks) in enumerate(J.prepare(text, lift)):
                if lift and not checks["inputs"]:
                    continue
                flat = name.replace("/", "_").replace(".mlir", "")
                stem = os.path.join(work, f"{flat}.{i}{form}")
                inputs = inputs_of(text, i, checks, stem) if lift else []
                with open(stem + ".mlir", "w", encoding="utf8") as f:
                    f.write(program)
                programs.append(
                    Program(name, stem + ".mlir", checks, inputs, stem))
    except Exception as error:  # the judge's own failure: told by name
        return name, [], f"cannot be prepared: {type(error).__name__} {error}"
    return name, programs, None if programs else "has no checks"


def judge(program):
    """None, or why the results are not those expected."""
    try:
        values = []
        for i, kind in enumerate(program.checks["results"]):
            with open(os.path.join(program.out, f"{i}.bin"), "rb") as f:
                values.append(J.load(kind, f.read()))
        J.verdict(program.checks, values)
    except (E.Bad, OSError, ValueError) as error:
        return str(error)[:200] or type(error).__name__
    return None


# ---- running -----------------------------------------------------------------

class Runner:
    """`calx hlo run --batch`, one line at a time."""

    def __init__(self, arguments, work):
        self.stats_path = os.path.join(work, "stats")
        open(self.stats_path, "w").close()
        self.stats = open(self.stats_path, encoding="utf8")
        environment = dict(os.environ, CALX_CPU_STATS=self.stats_path)
        if arguments.ref:
            environment["CALX_CPU_REF"] = "1"
        command = [arguments.calx, "hlo", "run", "--batch", "--isolate",
                   "--timeout", str(arguments.timeout)]
        if arguments.plugin:
            command += ["--plugin", arguments.plugin]
        self.errors = open(os.path.join(work, "errors"), "w+")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.errors, text=True, env=environment)

    def run(self, program):
        """The answer's word, its message, and the counts of operations."""
        os.makedirs(program.out, exist_ok=True)
        line = [program.text, program.out] + program.inputs
        try:
            self.process.stdin.write(" ".join(line) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self.process.stdout.readline().rstrip("\n")
        if not answer:
            self.errors.seek(0)
            sys.exit("calx hlo run ended: " + self.errors.read()[-2000:])
        word, _, rest = answer.partition(" ")
        counts = [0, 0, 0]
        for stats in self.stats.readlines():
            counts = [a + int(b)
                      for a, b in zip(counts, stats.rsplit(None, 3)[1:])]
        return word, rest.partition(": ")[2], counts

    def close(self):
        self.process.stdin.close()
        code = self.process.wait()
        if code != 0:
            sys.exit(f"calx hlo run ended with {code}")


# ---- the table ---------------------------------------------------------------

def share(part, counts):
    total = sum(counts)
    return f"{100 * part / total:5.1f} %" if total else "      -"


def row(name, files, passed, counts):
    print(f"{name:34}{files:6}{passed:7}{files - passed:7}"
          f"{share(counts[0], counts):>10}{share(counts[1], counts):>10}"
          f"{share(counts[2], counts):>12}")


def table(cases, failed, counts):
    by_op = collections.defaultdict(list)
    for name, (_, ops) in cases.items():
        for op in ops:
            by_op[op].append(name)
    print(f"{'operation':34}{'files':>6}{'passed':>7}{'failed':>7}"
          f"{'compiled':>10}{'library':>10}{'interpreted':>12}")
    groups = sorted(by_op.items())
    groups += [(f"class {c}", [n for n, (k, _) in cases.items() if k == c])
               for c in CLASSES]
    for label, names in groups:
        total = [sum(counts[n][i] for n in names) for i in range(3)]
        row(label, len(names), sum(n not in failed for n in names), total)


def read_list(folder, only, every):
    cases = {}
    with open(os.path.join(folder, "list.tsv"), encoding="utf8") as f:
        next(f)
        for line in f:
            path, kind, ops, _ = line.rstrip("\n").split("\t")
            if kind in CLASSES and only in path:
                cases[path] = (kind, ops.split())
    return dict(list(cases.items())[::every])


def check(arguments, cases, failed, broken):
    bad = list(broken)
    for minimum in arguments.minimum:
        kind, _, least = minimum.partition("=")
        n = sum(k == kind and name not in failed
                for name, (k, _) in cases.items())
        least = int(least) // arguments.every
        if n < least:
            bad.append(f"{n} files of class {kind} pass, {least} must")
    for line in bad:
        print("FAILED:", line)
    return 1 if bad else 0


def main():
    arguments = options()
    shared = os.environ.get("CALX_SHARED", "../shared")
    folder = os.path.join(shared, "stablehlo_cases")
    cases = read_list(folder, arguments.only, arguments.every)
    failed, broken = {}, []
    counts = collections.defaultdict(lambda: [0, 0, 0])
    with tempfile.TemporaryDirectory() as work, multiprocessing.Pool(
            initializer=load_judge, initargs=(shared,)) as pool:
        runner = Runner(arguments, work)
        judged = []
        jobs = [(n, os.path.join(folder, n), work) for n in cases]
        for name, programs, error in pool.imap(prepare, jobs):
            if error is not None:
                failed[name] = error
            for program in programs:
                word, message, done = runner.run(program)
                counts[name] = [a + b for a, b in zip(counts[name], done)]
                if word == "ok":
                    judged.append(
                        (name, pool.apply_async(judge, (program,))))
                else:
                    failed.setdefault(name, f"{word}: {message}")
                if word in ("crashed", "timeout"):
                    broken.append(f"{word}: {name} {message}")
        for name, result in judged:
            error = result.get()
            if error is not None:
                failed.setdefault(name, error)
        runner.close()
    table(cases, failed, counts)
    if arguments.failures or len(failed) < 60:
        for name, why in sorted(failed.items()):
            print(f"{name}: {why}")
    print(f"{len(cases)} files, {len(failed)} failed, 0 skipped")
    return check(arguments, cases, failed, broken)


if __name__ == "__main__":
    sys.exit(main())
