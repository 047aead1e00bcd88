"""progress_bar.py PROGRAM: progress bars on a terminal, beside Lightning's that
lightning_session.py recorded."""

import gzip
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import terminal

PROGRAM = sys.argv.pop(1)
SESSIONS = Path(__file__).parent / "sessions"
LINE = re.compile(r"(.*?): +(\d+)%\|([^|]*)\| (\d+)/(\d+) \[[\d:]+<[\d:]+, +[\d.]+it/s(.*)\]")


def run(*words, columns=100, **environment):
    os.chdir(tempfile.mkdtemp(dir=os.environ.get("TMPDIR")))
    return terminal.run([PROGRAM, *map(str, words)], columns, **environment)


def epochs(kind, batches, rate, ms, devices=1, per_execution=1, **more):
    return run("epochs", kind, batches, rate, ms, devices, per_execution, **more)


def numbers(shown):
    """The n that were drawn, without repetitions."""
    drawn = [int(n) for n in re.findall(r"Epoch 0: [^\r]*?\| (\d+)/", shown.decode())]
    return [n for i, n in enumerate(drawn) if i == 0 or n != drawn[i - 1]]


class Sessions(unittest.TestCase):
    """What is on the terminal at the end of each phase, but for times and rates."""

    def phases(self, shown, columns, masked):
        return [(title, masked(lines, columns))
                for title, lines in terminal.Screen(columns).feed(shown.decode())]

    def tqdm(self, lines, columns):
        rows = []
        for line in lines:
            if line.startswith("Training:"):  # Lightning leaves an empty bar
                continue
            self.assertEqual(len(line), columns - 1, line)
            description, percent, bar, n, total, values = LINE.fullmatch(line).groups()
            self.assertEqual(bar.count("█"), len(bar) * int(n) // int(total), line)
            rows.append((description, percent, n, total, values))
        return rows

    # Where lines are wrapped depends on the width of the rate.
    def rich(self, lines, columns):
        self.assertTrue(all(len(line) <= columns for line in lines), lines)
        text = re.sub(r"[-\d]+:[-\d]+:[-\d]+ • [-\d]+:[-\d]+:[-\d]+ +[\d.]+it/s", "TIME",
                      " ".join(lines))
        return re.sub(r"[━╸╺]+", "BAR", text).split()

    def check(self, kind, columns, masked):
        recorded = gzip.decompress((SESSIONS / f"{kind}.gz").read_bytes())
        code, shown, error = run("session", kind, columns=columns)
        self.assertEqual(code, 0, error)
        wanted = self.phases(recorded, columns, masked)
        got = self.phases(shown, columns, masked)
        self.assertEqual([title for title, _ in got], [title for title, _ in wanted])
        for (title, lines), (_, others) in zip(got, wanted):
            self.assertEqual(lines, others, title)
        return shown.decode()

    # Row D11: two loaders' descriptions.
    def test_row_D11_loaders(self):
        shown = self.check("tqdm", 220, self.tqdm)
        for i in range(2):
            self.assertIn(f"Validation DataLoader {i}:   0%|", shown)
            self.assertIn(f"Sanity Checking DataLoader {i}:   0%|", shown)

    def test_tqdm_leave(self):
        self.check("tqdm_leave", 220, self.tqdm)

    def test_rich(self):
        self.check("rich", 110, self.rich)

    def test_rich_leave(self):
        self.check("rich_leave", 110, self.rich)


class Drawing(unittest.TestCase):
    def test_row_D11(self):
        for batches, rate, wanted in [(5, 3, [0, 3, 5]), (5, 6, [0, 5]), (1, 3, [0, 1]),
                                      (2, 1, [0, 1, 2])]:
            _, shown, _ = epochs("tqdm", batches, rate, 105)
            self.assertEqual(numbers(shown), wanted)

    # max_steps=3 without a limit of epochs.
    def test_steps(self):
        _, shown, _ = epochs("tqdm_steps", 5, 1, 105)
        self.assertEqual(numbers(shown), [0, 1, 2, 3])
        self.assertIn(b"100%", shown)
        self.assertIn(b" 3/3 ", shown)

    def test_least_rate(self):
        _, shown, _ = epochs("tqdm", 5, 1, 105, TQDM_MINITERS="3")
        self.assertEqual(numbers(shown), [0, 3, 5])

    def test_off(self):
        for kind in ["tqdm", "rich", "none"]:
            code, shown, error = epochs(kind, 3, 0, 1)
            self.assertEqual(code, 0, error)
            self.assertNotIn(b"Epoch", shown)

    # Ten times a second.
    def test_interval(self):
        begun = time.monotonic()
        _, shown, _ = epochs("tqdm", 100, 1, 5)
        drawn = numbers(shown)
        self.assertEqual((drawn[0], drawn[-1]), (0, 100))
        self.assertLess(len(drawn), 3 + 10 * (time.monotonic() - begun))

    def test_first_rank(self):
        code, shown, error = epochs("tqdm_summary", 2, 1, 105, 2, CPU_NUM_DEVICES="2")
        self.assertEqual(code, 0, error)
        self.assertEqual(error.count("Non-trainable params"), 1)
        drawn = re.findall(r"\| (\d+)/2 ", shown.decode())
        self.assertEqual(sorted(set(drawn)), ["0", "1", "2"])
        self.assertEqual(shown.count(b" 1/2 "), 1)

    # Row C3: it changes neither programs nor executions nor the program's reads.
    def test_row_C3(self):
        for per_execution in [1, 4]:
            none, *others = [epochs(kind, 50, 1, 0, per_execution=per_execution,
                                    CALX_CACHE_DIR="off")[2].splitlines()[-1]
                             for kind in ["none", "tqdm", "rich"]]
            self.assertRegex(none, r"^[1-9]\d* \d+ \d+$")
            self.assertEqual(others, [none, none])

    # A bar that is lower ends in the cursor's line.
    def test_position(self):
        _, shown, _ = epochs("tqdm_lower", 2, 1, 1)
        screen = terminal.Screen(100)
        rows = [["".join(row) for row in screen.rows]
                for _ in screen.feed(shown.decode())]
        self.assertEqual(rows[0][:2], ["", ""])
        self.assertTrue(rows[0][2].startswith("Epoch 0: 100%"), rows)
        self.assertTrue(rows[-1][0].startswith("Epoch 0: 100%"), rows)
        self.assertFalse(any(rows[-1][1:]), rows)

    def test_printing(self):
        _, shown, _ = epochs("tqdm_prints", 3, 1, 105)
        *_, (_, lines) = terminal.Screen(100).feed(shown.decode())
        self.assertEqual(lines[:-1], ["batch 0", "batch 1", "batch 2"])
        self.assertTrue(lines[-1].startswith("Epoch 0: 100%"), lines)

    def test_narrow(self):
        for kind in ["tqdm", "rich"]:
            for columns in [1, 2, 7, 30]:
                code, shown, error = epochs(kind, 2, 1, 0, columns=columns)
                self.assertEqual(code, 0, error)
                for _, lines in terminal.Screen(columns).feed(shown.decode()):
                    self.assertTrue(all(len(line) <= columns for line in lines), lines)

    def test_locale(self):
        _, shown, _ = epochs("tqdm", 2, 1, 0, LC_ALL="de_DE.ISO-8859-1")
        shown.decode("ascii")
        self.assertIn(b"100%|#", shown)


class Lines(unittest.TestCase):
    """What is no terminal."""

    def lines(self, *words):
        os.chdir(tempfile.mkdtemp(dir=os.environ.get("TMPDIR")))
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, check=True)
        return re.sub(r"\x1b\]0;[^\a]*\a", "", done.stdout.decode()).splitlines()

    def test_tenths(self):
        lines = self.lines("epochs", "tqdm", 50, 1, 1, 1, 1)
        self.assertEqual(len(lines), 10, lines)
        for i, line in enumerate(lines, 1):
            self.assertTrue(line.startswith(f"Epoch 0: {10 * i:3}%|"), line)
            self.assertRegex(line, rf"\| {5 * i}/50 \[\d\d:\d\d<\d\d:\d\d, +[\d.]+it/s\]$")

    # The last line of an epoch has its values; what goes is not shown.
    def test_epoch(self):
        for kind, wanted in [("tqdm", "acc_epoch=0.250"), ("rich", "acc_epoch: 0.250")]:
            lines = self.lines("session", kind)
            self.assertIn(wanted, [line for line in lines if line.startswith("Epoch 0")][-1])
            self.assertFalse([line for line in lines if line.startswith("Sanity")])
            self.assertTrue([line for line in lines if line.startswith("Testing")])
            self.assertNotIn("\x1b", "".join(lines))
            self.assertNotIn("\r", "".join(lines))


if __name__ == "__main__":
    unittest.main()
