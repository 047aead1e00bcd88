"""Callbacks into Python: debug.print, pure_callback, io_callback.

JAX makes all of them by one function, emit_python_callback. For the engine
another one takes its place. It writes a custom call with the number of the
callback; the target runs in the thread of the launch and takes the global
interpreter lock.
"""

import collections
import ctypes
import inspect
import itertools
import secrets
import time
import weakref

import numpy as np

from calx_cpu_pjrt import ffi

_TARGET = "calx_python_callback"

# By xla.PrimitiveType; those of less than 8 bits have a byte each.
_TYPES = {
    1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8",
    7: "uint16", 8: "uint32", 9: "uint64", 10: "float16", 11: "float32",
    12: "float64", 15: "complex64", 16: "bfloat16", 18: "complex128",
    19: "float8_e5m2", 20: "float8_e4m3fn", 21: "int4", 22: "uint4",
    23: "float8_e4m3b11fnuz", 24: "float8_e5m2fnuz", 25: "float8_e4m3fnuz",
    26: "int2", 27: "uint2", 28: "float8_e4m3", 29: "float8_e3m4",
    32: "float4_e2m1fn", 33: "float8_e8m0fnu",
}
_TOKEN = 17

# No number is used twice, and another process begins with another one: a compiled program
# that a cache kept must not call another function.
_numbers = itertools.count(secrets.randbits(62))
_callbacks = {}

# When executables went, and the numbers of their callbacks. A launch may still run, and
# Python is not told when it ends, so the functions are kept for some time.
_retired = collections.deque()
_KEPT_SECONDS = 600


class _Owner:
    """Lives as long as the executable that calls the function."""

    def __init__(self, number):
        weakref.finalize(self, _retire, number).atexit = False


def _retire(number):
    now = time.monotonic()
    _retired.append((now, number))
    while _retired and _retired[0][0] < now - _KEPT_SECONDS:
        _callbacks.pop(_retired.popleft()[1], None)


def _array(buffer):
    """A view of a buffer's memory."""
    import ml_dtypes

    name = _TYPES[buffer.dtype]
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    shape = tuple(buffer.dims[i] for i in range(buffer.rank))
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if size == 0:
        return np.empty(shape, dtype)
    memory = (ctypes.c_char * size).from_address(buffer.data)
    return np.frombuffer(memory, dtype).reshape(shape)


def _arrays(buffers):
    every = (buffers.items[i].contents for i in range(buffers.size))
    return [_array(b) for b in every if b.dtype != _TOKEN]


def _run(frame):
    number = ffi.scalar(frame, b"number", ctypes.c_uint64)
    function = _callbacks.get(number)
    if function is None:
        raise RuntimeError("the Python function of this callback is gone")
    # Copies: JAX may hold the arguments longer than the engine does.
    arguments = [a.copy() for a in _arrays(frame.args)]
    results = function(*arguments)
    for to, value in zip(_arrays(frame.rets), results, strict=True):
        to[...] = value


def _set_sharding(module_context, op, sharding):
    from jax._src.interpreters import mlir

    if len(inspect.signature(mlir.set_sharding).parameters) == 2:
        mlir.set_sharding(op, sharding)  # JAX 0.10.0 and earlier
    else:
        mlir.set_sharding(module_context, op, sharding)


def _checked(callback, result_avals):
    """The callback with its results as arrays of the types that are due."""
    from jax._src import dtypes

    def run(*arguments):
        values = callback(*arguments)
        if len(values) != len(result_avals):
            raise RuntimeError(
                "Mismatched number of outputs from callback. Expected: "
                f"{len(result_avals)}, Actual: {len(values)}")
        arrays = [np.asarray(dtypes.canonicalize_value(np.asarray(v)))
                  for v in values]
        for i, (array, aval) in enumerate(zip(arrays, result_avals)):
            if array.shape != aval.shape:
                raise RuntimeError(
                    f"Incorrect output shape for return value #{i}: "
                    f"Expected: {aval.shape}, Actual: {array.shape}")
            if array.dtype != aval.dtype:
                raise RuntimeError(
                    f"Incorrect output dtype for return value #{i}: "
                    f"Expected: {aval.dtype}, Actual: {array.dtype}")
        return arrays

    return run


def _n_devices(ctx):
    return getattr(ctx.module_context.axis_context, "num_devices", None)


def _with_token(sharding):
    """Of the results, with one for the token before them."""
    return type(sharding)((sharding.shardings[0], *sharding.shardings))


def _emit(ctx, callback, token, operands, result_avals, has_side_effect,
          sharding):
    """As jax._src.callback.emit_python_callback."""
    import dataclasses

    from jax._src import core, ffi as jax_ffi

    number = next(_numbers)
    owner = _Owner(number)
    _callbacks[number] = _checked(callback, result_avals)
    ctx.module_context.add_keepalive(owner)
    if token:
        operands = [token, *operands]
        ctx = dataclasses.replace(
            ctx, avals_in=[core.abstract_token, *ctx.avals_in],
            avals_out=[core.abstract_token, *ctx.avals_out])
    op = jax_ffi.build_ffi_lowering_function(
        _TARGET, has_side_effect=has_side_effect)(
            ctx, *operands, number=np.uint64(number))
    if sharding is not None and _n_devices(ctx) != 1:
        if token and result_avals:
            sharding = _with_token(sharding)
        _set_sharding(ctx.module_context, op, sharding)
    results = list(op.results)
    if token:
        token, *results = results
    return results, token, owner


def initialize(library):
    from jax._src import callback as jax_callback

    library.register_function(_TARGET, _run)
    other = jax_callback.emit_python_callback

    def emit(ctx, callback, token, operands, operand_avals, result_avals, *,
             has_side_effect, sharding=None, **options):
        module = ctx.module_context
        ours = (tuple(module.platforms) == ("cpu",)
                and _is_engine(module.get_backend()))
        if not ours:
            return other(
                ctx, callback, token, operands, operand_avals, result_avals,
                has_side_effect=has_side_effect, sharding=sharding, **options)
        return _emit(ctx, callback, token, operands, result_avals,
                     has_side_effect, sharding)

    jax_callback.emit_python_callback = emit


def _is_engine(backend):
    # The version is behind a line of jaxlib's own: "PJRT C API, calx 0.1, …".
    return backend is not None and "calx " in backend.platform_version
