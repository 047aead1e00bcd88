"""Every program of the table in JAX: training steps, inference, and single
operations; what tools/make-models writes and bench/peers/jax_row.py runs."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import values
from jax_inference import INFERENCE
from jax_steps import STEPS, program_of


def top_k():
    x = values.uniform("top_k", (64, 50000))
    return jax.jit(lambda x: lax.top_k(x, 10)), (x,)


def sort():
    x = (values.words("sort", 1000000) >> np.uint64(32)).astype(np.uint32)
    return jax.jit(jnp.sort), (x.view(np.int32),)


def trivial():
    x = values.uniform("trivial", (16,))
    return jax.jit(lambda x, y: x + y), (x, x)


OPERATIONS = {"top_k": top_k, "sort": sort, "trivial": trivial}
NAMES = [*STEPS, *OPERATIONS, *INFERENCE]


def make(name):
    """A jitted function and its arguments, as numpy's arrays."""
    if name in STEPS:
        return program_of(name)
    return (OPERATIONS.get(name) or INFERENCE[name])()


def range_of(a):
    """LEAST:MOST of an argument's values; most is not one of an integer's."""
    a = np.asarray(a)
    least, most = (float(a.min()), float(a.max())) if a.size else (0.0, 1.0)
    if not jnp.issubdtype(a.dtype, jnp.floating):
        most += 1
    return f"{least:.9g}:{most:.9g}" if abs(most) < 1e9 else f"{least:.0f}:{most:.0f}"


def lower(function, arguments):
    shapes = jax.tree.map(
        lambda a: jax.ShapeDtypeStruct(np.shape(a), np.asarray(a).dtype), arguments)
    return function.trace(*shapes).lower(lowering_platforms=("cpu",))


def text(function, arguments):
    """Its StableHLO text with the line that bench/text.h reads."""
    ranges = " ".join(map(range_of, jax.tree.leaves(arguments)))
    return f"// arguments: {ranges}\n{lower(function, arguments).as_text()}"


def bytecode(function, arguments):
    """Its bytecode as JAX sends it to a plugin: with locations, and with what VHLO
    lacks left in the dialects that have it."""
    from jaxlib import _jax
    from jaxlib.mlir.dialects import stablehlo

    module = lower(function, arguments).compiler_ir().operation
    return _jax.mlir.serialize_portable_artifact(
        module.get_asm(enable_debug_info=True), stablehlo.get_current_version(), True)
