"""Programs over arrays: reductions and prefix sums, sorting, indexing, pointwise
functions, types."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from cases import bf16, c64, f16, f32, f64, family, grad, i32, ints

# ---- reductions and prefix sums ----

reduce = family("reduce")


@reduce(f32(8192))
@reduce(f32(65536))
@reduce(f32(64, 4097))
@reduce(i32(300000, below=10))
def cumsum(x):
    return jnp.cumsum(x, -1)


@reduce(f32(511, 517))
def cumsum_rows(x):
    return jnp.cumsum(x, 0)


@reduce(f32(32, 257, 33))
def cumsum_middle(x):
    return jnp.cumsum(x, 1)


@reduce(f32(16, 5000, least=0.999, most=1.001))
def cumprod(x):
    return jnp.cumprod(x, -1)


@reduce(f32(16, 20000))
def cummax(x):
    return lax.cummax(x, 1)


@reduce(f32(40, 3001))
def cumlogsumexp_reverse(x):
    return lax.cumlogsumexp(x, 1, reverse=True)


@reduce(f32(100, 2000))
def cumsum_grad(x):
    return jax.grad(lambda x: (jnp.cumsum(x, -1) ** 2).sum())(x)


@reduce(i32(100000, below=2))
def nonzero(x):
    return jnp.nonzero(x, size=60000, fill_value=-1)


@reduce(i32(301, 303, below=3))
def argwhere(x):
    return jnp.argwhere(x, size=50000)


@reduce(f32(2000, 7), i32(2000, below=5))
def repeat(x, n):
    return jnp.repeat(x, n, axis=0, total_repeat_length=5000)


@reduce(f32(1000003))
@reduce(f32(37, 30011))
def sum_all(x):
    return x.sum()


@reduce(f32(4099, 255))
def sum_columns(x):
    return x.sum(0)


@reduce(f32(63, 65, 67))
def sum_outer_and_inner(x):
    return x.sum((0, 2))


@reduce(bf16(777, 1000))
def sum_bf16(x):
    return x.sum(-1)


@reduce(f32(1000, 1001))
def mean_and_var(x):
    return x.mean(0), x.var(0), x.std(1)


@reduce(f32(501, 1003))
def logsumexp(x):
    return jax.nn.logsumexp(x, 0), jax.nn.logsumexp(x, 1)


@reduce(f32(2001, 513))
def argmax(x):
    return jnp.argmax(x, 0), jnp.argmin(x, 1)


@reduce(f32(999, 1001))
def any_all(x):
    return (x > 0.999).any(1), (x > -0.9999).all(0)


@reduce(f32(600, 700))
def norms(x):
    return jnp.linalg.norm(x, axis=1), jnp.abs(x).max(0), jnp.prod(1 + 1e-3 * x, 1)


@reduce(f32(3000, 129), i32(3000, below=100))
def segment_sum(x, at):
    return jax.ops.segment_sum(x, at, 100)


@reduce(f32(2000, 9, 17), i32(2000, below=333))
def segment_sum_3d(x, at):
    return jax.ops.segment_sum(x, at, 333)


@reduce(f32(20000), i32(20000, below=512))
def segment_max(x, at):
    return jax.ops.segment_max(x, at, 512)


@reduce(f32(100000))
def histogram(x):
    return jnp.histogram(x, 64, (-1, 1))


@reduce(i32(200000, below=1000))
def bincount(x):
    return jnp.bincount(x, length=1000)


@reduce(f32(4000, 100))
def associative_scan_linear(x):
    def combine(a, b):
        return a[0] * b[0], a[1] * b[0] + b[1]
    return lax.associative_scan(combine, (0.99 * jnp.cos(x), x))[1]


@reduce(f32(1023, 33))
def associative_scan_max(x):
    return lax.associative_scan(jnp.maximum, x)


@reduce(f32(200, 1000))
def running_mean(x):
    total = jnp.cumsum(jnp.pad(x, ((0, 0), (1, 0))), 1)
    return (total[:, 16:] - total[:, :-16]) / 16


# ---- sorting ----

sort = family("sort")


@sort(f32(100003))
@sort(f32(300, 501))
@sort(i32(100000, below=2**31 - 1, least=-2**31))
def sort_values(x):
    return jnp.sort(x)


@sort(f32(401, 300))
def sort_columns(x):
    return jnp.sort(x, 0)


@sort(f32(50001))
@sort(f32(64, 1000))
def argsort(x):
    return jnp.argsort(x)


@sort(f32(64, 5000))
@sort(f32(7, 100003))
@sort(f32(500, 300))
def top_k(x):
    return lax.top_k(x, 10)


@sort(f32(100, 3000))
def top_k_large(x):
    return lax.top_k(x, 500)


@sort(f32(101, 1001))
def median(x):
    return jnp.median(x, 1), jnp.quantile(x, 0.9, axis=1)


@sort(i32(30000, below=1000))
def unique(x):
    return jnp.unique(x, size=1000, return_counts=True)


@sort(f32(10000), f32(5000))
def searchsorted(x, v):
    return jnp.searchsorted(jnp.sort(x), v)


@sort(f32(20000), i32(20000, below=1000))
def sort_by_key(x, k):
    return lax.sort((k, x), num_keys=1)


@sort(i32(20000, below=30), i32(20000, below=30))
def lexsort(a, b):
    return jnp.lexsort((a, b))


@sort(f32(32, 3000))
def nucleus_mask(logits):
    order = jnp.sort(logits, -1)[:, ::-1]
    share = jnp.cumsum(jax.nn.softmax(order, -1), -1)
    least = jnp.take_along_axis(order, jnp.sum(share < 0.9, -1, keepdims=True), -1)
    return jnp.where(logits < least, -jnp.inf, logits)


@sort(f32(5003, least=0, most=1), i32(5003, below=2))
def auc(score, label):
    label = label[jnp.argsort(score)]
    rank = jnp.arange(1, label.size + 1)
    n = label.sum()
    return ((rank * label).sum() - n * (n + 1) / 2) / (n * (label.size - n))


# ---- indexing ----

index = family("index")


@index(f32(50000, 65), i32(3000, below=50000))
def take_rows(x, at):
    return x[at]


@index(f32(301, 2000), i32(700, below=2000))
def take_columns(x, at):
    return x[:, at]


@index(f32(100000), i32(100000, below=100000))
def take_elements(x, at):
    return x[at]


@index(f32(513, 511), i32(513, 100, below=511))
def take_along(x, at):
    return jnp.take_along_axis(x, at, 1)


@index(f32(20, 31, 37, 5), i32(5000, below=31), i32(5000, below=37))
def take_pairs(x, a, b):
    return x[:, a, b]


@index(f32(30000, 32), i32(5000, below=30000), f32(5000, 32))
def scatter_add_rows(x, at, v):
    return x.at[at].add(v)


@index(f32(100000), i32(50000, below=100000), f32(50000))
def scatter_add(x, at, v):
    return x.at[at].add(v)


@index(f32(10000, 7), i32(10000, below=10000))
def scatter_set(x, at):
    return jnp.zeros_like(x).at[at, 0].set(1.0)


@index(f32(5000, 48), i32(20000, below=5000), f32(20000, 48))
def scatter_max(x, at, v):
    return x.at[at].max(v)


@index(i32(64, 257, below=5000), f32(5000, 64))
def embedding_grad(words, table):
    return jax.grad(lambda t: jnp.square(t[words]).sum())(table)


@index(i32(4001, below=301))
def one_hot(x):
    return jax.nn.one_hot(x, 301)


@index(f32(700, 701))
def shifted_slices(x):
    return x[1:-1, 1:-1] - 0.25 * (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2])


@index(f32(601, 603))
def strided(x):
    return x[::2, ::-3], x[::-1, 1::4]


@index(f32(333, 77), f32(333, 5), f32(333, 1001))
def concatenate(a, b, c):
    return jnp.concatenate([a, b, c], 1)


@index(f32(64, 33, 100), f32(64, 33, 100), f32(64, 33, 100))
def stack_last(a, b, c):
    return jnp.stack([a, b, c], -1)


@index(f32(500, 501))
def roll_and_flip(x):
    return jnp.roll(x, (3, -5), (0, 1)) + jnp.flip(x, 1)


@index(f32(64, 61, 63))
def pad_modes(x):
    return jnp.pad(x, ((0, 0), (2, 3), (1, 1)), "reflect"), jnp.pad(x, 1, "edge")


@index(f32(37, 129, 65))
def transposes(x):
    return x.transpose(2, 0, 1), x.transpose(0, 2, 1)


@index(f32(31, 64, 7, 33))
def transpose_4d(x):
    return x.transpose(0, 3, 1, 2).reshape(31, -1)


@index(f32(999, 257))
def tile_and_broadcast(x):
    return jnp.tile(x[:300], (1, 3)), jnp.broadcast_to(x[:, :1], (999, 500)) + 1


@index(f32(1000, 100), i32(1000, below=100))
def dynamic_slices(x, at):
    return jax.vmap(lambda r, i: lax.dynamic_slice(r, (i,), (30,)))(x, at)


@index(f32(100, 5000), i32(below=4000), f32(100, 17))
def dynamic_update(x, at, v):
    return lax.dynamic_update_slice(x, v, (0, at))


@index(f32(500, 500), f32(500, 500))
def where_masks(x, y):
    return jnp.where(jnp.tril(x) > 0, x, y), jnp.triu(x, 3)


@index(f32(300, 301, least=0, most=299), f32(300, 301, least=0, most=299), f32(300, 301))
def bilinear_warp(y, x, image):
    return jax.scipy.ndimage.map_coordinates(image, [y, x], 1, mode="nearest")


@index(f32(3, 101, 103, 3))
def resize(x):
    return jax.image.resize(x, (3, 64, 64, 3), "bilinear")


@index(f32(60, 3001))
def patches(x):
    at = jnp.arange(0, 2900, 10)[:, None] + jnp.arange(64)
    return x[:, at] * jnp.hanning(64)


@index(f32(800, 800))
def diagonals(x):
    return jnp.diag(x), jnp.diag(x[0]), jnp.trace(x)


@index(f32(8, 128, 101))
def space_to_depth(x):
    return x.reshape(8, 64, 2, 101).transpose(0, 1, 3, 2).reshape(8, 64, 202)


# ---- pointwise functions ----

point = family("point")


def unary(name, function, arg, derive=False):
    f = grad(function) if derive else lambda x: function(x)
    f.__name__ = name + ("_grad" if derive else "")
    point(arg)(f)


for size, tail in (20011, "_small"), (400003, ""):
    for fn in ("tanh", "exp", "sin", "log1p", "expm1", "cbrt", "arctan", "sinh",
               "arcsinh", "exp2"):
        unary(fn + tail, getattr(jnp, fn), f32(size, least=-0.9, most=3))
for fn in "sigmoid", "gelu", "silu", "softplus", "elu", "mish", "selu":
    unary(fn, getattr(jax.nn, fn), f32(300007, least=-4, most=4), derive=True)
for fn in "erf", "erfc", "gammaln", "digamma", "ndtri", "i0e", "log_ndtr":
    unary(fn, getattr(jax.scipy.special, fn), f32(100003, least=0.1, most=0.9))
unary("erf_inv", lax.erf_inv, f32(100003, least=-0.9, most=0.9))
unary("acos", jnp.arccos, f32(200001))
unary("erf_f64", jax.scipy.special.erf, f64(50001))
unary("exp_f64", jnp.exp, f64(100001))
unary("tanh_f64", jnp.tanh, f64(100001))
unary("tanh_bf16", jnp.tanh, bf16(300003))
unary("exp_f16", jnp.exp, f16(300003))
unary("abs_c64", jnp.abs, c64(200003))
unary("exp_c64", jnp.exp, c64(50003))
unary("sqrt_c64", jnp.sqrt, c64(50003))


@point(f32(200001, least=0.1, most=4), f32(200001, least=-2, most=2))
def power(x, y):
    return x ** y


@point(f32(200001), f32(200001))
def arctan2(x, y):
    return jnp.arctan2(x, y)


@point(f32(300001, least=-9, most=9), f32(300001, least=1, most=3))
def remainders(x, y):
    return jnp.mod(x, y), jnp.floor_divide(x, y)


@point(f32(1000, 1001), f32(1001), f32(1000, 1))
def broadcasts(x, row, column):
    return jnp.tanh(x * row + column) * jnp.exp(-x * x)


@point(f32(2003, 301))
def softmax(x):
    return jax.nn.softmax(x), jax.nn.log_softmax(x)


@point(f32(300, 1001))
def softmax_columns(x):
    return jax.nn.softmax(x, 0)


@point(f32(300000), f32(300000), f32(300000), f32(300000))
def adam_update(p, m, v, g):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * jnp.abs(v) + 0.001 * g * g
    return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


@point(f32(200000), f32(200000), f32(200000))
def black_scholes(s, k, t):
    s, k, t = 100 + 20 * s, 100 + 20 * k, 1.1 + t
    d = (jnp.log(s / k) + 0.045 * t) / (0.3 * jnp.sqrt(t))
    cdf = jax.scipy.stats.norm.cdf
    return s * cdf(d) - k * jnp.exp(-0.03 * t) * cdf(d - 0.3 * jnp.sqrt(t))


@point(f32(500, 501))
def polynomial(x):
    return jnp.polyval(jnp.arange(12.0) / 12, x)


@point(f32(1000000))
def clip_and_round(x):
    return jnp.clip(jnp.round(x * 100), -50, 50), jnp.sign(x)


# ---- types ----

types = family("types")


@types(ints(np.int64, 100003, below=10**9), ints(np.int64, 100003, below=1000, least=1))
def int64_arithmetic(x, y):
    return x * y + 3, x // y, x % y, x >> 2


@types(i32(300003, below=10**9), i32(300003, below=1000, least=1))
def int32_division(x, y):
    return x // y, x % y


@types(ints(np.uint32, 300003, below=2**32))
def uint32_hash(x):
    for c in 0x7feb352d, 0x846ca68b:
        x = (x ^ (x >> 16)) * jnp.uint32(c)
    return x ^ (x >> 16), lax.population_count(x), lax.clz(x)


@types(ints(np.uint8, 3, 401, 403, below=256))
def image_to_float(x):
    return (x.astype(jnp.float32) / 255 - 0.45) / 0.22


@types(f32(700001, least=-2, most=2))
def quantise_int8(x):
    scale = jnp.abs(x).max() / 127
    q = jnp.round(x / scale).astype(jnp.int8)
    return q, q.astype(jnp.float32) * scale


@types(f32(500001))
def through_f16_and_bf16(x):
    return x.astype(jnp.float16).astype(jnp.float32), x.astype(jnp.bfloat16)


@types(f32(300001))
def through_fp8(x):
    return x.astype(jnp.float8_e4m3fn).astype(jnp.float32), x.astype(
        jnp.float8_e5m2).astype(jnp.float32)


@types(bf16(500, 1001), bf16(500, 1001))
def bf16_chain(x, y):
    return jnp.tanh(x * y + 1) * jax.nn.sigmoid(x - y)


@types(f16(500, 1001), f16(500, 1001))
def f16_chain(x, y):
    return jnp.tanh(x * y + 1) * jax.nn.sigmoid(x - y)


@types(f64(300, 501), f64(300, 501))
def f64_chain(x, y):
    return jnp.sin(x * y + 1) * jnp.sqrt(jnp.abs(x - y)) + x.sum(0)


@types(i32(300003, below=2), f32(300003))
def masks(m, x):
    m = m.astype(bool) & (x > 0) | (x < -0.5)
    return jnp.where(m, x, 0).sum(), m.sum()


@types(c64(300, 301), c64(300, 301))
def complex_arithmetic(x, y):
    return x * y + jnp.conj(x) / (y + 3), jnp.angle(x)


@types(f32(200003))
def bit_tricks(x):
    bits = lax.bitcast_convert_type(x, jnp.int32)
    return jnp.frexp(x)[1], lax.bitcast_convert_type(bits & ~0xFFFF, jnp.float32)
