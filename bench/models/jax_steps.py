"""Training steps of the table in JAX, as functions and as StableHLO text.

A step is step(state, batch...) -> (state, loss); the state is (parameters,
running statistics, moments), and may be overwritten.
"""
from collections import namedtuple

import jax
import jax.numpy as jnp
import numpy as np

import jax_models
import values
from jax_layers import Net, cross_entropy, mean_square
from shapes import GPT, LSTM, POINTWISE

tree = jax.tree.map


# ---- optimisers: start(params) -> moments; update(params, grads, moments) ----

def sgd(rate, momentum=0.0):
    def start(params):
        return tree(np.zeros_like, params) if momentum else ()

    def update(params, grads, moments):
        if momentum:
            moments = tree(lambda m, g: momentum * m + g, moments, grads)
            grads = moments
        return tree(lambda p, g: p - rate * g, params, grads), moments
    return start, update


def adamw(rate, decay, b1=0.9, b2=0.999, eps=1e-8):
    """Loshchilov and Hutter 2019; Adam where decay is 0."""
    def start(params):
        zeros = tree(np.zeros_like, params)
        return zeros, tree(np.copy, zeros), np.int32(0)

    def update(params, grads, moments):
        m, v, t = moments
        t = t + 1
        m = tree(lambda m, g: b1 * m + (1 - b1) * g, m, grads)
        v = tree(lambda v, g: b2 * v + (1 - b2) * g * g, v, grads)
        power = t.astype(jnp.float32)
        c1, c2 = 1 - b1 ** power, 1 - b2 ** power
        params = tree(lambda p, m, v: p * (1 - rate * decay)
                      - rate * (m / c1) / (jnp.sqrt(v / c2) + eps), params, m, v)
        return params, (m, v, t)
    return start, update


# ---- the table ----

Row = namedtuple("Row", "model inputs labels optimiser compute")


def nhwc(x):
    return x.transpose(0, 2, 3, 1).copy()


def images(name, n, size, channels, classes):
    return (lambda: nhwc(values.images(name + "/x", n, size, channels)),
            lambda: values.labels(name + "/y", n, classes))


def inputs(name, *shape, bound=values.SQRT3):
    return lambda: values.uniform(name + "/x", shape, bound), None


def row(model, data, optimiser, compute=jnp.float32):
    return Row(model, *data, optimiser, compute)


def gpt(compute):
    return row(jax_models.gpt, inputs("gpt", GPT.batch, GPT.places, GPT.width),
               adamw(1e-4, 0.01), compute)


def lstm(model):
    return row(model, inputs("lstm", LSTM.steps, LSTM.batch, LSTM.width), sgd(1.0))


STEPS = {
    "mnist_nhwc": row(jax_models.mnist, images("mnist", 128, 28, 1, 10),
                      sgd(0.01, 0.5)),
    "resnet50": row(jax_models.resnet50, images("resnet50", 8, 224, 3, 1000),
                    sgd(0.01, 0.9)),
    "efficientnet_b0": row(jax_models.efficientnet_b0,
                           images("efficientnet_b0", 4, 224, 3, 1000),
                           sgd(0.01, 0.9)),
    "gpt": gpt(jnp.float32),
    "gpt_bf16": gpt(jnp.bfloat16),
    "mlp": row(jax_models.mlp, (inputs("mlp", 64, 784)[0],
                                lambda: values.labels("mlp/y", 64, 10)),
               adamw(1e-3, 0.0)),
    "lstm": lstm(jax_models.lstm),
    "lstm_hoisted": lstm(jax_models.lstm_hoisted),
    "pointwise50": row(jax_models.pointwise50,
                       inputs("pointwise50", POINTWISE, bound=1.0), sgd(1e4)),
}


def batch_of(r):
    return (r.inputs(),) + (() if r.labels is None else (r.labels(),))


def start_of(r, x):
    """(parameters, statistics, moments)."""
    net = Net(compute=r.compute)

    def fill(x):
        r.model(net, x)
        return 0
    jax.eval_shape(fill, x)
    return dict(net.params), dict(net.stats), r.optimiser[0](net.params)


def loss_of(r, params, stats, x, labels=None):
    net = Net(params, stats, compute=r.compute)
    out = r.model(net, x)
    loss = mean_square(out) if labels is None else cross_entropy(out, labels)
    return loss, net.updated


def step_of(r):
    def step(state, *batch):
        params, stats, moments = state
        (loss, stats), grads = jax.value_and_grad(
            lambda p: loss_of(r, p, stats, *batch), has_aux=True)(params)
        params, moments = r.optimiser[1](params, grads, moments)
        return (params, stats, moments), loss
    return step


def program_of(name):
    """The jitted step and its arguments, as numpy's arrays."""
    r = STEPS[name]
    batch = batch_of(r)
    step = jax.jit(step_of(r), donate_argnums=0, keep_unused=True)
    return step, (start_of(r, batch[0]), *batch)
