"""rows.py: each row of Lightning's acceptance list has a test of its name, as
test_row_B5_B6 for B5 and B6. With --list, which ones, by row."""

import re
import sys
from pathlib import Path

ROWS = {"A": 9, "B": 25, "C": 20, "D": 13, "E": 24}
TESTS = Path(__file__).parent.parent
NAME = re.compile(r"^(?:static void| +def) (test_row(?:_[A-E]\d+)+\w*)\(", re.MULTILINE)

tests = {f"{section}{i}": [] for section, last in ROWS.items() for i in range(1, last + 1)}
for path in sorted(TESTS.glob("*/*")):
    if path.parent.name not in ("train", "metrics", "loggers") or path.suffix not in (".c", ".py"):
        continue
    for name in NAME.findall(path.read_text()):
        for row in re.findall(r"(?<=_)[A-E]\d+(?=_|$)", name):
            tests[row].append(f"{path.relative_to(TESTS)}: {name}")

if "--list" in sys.argv:
    for row, names in tests.items():
        print(row, *names or ["-"], sep="\n    ")
missing = [row for row, names in tests.items() if not names]
sys.exit(f"rows without a test: {' '.join(missing)}" if missing else 0)
