"""csv_python.py PROGRAM: tables that Python's csv module writes, in all its ways of
quoting and ending lines, are read as Python reads them. PROGRAM is test_data_csv."""

import csv
import os
import random
import subprocess
import sys

PIECES = ["", "a", "0.5", '"', '""', ",", "\n", "\r\n", " ", "é", "x y", "'", "\t"]


def table(rng):
    columns = rng.randint(1, 5)
    cell = lambda: "".join(rng.choice(PIECES) for _ in range(rng.randint(0, 4)))
    rows = [[cell() for _ in range(columns)] for _ in range(rng.randint(1, 6))]
    for row in rows:  # an empty line is no row
        if row == [""]:
            row[0] = "z"
    return rows


def main():
    program = sys.argv[1]
    path = os.path.join(os.environ["TMPDIR"], "t.csv")
    rng = random.Random(1)
    for n in range(200):
        rows = table(rng)
        with open(path, "w", newline="", encoding="utf-8") as f:
            # The module leaves line ends unquoted that are not those of this file.
            ends = any(set("\r\n") & set(cell) for row in rows for cell in row)
            quoting = [csv.QUOTE_ALL, csv.QUOTE_ALL if ends else csv.QUOTE_MINIMAL]
            csv.writer(f, quoting=rng.choice(quoting),
                       lineterminator=rng.choice(["\n", "\r\n", "\r"])).writerows(rows)
        with open(path, newline="", encoding="utf-8") as f:
            assert list(csv.reader(f)) == rows, rows
        said = subprocess.run([program, path], stdout=subprocess.PIPE, check=True).stdout
        want = f"{len(rows)} {len(rows[0])}\n".encode()
        for row in rows:
            for cell in row:
                want += b"%d:%s\n" % (len(cell.encode()), cell.encode())
        assert said == want, (n, rows, said)
    print("200 tables")


main()
