"""sharded.py PACKAGES LIBRARY [NAME...]: functions of arrays that meshes of eight
devices divide in drawn ways give what they give on one device. CALX_TEST_LONG=1 draws
more of them.
"""
import os
import sys

DEVICES = 8
packages, library, *chosen = sys.argv[1:]
sys.path.insert(0, packages)
os.environ.update(JAX_PLATFORMS="calx,cpu", CALX_CPU_LIBRARY=os.path.abspath(library),
                  CPU_NUM_DEVICES=str(DEVICES))

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

import calx_cpu_pjrt

calx_cpu_pjrt.initialize()

TRIALS = 12 if os.environ.get("CALX_TEST_LONG") else 1
random = np.random.default_rng(0)


def normal(*dims):
    return random.standard_normal(dims).astype(np.float32)


a, b, v = normal(16, 24), normal(24, 16), normal(8, 24)
at = random.integers(0, 16, 8).astype(np.int32)
x, w = normal(8, 16, 16, 8), normal(3, 3, 8, 16)


def conv(x, w, stride=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME",
                                    dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pool(x, size, stride, padding):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1),
                             (1, stride, stride, 1), padding)


def attention(x):
    y = x.reshape(8, 256, 2, 4)
    return jax.nn.dot_product_attention(y, y, y, is_causal=True)


def rows(a):
    return lax.scan(lambda c, r: (jnp.tanh(c + r), c.sum()), jnp.zeros(24), a)


def definite(a):
    return a @ a.T + 10 * jnp.eye(16)


# Each with the arrays that it takes.
FUNCTIONS = {
    "product": (lambda a, b: a @ b, a, b),
    "product_grad": (jax.grad(lambda a, b: (jnp.tanh(a @ b) ** 2).sum(), (0, 1)), a, b),
    "outer": (lambda a: jnp.outer(a[:, 0], a[0]), a),
    "trace": (lambda a: jnp.trace(a @ a.T), a),
    "batched": (jax.vmap(lambda t: t.reshape(-1, 8).T @ t.reshape(-1, 8)), x),
    "einsum": (lambda x, w: jnp.einsum("bhwc,klcd->bhwd", x, w), x, w),
    "attention": (attention, x),
    "attention_grad": (jax.grad(lambda x: (attention(x) ** 2).sum()), x),
    "conv": (conv, x, w),
    "conv_grad": (jax.grad(lambda x, w: (conv(x, w, 2) ** 2).sum(), (0, 1)), x, w),
    "pool": (lambda x: pool(x, 2, 2, "VALID"), x),
    "pool_grad": (jax.grad(lambda x: (pool(x, 3, 2, "SAME") ** 2).sum()), x),
    "batch_norm": (lambda x: (x - x.mean((0, 1, 2))) / x.std((0, 1, 2)), x),
    "layer_norm": (lambda a: (a - a.mean(1, keepdims=True)) / a.std(1, keepdims=True), a),
    "softmax": (lambda a: (jax.nn.softmax(a, 0), jax.nn.softmax(a, 1)), a),
    "logsumexp": (lambda a: jax.nn.logsumexp(a, 0), a),
    "moments": (lambda a: (a.std(), a.std(0), a.var(1)), a),
    "argmax": (lambda a: (jnp.argmax(a, 0), jnp.argmax(a, 1), jnp.argmax(a)), a),
    "sort": (lambda a: (jnp.sort(a, 0), jnp.argsort(a, 1)), a),
    "top_k": (lambda a: lax.top_k(a, 3), a),
    "median": (lambda a: jnp.median(a, 0), a),
    "unique": (lambda i: jnp.unique(i, size=8), at),
    "search": (lambda a: jnp.searchsorted(jnp.sort(a[0]), a[:, 0]), a),
    "cumsum": (lambda a: (jnp.cumsum(a, 0), jnp.cumsum(a, 1), lax.cummax(a, 0)), a),
    "associative_scan": (lambda a: lax.associative_scan(jnp.multiply, a), a),
    "fft": (lambda a: jnp.abs(jnp.fft.fft2(a)), a),
    "take": (lambda a, i: (a[i], a[:, i]), a, at),
    "scatter": (lambda a, i, v: a.at[i].add(v), a, at, v),
    "set": (lambda a, v: a.at[2:10].set(v), a, v),
    "segment_sum": (lambda v, i: jax.ops.segment_sum(v, i, 16), v, at),
    "one_hot": (lambda i: jax.nn.one_hot(i, 16), at),
    "nonzero": (lambda a: jnp.nonzero(a > 0, size=50), a),
    "where": (lambda a: jnp.where(a > 0, a, -a), a),
    "slice": (lambda a: (a[3:11, 5:17], a[::2, 1::3], a[::-1, ::-1]), a),
    "dynamic_slice": (lambda a, i: lax.dynamic_slice(a, (i[0], i[1]), (4, 4)), a, at),
    "dynamic_update": (lambda a, v, i: lax.dynamic_update_slice(
        a, v[:4, :4], (i[0], i[1])), a, v, at),
    "roll": (lambda a: (jnp.roll(a, 3, 0), jnp.roll(a, 5, 1)), a),
    "pad": (lambda a: jnp.pad(a, ((1, 2), (3, 0))), a),
    "concatenate": (lambda a, b: (jnp.concatenate([a, b.T], 0),
                                  jnp.concatenate([a, b.T], 1)), a, b),
    "repeat": (lambda a: (jnp.tile(a, (2, 1)), jnp.repeat(a, 2, 1)), a),
    "reshape": (lambda a: (a.reshape(24, 16), a.reshape(4, 4, 24).sum(1), a.ravel() * 2), a),
    "transpose": (lambda a: a.T * 1.5, a),
    "triangles": (lambda a: jnp.tril(a) + jnp.triu(a, 1), a),
    "scan": (rows, a),
    "scan_grad": (jax.grad(lambda a: rows(a)[1].sum()), a),
    "while": (lambda a: lax.while_loop(
        lambda c: c[0] < 5, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, a)), a),
    "cond": (lambda a: lax.cond(a.sum() > 0, lambda a: a * 2, lambda a: a - 1, a), a),
    "inverse": (lambda a: jnp.linalg.inv(definite(a)), a),
    "factors": (lambda a: (jnp.linalg.cholesky(definite(a)), abs(jnp.linalg.qr(a)[1]),
                           jnp.linalg.svd(a, compute_uv=False)), a),
    "random": (lambda a: a + jax.random.normal(jax.random.key(0), a.shape), a),
    "hessian": (lambda a: jax.hessian(lambda t: (t ** 3).sum())(a[0, :4]), a),
}


def draw(mesh, value):
    """A sharding of the array: each axis of the mesh splits a dimension or none."""
    spec = [()] * value.ndim
    for name in mesh.axis_names:
        dim = random.integers(value.ndim + 1)
        if dim == value.ndim:
            continue
        parts = mesh.shape[name] * np.prod([mesh.shape[n] for n in spec[dim]], dtype=int)
        if value.shape[dim] % parts == 0:
            spec[dim] += (name,)
    return NamedSharding(mesh, P(*(s or None for s in spec)))


def main():
    devices = np.array(jax.devices("calx"))
    meshes = [Mesh(devices.reshape(dims), ("x", "y", "z")[:len(dims)])
              for dims in ((8,), (2, 4), (2, 2, 2))]
    failed = 0
    names = chosen or FUNCTIONS
    for name in names:
        function, *arguments = FUNCTIONS[name]
        wanted = jax.tree.leaves(jax.jit(function)(*arguments))
        for _ in range(TRIALS):
            mesh = meshes[random.integers(len(meshes))]
            shardings = [draw(mesh, value) for value in arguments]
            try:
                placed = [jax.device_put(v, s) for v, s in zip(arguments, shardings)]
                got = jax.tree.leaves(jax.jit(function)(*placed))
                for g, w in zip(got, wanted, strict=True):
                    np.testing.assert_allclose(g, w, rtol=2e-4, atol=2e-4)
            except Exception as error:
                failed += 1
                print(f"{name} on {dict(mesh.shape)}, {[s.spec for s in shardings]}: "
                      f"{error}", flush=True)
    print(f"{len(names) * TRIALS} programs, {failed} failed")
    return failed != 0


sys.exit(main())
