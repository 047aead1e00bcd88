"""lightning_tables.py: the tables that Lightning prints, as the C of lightning_tables.h. Run
with pytorch-lightning 2.6.6 and rich 15.0.0 (PyPI) to make that file anew:

    python lightning_tables.py >lightning_tables.h
"""

import io
import os
import sys
from types import SimpleNamespace

import pytorch_lightning as pl
import rich
import torch
from pytorch_lightning.callbacks import ModelSummary, RichModelSummary, model_summary
from pytorch_lightning.loops import evaluation_loop
from pytorch_lightning.utilities.model_summary.model_summary import get_human_readable_count
from torch import nn


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


# ---- the model's summary ------------------------------------------------------------------

COUNTS = [0, 1, 123, 999, 1000, 1234, 99949, 99999, 100000, 123999, 999999, 2000000, 21840,
          3 * 10**9, 4 * 10**14, 5 * 10**15, 9007199254740993]


class Model(pl.LightningModule):
    def __init__(self, example=None):
        super().__init__()
        self.example_input_array = example


class Tied(Model):
    def __init__(self):
        super().__init__()
        self.layer_1 = nn.Linear(32, 10, bias=False)
        self.layer_2 = nn.Linear(32, 10, bias=False)
        self.layer_3 = nn.Linear(32, 10, bias=False)
        self.layer_3.weight = self.layer_1.weight


class Nested(Model):
    def __init__(self, example=None):
        super().__init__(example)
        self.net = nn.Sequential(nn.Linear(256, 512), nn.BatchNorm1d(512))
        self.head = nn.Linear(512, 3)
        self.unused = nn.Linear(4, 4)

    def forward(self, x):
        return self.head(self.net(x))


class Own(Model):
    def __init__(self, example=None):
        super().__init__(example)
        self.scale = nn.Parameter(torch.ones(7))
        self.frozen = nn.Linear(7, 7)
        self.frozen.requires_grad_(False)
        self.frozen.eval()

    def forward(self, x):
        return self.frozen(x) * self.scale


class Image(Model):
    def __init__(self, example=None):
        super().__init__(example)
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, groups=1), nn.ReLU(), nn.Flatten(),
                                  nn.Sequential(nn.Linear(8 * 6 * 6, 10)))

    def forward(self, x):
        return self.body(x)


SUMMARIES = [(Tied, None, 1), (Nested, None, 1), (Nested, (10, 256), 1), (Nested, (10, 256), -1),
             (Own, None, 1), (Own, (2, 7), 1), (Image, (4, 3, 8, 8), 1), (Image, (4, 3, 8, 8), 2),
             (Image, (4, 3, 8, 8), -1)]


def summary(kind, example, depth, is_rich):
    model = kind() if kind is Tied else kind(None if example is None else torch.zeros(example))
    trainer = SimpleNamespace(is_global_zero=True, strategy=None)
    if is_rich:
        out = io.StringIO()
        rich.reconfigure(file=out, width=200, color_system=None)
        RichModelSummary(max_depth=depth).on_fit_start(trainer, model)
        return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())
    lines = []
    model_summary.log = SimpleNamespace(info=lines.append)
    ModelSummary(max_depth=depth).on_fit_start(trainer, model)
    return lines[0] + "\n"


# ---- results ------------------------------------------------------------------------------

LONG = "a_metric_with_a_name_that_is_longer_than_half_of_the_terminal"
# (stage, columns or 0, encoding, a dict for each loader)
RESULTS = [
    ("test", 0, "utf-8", [{"test_loss": 2.0343821048736572, "test_acc": 0.596}]),
    ("validate", 0, "utf-8", [{"val_loss": 5.0}]),
    ("test", 80, "utf-8", [{"log": 5.0}, {"no_log": 6.0}]),
    ("test", 72, "utf-8", [{"log": 5.0, "b": 1e-5}, {"no_log": 6.0, "b": 1e20}]),
    ("test", 60, "utf-8", [{"a": 100.0}, {"a": 0.1}, {"a": 123456.0}, {"a": 1e16}]),
    ("test", 100, "utf-8", [{"a": float(i)} for i in range(8)]),
    ("test", 80, "utf-8", [{LONG: 1.0, "b": 2.0}]),
    ("test", 20, "utf-8", [{LONG: 1.0, "b": 2.0}]),
    ("validate", 60, "latin-1", [{"a": 0.5}, {"b": -0.25}]),
    ("test", 120, "utf-8", [{"größe": 1.5, "nan": float("nan"), "inf": float("-inf")}]),
]


def results(stage, columns, encoding, loaders):
    out, raw = sys.stdout, io.BytesIO()
    sys.stdout = io.TextIOWrapper(raw, encoding=encoding)
    os.environ["COLUMNS"] = str(columns)
    evaluation_loop._RICH_AVAILABLE = False
    loaders = [{name if len(loaders) == 1 else f"{name}/dataloader_idx_{i}": torch.tensor(v)
                for name, v in values.items()} for i, values in enumerate(loaders)]
    evaluation_loop._EvaluationLoop._print_results(loaders, stage)
    sys.stdout.flush()
    printed = raw.getvalue().decode(encoding)
    sys.stdout = out
    return printed


def number(value):
    return {"nan": "NAN", "inf": "INFINITY", "-inf": "-INFINITY"}.get(str(value), repr(value))


def main():
    print("// Made by lightning_tables.py.\n// clang-format off\n")
    print("static const struct { int64_t count; const char *text; } counts[] = {")
    for count in COUNTS:
        print(f"  {{ {count}, {quoted(get_human_readable_count(count))} }},")
    print("};\n\nstatic const struct { const char *model; bool is_rich; calx_dims example; "
          "int max_depth; const char *text; } summaries[] = {")
    for kind, example, depth in SUMMARIES:
        for is_rich in [False, True] if depth == 1 else [False]:
            dims = "{ .count = 0 }" if example is None else (
                f"{{ .count = {len(example)}, .values = {{ {', '.join(map(str, example))} }} }}")
            print(f"  {{ \"{kind.__name__}\", {str(is_rich).lower()}, {dims}, {depth},\n    "
                  f"{quoted(summary(kind, example, depth, is_rich))} }},")
    print("};\n\nstatic const struct { bool is_test; int columns; const char *encoding; int loaders;\n"
          "  struct { int loader; const char *name; float value; } values[12]; const char *text; }"
          " results[] = {")
    for stage, columns, encoding, loaders in RESULTS:
        values = ", ".join(f"{{ {i}, {quoted(name)}, (float){number(v)} }}"
                           for i, named in enumerate(loaders) for name, v in named.items())
        print(f"  {{ {str(stage == 'test').lower()}, {columns}, {quoted(encoding)}, "
              f"{len(loaders)}, {{ {values} }},\n    "
              f"{quoted(results(stage, columns, encoding, loaders))} }},")
    print("};")


main()
