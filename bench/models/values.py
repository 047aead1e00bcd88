"""The same values for every program: a formula of a name and an index.

Element i of the tensor NAME is u(i) = (z >> 40) / 2^23 - 1 in [-1, 1) with
z = splitmix64((crc32(NAME) << 32) + i + 1), times a bound; a label is
(z >> 33) mod the classes. u is exact in f32.
"""
import math
import os
import zlib

import numpy as np

SQRT3 = math.sqrt(3)  # u times it has variance 1
VALUES = os.environ.get("CALX_BENCH_VALUES", "")  # added to each NAME


def words(name, n):
    name += VALUES
    with np.errstate(over="ignore"):
        z = np.arange(1, n + 1, dtype=np.uint64)
        z += np.uint64(zlib.crc32(name.encode())) << np.uint64(32)
        z *= np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniform(name, shape, bound=1.0):
    u = (words(name, math.prod(shape)) >> np.uint64(40)).astype(np.float32)
    u = u / np.float32(2**23) - np.float32(1)
    return (u * np.float32(bound)).reshape(shape)


def labels(name, n, classes):
    return ((words(name, n) >> np.uint64(33)) % np.uint64(classes)).astype(np.int32)


def parameter(name, shape):
    """In PyTorch's shape: a norm's weight is 1, a bias 0, a weight has variance
    1 / fan-in."""
    if len(shape) == 1 and name.endswith(("weight", "var")):
        return np.ones(shape, np.float32)
    if len(shape) == 1 and name.endswith(("bias", "mean")):
        return np.zeros(shape, np.float32)
    fan_in = math.prod(shape[1:]) if len(shape) > 1 else 1
    return uniform(name, shape, SQRT3 / math.sqrt(fan_in))


def images(name, n, size, channels):
    """As NCHW."""
    return uniform(name, (n, channels, size, size), SQRT3)
