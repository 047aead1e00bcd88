#!/usr/bin/env python3
"""print_cases: writes print_cases.txt with PyTorch's own texts.

    pip install torch==2.13.0; ./print_cases.py > print_cases.txt

A case is a line "DEVICE DTYPE SHAPE FILL VALUE...", the text, and a line "----".
DEVICE: host, or xla: PyTorch's text of a tensor on xla:0. SHAPE: 2x3, or - for
rank 0. FILL: list (the elements), or ramp A B C (element i is A + B * (i % C)).
"""
import inspect
import random

import torch
import torch._tensor_str as ts

NAMES = {"bool": torch.bool, "i8": torch.int8, "i16": torch.int16,
         "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8,
         "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64,
         "bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32,
         "f64": torch.float64}

# The same function, told that the tensor lies on xla:0.
source = inspect.getsource(ts._str_intern)
assert "str(self.device)" in source and "self.device.type != " in source
source = source.replace("str(self.device)", '"xla:0"')
source = source.replace("self.device.type != ", "True or self.device.type != ", 1)
source = source.replace("def _str_intern", "def xla_str")
exec(source, ts.__dict__)


def show(device, dtype, shape, fill, values, elements):
    t = torch.tensor(elements, dtype=torch.float64 if "f" in dtype else None)
    t = t.to(NAMES[dtype]).reshape(shape)
    text = ts.xla_str(t) if device == "xla" else str(t)
    size = "x".join(map(str, shape)) or "-"
    words = " ".join(repr(v) if isinstance(v, float) else str(int(v)) for v in values)
    print(f"{device} {dtype} {size} {fill} {words}\n{text}\n----")


def one(dtype, shape, values):
    for device in ("host", "xla"):
        show(device, dtype, shape, "list", values, values)


def ramp(dtype, shape, a, b, c):
    n = 1
    for d in shape:
        n *= d
    elements = [a + b * (i % c) for i in range(n)]
    for device in ("host", "xla"):
        show(device, dtype, shape, "ramp", [a, b, c], elements)


INF, NAN = float("inf"), float("nan")
random.seed(1)

# rank 0 and 1, every type
for d in NAMES:
    floating = "f" in d
    values = [0.0, 1.0, 2.5, 100.0] if floating else [0, 1, 2, 100]
    if d == "bool":
        values = [False, True, True, False]
    for v in values:
        one(d, (), [v])
    one(d, (4,), values)
    one(d, (2, 2), values)
    one(d, (0,), [])
    one(d, (0, 3), [])
    one(d, (2, 0, 4), [])

# signs, sizes, integers at their ends
one("i64", (3,), [-(2 ** 63), 2 ** 63 - 1, 0])
one("i8", (4,), [-128, 127, 0, -1])
one("i32", (2, 2), [-2147483648, 2147483647, 1, 10])
one("u8", (3,), [0, 128, 255])
one("i64", (5,), [-1, 10, -100, 1000, 5])
one("i64", (1, 1, 1), [7])

# floats: integer, decimal and scientific forms
FLOATS = [
    [1.0, 2.0, 3.0], [-1.0, 2.0, 300.0], [1.0, 1000.0], [1.0, 1001.0],
    [1.0, 10000.0], [1e8, 1.0], [1e8, 1e8], [1.1e8, 1.1e8], [123456789.0],
    [0.1, 0.2], [0.1, 100.0], [0.1, 100.1], [1e-4, 1.0], [9e-5, 0.01],
    [1e-4], [9.9e-5], [1e-5, 1.0], [1.5, 1499.0], [1.5, 1501.0], [0.00012345],
    [1.23456789], [12345.678], [123456.789], [99999.99995], [0.99996],
    [0.0, 0.0], [0.0, 1.0], [0.0, 0.5], [-0.0, 0.5], [-0.0], [0.0],
    [NAN], [INF], [-INF], [NAN, 1.0], [INF, 1.0], [-INF, 1.5], [NAN, INF, -INF],
    [NAN, 0.0], [INF, 1e10], [NAN, 1e-10, 1.0], [1.0, NAN, 1000000.0],
    [-1.5, 22.25, -333.125], [1e20], [1e20, 1.0], [3.4e38], [1e-38],
    [-1e-3, 1e-3], [5e-324, 1.0], [2.0 ** 53, 1.0], [1e15, 1e16],
    [0.5, 1.5, 2.5, 3.5], [0.00005, 0.5], [1e5], [-100000.0, 5.0],
]
for values in FLOATS:
    for d in ("f32", "f64"):
        one(d, (len(values),), values)
for d in ("bf16", "f16"):
    for values in FLOATS[:4] + FLOATS[9:12] + [[NAN, 1.5], [INF, 2.0], [65504.0, 1.0]]:
        one(d, (len(values),), values)
for v in (1.0, -1.0, 0.5, 1e10, 1e-10, 123456.0, NAN, INF, -INF, 0.0):
    one("f32", (), [v])
    one("f64", (), [v])

# ranks
ramp("f32", (2, 3), 0.0, 1.0, 6)
ramp("f32", (2, 2, 2), -1.0, 0.25, 8)
ramp("i64", (2, 2, 2, 2), 0, 3, 16)
ramp("f32", (1, 3, 1, 2), 0.5, 0.5, 6)
ramp("i32", (2, 1, 1, 1, 2), 0, 1, 4)
ramp("bool", (2, 3), 0, 1, 2)
ramp("f64", (1, 1), 2.5, 0.0, 1)
ramp("i64", (1, 1, 1, 1, 1, 1, 1, 1), 2, 0, 1)

# lines that are full
for n in (6, 7, 8, 9, 10, 11, 12, 13, 20, 25, 40, 100):
    ramp("f32", (n,), 0.0, 0.37, 1000)
    ramp("i64", (n,), 0, 7, 1000)
    ramp("f32", (2, n), -5.0, 1.0, 1000)
    ramp("bool", (n,), 0, 1, 2)
ramp("f32", (3, 30), 0.0, 0.001, 90)
ramp("i64", (2, 2, 40), -40, 1, 160)
ramp("f64", (12,), 1e-9, 1e-3, 12)
for n in range(14, 19):
    ramp("i64", (n,), 10, 1, 100)
    ramp("i16", (n,), 100, 1, 100)

# summarised
ramp("f32", (1000,), 0.0, 1.0, 1000)
ramp("f32", (1001,), 0.0, 1.0, 2000)
ramp("i64", (2000,), -3, 1, 5000)
ramp("f32", (40, 50), 0.0, 0.5, 5000)
ramp("f32", (2, 1000), 0.0, 0.5, 5000)
ramp("i64", (1001, 1), 0, 1, 5000)
ramp("i64", (7, 6, 30), 0, 1, 5000)
ramp("f32", (6, 7, 30), 0.0, 1.0, 5000)
ramp("f32", (8, 8, 8, 8), -1.0, 0.125, 77)
ramp("bool", (40, 40), 0, 1, 2)
ramp("i8", (1, 1, 3000), 0, 1, 100)
ramp("f64", (3000, 1, 1), 1e-7, 1.0, 3000)
ramp("bf16", (50, 50), 0.0, 1.0, 100)
ramp("u8", (1100,), 0, 1, 200)

# at random
for _ in range(60):
    rank = random.randint(0, 4)
    shape = tuple(random.randint(1, 4) for _ in range(rank))
    n = 1
    for d in shape:
        n *= d
    scale = 10.0 ** random.randint(-6, 9)
    values = [float(random.choice([0.0, 1.0, -1.0, random.gauss(0, 1)]) * scale) for _ in range(n)]
    if random.random() < 0.3:
        values[random.randrange(n)] = random.choice([NAN, INF, -INF])
    one(random.choice(["f32", "f64"]), shape, values)
