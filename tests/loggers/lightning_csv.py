"""lightning_csv.py: what Lightning's CSVLogger writes for fixed sequences of calls, as
the C of lightning_csv.h. Run with lightning==2.6.6 (PyPI) to make that file anew:

    python lightning_csv.py >lightning_csv.h

A case is a list of calls, which csv.c makes too, in the same words."""

import math
import os
import struct
import sys
import tempfile
import warnings

from lightning.pytorch.loggers import CSVLogger

warnings.simplefilter("ignore")


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def row(step, /, **values):
    return ("metrics", step, values)


SAVE = ("save",)
CASES = {
    "plain": ({}, [row(0, loss=f32(0.1), epoch=0), row(1, loss=0.25, epoch=0), SAVE]),
    "late_key": ({}, [row(4, train_loss=f32(2.2652576), epoch=0), SAVE,
                      row(9, val_loss=f32(2.2304785), val_acc=f32(0.314), epoch=0), SAVE,
                      row(9, a=1.5, epoch=1), row(20, test_loss=1e-5, epoch=2), SAVE]),
    "not_finite": ({}, [row(0, a=math.nan, b=math.inf, c=-math.inf), row(1, a=-0.0), SAVE]),
    "numbers": ({}, [row(0, a=3.0, b=3, c=-7, d=1e16, e=123456789012345.0, f=1e-4, g=1e-5,
                         h=5e-324, i=1.7976931348623157e308, j=2.0 ** -1017,
                         k=9007199254740993.0, l=0.1 + 0.2), SAVE]),
    "prefix": (dict(prefix="run"), [row(0, loss=0.5, step=7), row(1, loss=0.25), SAVE]),
    "step_value": ({}, [row(3, step=99, loss=1.0), SAVE]),
    "flush": (dict(flush_logs_every_n_steps=2), [row(0, a=1.0), row(1, a=2.0), row(2, b=3.0),
                                                 row(3, b=4.0), row(4, c=5.0)]),
    "only_steps": ({}, [row(0), row(1), SAVE]),
    "names": ({}, [("metrics", 0, {"a,b": 1.0, 'say "x"': 2.0, "two\nlines": 3.0, "a/b": 4.0,
                                   "\u00e9": 5.0, "Z": 6.0, "_": 7.0, "cr\r": 8.0}), SAVE,
                   row(1, later=9.0), SAVE]),
    "again": (dict(version=3), [row(0, a=1.0), SAVE, ("new",), row(0, b=2.0), SAVE]),
    "emptied": ({}, [SAVE, SAVE]),
}


YAML = {
    "empty": {},
    "usual": {"momentum": 0.5, "lr": 0.01},
    "kinds": {"eps": 1e-08, "n": 3, "big": 1e16, "b": True, "none": None, "opt": "adam",
              "path": "a/b c", "num": "1.5", "yes": "no", "colon": "a: b", "q": "it's",
              "u": "\u00e9", "empty": "", "dash": "- x", "date": "2020-01-01",
              "inf": math.inf, "ninf": -math.inf, "nan": math.nan, "a,b": 1, "x#": "a #b",
              "true": "x", "v": "version_3", "hex": "0x1f", "h": "3abc", "brace": "{}"},
}


def run(folder, options, calls):
    make = lambda: CSVLogger(folder, **options)
    logger = make()
    for call in calls:
        if call[0] == "metrics":
            logger.log_metrics(dict(call[2]), call[1])
        elif call[0] == "save":
            logger.save()
        else:
            logger = make()
    path = os.path.join(logger.log_dir, "metrics.csv")
    if not os.path.exists(path):
        return None
    with open(path, "rb") as f:
        return f.read()


def literal(data):
    if data is None:
        return "  NULL"
    out, line = [], ""
    for byte in data:
        c = chr(byte)
        if c in '"\\':
            line += "\\" + c
        elif 32 <= byte < 127:
            line += c
        else:
            line += f"\\{byte:03o}"
        if c == "\n":
            out.append(line)
            line = ""
    return "\n".join(f'  "{l}"' for l in out + ([line] if line else []))


def main():
    first = "// What Lightning 2.6.6's CSVLogger writes, by lightning_csv.py."
    print(first)
    print("// clang-format off")
    for name, params in YAML.items():
        with tempfile.TemporaryDirectory() as folder:
            logger = CSVLogger(folder)
            logger.log_hyperparams(params)
            with open(os.path.join(logger.log_dir, "hparams.yaml"), "rb") as f:
                print(f"static const char *const lightning_yaml_{name} =\n{literal(f.read())};")
    for name, (options, calls) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            data = run(folder, options, calls)
        print(f"static const char *const lightning_{name} =\n{literal(data)};")


main()
