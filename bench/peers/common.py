"""What the peers share: the values of bench/step.c, timing, one line of results.

Element i of series k is u(k, i) = (z >> 40) / 2^23 - 1 in [-1, 1) with
z = splitmix64((k << 32) + i + 1). Images are series 0 times sqrt 3, labels
series 1's (z >> 33) mod 10, parameter number p in the order of the state dict
series 2 + p divided by sqrt(fan-in); of norms weight 1 and bias 0.
"""
import argparse
import math
import os
import resource
import time

import numpy as np

# PyTorch's names, order and shapes.
PARAMETERS = [
    ("conv1.weight", (10, 1, 5, 5)), ("conv1.bias", (10,)),
    ("bn1.weight", (10,)), ("bn1.bias", (10,)),
    ("conv2.weight", (20, 10, 5, 5)), ("conv2.bias", (20,)),
    ("bn2.weight", (20,)), ("bn2.bias", (20,)),
    ("fc1.weight", (50, 320)), ("fc1.bias", (50,)),
    ("fc2.weight", (10, 50)), ("fc2.bias", (10,)),
]


def words(series, n):
    with np.errstate(over="ignore"):
        z = np.arange(1, n + 1, dtype=np.uint64) + np.uint64(series << 32)
        z *= np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniform(series, shape, bound):
    u = (words(series, math.prod(shape)) >> np.uint64(40)).astype(np.float32)
    u = u / np.float32(2**23) - np.float32(1)
    return (u * np.float32(bound)).reshape(shape)


def batch(n):
    labels = (words(1, n) >> np.uint64(33)) % np.uint64(10)
    return uniform(0, (n, 1, 28, 28), math.sqrt(3)), labels.astype(np.int64)


def parameters():
    out, fan_in = {}, 1
    for p, (name, shape) in enumerate(PARAMETERS):
        if name.startswith("bn"):
            fill = np.ones if name.endswith("weight") else np.zeros
            out[name] = fill(shape, np.float32)
            continue
        if len(shape) > 1:
            fan_in = math.prod(shape[1:])
        out[name] = uniform(2 + p, shape, 1 / math.sqrt(fan_in))
    return out


def options(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--start", action="store_true",
                        help="only two steps: when they were done")
    return parser


def since_start():
    """Seconds since the time in BENCH_START (date +%s.%N before the exec)."""
    return time.time() - float(os.environ.get("BENCH_START", "nan"))


def median(values, q=0.5):
    values = sorted(values)
    return values[min(int(q * len(values)), len(values) - 1)]


def say(**pairs):
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(*(f"{k}={v}" for k, v in pairs.items()), f"rss_mib={rss:.0f}",
          flush=True)


def start(peer, n, step, read=float, **more):
    """Two whole steps, each with its loss read."""
    times = []
    for _ in range(2):
        read(step())
        times.append(since_start())
    say(peer=peer, **more, batch=n, first_s=f"{times[0]:.3f}",
        second_s=f"{times[1]:.3f}")


def measure(peer, n, step, wait, seconds, read=float, **more):
    """step() launches one training step and gives its loss, wait() waits for
    all that was launched, read() makes a loss a number. As bench/mnist_step.c: groups of at least 20 ms, of
    which only the last step is waited for; then each step waited for."""
    losses = [read(step()) for _ in range(5)]

    def group(steps):
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        wait()
        return (time.perf_counter() - begin) * 1e3 / steps

    def run(length, steps):
        out, end = [], time.perf_counter() + length
        while len(out) < 3 or time.perf_counter() < end:
            out.append(group(steps))
        return out

    steps = math.ceil(20 / group(3))
    cpu = time.process_time()
    grouped = run(seconds, steps)
    cpu = (time.process_time() - cpu) * 1e3 / len(grouped) / steps
    waiting = run(seconds / 3, 1)
    say(peer=peer, batch=n, ms=f"{median(grouped):.3f}",
        p10=f"{median(grouped, 0.1):.3f}", p90=f"{median(grouped, 0.9):.3f}",
        cpu_ms=f"{cpu:.3f}", waiting=f"{median(waiting):.3f}",
        losses=",".join(f"{x:.5f}" for x in losses), **more)
