"""lightning_text.py: lines of tqdm's and Rich's progress bars as Lightning sets them up, as
the C of lightning_text.h. Run with pytorch-lightning 2.6.6, tqdm 4.70.1 and rich 15.0.0
(PyPI) to make that file anew:

    python lightning_text.py >lightning_text.h
"""

import io
import re
from collections import deque

from pytorch_lightning.callbacks.progress import rich_progress as lit
from pytorch_lightning.callbacks.progress.tqdm_progress import Tqdm, TQDMProgressBar
from rich.console import Console
from rich.progress import ProgressColumn, ProgressSample, TextColumn
from rich.text import Text

NUMBERS = [1.0, 0.1, 1e-5, 10000.0, 123456.0, 12345.0, 0.0, -0.5, 1e100, 1e-100, 99999.0, 100.0,
           0.001234, -1e-7, 0.10000000149011612, 2.5, 1e16, 123.456]
INTEGERS = [0, 3, 12, 10000, 123456]

# (description, n, total, elapsed, values, width, UTF-8)
STATES = [(0, 10, 0), (0, 10, 1.5), (1, 7, 0.25), (3, 5, 61.9), (5, 5, 4000), (7, 5, 2),
          (4, -1, 2), (0, -1, 0), (0, 0, 0), (999, 1000, 360000)]
LINES = [("Epoch 0", *state, "v_num=0, train_loss=0.500", *width)
         for state in STATES for width in [(99, True), (70, False), (0, True)]]
LINES += [(description, *state, values, width, True)
          for description, values in [("Validation DataLoader 0", ""), ("", ""),
                                      ("数据 é", "名=1.000")]
          for state in STATES[2:7:2] for width in [50, 30, 12, 1]]


def tqdm_line(description, n, total, elapsed, values, width, utf8):
    return Tqdm.format_meter(
        n, None if total < 0 else total, elapsed, ncols=width or None, prefix=description,
        ascii=not utf8, postfix=values or None, bar_format=TQDMProgressBar.BAR_FORMAT)


# Each a list of (description, n, total, elapsed, speed, values), and a width.
LONG = "v_num: 0.000 train_loss: 0.500 val_loss/dataloader_idx_0: 0.500 acc: 1.000"
TABLES = [(rows, width)
          for rows in [[("Epoch 0/9 ", 47, 100, 3, 13.1, "v_num: 3.000 train_loss: 0.532")],
                       [("Epoch 0/9 ", 0, 100, 0, 0, "")],
                       [("Epoch 12/99", 3, 7, 90061, 0.5, LONG), ("Validation", 1, 3, 2, 1.5, "")],
                       [("Epoch 0/9 ", 4, -1, 3, 2, LONG)],
                       [("Testing", 5, 5, 59.9, 1234.5, "")],
                       [("数据", 1, 2, 1, 1, "名: 1.000 é: 2.000")]]
          # Rich counts a blank behind a wide character twice where a line ends there.
          for width in [160, 100, 80, 60, 40, 20, 8] if width > 30 or rows[0][0] != "数据"]


class Values(ProgressColumn):
    def render(self, task):
        return Text(task.fields["values"], justify="left", style="italic")


def rich_lines(rows, width):
    now = [0.0]
    theme = lit.RichProgressBarTheme()
    progress = lit.CustomProgress(
        TextColumn("[progress.description]{task.description}"),
        lit.CustomBarColumn(complete_style=theme.progress_bar),
        lit.BatchesProcessedColumn(style=theme.batch_progress),
        lit.CustomTimeColumn(style=theme.time),
        lit.ProcessingSpeedColumn(style=theme.processing_speed),
        Values(), get_time=lambda: now[0], auto_refresh=False)
    for description, n, total, elapsed, speed, values in rows:
        index = progress.add_task(description, total=float("inf") if total < 0 else total,
                                  values=values)
        task = progress.tasks[index]
        task.completed, task.start_time = n, -elapsed
        if speed:
            task._progress = deque([ProgressSample(0, 0), ProgressSample(1, speed)])
        if total >= 0 and n >= total:
            task.finished_time = elapsed
    out = io.StringIO()
    console = Console(width=width, file=out, force_terminal=True, color_system="256",
                      _environ={})
    console.print(progress.make_tasks_table(progress.tasks))
    lines = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue()).splitlines()
    return "\n".join(line.rstrip() for line in lines)


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def main():
    print("// Made by lightning_text.py.\n// clang-format off\n")
    print("static const struct { double value; bool is_integer; const char *text; } "
          "tqdm_numbers[] = {")
    for value in NUMBERS + INTEGERS:
        print(f"  {{ {float(value)!r}, {str(isinstance(value, int)).lower()}, "
              f"{quoted(Tqdm.format_num(value))} }},")
    print("};\n\nstatic const struct { const char *description; int64_t n, total; double elapsed;"
          "\n  const char *values; int width; bool has_utf8; const char *text; } tqdm_lines[] = {")
    for d, n, total, elapsed, values, width, utf8 in LINES:
        text = tqdm_line(d, n, total, elapsed, values, width, utf8)
        print(f"  {{ {quoted(d)}, {n}, {total}, {elapsed}, {quoted(values)}, {width}, "
              f"{str(utf8).lower()}, {quoted(text)} }},")
    print("};\n\nstatic const struct { size_t n; cx_train_meter rows[2]; int width; "
          "const char *text; } rich_tables[] = {")
    for rows, width in TABLES:
        meters = ", ".join(f"{{ {quoted(d)}, {n}, {total}, {elapsed}, {speed}, {quoted(values)} }}"
                           for d, n, total, elapsed, speed, values in rows)
        print(f"  {{ {len(rows)}, {{ {meters} }}, {width},\n    "
              f"{quoted(rich_lines(rows, width))} }},")
    print("};")


main()
