"""500 models of odd sizes, drawn with fixed seeds: widths and images that are no
multiple of a vector, odd channels, strange layouts, batches of 1 and of
thousands, with and without a gradient.

Model number i of a kind is drawn from the seed (kind, i). A kind's function takes
the generator and gives (function, argument descriptions, multiplications); a
draw outside of the bounds of WORK is drawn again.
"""
import random

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from cases import Case, CASES, bf16, f16, f32, i32

EACH = 50  # models of each kind
WORK = 3e5, 4e7  # multiplications of one that takes up to some milliseconds
BATCHES = (1, 2, 3, 5, 7, 9, 13, 17, 31, 33, 64, 65, 100, 127, 257, 1000, 3001)
WIDTHS = (1, 2, 3, 5, 7, 10, 13, 17, 23, 31, 33, 47, 50, 63, 65, 77, 96, 100, 127,
          129, 190, 255, 257, 301, 384, 511, 513, 700)
CHANNELS = (1, 3, 5, 7, 8, 11, 13, 16, 19, 24, 27, 31, 33, 40, 53, 64, 65, 96)
ACTIVATIONS = (jax.nn.relu, jax.nn.gelu, jax.nn.silu, jnp.tanh, jax.nn.sigmoid,
               jax.nn.leaky_relu, jax.nn.elu, jax.nn.softplus)


def number(r):
    """Mostly f32."""
    return r.choice((f32,) * 8 + (bf16, f16))


def scaled(w):
    """Weights of variance 1 / fan-in from such in [-1, 1)."""
    return w * (3 / max(np.prod(w.shape[:-1]), 1)) ** 0.5


def normalise(kind, x, axes):
    if kind == "none":
        return x
    wide = x.astype(jnp.float32)
    if kind == "rms":
        scale = lax.rsqrt(jnp.square(wide).mean(axes, keepdims=True) + 1e-6)
        return (wide * scale).astype(x.dtype)
    mean = wide.mean(axes, keepdims=True)
    var = jnp.square(wide - mean).mean(axes, keepdims=True)
    return ((wide - mean) * lax.rsqrt(var + 1e-5)).astype(x.dtype)


def trained(r, forward, n_weights):
    """The forward pass, or a step of gradient descent on its first arguments."""
    if r.random() < 0.35:
        return forward

    def step(*args):
        weights, rest = args[:n_weights], args[n_weights:]

        def loss(w):
            return jnp.square(forward(*w, *rest).astype(jnp.float32)).mean()
        grads = jax.grad(loss)(weights)
        return tuple(w - 0.01 * g for w, g in zip(weights, grads))
    return step


def cost(step, forward, work):
    return work * (1 if step is forward else 3)


# ---- kinds ----

def mlp(r):
    make, batch = number(r), r.choice(BATCHES)
    widths = [r.choice(WIDTHS) for _ in range(r.randint(2, 5))]
    act, norm = r.choice(ACTIVATIONS), r.choice(("none", "none", "layer", "rms", "batch"))

    def forward(*args):
        *weights, x = args
        for w in weights[:-1]:
            x = normalise(norm, act(x @ scaled(w)), 0 if norm == "batch" else -1)
        return x @ scaled(weights[-1])
    step = trained(r, forward, len(widths) - 1)
    args = [make(a, b) for a, b in zip(widths, widths[1:])] + [make(batch, widths[0])]
    return step, args, cost(step, forward, batch * sum(
        a * b for a, b in zip(widths, widths[1:])))


def convolution(r, dims):
    """One layer's function, kernel shape and what a position costs."""
    space = "DHW"[3 - dims:]
    layout = r.choice({1: ("NWC", "NCW", "WNC"), 2: ("NHWC", "NHWC", "NCHW", "HWNC", "CHWN"),
                       3: ("NDHWC", "NCDHW")}[dims])
    kernel = r.choice((space + "IO", "OI" + space))
    return layout, kernel


def ordered(layout, n, c, space):
    sizes = dict(zip("DHW"[3 - len(space):], space), N=n, C=c)
    return tuple(sizes[k] for k in layout)


def cnn(r, dims=2):
    make = number(r)
    layout, kernel = convolution(r, dims)
    batch = r.choice((1, 1, 2, 3, 5, 8, 17, 33, 200))
    space = [r.randint(5, {1: 900, 2: 61, 3: 17}[dims]) for _ in range(dims)]
    channels = [r.choice(CHANNELS) for _ in range(r.randint(2, 4))]
    act, norm = r.choice(ACTIVATIONS), r.choice(("none", "batch", "batch"))
    pool = r.choice(("none", "max", "mean"))
    layers, work, left = [], 0, list(space)
    for cin, cout in zip(channels, channels[1:]):
        groups = 1
        if r.random() < 0.2:
            groups = cin
        size = [r.choice((1, 2, 3, 3, 5)) for _ in range(dims)]
        stride = [r.choice((1, 1, 1, 2)) for _ in range(dims)]
        dilate = [r.choice((1, 1, 1, 2)) if s == 1 else 1 for s in stride]
        layers.append((groups, size, stride, dilate, cin, cin if groups > 1 else cout))
        if groups > 1:  # depthwise, then to the channels
            layers.append((1, [1] * dims, [1] * dims, [1] * dims, cin, cout))
        left = [-(-a // s) for a, s in zip(left, stride)]
        work += batch * np.prod(left) * cout * cin * np.prod(size) / groups
    at = [layout.index(k) for k in "DHW"[3 - dims:]]

    def forward(*args):
        *weights, x = args
        for w, (groups, size, stride, dilate, _, _) in zip(weights, layers):
            w = w * (1.7 / (np.prod(w.shape) ** 0.5)) * w.shape[kernel.index("O")] ** 0.5
            x = lax.conv_general_dilated(x, w.astype(x.dtype), stride, "SAME", rhs_dilation=dilate,
                                         dimension_numbers=(layout, kernel, layout),
                                         feature_group_count=groups)
            others = tuple(i for i in range(dims + 2) if i != layout.index("C"))
            x = act(normalise(norm, x, others))
        window = [2 if i in at and x.shape[i] > 1 else 1 for i in range(dims + 2)]
        if pool == "max":
            x = lax.reduce_window(x, np.array(-np.inf, x.dtype), lax.max, window, window, "VALID")
        elif pool == "mean":
            x = x.mean(tuple(at))
        return x
    step = trained(r, forward, len(layers))
    shapes = []
    for groups, size, _, _, cin, cout in layers:
        sizes = dict(zip("DHW"[3 - dims:], size), I=cin // groups, O=cout)
        shapes.append(make(*(sizes[k] for k in kernel)))
    shapes.append(make(*ordered(layout, batch, channels[0], space)))
    return step, shapes, cost(step, forward, work)


def conv1d(r):
    return cnn(r, 1)


def conv3d(r):
    return cnn(r, 3)


def recurrent(r):
    kind, steps, batch = r.choice(("rnn", "gru", "lstm")), r.randint(3, 60), r.choice((1, 2, 3, 7, 16, 33, 65))
    n, h = r.choice(WIDTHS[5:20]), r.choice(WIDTHS[5:20])
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[kind]

    def forward(w, u, x):
        w, u = scaled(w), scaled(u)

        def body(s, v):
            hidden, c = s
            a, b = v @ w, hidden @ u
            if kind == "rnn":
                hidden = jnp.tanh(a + b)
            elif kind == "gru":
                (z, q, p), (zb, qb, pb) = jnp.split(a, 3, -1), jnp.split(b, 3, -1)
                z = jax.nn.sigmoid(z + zb)
                hidden = z * hidden + (1 - z) * jnp.tanh(p + jax.nn.sigmoid(q + qb) * pb)
            else:
                i, f, g, o = jnp.split(a + b, 4, -1)
                c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                hidden = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (hidden, c), hidden
        zero = jnp.zeros((batch, h))
        return lax.scan(body, (zero, zero), x)[1]
    step = trained(r, forward, 2)
    return (step, [f32(n, gates * h), f32(h, gates * h), f32(steps, batch, n)],
            cost(step, forward, steps * batch * gates * h * (n + h)))


def transformer(r):
    make, batch, t = number(r), r.choice((1, 2, 3, 5)), r.choice((1, 7, 19, 33, 50, 64, 77, 129, 200))
    heads, each = r.choice((1, 2, 3, 4, 5)), r.choice((7, 8, 16, 20, 33, 48, 64))
    d, wide = heads * each, r.choice((1, 2, 4))
    norm, act, causal = r.choice(("layer", "rms")), r.choice(ACTIVATIONS), r.random() < 0.6

    def forward(qkv, out, up, down, x):
        h = normalise(norm, x, -1) @ scaled(qkv)
        q, k, v = (p.reshape(batch, t, heads, each) for p in jnp.split(h, 3, -1))
        s = jnp.einsum("bihd,bjhd->bhij", q, k).astype(jnp.float32) * each ** -0.5
        if causal:
            s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -jnp.inf)
        h = jnp.einsum("bhij,bjhd->bihd", jax.nn.softmax(s, -1).astype(v.dtype), v)
        x = x + h.reshape(batch, t, d) @ scaled(out)
        return x + act(normalise(norm, x, -1) @ scaled(up)) @ scaled(down)
    step = trained(r, forward, 4)
    args = [make(d, 3 * d), make(d, d), make(d, wide * d), make(wide * d, d), make(batch, t, d)]
    return step, args, cost(step, forward, batch * t * (d * d * (4 + 2 * wide) + 2 * t * d))


def graph(r):
    nodes, edges = r.choice((30, 101, 500, 1001)), r.choice((100, 999, 3001, 8000))
    n, h, hops = r.choice(WIDTHS[3:16]), r.choice(WIDTHS[3:16]), r.randint(1, 3)
    gather = r.choice((jax.ops.segment_sum, jax.ops.segment_max))

    def forward(first, *args):
        *weights, x, a, b = args
        x = x @ scaled(first)
        for w in weights:
            got = gather(x[a], b, nodes)
            x = jax.nn.relu(jnp.where(jnp.isfinite(got), got, 0) @ scaled(w) + x)
        return x
    step = trained(r, forward, hops + 1)
    args = [f32(n, h)] + [f32(h, h)] * hops + [
        f32(nodes, n), i32(edges, below=nodes), i32(edges, below=nodes)]
    return step, args, cost(step, forward, nodes * (n * h + hops * h * h) + 20 * edges * h * hops)


def embedding(r):
    words, d = r.choice((50, 301, 1000, 5003)), r.choice(WIDTHS[4:18])
    batch, t, out = r.choice(BATCHES), r.choice((1, 3, 11, 20)), r.choice(WIDTHS[1:12])

    def forward(table, w, at):
        return jax.nn.log_softmax(jnp.tanh(table[at].mean(1)) @ scaled(w))
    step = trained(r, forward, 2)
    return (step, [f32(words, d), f32(d, out), i32(batch, t, below=words)],
            cost(step, forward, batch * d * (out + 20 * t) + 3 * words * d))


def residual(r):
    batch, size, c = r.choice((1, 2, 3, 7, 16)), r.randint(5, 40), r.choice(CHANNELS[2:])
    nhwc, middle = r.random() < 0.5, r.choice(CHANNELS[2:])
    numbers = ("NHWC", "HWIO", "NHWC") if nhwc else ("NCHW", "OIHW", "NCHW")
    others = (0, 1, 2) if nhwc else (0, 2, 3)

    def conv(x, w):
        w = w * (3 / (w.size / c)) ** 0.5
        return normalise("batch", lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=numbers), others)

    def forward(a, b, d, x):
        y = jax.nn.relu(conv(jax.nn.relu(conv(x, a)), b))
        return jax.nn.relu(x + conv(y, d))

    def kernel(k, i, o):
        return f32(k, k, i, o) if nhwc else f32(o, i, k, k)
    step = trained(r, forward, 3)
    x = f32(batch, size, size, c) if nhwc else f32(batch, c, size, size)
    args = [kernel(1, c, middle), kernel(3, middle, middle), kernel(1, middle, c), x]
    return step, args, cost(step, forward, batch * size * size * middle * (2 * c + 9 * middle))


def tabular(r):
    """Pointwise towers with reductions."""
    rows, columns = r.choice((1, 7, 101, 1001, 5003)), r.choice(WIDTHS)
    acts = [r.choice(ACTIVATIONS) for _ in range(r.randint(3, 9))]
    axis, kind = r.choice((0, 1)), r.choice(("layer", "rms", "none"))

    def forward(scale, shift, x):
        for act in acts:
            x = act(x * scale + shift)
            x = normalise(kind, x, axis)
        return x * jax.nn.softmax(x, axis)
    step = trained(r, forward, 2)
    return (step, [f32(columns), f32(columns), f32(rows, columns)],
            cost(step, forward, 12 * rows * columns * len(acts)))


KINDS = (mlp, cnn, conv1d, conv3d, recurrent, transformer, graph, embedding, residual,
         tabular)


def add():
    for kind in KINDS:
        for i in range(EACH):
            r = random.Random(f"{kind.__name__}{i}")
            while True:
                function, args, work = kind(r)
                if WORK[0] <= work <= WORK[1]:
                    break
            CASES.append(Case(f"odd-{kind.__name__}_{i:02}", "odd", function, tuple(args)))


add()
