"""Layers for the models in JAX: NHWC, batch normalisation with running
statistics, products in a type of their own.

A Net holds parameters by PyTorch's names. A run of a model under jax.eval_shape
with an empty Net fills it with the values of values.py, so that a model is
written once.
"""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import values

SPACE = (1, 2)


class Net:
    """train: batch norm uses the batch and `updated` gets the new statistics.
    compute: the type of products and convolutions."""

    def __init__(self, params=None, stats=None, train=True, compute=jnp.float32):
        self.filling = params is None
        self.params = {} if params is None else params
        self.stats = {} if stats is None else stats
        self.updated = {}
        self.train, self.compute = train, compute

    def parameter(self, name, shape, order=None):
        """shape is PyTorch's, order the permutation to the one used here."""
        if self.filling:
            value = values.parameter(name, shape)
            if order is not None:
                value = value.transpose(order).copy()
            self.params[name] = value
        return self.params[name]

    def vector(self, name, n):
        return self.parameter(name, (n,))


def conv(net, name, x, cout, size=1, stride=1, groups=1, bias=False, pad=None):
    w = net.parameter(name + ".weight", (cout, x.shape[3] // groups, size, size),
                      (2, 3, 1, 0))
    pad = size // 2 if pad is None else pad
    y = lax.conv_general_dilated(
        x.astype(net.compute), w.astype(net.compute), (stride, stride),
        [(pad, pad)] * 2, dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups)
    return y + net.vector(name + ".bias", cout).astype(y.dtype) if bias else y


def batch_norm(net, name, x):
    n = x.shape[3]
    weight, bias = net.vector(name + ".weight", n), net.vector(name + ".bias", n)
    if net.filling:
        net.stats[name] = np.zeros(n, np.float32), np.ones(n, np.float32)
    old_mean, old_var = net.stats[name]
    wide = x.astype(jnp.float32)
    mean, var = old_mean, old_var
    if net.train:
        mean = wide.mean((0, 1, 2))
        var = jnp.maximum((wide * wide).mean((0, 1, 2)) - mean * mean, 0)
        count = x.size // n
        net.updated[name] = (
            0.9 * old_mean + 0.1 * lax.stop_gradient(mean),
            0.9 * old_var + 0.1 * lax.stop_gradient(var) * (count / (count - 1)))
    scale = weight * lax.rsqrt(var + 1e-5)
    return (wide * scale + (bias - mean * scale)).astype(x.dtype)


def linear(net, name, x, n, bias=True):
    w = net.parameter(name + ".weight", (n, x.shape[-1]))
    y = x.astype(net.compute) @ w.T.astype(net.compute)
    return y + net.vector(name + ".bias", n).astype(y.dtype) if bias else y


def layer_norm(net, name, x):
    n = x.shape[-1]
    weight, bias = net.vector(name + ".weight", n), net.vector(name + ".bias", n)
    mean = x.mean(-1, keepdims=True)
    var = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * weight + bias


def max_pool(x, size, stride, pad=0):
    return lax.reduce_window(
        x, np.array(-np.inf, x.dtype), lax.max, (1, size, size, 1),
        (1, stride, stride, 1), ((0, 0), (pad, pad), (pad, pad), (0, 0)))


def cross_entropy(logits, labels):
    logp = jax.nn.log_softmax(logits.astype(jnp.float32))
    return -jnp.take_along_axis(logp, labels[:, None], 1).mean()


def mean_square(x):
    return jnp.square(x.astype(jnp.float32)).mean()
