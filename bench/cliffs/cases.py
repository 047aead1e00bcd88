"""What the files of programs share: the description of an argument, and the
list of cases.

A case is a function as users of JAX write it, its family, and its arguments by
shape and range of values. A program should take milliseconds, and have values
that do not depend on the order of a sum by more than its type's precision.
"""
from collections import namedtuple

import jax
import jax.numpy as jnp
import numpy as np

Arg = namedtuple("Arg", "shape dtype least most")
Case = namedtuple("Case", "name family function args")
CASES = []


def f32(*shape, least=-1.0, most=1.0):
    return Arg(shape, np.dtype(np.float32), least, most)


def bf16(*shape, least=-1.0, most=1.0):
    return Arg(shape, jnp.dtype(jnp.bfloat16), least, most)


def f16(*shape, least=-1.0, most=1.0):
    return Arg(shape, np.dtype(np.float16), least, most)


def f64(*shape, least=-1.0, most=1.0):
    return Arg(shape, np.dtype(np.float64), least, most)


def c64(*shape, least=-1.0, most=1.0):
    return Arg(shape, np.dtype(np.complex64), least, most)


def ints(dtype, *shape, below, least=0):
    return Arg(shape, np.dtype(dtype), least, below)


def i32(*shape, below, least=0):
    return ints(np.int32, *shape, below=below, least=least)


def key():
    """A random key's two words."""
    return ints(np.uint32, 2, below=2**32)


def family(name):
    """A decorator of a family: @fft(args…) adds the function with these
    arguments; several add it several times."""
    def case(*args):
        def add(function):
            n = sum(c.function is function for c in CASES)
            tail = f"_{n + 1}" if n else ""
            CASES.append(Case(name + "_" + function.__name__ + tail, name,
                              function, args))
            return function
        return add
    return case


def lower(case, platform):
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in case.args]
    traced = jax.jit(case.function, keep_unused=True).trace(*shapes)
    return traced.lower(lowering_platforms=(platform,)).as_text()


def text(case):
    """StableHLO text with the line that bench/text.h reads. Where JAX calls
    LAPACK, which a plugin has not, it is lowered as for an unknown platform."""
    wide = any(np.dtype(a.dtype).itemsize == 8 and a.dtype.kind in "iuf"
               for a in case.args)
    with jax.enable_x64(wide):
        lowered = lower(case, "cpu")
        if "@lapack" in lowered:
            lowered = lower(case, "calx")
    ranges = " ".join(f"{a.least:.12g}:{a.most:.12g}" for a in case.args)
    return f"// arguments: {ranges}\n{lowered}"


def grad(function, **options):
    """The gradient of the sum of a function's result by its first argument."""
    def summed(*args):
        out = function(*args)
        return sum(jnp.sum(x.astype(jnp.float32)) for x in jax.tree.leaves(out))
    return jax.grad(summed, **options)
