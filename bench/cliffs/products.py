"""Programs of products: layouts, types and sizes; linear algebra; FFT; sparse
matrices."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from cases import bf16, c64, f16, f32, f64, family, i32, ints

product = family("product")


def matmul(x, y):
    return x @ y


for m, k, n in ((1, 768, 3072), (2, 512, 1376), (3, 1000, 1001), (4, 512, 1376),
                (5, 257, 4099), (8, 512, 1376), (17, 1023, 511), (64, 784, 256),
                (127, 129, 131), (255, 257, 513), (1000, 1000, 10), (2000, 3, 500),
                (4000, 64, 7), (10000, 10, 10), (333, 2, 333), (512, 512, 512)):
    product(f32(m, k), f32(k, n))(matmul)
for make in bf16, f16, f64, c64:
    product(make(250, 260), make(260, 270))(matmul)
product(bf16(2, 768), bf16(768, 3072))(matmul)
product(f16(3, 300), f16(300, 1000))(matmul)


@product(f32(300, 301), f32(401, 301))
@product(f32(4, 700), f32(3000, 700))
def matmul_transposed_right(x, y):
    return x @ y.T


@product(f32(501, 200), f32(501, 300))
def matmul_transposed_left(x, y):
    return x.T @ y


@product(f32(501, 200), f32(300, 501))
def matmul_transposed_both(x, y):
    return x.T @ y.T


@product(f32(3001, 401), f32(401))
@product(f32(700, 1999), f32(1999))
def matrix_vector(x, v):
    return x @ v


@product(f32(3001), f32(3001, 201))
def vector_matrix(v, x):
    return v @ x


@product(f32(100003), f32(100003))
def dot(x, y):
    return x @ y


@product(f32(701), f32(703))
def outer(x, y):
    return jnp.outer(x, y)


@product(f32(1000), f32(1000))
def outer_slice(x, y):
    return jnp.outer(x, y)[:10, :20]


@product(f32(1000, 5, 6), f32(1000, 6, 7))
@product(f32(5000, 3, 3), f32(5000, 3, 3))
@product(f32(64, 33, 65), f32(64, 65, 31))
@product(f32(12, 200, 64), f32(12, 64, 200))
def batched(x, y):
    return x @ y


@product(f32(4, 127, 6, 40), f32(4, 127, 6, 40))
def einsum_heads(q, k):
    return jnp.einsum("bihd,bjhd->bhij", q, k)


@product(f32(50, 20, 30), f32(30, 40), f32(40, 50))
def einsum_chain(a, b, c):
    return jnp.einsum("ijk,kl,lm->ijm", a, b, c)


@product(f32(64, 40, 40), f32(64, 40))
def einsum_quadratic(a, x):
    return jnp.einsum("bi,bij,bj->b", x, a, x)


@product(f32(60, 70, 80), f32(80, 90))
def tensordot_first(a, b):
    return jnp.tensordot(a, b, 1)


@product(f32(70, 60, 80), f32(70, 90))
def contract_first(a, b):
    return jnp.einsum("aij,ak->ijk", a, b)


@product(ints(np.int8, 200, 512, below=100, least=-100), ints(np.int8, 512, 300, below=100, least=-100))
def int8(x, y):
    return lax.dot(x, y, preferred_element_type=jnp.int32)


@product(f32(2, 512), ints(np.int8, 1376, 512, below=127, least=-127), f32(1376))
def int8_weights(x, w, scale):
    return (x @ w.T.astype(x.dtype)) * scale


@product(bf16(2, 768), ints(np.int8, 3072, 768, below=127, least=-127), bf16(3072))
def int8_weights_bf16(x, w, scale):
    return (x @ w.T.astype(x.dtype)) * scale


@product(f32(2, 512), ints(np.int8, 1376, 512, below=7, least=-7))
def int4_weights(x, w):
    return x @ w.astype(jnp.int4).T.astype(jnp.float32)


@product(i32(200, 300, below=100), i32(300, 200, below=100))
def int32(x, y):
    return x @ y


@product(f32(100, 256), f32(256, 200))
def fp8(x, y):
    x, y = x.astype(jnp.float8_e4m3fn), y.astype(jnp.float8_e4m3fn)
    return lax.dot(x, y, preferred_element_type=jnp.float32)


@product(bf16(128, 500), bf16(500, 300))
def bf16_to_f32(x, y):
    return lax.dot(x, y, preferred_element_type=jnp.float32)


@product(f32(300, 200), f32(200, 100), f32(100), f32(300))
def dense_gelu(x, w, b, y):
    return jax.nn.gelu(x @ w + b) * y[:, None]


@product(f32(501, 64), f32(701, 64))
def pairwise_distances(x, y):
    return jnp.sqrt(jnp.maximum(
        (x * x).sum(1)[:, None] + (y * y).sum(1) - 2 * x @ y.T, 0))


@product(f32(300, 3), f32(400, 3))
def pairwise_differences(x, y):
    return jnp.square(x[:, None] - y[None]).sum(-1)


@product(f32(256, 65), f32(65, 65), f32(65, 65), f32(65, 65))
def low_rank_chain(x, a, b, c):
    return jnp.tanh(jnp.tanh(x @ a) @ b) @ c


@product(f32(20, 21), f32(30, 31))
def kron(a, b):
    return jnp.kron(a, b)


@product(f32(16, 40, 500))
def gram(x):
    return x @ x.transpose(0, 2, 1)


# ---- linear algebra ----

linalg = family("linalg")


def definite(a):
    n = a.shape[-1]
    return a @ jnp.swapaxes(a, -1, -2) / n + jnp.eye(n)


def dominant(a):
    return a + a.shape[-1] * jnp.eye(a.shape[-1])


@linalg(f32(200, 200), f32(200, 3))
@linalg(f32(100, 10, 10), f32(100, 10, 1))
@linalg(f32(2000, 3, 3), f32(2000, 3, 1))
def solve(a, b):
    return jnp.linalg.solve(dominant(a), b)


@linalg(f32(150, 150))
@linalg(f32(64, 20, 20))
@linalg(f32(3000, 4, 4))
def inverse(a):
    return jnp.linalg.inv(dominant(a))


@linalg(f32(64, 20, 20))
@linalg(f32(2000, 3, 3))
def determinant(a):
    return jnp.linalg.slogdet(dominant(a))


@linalg(f32(200, 200))
@linalg(f32(100, 12, 12))
def cholesky(a):
    return jnp.linalg.cholesky(definite(a))


@linalg(f32(150, 150), f32(150, 40))
@linalg(f32(50, 17, 17), f32(50, 17, 5))
def triangular_solve(a, b):
    return jax.scipy.linalg.solve_triangular(
        jnp.tril(a) + 9 * jnp.eye(a.shape[-1]), b, lower=True) if a.ndim == 2 else (
        jax.vmap(lambda a, b: jax.scipy.linalg.solve_triangular(
            jnp.tril(a) + 9 * jnp.eye(a.shape[-1]), b, lower=True))(a, b))


@linalg(f32(300, 20), f32(300))
def least_squares(a, b):
    return jax.scipy.linalg.solve(a.T @ a + jnp.eye(20), a.T @ b, assume_a="pos")


@linalg(f32(120, 30))
def gram_schmidt(a):
    def body(i, q):
        v = q[:, i]
        v = v / jnp.linalg.norm(v)
        left = jnp.where(jnp.arange(30) > i, v @ q, 0)
        return (q - v[:, None] * left).at[:, i].set(v)
    return lax.fori_loop(0, 30, body, a)


@linalg(f32(60, 60))
def matrix_exponential(a):
    return jax.scipy.linalg.expm(a / 10)


@linalg(f32(100, 100))
def matrix_power(a):
    return jnp.linalg.matrix_power(a / 6, 7)


@linalg(f32(150, 5), f32(150))
def gaussian_process(x, y):
    def loss(scale):
        d = jnp.square(x[:, None] - x).sum(-1)
        k = jnp.exp(-d / scale) + 0.1 * jnp.eye(150)
        low = jax.scipy.linalg.cho_factor(k, lower=True)
        return y @ jax.scipy.linalg.cho_solve(low, y) + 2 * jnp.log(jnp.diag(low[0])).sum()
    return jax.value_and_grad(loss)(1.5)


@linalg(f32(100, 30, 30))
def solve_grad(a):
    return jax.grad(lambda a: jnp.linalg.solve(dominant(a), jnp.ones((100, 30, 1))).sum())(a)


@linalg(f32(400), f32(400), f32(400), f32(400, 8))
def tridiagonal(low, mid, up, b):
    return lax.linalg.tridiagonal_solve(low, 4 + mid, up, b)


# ---- FFT ----

fft = family("fft")


@fft(c64(65536))
@fft(c64(100, 1000))
@fft(c64(64, 1021))
@fft(c64(512, 64))
@fft(c64(3, 30000))
def fft_1d(x):
    return jnp.fft.fft(x)


@fft(c64(50, 1024))
def ifft(x):
    return jnp.fft.ifft(x)


@fft(f32(131072))
@fft(f32(100, 1000))
@fft(f32(333, 210))
def rfft(x):
    return jnp.fft.rfft(x)


@fft(c64(100, 501))
def irfft(x):
    return jnp.fft.irfft(x, 1000)


@fft(c64(256, 256))
@fft(c64(7, 100, 90))
def fft_2d(x):
    return jnp.fft.fft2(x)


@fft(f32(40, 41, 42))
def rfft_3d(x):
    return jnp.fft.rfftn(x)


@fft(f32(200, 200), f32(200, 200))
def fft_convolve(x, k):
    return jax.scipy.signal.fftconvolve(x, k, mode="same")


@fft(f32(16, 16000))
def spectrogram(x):
    at = jnp.arange(0, 16000 - 400, 160)[:, None] + jnp.arange(400)
    return jnp.log(1e-6 + jnp.abs(jnp.fft.rfft(x[:, at] * jnp.hanning(400))) ** 2)


@fft(f32(8, 64, 64, 4), c64(4, 4, 16, 9))
def fourier_layer(x, w):
    z = jnp.fft.rfft2(x, axes=(1, 2))[:, :16, :9]
    z = jnp.einsum("bxyi,ioxy->bxyo", z, w)
    return jnp.fft.irfft2(jnp.pad(z, ((0, 0), (0, 48), (0, 24), (0, 0))), axes=(1, 2))


@fft(f32(32, 1000))
def fft_grad(x):
    return jax.grad(lambda x: (jnp.abs(jnp.fft.rfft(x)) ** 2).sum())(x)


@fft(f32(128, 128))
def poisson_spectral(f):
    k = jnp.fft.fftfreq(128) * 128
    k2 = k[:, None] ** 2 + k[:65] ** 2
    z = jnp.fft.rfft2(f) / jnp.where(k2 == 0, 1, k2)
    return jnp.fft.irfft2(z)


@fft(f32(200, 500))
def autocorrelation(x):
    z = jnp.fft.rfft(x, 1000)
    return jnp.fft.irfft(z * jnp.conj(z), 1000)[:, :500]


@fft(f32(64, 512))
def cosine_transform(x):
    return jax.scipy.fft.dct(x)


# ---- sparse ----

sparse = family("sparse")


@sparse(f32(40000), i32(40000, below=3000), i32(40000, below=3000), f32(3000))
def coo_vector(v, row, column, x):
    return jnp.zeros(3000).at[row].add(v * x[column])


@sparse(f32(20000), i32(20000, below=1000), i32(20000, below=1000), f32(1000, 65))
def coo_matrix(v, row, column, x):
    return jax.ops.segment_sum(v[:, None] * x[column], row, 1000)


@sparse(f32(2000, 9), i32(2000, 9, below=2000), f32(2000, 33))
def ell_matrix(v, column, x):
    return jnp.einsum("ik,ikd->id", v, x[column])


@sparse(f32(1000, 50), i32(8000, below=1000), i32(8000, below=1000), f32(50, 60))
def graph_convolution(x, a, b, w):
    degree = jnp.zeros(1000).at[b].add(1.0)
    h = jnp.zeros((1000, 60)).at[b].add((x @ w)[a])
    return jax.nn.relu(h / jnp.maximum(degree, 1)[:, None])


@sparse(f32(500, 32), i32(4000, below=500), i32(4000, below=500))
def graph_attention(x, a, b):
    score = jnp.exp((x[a] * x[b]).sum(1) / 6)
    total = jax.ops.segment_sum(score, b, 500)
    return jax.ops.segment_sum((score / (total[b] + 1e-6))[:, None] * x[a], b, 500)


@sparse(f32(512, 64), f32(64, 8), f32(8, 64, 100), f32(8, 100, 64))
def mixture_of_experts(x, gate, up, down):
    share = jax.nn.softmax(x @ gate)
    weight, expert = lax.top_k(share, 2)
    chosen = jax.nn.one_hot(expert, 8, dtype=jnp.int32).reshape(-1, 8)
    place = (jnp.cumsum(chosen, 0) * chosen - 1).max(1)
    place = jnp.where(place < 160, place, 160)
    slots = jnp.zeros((8, 161, 64)).at[expert.reshape(-1), place].add(
        jnp.repeat(x, 2, 0))[:, :160]
    h = jnp.einsum("ecd,edh->ech", slots, up)
    out = jnp.pad(jnp.einsum("ech,ehd->ecd", jax.nn.relu(h), down), ((0, 0), (0, 1), (0, 0)))
    return (out[expert.reshape(-1), place] * weight.reshape(-1, 1)).reshape(512, 2, 64).sum(1)


@sparse(f32(300, 300))
def bcoo_product(x):
    from jax.experimental import sparse as js
    m = js.BCOO.fromdense(jnp.where(x > 0.9, x, 0), nse=6000)
    return m @ x
