"""What bench/run and bench/cliffs/run write from their logs; nothing is timed.

    table.py BENCH   # the folder bench/
"""
import json
import pathlib
import subprocess
import sys
import tempfile

bench = pathlib.Path(sys.argv.pop())
sys.path.insert(0, str(bench / "table"))
import report
import rows

LOG = [
    {"row": "mlp", "threads": 1, "when": "before", "gflops": 100.0, "gbytes": 20.0},
    {"row": "mlp", "threads": 1, "when": "after", "gflops": 80.0, "gbytes": 25.0},
    {"row": "mlp", "threads": 1, "who": "ours", "ms": 1.0, "compile_s": 0.1, "gflop": 0.05, "mb": 5.0},
    {"row": "mlp", "threads": 1, "who": "ours", "ms": 3.0, "compile_s": 0.1},
    {"row": "mlp", "threads": 1, "who": "ours", "ms": 2.0, "compile_s": 0.1},
    {"row": "mlp", "threads": 1, "who": "xla", "ms": 9.0, "gflop": 0.01, "mb": 1.0},
    {"row": "mlp", "threads": 1, "who": "jax", "ms": 8.0, "compile_s": 1.0, "version": "7.7"},
    {"row": "mlp", "threads": 1, "who": "torch", "ms": 4.0, "compile_s": 0},
    {"row": "lstm", "threads": 1, "who": "ours", "ms": 8.0},
    {"row": "lstm", "threads": 1, "who": "torch", "ms": 4.0},
    {"row": "sort", "threads": 2, "who": "ours", "ms": 0.05},
]


def check_table(folder):
    log, out = folder / "log", folder / "RESULTS.md"
    log.write_text("\n".join(map(json.dumps, LOG)))
    report.write(log, out, ["torch: not here"], "the cliffs")
    text = out.read_text()
    for wanted in ("| MLP 784-256-256-10 b64, Adam | torch 4 / - | 2 / - | 2.00 / - | 1.8 / 1.8 | 0.5 / - |",
                   "| sort of 1,000,000 i32 | - | - / 50.00 us | - | 1 / 1 | - |",
                   "with JAX's text | | | 1.00 of 2 / - |", "| mlp | 0.100 | 1.000 | - | 10.0 |",
                   "| 1 | 100, lowest 80 | 25, lowest 20 |", "jax 7.7", "Medians over 1 to 3 rounds", "Missing: torch: not here.",
                   "the cliffs"):
        assert wanted in text, f"no '{wanted}' in\n{text}"
    svg = (folder / "results.svg").read_text()
    assert ">2.00<" in svg and ">0.50<" in svg and "sort" not in svg, svg


def check_competitors():
    row = next(r for r in rows.ROWS if r.name == "resnet50")
    arguments, env = rows.command(row, "ours", 1, 2, pathlib.Path("texts"))
    assert arguments[-2:] == ["--plugin=calx", "--seconds=2"], arguments
    assert env["CALX_CPU_THREADS"] == "1" and "LD_PRELOAD" not in env
    assert rows.competitors(row)[0] == "ours"


def check_cliffs(folder):
    log = folder / "cliffs"
    base = "compile_ms=10 other_compile_ms=40"
    log.write_text(f"name=fft_a ms=2 other_ms=1 ratio=0.5 {base} apart=1e-6\n"
                   f"name=fft_tiny ms=0.04 other_ms=0.01 ratio=0.25 {base} apart=0\n"
                   f"name=sort_b ms=1 other_ms=4 ratio=4 {base} apart=nan\n"
                   "name=sort_c failed=timeout\n")
    text = subprocess.run([sys.executable, "-B", bench / "cliffs/run", "--log", log, "--report"],
                          check=True, capture_output=True, text=True).stdout
    for wanted in ("4 programs; the geometric mean of XLA's time over ours is 0.79",
                   "of compile times 4.0; 1 are cliffs", "fft: 1 of 2", "2.00 times slower",
                   "sort_b                                   nan", "timeout"):
        assert wanted in text, f"no '{wanted}' in\n{text}"
    assert "fft_tiny" not in text, text


with tempfile.TemporaryDirectory() as name:
    check_table(pathlib.Path(name))
    check_competitors()
    check_cliffs(pathlib.Path(name))
