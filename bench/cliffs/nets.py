"""Programs of neural networks: convolutions, pooling, attention, normalisation,
recurrent cells, losses."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from cases import bf16, f16, f32, family, grad, i32, ints

# ---- convolutions ----

conv = family("conv")


def layer(name, x, w, layout="NHWC", kernel="HWIO", derive=False, make=f32, **options):
    options.setdefault("padding", "SAME")
    options.setdefault("window_strides", (1,) * (len(layout) - 2))

    def run(x, w):
        return lax.conv_general_dilated(x, w, dimension_numbers=(layout, kernel, layout),
                                        **options)
    function = (lambda x, w: jax.grad(lambda x, w: jnp.square(run(x, w).astype(jnp.float32)).sum(), (0, 1))(x, w)) if derive else run
    function.__name__ = name + ("_grad" if derive else "")
    conv(make(*x), make(*w))(function)


for derive in False, True:
    layer("nhwc_3x3", (4, 27, 29, 33), (3, 3, 33, 37), derive=derive)
    layer("nchw_3x3", (4, 33, 27, 29), (37, 33, 3, 3), "NCHW", "OIHW", derive)
    layer("depthwise", (4, 31, 31, 48), (5, 5, 1, 48), derive=derive, feature_group_count=48)
    layer("one_dimension", (8, 500, 31), (7, 31, 40), "NWC", "WIO", derive)
layer("nhwc_oihw", (3, 30, 31, 17), (19, 17, 3, 3), kernel="OIHW")
layer("hwnc", (28, 28, 9, 12), (3, 3, 12, 20), "HWNC")
layer("chwn", (12, 28, 28, 9), (12, 3, 3, 20), "CHWN", "IHWO")
layer("nwhc", (3, 30, 31, 17), (3, 3, 17, 19), "NWHC")
layer("one_by_one", (5, 23, 25, 101), (1, 1, 101, 77), derive=True)
layer("stem", (2, 111, 113, 3), (7, 7, 3, 32), derive=True, window_strides=(2, 2))
layer("groups", (4, 20, 21, 36), (3, 3, 9, 40), derive=True, feature_group_count=4)
layer("dilated", (2, 40, 41, 20), (3, 3, 20, 20), rhs_dilation=(3, 2))
layer("transposed", (3, 20, 20, 24), (4, 4, 24, 16), lhs_dilation=(2, 2), padding=((2, 2), (2, 2)))
layer("strided_odd", (3, 50, 47, 15), (5, 3, 15, 22), window_strides=(3, 2), derive=True)
layer("tall_kernel", (2, 60, 60, 8), (11, 1, 8, 8))
layer("asymmetric_padding", (3, 30, 30, 16), (3, 3, 16, 16), padding=((0, 2), (1, 3)))
layer("three_dimensions", (2, 12, 13, 14, 9), (3, 3, 3, 9, 11), "NDHWC", "DHWIO", derive=True)
layer("causal_wave", (4, 1001, 24), (2, 24, 48), "NWC", "WIO", rhs_dilation=(8,), padding=((8, 0),))
layer("image_batch_1", (1, 64, 64, 3), (3, 3, 3, 64))
layer("large_batch", (1000, 8, 8, 3), (3, 3, 3, 5), derive=True)
layer("bf16", (4, 28, 28, 32), (3, 3, 32, 32), make=bf16)
layer("f16", (4, 20, 20, 16), (3, 3, 16, 16), make=f16)


@conv(f32(2, 3, 101, 99), f32(8, 3, 3, 3), f32(8))
def conv_bias_relu(x, w, b):
    return jax.nn.relu(lax.conv(x, w, (1, 1), "SAME") + b[:, None, None])


@conv(f32(2, 24, 24, 8), f32(2, 24, 24, 18, least=-2, most=2), f32(9, 8, 12))
def deformable(x, offset, w):
    base = jnp.stack(jnp.meshgrid(jnp.arange(24.0), jnp.arange(24.0), indexing="ij"), -1)
    grid = base[None, :, :, None] + offset.reshape(2, 24, 24, 9, 2)

    def sample(image, at):
        return jax.vmap(lambda c: jax.scipy.ndimage.map_coordinates(
            c, [at[..., 0], at[..., 1]], 1), -1, -1)(image)
    return jnp.einsum("nhwkc,kco->nhwo", jax.vmap(sample)(x, grid), w)


# ---- pooling ----

pool = family("pool")


def pooling(name, shape, window, stride, kind, derive=False, padding="VALID"):
    def run(x):
        if kind == "max":
            return lax.reduce_window(x, -jnp.inf, lax.max, window, stride, padding)
        return lax.reduce_window(x, 0.0, lax.add, window, stride, padding)
    function = grad(run) if derive else run
    function.__name__ = f"{kind}_{name}"
    pool(f32(*shape))(function)


for kind in "max", "sum":
    for derive in False, True:
        tail = "_grad" if derive else ""
        pooling("2x2" + tail, (8, 57, 57, 21), (1, 2, 2, 1), (1, 2, 2, 1), kind, derive)
        pooling("nchw_3x3" + tail, (4, 19, 56, 55), (1, 1, 3, 3), (1, 1, 2, 2), kind, derive, "SAME")
        pooling("overlap" + tail, (2, 41, 43, 30), (1, 5, 5, 1), (1, 1, 1, 1), kind, derive, "SAME")
    pooling("one_dimension", (30, 3001), (1, 7), (1, 3), kind)
    pooling("time", (16, 1000, 24), (1, 50, 1), (1, 1, 1), kind)


@pool(f32(16, 49, 49, 30))
def global_pool_grad(x):
    return jax.grad(lambda x: (x.mean((1, 2)) ** 2).sum() + x.max((1, 2)).sum())(x)


@pool(f32(4, 64, 66, 16))
def reshape_pool(x):
    return x.reshape(4, 32, 2, 33, 2, 16).max((2, 4))


# ---- attention and normalisation ----

attention = family("attention")


def causal(q, k, v):
    s = jnp.einsum("bihd,bjhd->bhij", q, k) * q.shape[-1] ** -0.5
    s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -jnp.inf)
    return jnp.einsum("bhij,bjhd->bihd", jax.nn.softmax(s, -1), v)


@attention(f32(2, 127, 6, 32), f32(2, 127, 6, 32), f32(2, 127, 6, 32))
@attention(f32(1, 300, 2, 48), f32(1, 300, 2, 48), f32(1, 300, 2, 48))
def causal_forward(q, k, v):
    return causal(q, k, v)


@attention(f32(2, 127, 4, 32), f32(2, 127, 4, 32), f32(2, 127, 4, 32))
@attention(f32(9, 33, 3, 20), f32(9, 33, 3, 20), f32(9, 33, 3, 20))
def causal_grad(q, k, v):
    return jax.grad(lambda q, k, v: jnp.square(causal(q, k, v)).sum(), (0, 1, 2))(q, k, v)


@attention(bf16(2, 128, 4, 64), bf16(2, 128, 4, 64), bf16(2, 128, 4, 64))
def library_attention_bf16(q, k, v):
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


@attention(f32(2, 100, 8, 32), f32(2, 130, 2, 32), f32(2, 130, 2, 32))
def grouped_queries(q, k, v):
    return jax.nn.dot_product_attention(q, k, v)


@attention(f32(2, 4, 64, 32), f32(2, 4, 500, 32), f32(2, 4, 500, 32), i32(2, below=500, least=100))
def padded_keys(q, k, v, n):
    s = q @ k.swapaxes(-1, -2) / 6
    s = jnp.where(jnp.arange(500) < n[:, None, None, None], s, -1e9)
    return jax.nn.softmax(s, -1) @ v


@attention(f32(2, 12, 1, 64), f32(2, 12, 512, 64), f32(2, 12, 512, 64), i32(below=511, least=200))
def cached_step(q, k, v, place):
    k = lax.dynamic_update_slice(k, q, (0, 0, place, 0))
    s = jnp.where(jnp.arange(512) <= place, q @ k.swapaxes(-1, -2) / 8, -jnp.inf)
    return jax.nn.softmax(s, -1) @ v, k


@attention(f32(2, 200, 4, 32), f32(2, 200, 4, 32))
def rotary(q, k):
    angle = jnp.arange(200)[:, None] * 10000.0 ** (-jnp.arange(16) / 16)
    sin, cos = jnp.sin(angle)[:, None], jnp.cos(angle)[:, None]

    def turn(x):
        a, b = jnp.split(x, 2, -1)
        return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)
    return turn(q), turn(k)


@attention(f32(2, 4, 150, 32), f32(2, 4, 150, 32), f32(2, 4, 150, 32))
def relative_bias(q, k, v):
    i = jnp.arange(150)
    bias = -0.1 * jnp.abs(i[:, None] - i) * jnp.arange(1, 5)[:, None, None]
    return jax.nn.softmax(q @ k.swapaxes(-1, -2) / 6 + bias, -1) @ v


@attention(f32(4, 256, 24), f32(4, 256, 24), f32(4, 256, 24))
def linear_attention(q, k, v):
    q, k = jax.nn.elu(q) + 1, jax.nn.elu(k) + 1
    kv = jnp.cumsum(k[..., None] * v[:, :, None], 1)
    return jnp.einsum("btd,btde->bte", q, kv) / (q * jnp.cumsum(k, 1)).sum(-1, keepdims=True)


@attention(f32(300, 768), f32(768), f32(768))
@attention(f32(4, 77, 301), f32(301), f32(301))
def layer_norm_grad(x, g, b):
    def f(x, g, b):
        m = x.mean(-1, keepdims=True)
        v = ((x - m) ** 2).mean(-1, keepdims=True)
        return jnp.sin((x - m) * lax.rsqrt(v + 1e-5) * g + b).sum()
    return jax.grad(f, (0, 1, 2))(x, g, b)


@attention(f32(500, 513), f32(513))
def rms_norm(x, g):
    return x * lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-6) * g


@attention(f32(8, 25, 27, 33), f32(33), f32(33))
def batch_norm_grad(x, g, b):
    def f(x, g, b):
        m, v = x.mean((0, 1, 2)), x.var((0, 1, 2))
        return jnp.square(jax.nn.relu((x - m) * lax.rsqrt(v + 1e-5) * g + b)).sum()
    return jax.grad(f, (0, 1, 2))(x, g, b)


@attention(f32(4, 16, 17, 32), f32(32))
def group_norm_grad(x, g):
    def f(x, g):
        y = x.reshape(4, 16, 17, 8, 4)
        m, v = y.mean((1, 2, 4), keepdims=True), y.var((1, 2, 4), keepdims=True)
        return jnp.square(((y - m) * lax.rsqrt(v + 1e-5)).reshape(x.shape) * g).sum()
    return jax.grad(f, (0, 1))(x, g)


@attention(f32(301, 5003), i32(301, below=5003))
def cross_entropy_grad(x, y):
    return jax.value_and_grad(lambda x: -jnp.take_along_axis(
        jax.nn.log_softmax(x), y[:, None], 1).mean())(x)


# ---- models ----

model = family("model")


def block(x, w):
    n, t, d = x.shape
    q, k, v = jnp.split(x @ w["qkv"], 3, -1)
    split = n, t, 4, d // 4
    x = x + causal(q.reshape(split), k.reshape(split), v.reshape(split)).reshape(x.shape) @ w["out"]
    return x + jax.nn.gelu(x @ w["up"]) @ w["down"]


def small(w):
    return jax.tree.map(lambda v: 0.05 * v, w)


@model(f32(3, 65, 96), f32(96, 288), f32(96, 96), f32(96, 384), f32(384, 96))
@model(f32(1, 200, 64), f32(64, 192), f32(64, 64), f32(64, 256), f32(256, 64))
def transformer_grad(x, a, b, c, d):
    def loss(w):
        return jnp.square(block(block(x, small(w)), small(w))).mean()
    return jax.grad(loss)({"qkv": a, "out": b, "up": c, "down": d})


@model(f32(3, 65, 96), f32(4, 96, 288), f32(4, 96, 96), f32(4, 96, 384), f32(4, 384, 96))
def transformer_scan_grad(x, a, b, c, d):
    def loss(w):
        out, _ = lax.scan(lambda x, w: (jax.checkpoint(block)(x, small(w)), None), x, w)
        return jnp.square(out).mean()
    return jax.grad(loss)({"qkv": a, "out": b, "up": c, "down": d})


def gru_cell(h, x, w, u):
    z, r = jnp.split(jax.nn.sigmoid(x @ w[:, :64] + h @ u[:, :64]), 2, -1)
    n = jnp.tanh(x @ w[:, 64:] + (r * h) @ u[:, 64:])
    return (1 - z) * n + z * h


@model(f32(50, 16, 24), f32(24, 96), f32(32, 96))
def gru_grad(x, w, u):
    def loss(w, u):
        return lax.scan(lambda h, v: (gru_cell(h, v, 0.1 * w, 0.1 * u),) * 2,
                        jnp.zeros((16, 32)), x)[1].sum()
    return jax.grad(loss, (0, 1))(w, u)


@model(f32(100, 3, 40), f32(40, 160), f32(40, 160))
def lstm_forward(x, w, u):
    def cell(s, v):
        i, f, g, o = jnp.split(v @ w + s[0] @ u, 4, -1)
        c = jax.nn.sigmoid(f) * s[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h
    return lax.scan(cell, (jnp.zeros((3, 40)),) * 2, x)[1]


@model(f32(8, 200, 64), f32(64, 16), f32(64, 16, least=0, most=1))
def state_space(x, b, dt):
    """A selective scan (Gu and Dao 2023), one head."""
    a = jnp.exp(-dt)

    def combine(p, q):
        return p[0] * q[0], p[1] * q[0] + q[1]
    u = x[..., None] * b
    return lax.associative_scan(combine, (jnp.broadcast_to(a, u.shape), u), axis=1)[1].sum(-1)


@model(f32(16, 33, 35, 3), f32(3, 3, 3, 13), f32(3, 3, 13, 21), f32(21, 10), i32(16, below=10))
def small_cnn_grad(x, a, b, c, y):
    def loss(w):
        h = x
        for k in w[:2]:
            h = lax.conv_general_dilated(h, 0.2 * k, (1, 1), "SAME",
                                         dimension_numbers=("NHWC", "HWIO", "NHWC"))
            h = lax.reduce_window(jax.nn.relu(h), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return -jnp.take_along_axis(jax.nn.log_softmax(h.mean((1, 2)) @ w[2]), y[:, None], 1).mean()
    return jax.grad(loss)((a, b, c))


@model(f32(64, 20), f32(20, 128), f32(128, 2), f32(2, 128), f32(128, 20))
def autoencoder_grad(x, a, b, c, d):
    def loss(w):
        z = jnp.tanh(x @ w[0]) @ w[1]
        return jnp.square(jnp.tanh(z @ w[2]) @ w[3] - x).mean() + jnp.square(z).mean()
    return jax.grad(loss)((a, b, c, d))


@model(f32(4, 16, 16, 24), f32(24, 72), f32(3, 3, 24, 24))
def u_net_level(x, w, k):
    down = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
    h = jax.nn.silu(lax.conv_general_dilated(down, 0.1 * k, (1, 1), "SAME",
                                             dimension_numbers=("NHWC", "HWIO", "NHWC")))
    up = jnp.repeat(jnp.repeat(h, 2, 1), 2, 2)
    return jnp.concatenate([x, up], -1) @ jnp.concatenate([w, w], 0)


@model(f32(128, 17), f32(17, 64), f32(64, 64), f32(64, 1), f32(128))
def regression_adam(x, a, b, c, y):
    def loss(w):
        return jnp.square((jax.nn.relu(jax.nn.relu(x @ w[0]) @ w[1]) @ w[2])[:, 0] - y).mean()
    w, m = (a, b, c), jax.tree.map(jnp.zeros_like, (a, b, c))
    for _ in range(5):
        g = jax.grad(loss)(w)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        w = jax.tree.map(lambda w, m: w - 0.01 * m, w, m)
    return w


@model(f32(30, 7, 11), f32(10, 11, 13), f32(10, 13, 3))
def ensemble(x, a, b):
    return jax.vmap(lambda a, b: jnp.tanh(x @ a) @ b)(a, b).mean(0)


@model(f32(2000, 3), f32(3, 60), f32(120, 64), f32(64, 4))
def radiance_field(x, freq, a, b):
    h = jnp.concatenate([jnp.sin(x @ freq * 5), jnp.cos(x @ freq * 5)], -1)
    out = jax.nn.relu(h @ a) @ b
    alpha = 1 - jnp.exp(-jax.nn.softplus(out[:, 3]).reshape(100, 20))
    left = jnp.cumprod(1 - alpha + 1e-6, 1)
    return jnp.einsum("rs,rsc->rc", alpha * left, jax.nn.sigmoid(out[:, :3]).reshape(100, 20, 3))


@model(i32(32, 20, below=1000), f32(1000, 24), f32(24, 1000), i32(32, below=1000))
def word_vectors_grad(words, table, out, y):
    def loss(w):
        return -jnp.take_along_axis(jax.nn.log_softmax(
            w[0][words].mean(1) @ w[1]), y[:, None], 1).mean()
    return jax.grad(loss)((table, out))


@model(f32(64, 49, 48), f32(48, 96), f32(96, 48), f32(49, 64), f32(64, 49))
def mixer_grad(x, a, b, c, d):
    def loss(w):
        h = x + jnp.swapaxes(jax.nn.gelu(jnp.swapaxes(x, 1, 2) @ w[2]) @ w[3], 1, 2)
        return jnp.square(h + jax.nn.gelu(h @ w[0]) @ w[1]).mean()
    return jax.grad(loss)(small((a, b, c, d)))


@model(f32(500, 26), i32(500, 8, below=300), f32(8, 300, 16), f32(154, 64), f32(64, 1))
def recommender_grad(dense, sparse, tables, w, out):
    def loss(p):
        e = jnp.stack([p[0][i][sparse[:, i]] for i in range(8)], 1).reshape(500, -1)
        return jax.nn.softplus(jax.nn.relu(jnp.concatenate([dense, e], 1) @ p[1]) @ p[2]).mean()
    return jax.grad(loss)((tables, w, out))
