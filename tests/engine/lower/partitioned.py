#!/usr/bin/env python3
"""partitioned.py FILE: programs over a mesh of 2x2 devices, as JAX lowers them,
and JAX's own results on one device, for partitioned.c. Needs jax.

Element e of argument k is ((7e + 5k) mod 13 - 6) / 8. After each program comes a
line of dashes, a line of numbers, the results one after another, and a line of
dashes.
"""
import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("batch", "model"))
# The same devices by one axis, by axes of other names, and one of them.
line = Mesh(np.array(jax.devices()), ("all",))
other = Mesh(np.array(jax.devices()).reshape(2, 2), ("model", "x"))


def value(k, shape):
    n = int(np.prod(shape))
    return (((np.arange(n) * 7 + k * 5) % 13 - 6) / 8).astype(np.float32).reshape(shape)


def loss(w, b, v, x):
    y = jnp.tanh(x @ w + b) @ v
    return (y * y).mean()


def product(a, b):
    return jax.lax.psum(a @ b, "model")


def on_meshes(a, b):
    y = jax.lax.with_sharding_constraint(a @ b, NamedSharding(line, P("all", None)))
    z = jax.lax.with_sharding_constraint(jnp.sin(y), NamedSharding(other, P("x", "model")))
    return z.sum(0), z * 2


def cases():
    """The program over the mesh, the same on one device, how arguments are split, their shapes."""
    gradient = jax.value_and_grad(loss, argnums=(0, 1, 2))
    yield (gradient, gradient, (P(None, "model"), P("model"), P("model", None), P("batch")),
           ((4, 6), (6,), (6, 2), (8, 4)))
    split = (P("batch", "model"), P("model", None))
    yield (jax.shard_map(product, mesh=mesh, in_specs=split, out_specs=P("batch", None)),
           lambda a, b: a @ b, split, ((8, 4), (4, 6)))
    yield on_meshes, lambda a, b: (jnp.sin(a @ b).sum(0), jnp.sin(a @ b) * 2), split, ((8, 4), (4, 6))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], "w") as out:
        for f, whole, specs, shapes in cases():
            args = [value(k, shape) for k, shape in enumerate(shapes)]
            split = tuple(NamedSharding(mesh, p) for p in specs)
            out.write(jax.jit(f, in_shardings=split).lower(*args).as_text() + "-" * 8 + "\n")
            results = jax.tree.leaves(jax.jit(whole)(*args))
            numbers = np.concatenate([np.asarray(r).ravel() for r in results])
            out.write(" ".join(f"{x:.9g}" for x in numbers) + "\n" + "-" * 8 + "\n")


main()
