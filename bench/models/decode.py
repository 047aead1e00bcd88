"""Parameters of the decoding step: GPT-2's shapes (Radford et al. 2019), with one
matrix for words in and out."""
import numpy as np

import values
from shapes import DECODE

PARTS = ("qkv", 3, 1), ("out", 1, 1), ("up", 4, 1), ("down", 1, 4)  # times the width


def matrices():
    """Name and (out, in) f32."""
    d = DECODE.width
    shapes = [("words", DECODE.words, d), ("places", DECODE.places, d)]
    for i in range(DECODE.blocks):
        shapes += [(f"blocks.{i}.{part}", n * d, m * d) for part, n, m in PARTS]
    for name, n, m in shapes:
        yield name, values.uniform(name, (n, m), values.SQRT3 * m ** -0.5)


def vectors():
    d = DECODE.width
    norms = ["norm"]
    for i in range(DECODE.blocks):
        norms += [f"blocks.{i}.norm1", f"blocks.{i}.norm2"]
        for part, n, _ in PARTS:
            yield f"blocks.{i}.{part}.bias", np.zeros(n * d, np.float32)
    for name in norms:
        yield name + ".weight", np.ones(d, np.float32)
        yield name + ".bias", np.zeros(d, np.float32)


def quantise(w):
    """(out, in) -> int8 and a scale per output."""
    scale = np.abs(w).max(1) / 127
    return np.round(w / scale[:, None]).astype(np.int8), scale.astype(np.float32)
