#!/usr/bin/env python3
"""lapack.py FILE: programs that call LAPACK, as JAX lowers them for its CPU, and
JAX's own results, for lapack.c. Needs jax.

A program has no arguments: its inputs are constants. It returns pairs: what it
computes, and what JAX computed on its CPU. What is unique only up to a phase is
multiplied together again. Programs end with a line of dashes.
"""
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src.lax.linalg import ormqr

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")
linalg = lax.linalg
rng = np.random.default_rng(0)


def random(d, *shape):
    a = rng.standard_normal(shape)
    return (a + 1j * rng.standard_normal(shape) if np.dtype(d).kind == "c" else a).astype(d)


def adjoint(a):
    return jnp.conj(jnp.swapaxes(a, -1, -2))


def definite(d, *shape):
    a = random(d, *shape)
    return np.asarray(a @ adjoint(a) + np.eye(shape[-1], dtype=d))


def symmetric(d, *shape):
    a = random(d, *shape)
    return np.asarray(a + adjoint(a))


def svd(full, algorithm=None):
    def f(a):
        u, s, v = linalg.svd(a, full_matrices=full, algorithm=algorithm)
        k = s.shape[-1]
        return s, (u[..., :k] * s[..., None, :].astype(a.dtype)) @ v[..., :k, :], u @ adjoint(u)
    return f


def schur(a):
    t, z = linalg.schur(a)
    return z @ t @ adjoint(z), jnp.trace(t, axis1=-2, axis2=-1)


def eigh(a):
    v, w = linalg.eigh(a)
    return w, (v * w[..., None, :].astype(a.dtype)) @ adjoint(v)


def eig(a):
    w, left, right = linalg.eig(a)
    return (a @ right - right * w[..., None, :], adjoint(left) @ a - w[..., None] * adjoint(left),
            jnp.linalg.norm(right, axis=-2), w.sum(-1))


def cases(d):
    yield jnp.linalg.cholesky, definite(d, 3, 4, 4)
    yield jnp.linalg.cholesky, symmetric(d, 2, 4, 4)  # not definite
    yield jnp.linalg.solve, random(d, 2, 5, 5), random(d, 2, 5, 2)
    yield linalg.lu, random(d, 2, 3, 4)
    yield linalg.lu, np.ones((2, 3, 3), d)  # singular
    yield linalg.lu, random(d, 2, 0, 0)
    yield jnp.linalg.slogdet, random(d, 9, 3, 3)
    yield (lambda a, b: linalg.triangular_solve(
        a, b, lower=True, transpose_a=True, conjugate_a=True)), definite(d, 2, 3, 3), random(d, 2, 2, 3)
    yield (lambda a, b: linalg.triangular_solve(
        a, b, left_side=True, unit_diagonal=True)), random(d, 3, 3), random(d, 3, 2)
    yield (lambda a: linalg.qr(a, full_matrices=True)), random(d, 2, 5, 3)
    yield (lambda a: linalg.qr(a, full_matrices=False)), random(d, 3, 5)
    yield (lambda a: jax.scipy.linalg.qr(a, pivoting=True)), random(d, 5, 3)
    yield (lambda a, b: ormqr(a, jnp.full((3,), 0.5, d), b, left=True, transpose=True)), random(d, 4, 3), random(d, 4, 2)
    yield eigh, symmetric(d, 3, 4, 4)
    yield jnp.linalg.eigvalsh, symmetric(d, 4, 4)
    yield svd(False), random(d, 2, 3, 4)
    yield svd(True), random(d, 4, 3)
    yield svd(True, linalg.SvdAlgorithm.QR), random(d, 3, 4)
    yield (lambda a: jnp.linalg.svd(a, compute_uv=False)), np.full((3, 4), np.nan, d)
    yield eig, random(d, 2, 4, 4)
    yield jnp.linalg.eigvals, np.full((3, 3), np.nan, d)
    yield schur, random(d, 2, 3, 3)
    yield linalg.hessenberg, random(d, 2, 4, 4)
    yield linalg.tridiagonal, symmetric(d, 2, 4, 4)
    yield (linalg.tridiagonal_solve, random(d, 2, 4), 4 + random(d, 2, 4), random(d, 2, 4),
           random(d, 2, 4, 2))


def program(f, args, platform):
    want = jax.tree.leaves(jax.jit(f)(*args))

    def pairs():
        got = jax.tree.leaves(f(*[lax.optimization_barrier(a) for a in args]))
        return [x for g, w in zip(got, want) for x in (g, np.asarray(w))]

    text = jax.jit(pairs).trace().lower(lowering_platforms=(platform,)).as_text()
    text = re.sub(r", sdy\.sharding_rule = #sdy\.op_sharding_rule<.*?, custom>", "", text)
    return re.sub(r"mhlo\.frontend_attributes = \{[^}]*\}, ", "", text)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], "w") as out:
        for d in (np.float32, np.float64, np.complex64, np.complex128):
            all_cases = list(cases(d))
            if d in (np.float64, np.complex64):  # the same code for s and d, c and z
                all_cases = all_cases[::4]
            for f, *args in all_cases:
                out.write(program(f, args, "cpu") + "-" * 8 + "\n")
            qr = lambda a: linalg.qr(a, full_matrices=False)
            out.write(program(qr, [random(d, 2, 4, 3)], "calx") + "-" * 8 + "\n")


main()
