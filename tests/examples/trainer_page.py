"""trainer_page.py PAGE EXAMPLES INCLUDE LIBRARY PROGRAM: docs/tutorials/trainer.md is true.

Its blocks of C stand in the examples that it names. Its Python is a program for
Lightning, which is run here on random digits and logs the same names. Each command line of its
blocks of sh runs. Each diff applies to the example; what it makes is compiled and
run.
"""

import os
import re
import subprocess
import sys
import tempfile

import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import with_torchvision  # noqa: E402, F401

NAMES = {"train_loss", "accuracy"}


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S)


def run(words, **options):
    done = subprocess.run(words, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"FAILED: {words}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def check_c(page, folder):
    sources = [open(os.path.join(folder, name), encoding="utf-8").read()
               for name in sorted(set(re.findall(r"`examples/([\w.]+)`", page)))]
    for piece in blocks(page, "c"):
        if not any(piece in source for source in sources):
            sys.exit(f"FAILED: in no example:\n{piece}")


def check_python(page):
    digits = torch.utils.data.TensorDataset(torch.randn(256, 1, 28, 28),
                                            torch.randint(10, (256,)))
    names = {"seen": digits, "unseen": digits, "__name__": "page"}
    exec(compile("\n".join(blocks(page, "python")), "page", "exec"), names)
    found = set(names["trainer"].callback_metrics)
    assert found == {"accuracy"}, found  # of the test, which came last
    for name in NAMES:
        assert f'self.log("{name}"' in page


def check_commands(page, program):
    os.symlink(program, "trainer_mnist")
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    assert len(lines) > 5, lines
    for line in lines:
        said = run(["sh", "-c", f"{line} --fast_dev_run --no_progress_bar"])
        assert "accuracy" in said, said


def apply(source, diff):
    before = "".join(row[1:] + "\n" for row in diff.splitlines() if row[0] in " -")
    after = "".join(row[1:] + "\n" for row in diff.splitlines() if row[0] in " +")
    if source.count(before) != 1:
        sys.exit(f"FAILED: not in the example:\n{before}")
    return source.replace(before, after)


def check_diffs(page, source, include, library):
    diffs = blocks(page, "diff")
    assert len(diffs) > 2
    for i, diff in enumerate(diffs):
        with open("changed.c", "w", encoding="utf-8") as file:
            file.write(apply(source, diff))
        run(["cc", "changed.c", f"-I{include}", library, "-o", f"changed{i}",
             f"-Wl,-rpath,{os.path.dirname(library)}"])
        said = run([f"./changed{i}", "--max_epochs=1", "--limit_train_batches=4",
                    "--no_progress_bar"])
        assert "accuracy" in said, said
    assert os.path.exists("logs/lightning_logs/version_0/metrics.csv"), os.listdir("logs")


def main():
    path, folder, include, library, program = sys.argv[1:]
    page = open(path, encoding="utf-8").read()
    check_c(page, folder)
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        check_commands(page, program)
        source = open(os.path.join(folder, "trainer_mnist.c"), encoding="utf-8").read()
        check_diffs(page, source, include, library)
        check_python(page)
    print("the page is true")


main()
