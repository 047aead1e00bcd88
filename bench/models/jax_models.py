"""The models of the table in JAX, each a function of a Net and a batch.

PyTorch's are in torch_models.py, with the same names of parameters. EfficientNet
(Tan and Le 2019) is without dropout and stochastic depth, so that its losses are
the same everywhere.
"""
import jax
import jax.numpy as jnp
from jax import lax

from jax_layers import (SPACE, batch_norm, conv, layer_norm, linear, max_pool)
from shapes import EFFICIENTNET_B0, GPT, LSTM, POINTWISE, RESNET50

relu, silu = jax.nn.relu, jax.nn.silu


def mnist(net, x):
    x = max_pool(conv(net, "conv1", x, 10, 5, bias=True, pad=0), 2, 2)
    x = batch_norm(net, "bn1", relu(x))
    x = max_pool(conv(net, "conv2", x, 20, 5, bias=True, pad=0), 2, 2)
    x = batch_norm(net, "bn2", relu(x))
    x = x.transpose(0, 3, 1, 2).reshape(x.shape[0], -1)
    return linear(net, "fc2", relu(linear(net, "fc1", x, 50)), 10)


def unit(net, name, x, cout, size=1, stride=1, groups=1, act=None):
    x = conv(net, name + ".conv", x, cout, size, stride, groups)
    x = batch_norm(net, name + ".bn", x)
    return act(x) if act else x


def resnet50(net, x):
    x = max_pool(unit(net, "stem", x, 64, 7, 2, act=relu), 3, 2, 1)
    i = 0
    for stage, (width, blocks) in enumerate(RESNET50):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            name = f"blocks.{i}"
            y = unit(net, name + ".a", x, width, act=relu)
            y = unit(net, name + ".b", y, width, 3, stride, act=relu)
            y = unit(net, name + ".c", y, 4 * width)
            if block == 0:
                x = unit(net, name + ".short", x, 4 * width, 1, stride)
            x = relu(y + x)
            i += 1
    return linear(net, "fc", x.mean(SPACE), 1000)


def mb_block(net, name, x, expand, size, stride, cout):
    cin = x.shape[3]
    width = cin * expand
    y = unit(net, name + ".expand", x, width, act=silu) if expand > 1 else x
    y = unit(net, name + ".depthwise", y, width, size, stride, width, act=silu)
    z = y.mean(SPACE, keepdims=True)
    z = silu(conv(net, name + ".squeeze", z, cin // 4, bias=True))
    z = conv(net, name + ".excite", z, width, bias=True)
    y = unit(net, name + ".project", y * jax.nn.sigmoid(z), cout)
    return y + x if stride == 1 and cin == cout else y


def efficientnet_b0(net, x):
    x = unit(net, "stem", x, 32, 3, 2, act=silu)
    i = 0
    for expand, size, stride, cout, blocks in EFFICIENTNET_B0:
        for block in range(blocks):
            x = mb_block(net, f"blocks.{i}", x, expand, size,
                         stride if block == 0 else 1, cout)
            i += 1
    x = unit(net, "head", x, 1280, act=silu)
    return linear(net, "fc", x.mean(SPACE), 1000)


def attention(net, name, x):
    n, t, d = x.shape
    split = n, t, GPT.heads, d // GPT.heads
    query, key, value = (part.reshape(split) for part in jnp.split(
        linear(net, name + ".qkv", x, 3 * d), 3, -1))
    score = jnp.einsum("bihd,bjhd->bhij", query, key).astype(jnp.float32)
    score *= (d // GPT.heads) ** -0.5
    score = jnp.where(jnp.tril(jnp.ones((t, t), bool)), score, -jnp.inf)
    weight = jax.nn.softmax(score, -1).astype(value.dtype)
    out = jnp.einsum("bhij,bjhd->bihd", weight, value).reshape(n, t, d)
    return linear(net, name + ".out", out, d)


def gpt(net, x):
    d = x.shape[-1]
    for i in range(GPT.blocks):
        name = f"blocks.{i}"
        x = x + attention(net, name, layer_norm(net, name + ".norm1", x))
        h = linear(net, name + ".up", layer_norm(net, name + ".norm2", x), 4 * d)
        x = x + linear(net, name + ".down", jax.nn.gelu(h), d)
    return x


def mlp(net, x):
    x = relu(linear(net, "fc1", x, 256))
    return linear(net, "fc3", relu(linear(net, "fc2", x, 256)), 10)


def lstm(net, x, hoisted=False):
    """hoisted: the product with the inputs is one, in front of the loop; else it
    is in the cell, as in Flax."""
    width = LSTM.width
    wi = net.parameter("wi.weight", (4 * width, x.shape[2]))
    wh = net.parameter("wh.weight", (4 * width, width))
    bias = net.vector("wi.bias", 4 * width) + net.vector("wh.bias", 4 * width)

    def project(x):
        return x @ wi.T + bias

    def cell(state, x):
        h, c = state
        gates = (x if hoisted else project(x)) + h @ wh.T
        i, f, g, o = jnp.split(gates, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((x.shape[1], width))
    return lax.scan(cell, (zero, zero), project(x) if hoisted else x)[1]


def lstm_hoisted(net, x):
    return lstm(net, x, hoisted=True)


def pointwise50(net, x):
    y = net.vector("w", POINTWISE)
    for i in range(10):
        y = jnp.tanh(y * x + 0.5) * (1 + 0.01 * i) - x
    return y
