"""Inference of the table in JAX: images one at a time, and a decoding step of a
language model with its cache of keys and values.

Weights of a decoding step are f32, bf16, or int8 with one scale per output
(weight-only, as in AWQ and GPTQ's runtimes): the product is made with the
integers as floats and scaled after.
"""
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import decode
import jax_models
import values
from jax_layers import Net
from jax_steps import nhwc
from shapes import DECODE


def image(model, name):
    x = nhwc(values.images(name + "/x", 1, 224, 3))
    net = Net()

    def fill(x):
        model(net, x)
        return 0
    jax.eval_shape(fill, x)

    def run(params, stats, x):
        return model(Net(params, stats, train=False), x)
    return jax.jit(run), (net.params, net.stats, x)


# ---- decoding ----

def decode_parameters(kind):
    small = jnp.bfloat16 if kind == "bf16" else np.float32
    params = {name: v.astype(small) for name, v in decode.vectors()}
    for name, w in decode.matrices():
        # One row is read of the places: not worth a scale.
        quantised = kind == "int8" and name != "places"
        params[name] = decode.quantise(w) if quantised else w.astype(small)
    return params


def product(x, w):
    if isinstance(w, tuple):
        return (x @ w[0].T.astype(x.dtype)) * w[1].astype(x.dtype)
    return x @ w.T


def row_of(w, i):
    return w[0][i].astype(jnp.float32) * w[1][i][:, None] if isinstance(w, tuple) else w[i]


def norm(params, name, x):
    wide = x.astype(jnp.float32)
    mean = wide.mean(-1, keepdims=True)
    var = jnp.square(wide - mean).mean(-1, keepdims=True)
    unit = ((wide - mean) * lax.rsqrt(var + 1e-5)).astype(x.dtype)
    return unit * params[name + ".weight"] + params[name + ".bias"]


def attend(cache, layer, qkv, place):
    """cache: keys and values, each (blocks, N, heads, places, D). Writes the
    row of this place and attends to those up to it."""
    keys, vals = cache
    n = qkv.shape[0]
    split = n, 3, DECODE.heads, DECODE.width // DECODE.heads
    query, key, value = jnp.moveaxis(qkv.reshape(split), 1, 0)
    at = layer, 0, 0, place, 0
    keys = lax.dynamic_update_slice(keys, key[None, :, :, None], at)
    vals = lax.dynamic_update_slice(vals, value[None, :, :, None], at)
    score = jnp.einsum("nhd,nhpd->nhp", query, keys[layer]).astype(jnp.float32)
    score *= split[3] ** -0.5
    score = jnp.where(jnp.arange(DECODE.places) <= place, score, -jnp.inf)
    share = jax.nn.softmax(score, -1).astype(qkv.dtype)
    out = jnp.einsum("nhp,nhpd->nhd", share, vals[layer]).reshape(n, DECODE.width)
    return (keys, vals), out


def step(params, cache, word, place):
    """word (N), place () -> the cache with one more place, logits (N, words)."""
    x = row_of(params["words"], word) + params["places"][place]

    def linear(name, x):
        return product(x, params[name]) + params[name + ".bias"]

    for i in range(DECODE.blocks):
        name = f"blocks.{i}."
        qkv = linear(name + "qkv", norm(params, name + "norm1", x))
        cache, h = attend(cache, i, qkv, place)
        x = x + linear(name + "out", h)
        h = jax.nn.gelu(linear(name + "up", norm(params, name + "norm2", x)))
        x = x + linear(name + "down", h)
    return cache, product(norm(params, "norm", x), params["words"])


def gpt_decode(kind, batch=1):
    shape = (DECODE.blocks, batch, DECODE.heads, DECODE.places,
             DECODE.width // DECODE.heads)
    cache = tuple(np.zeros(shape, jnp.bfloat16 if kind == "bf16" else np.float32)
                  for _ in range(2))
    word = values.labels("decode/word", batch, DECODE.words)
    return (jax.jit(step, donate_argnums=1),
            (decode_parameters(kind), cache, word, np.int32(DECODE.places // 2)))


INFERENCE = {
    "resnet50_b1": functools.partial(image, jax_models.resnet50, "resnet50"),
    "efficientnet_b0_b1": functools.partial(image, jax_models.efficientnet_b0,
                                            "efficientnet_b0"),
    "gpt_decode": functools.partial(gpt_decode, "f32"),
    "gpt_decode_bf16": functools.partial(gpt_decode, "bf16"),
    "gpt_decode_int8": functools.partial(gpt_decode, "int8"),
}
