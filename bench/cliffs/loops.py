"""Programs with loops: control flow, dynamic programming, ODE, scientific
loops, sampling, and what libraries for physics and inference do."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from cases import c64, f32, f64, family, i32, key

# ---- control flow ----

control = family("control")


@control(f32(1000))
@control(f32(20000))
def scan_rows(x):
    return lax.scan(lambda c, v: (0.9 * c + v, c * v), 0.0, x)


@control(f32(300, 1000))
def scan_vectors(x):
    def body(c, v):
        c = jnp.tanh(0.5 * c + v)
        return c, c
    return lax.scan(body, x[0], x)


@control(f32(200, 4096))
def scan_writes_rows(x):
    def body(i, out):
        return lax.dynamic_update_slice(out, jnp.sin(lax.dynamic_slice(
            x, (i, 0), (1, 4096))), (i, 0))
    return lax.fori_loop(0, 200, body, jnp.zeros_like(x))


@control(i32(below=30000, least=29999))
def collatz(n):
    def body(s):
        n, k = s
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), k + 1

    def one(n):
        return lax.while_loop(lambda s: s[0] != 1, body, (n, 0))[1]
    return lax.map(one, jnp.arange(1, 500) + n * 0)


@control(i32(below=30001, least=30000))
def fori_scalar(n):
    return lax.fori_loop(0, n, lambda i, c: c * 0.999 + i, 0.0)


@control(f32(64, 100))
def while_converges(x):
    def body(s):
        y = 0.5 * (s[0] + jnp.abs(x) / s[0])
        return y, jnp.abs(y - s[0]).max()
    return lax.while_loop(lambda s: s[1] > 1e-6, body, (jnp.ones_like(x), 1.0))[0]


@control(f32(100, 64), i32(100, below=3))
def cond_in_scan(x, which):
    def body(c, s):
        v, k = s
        return lax.switch(k, (lambda c: c + v, lambda c: c * v, lambda c: c - 1), c), c.sum()
    return lax.scan(body, jnp.ones(64), (x, which))


@control(f32(40, 32, 16))
def nested_scan(x):
    def inner(c, v):
        return 0.9 * c + v, c

    def outer(c, m):
        c, ys = lax.scan(inner, c, m)
        return c, ys.sum(0)
    return lax.scan(outer, jnp.zeros(16), x)


@control(f32(60, 30))
def map_function(x):
    return lax.map(lambda r: jnp.sort(r) @ r, x)


@control(f32(50, 8, 32), f32(32, 32))
def scan_grad(x, w):
    def loss(w):
        return lax.scan(lambda h, v: (jnp.tanh(0.1 * h @ w + v), 0.0),
                        jnp.zeros((8, 32)), x)[0].sum()
    return jax.grad(loss)(w)


@control(f32(1000, 10))
def vmapped_while(x):
    def one(v):
        return lax.while_loop(lambda s: (s[1] < 20) & (jnp.abs(s[0]).sum() > 0.5),
                              lambda s: (s[0] * 0.8, s[1] + 1), (v, 0))
    return jax.vmap(one)(x)


@control(f32(100, 16), f32(100, 16), f32(100, 16, least=0, most=1))
def advantage_estimate(reward, value, done):
    def body(c, s):
        r, v, d, after = s
        c = r + 0.99 * after * (1 - d) - v + 0.95 * 0.99 * (1 - d) * c
        return c, c
    after = jnp.concatenate([value[1:], value[:1]])
    return lax.scan(body, jnp.zeros(16), (reward, value, done, after), reverse=True)[1]


@control(f32(2000))
def exponential_average(x):
    return lax.scan(lambda c, v: (c + 0.1 * (v - c), c), x[0], x)[1]


@control(f32(500, 4))
def kalman(z):
    f = jnp.eye(4) + 0.1 * jnp.eye(4, k=2)

    def body(s, z):
        x, p = f @ s[0], f @ s[1] @ f.T + 0.01 * jnp.eye(4)
        k = p @ jnp.linalg.inv(p + jnp.eye(4))
        return (x + k @ (z - x), p - k @ p), x
    return lax.scan(body, (jnp.zeros(4), jnp.eye(4)), z)[1]


# ---- dynamic programming ----

dp = family("dp")


@dp(i32(100, below=4), i32(101, below=4))
def edit_distance(a, b):
    def row(above, x):
        def cell(left, s):
            up, corner, y = s
            v = jnp.minimum(jnp.minimum(left, up) + 1, corner + (x != y))
            return v, v
        first = above[0] + 1
        _, rest = lax.scan(cell, first, (above[1:], above[:-1], b))
        return jnp.concatenate([first[None], rest]), None
    return lax.scan(row, jnp.arange(102), a)[0][-1]


@dp(f32(90), f32(100))
def time_warping(a, b):
    def row(above, x):
        def cell(left, s):
            up, corner, y = s
            v = jnp.abs(x - y) + jnp.minimum(jnp.minimum(left, up), corner)
            return v, v
        start = jnp.concatenate([jnp.full(1, 1e9), above[:-1]])
        return lax.scan(cell, 1e9, (above, start, b))[1], None
    return lax.scan(row, jnp.zeros(100), a)[0]


@dp(f32(200, 50), f32(50, 50))
def viterbi(emit, move):
    def body(s, e):
        v = s[:, None] + move
        return v.max(0) + e, v.argmax(0)
    last, back = lax.scan(body, emit[0], emit[1:])
    return lax.scan(lambda s, b: (b[s], s), last.argmax(), back, reverse=True)[1]


@dp(f32(300, 30), f32(30, 30))
def forward_algorithm(emit, move):
    def body(s, e):
        return jax.nn.logsumexp(s[:, None] + move, 0) + e, None
    return jax.nn.logsumexp(lax.scan(body, emit[0], emit[1:])[0])


@dp(f32(8, 60, 20), i32(8, 12, below=20, least=1))
def ctc(logits, labels):
    import optax
    zeros = jnp.zeros((8, 60)), jnp.zeros((8, 12))
    return jax.grad(lambda x: optax.ctc_loss(x, zeros[0], labels, zeros[1]).sum())(logits)


@dp(f32(60, 60, least=0, most=9))
def floyd_warshall(d):
    def body(k, d):
        return jnp.minimum(d, d[:, k, None] + d[None, k])
    return lax.fori_loop(0, 60, body, d)


@dp(i32(60, below=40, least=1), i32(60, below=100))
def knapsack(weight, value):
    at = jnp.arange(500)

    def body(best, s):
        w, v = s
        take = jnp.where(at >= w, best[jnp.maximum(at - w, 0)] + v, 0)
        return jnp.maximum(best, take), None
    return lax.scan(body, jnp.zeros(500, jnp.int32), (weight, value))[0]


@dp(f32(64, 50, 50))
def value_iteration(p):
    move = jax.nn.softmax(p * 4, -1)[:4]

    def body(v, _):
        return (move @ v * 0.9 + p[5, :4]).max(0), None
    return lax.scan(body, jnp.zeros(50), None, 100)[0]


@dp(f32(20, 30, least=0, most=1))
def sinkhorn(cost):
    k = jnp.exp(-cost * 10)

    def body(s, _):
        u = 1 / (k @ s[1])
        return (u, 1 / (k.T @ u)), None
    u, v = lax.scan(body, (jnp.ones(20), jnp.ones(30)), None, 100)[0]
    return u[:, None] * k * v


# ---- ODE ----

ode = family("ode")


def runge_kutta(f, y, h):
    a = f(y)
    b = f(y + 0.5 * h * a)
    c = f(y + 0.5 * h * b)
    return y + h / 6 * (a + 2 * b + 2 * c + f(y + h * c))


def lorenz_field(y):
    x, y, z = y[..., 0], y[..., 1], y[..., 2]
    return jnp.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z], -1)


@ode(f32(3))
@ode(f32(1000, 3))
def lorenz(y):
    n = 300 if y.ndim == 1 else 30
    return lax.scan(lambda y, _: (runge_kutta(lorenz_field, y, 0.005), y), y, None, n)


@ode(f32(500, 2))
def lotka_volterra(y):
    def f(y):
        return jnp.stack([y[:, 0] * (1.1 - 0.4 * y[:, 1]), y[:, 1] * (0.1 * y[:, 0] - 0.4)], 1)
    return lax.fori_loop(0, 50, lambda i, y: runge_kutta(f, y, 0.01), jnp.abs(y))


@ode(f32(2))
def adaptive(y):
    """Bogacki and Shampine 1989, with steps by the error."""
    def f(y):
        return jnp.stack([y[1], 3 * (1 - y[0] ** 2) * y[1] - y[0]])

    def body(s):
        t, y, h, n = s
        a = f(y)
        b = f(y + h / 2 * a)
        c = f(y + 3 / 4 * h * b)
        new = y + h * (2 / 9 * a + 1 / 3 * b + 4 / 9 * c)
        d = f(new)
        error = jnp.abs(h * (-5 / 72 * a + b / 12 + c / 9 - d / 8)).max()
        ok = error < 1e-3
        h2 = h * jnp.clip(0.9 * (1e-3 / (error + 1e-12)) ** (1 / 3), 0.3, 3)
        return jnp.where(ok, t + h, t), jnp.where(ok, new, y), h2, n + 1
    return lax.while_loop(lambda s: (s[0] < 5) & (s[3] < 400), body,
                          (0.0, y + 1, 0.05, 0))[1]


@ode(f32(32, 8), f32(8, 64), f32(64, 8))
def neural_ode_grad(y, a, b):
    def loss(a):
        f = lambda y: jnp.tanh(y @ a) @ b * 0.1
        return lax.scan(lambda y, _: (runge_kutta(f, y, 0.1), None), y, None, 10)[0].sum()
    return jax.grad(loss)(a)


@ode(f32(5, 5))
def odeint(y):
    from jax.experimental.ode import odeint
    return odeint(lambda y, t: -y + 0.1 * jnp.sin(t + y), y, jnp.linspace(0.0, 2.0, 5))


@ode(f32(64))
def implicit_euler(y):
    def step(y, _):
        def newton(z, _):
            r = z - y - 0.1 * (-z ** 3 + jnp.roll(z, 1) - z)
            return z - r / (1 + 0.1 * (3 * z * z + 1)), None
        return lax.scan(newton, y, None, 4)[0], None
    return lax.scan(step, y, None, 50)[0]


# ---- scientific loops ----

science = family("science")


@science(f32(200, 200))
@science(f32(129, 131))
def heat(u):
    def body(i, u):
        return u.at[1:-1, 1:-1].add(0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:]
                                           + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]))
    return lax.fori_loop(0, 30, body, u)


@science(f32(200, 200))
def wave_with_roll(u):
    def body(s, _):
        u, v = s
        lap = sum(jnp.roll(u, k, a) for k in (1, -1) for a in (0, 1)) - 4 * u
        v = v + 0.1 * lap
        return (u + 0.1 * v, v), None
    return lax.scan(body, (u, jnp.zeros_like(u)), None, 30)[0]


@science(f32(100, 100, least=0, most=1))
def gray_scott(u):
    def lap(x):
        return sum(jnp.roll(x, k, a) for k in (1, -1) for a in (0, 1)) - 4 * x

    def body(i, s):
        u, v = s
        r = u * v * v
        return (u + 0.16 * lap(u) - r + 0.035 * (1 - u), v + 0.08 * lap(v) + r - 0.1 * v)
    return lax.fori_loop(0, 30, body, (u, 0.5 * u))


@science(f32(64, 64, 9, least=0.9, most=1.1))
def lattice_boltzmann(f):
    c = np.array([(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)])
    w = jnp.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)

    def body(f, _):
        f = jnp.stack([jnp.roll(f[..., i], c[i], (0, 1)) for i in range(9)], -1)
        rho = f.sum(-1)
        u = f @ c.astype(np.float32) / rho[..., None]
        cu = u @ c.T.astype(np.float32)
        equal = rho[..., None] * w * (1 + 3 * cu + 4.5 * cu ** 2 - 1.5 * (u * u).sum(-1, keepdims=True))
        return f - 0.6 * (f - equal), None
    return lax.scan(body, f * w, None, 20)[0]


@science(f32(200, 3))
def n_body(x):
    def force(x):
        d = x[None] - x[:, None]
        r2 = (d * d).sum(-1) + 0.01
        return (d * (r2 ** -1.5)[..., None]).sum(1)

    def body(s, _):
        x, v = s
        v = v + 1e-3 * force(x)
        return (x + 1e-3 * v, v), None
    return lax.scan(body, (x, jnp.zeros_like(x)), None, 10)[0]


@science(f32(128, 3, least=0, most=5))
def molecular_dynamics(x):
    def energy(x):
        d = x[:, None] - x[None]
        d = d - 5 * jnp.round(d / 5)
        r2 = (d * d).sum(-1) + jnp.eye(128) * 9 + 0.3
        s = 1 / r2 ** 3
        return (2 * (s * s - s)).sum()

    def body(s, _):
        x, v = s
        v = v - 1e-5 * jax.grad(energy)(x)
        return (x + 1e-3 * v, v), energy(x)
    return lax.scan(body, (x, jnp.zeros_like(x)), None, 10)


@science(i32(200, 200, below=2))
def game_of_life(x):
    def body(i, x):
        n = sum(jnp.roll(x, (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1)) - x
        return ((n == 3) | ((n == 2) & (x == 1))).astype(jnp.int32)
    return lax.fori_loop(0, 20, body, x)


@science(c64(100, 101, least=-1.5, most=0.6))
def mandelbrot(c):
    def body(i, s):
        z, n = s
        keep = jnp.abs(z) < 2
        return jnp.where(keep, z * z + c, z), n + keep
    return lax.fori_loop(0, 30, body, (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)))[1]


@science(f32(100, 100), f32(100))
@science(f32(700, 700), f32(700))
def conjugate_gradients(a, b):
    a = a @ a.T / a.shape[0] + jnp.eye(a.shape[0])
    return jax.scipy.sparse.linalg.cg(lambda x: a @ x, b, maxiter=30)[0]


@science(f32(50), f32(50))
def quasi_newton(x, target):
    import jax.scipy.optimize
    def f(x):
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (target[:-1] - x[:-1]) ** 2).sum()
    return jax.scipy.optimize.minimize(f, x, method="BFGS", options={"maxiter": 10}).fun


@science(f32(300, 20), i32(300, below=2))
def logistic_newton(x, y):
    def body(w, _):
        p = jax.nn.sigmoid(x @ w)
        h = (x * (p * (1 - p))[:, None]).T @ x + jnp.eye(20)
        return w - jnp.linalg.solve(h, x.T @ (p - y) + w), None
    return lax.scan(body, jnp.zeros(20), None, 10)[0]


@science(f32(2000, 8), f32(16, 8))
def k_means(x, c):
    def body(c, _):
        at = ((x[:, None] - c) ** 2).sum(-1).argmin(1)
        n = jnp.zeros(16).at[at].add(1)
        return jnp.zeros_like(c).at[at].add(x) / jnp.maximum(n, 1)[:, None], None
    return lax.scan(body, c, None, 5)[0]


@science(f32(400, 401))
def power_iteration(a):
    def body(v, _):
        v = a.T @ (a @ v)
        return v / jnp.linalg.norm(v), None
    return lax.scan(body, jnp.ones(401), None, 20)[0]


@science(f32(40000, least=0, most=1))
def trapezoid_integral(x):
    t = jnp.cumsum(x) / 40000
    return jnp.trapezoid(jnp.exp(-t * t), t)


@science(f64(100, 100))
def heat_f64(u):
    return lax.fori_loop(0, 30, lambda i, u: u.at[1:-1, 1:-1].add(
        0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] - 2 * u[1:-1, 1:-1])), u)


@science(f32(60, 61))
def jacobian(x):
    return jax.jacfwd(lambda v: jnp.tanh(v @ x) * v[:1])(x[:, 0])


@science(f32(40))
def hessian(x):
    return jax.hessian(lambda x: (jnp.sin(x) * jnp.roll(x, 1) ** 2).sum())(x)


@science(f32(64, 64), f32(7, 7))
def convolve_2d(x, k):
    return jax.scipy.signal.convolve2d(x, k, mode="same")


# ---- sampling ----

random = family("random")


def sampler(name, function):
    def sample(k):
        return function(jax.random.wrap_key_data(k))
    sample.__name__ = name
    random(key())(sample)


sampler("uniform", lambda k: jax.random.uniform(k, (300, 1001)))
sampler("normal", lambda k: jax.random.normal(k, (300, 1001)))
sampler("normal_bf16", lambda k: jax.random.normal(k, (300, 501), jnp.bfloat16))
sampler("bernoulli", lambda k: jax.random.bernoulli(k, 0.3, (500, 1001)))
sampler("randint", lambda k: jax.random.randint(k, (100003,), 0, 1000))
sampler("permutation", lambda k: jax.random.permutation(k, 20000))
sampler("gumbel", lambda k: jax.random.gumbel(k, (200, 501)))
sampler("exponential", lambda k: jax.random.exponential(k, (100003,)))
sampler("laplace", lambda k: jax.random.laplace(k, (100003,)))
sampler("truncated_normal", lambda k: jax.random.truncated_normal(k, -2, 2, (100003,)))
sampler("gamma", lambda k: jax.random.gamma(k, 2.5, (1000,)))
sampler("choice", lambda k: jax.random.choice(k, 5000, (500,), replace=False))
sampler("many_keys", lambda k: jax.vmap(lambda k: jax.random.normal(k, (7,)))(jax.random.split(k, 1000)))
sampler("multivariate", lambda k: jax.random.multivariate_normal(
    k, jnp.zeros(20), jnp.eye(20) + 0.1, (500,)))


@random(key(), f32(64, 5001))
def categorical(k, logits):
    return jax.random.categorical(jax.random.wrap_key_data(k), logits)


@random(key(), f32(300, 1003))
def dropout(k, x):
    keep = jax.random.bernoulli(jax.random.wrap_key_data(k), 0.9, x.shape)
    return jax.grad(lambda x: jnp.where(keep, x / 0.9, 0).sum())(x)


@random(key())
def monte_carlo(k):
    x = jax.random.uniform(jax.random.wrap_key_data(k), (2, 200000))
    return 4 * ((x * x).sum(0) < 1).mean()


@random(key(), f32(64, 64))
def keys_in_scan(k, x):
    def body(s, _):
        k, x = s
        k, sub = jax.random.split(k)
        return (k, x + 0.1 * jax.random.normal(sub, x.shape)), None
    return lax.scan(body, (jax.random.wrap_key_data(k), x), None, 10)[0][1]


@random(key())
def geometric_brownian(k):
    z = jax.random.normal(jax.random.wrap_key_data(k), (500, 100))
    return jnp.maximum(jnp.exp(jnp.cumsum(0.1 * z - 0.005, 1)) - 1, 0).mean(0)


# ---- what libraries do ----

library = family("library")


@library(key(), f32(10))
def metropolis(k, x):
    def body(s, k):
        x, e = s
        a, b = jax.random.split(k)
        y = x + 0.3 * jax.random.normal(a, (10,))
        new = (y * y).sum() / 2
        ok = jnp.log(jax.random.uniform(b)) < e - new
        return (jnp.where(ok, y, x), jnp.where(ok, new, e)), x
    keys = jax.random.split(jax.random.wrap_key_data(k), 300)
    return lax.scan(body, (x, (x * x).sum() / 2), keys)[1].mean(0)


@library(key(), f32(100, 8), i32(100, below=2))
def hamiltonian(k, x, y):
    def energy(w):
        z = x @ w
        return (jax.nn.softplus(z) - y * z).sum() + (w * w).sum() / 2

    def body(w, k):
        p = jax.random.normal(k, (8,))

        def leap(s, _):
            w, p = s
            p = p - 0.025 * jax.grad(energy)(w)
            w = w + 0.05 * p
            return (w, p - 0.025 * jax.grad(energy)(w)), None
        return lax.scan(leap, (w, p), None, 8)[0][0], w
    keys = jax.random.split(jax.random.wrap_key_data(k), 20)
    return lax.scan(body, jnp.zeros(8), keys)[1]


@library(f32(256, 13, 3), f32(256, 13, 3), f32(256, 12, least=0, most=0.1))
def rigid_chain(x, v, torque):
    """Bodies joined by springs, as in position-based physics engines."""
    def body(s, _):
        x, v = s
        d = x[:, 1:] - x[:, :-1]
        r = jnp.sqrt((d * d).sum(-1, keepdims=True) + 1e-6)
        f = 100 * (r - 0.5) * d / r + torque[..., None] * jnp.cross(d, v[:, 1:])
        a = jnp.pad(f, ((0, 0), (0, 1), (0, 0))) - jnp.pad(f, ((0, 0), (1, 0), (0, 0)))
        v = 0.999 * (v + 1e-3 * a) - jnp.array([0, 0, 0.0098])
        v = v.at[..., 2].set(jnp.where(x[..., 2] < 0, jnp.abs(v[..., 2]) * 0.5, v[..., 2]))
        return (x + 1e-3 * v, v), None
    return lax.scan(body, (x, v), None, 8)[0]


@library(f32(1000, 4), f32(1000, 4))
def quaternions(a, b):
    w, x, y, z = (a[:, i] for i in range(4))
    p, q, r, s = (b[:, i] for i in range(4))
    out = jnp.stack([w * p - x * q - y * r - z * s, w * q + x * p + y * s - z * r,
                     w * r - x * s + y * p + z * q, w * s + x * r - y * q + z * p], 1)
    return out / jnp.linalg.norm(out, axis=1, keepdims=True)


@library(f32(64, 4), key(), f32(4, 32), f32(32, 2))
def cart_pole_rollout(s, k, a, b):
    def body(s, k):
        act = jax.random.categorical(k, jnp.tanh(s @ a) @ b)
        x, v, t, w = s.T
        f = jnp.where(act == 1, 10.0, -10.0)
        tmp = (f + 0.05 * w * w * jnp.sin(t)) / 1.1
        ang = (9.8 * jnp.sin(t) - jnp.cos(t) * tmp) / (0.5 * (4 / 3 - 0.1 * jnp.cos(t) ** 2 / 1.1))
        acc = tmp - 0.05 * ang * jnp.cos(t) / 1.1
        new = jnp.stack([x + 0.02 * v, v + 0.02 * acc, t + 0.02 * w, w + 0.02 * ang], 1)
        done = (jnp.abs(new[:, 0]) > 2.4) | (jnp.abs(new[:, 2]) > 0.2)
        return jnp.where(done[:, None], 0.0, new), done
    return lax.scan(body, s * 0.1, jax.random.split(jax.random.wrap_key_data(k), 100))


@library(f32(100, 8), f32(8, 64), f32(64, 64), f32(64, 1))
def pinn_loss_grad(x, a, b, c):
    def loss(w):
        def u(p):
            return (jnp.tanh(jnp.tanh(p @ w[0]) @ w[1]) @ w[2])[0]
        def residual(p):
            return jnp.trace(jax.hessian(u)(p)) + u(p)
        return jnp.square(jax.vmap(residual)(x)).mean()
    return jax.grad(loss)((a, b, c))


@library(f32(20, 512), f32(20))
def evolution_strategy(noise, fitness):
    rank = jnp.argsort(jnp.argsort(fitness)) / 19 - 0.5
    return rank @ noise, jnp.square(noise).sum(1)


@library(f32(64, 32), f32(64, 32))
def contrastive_grad(x, y):
    def loss(x):
        a = x / jnp.linalg.norm(x, axis=1, keepdims=True)
        b = y / jnp.linalg.norm(y, axis=1, keepdims=True)
        z = a @ b.T / 0.07
        return -(jax.nn.log_softmax(z).diagonal() + jax.nn.log_softmax(z, 0).diagonal()).mean()
    return jax.grad(loss)(x)


def optimiser(name):
    import optax

    def update(p, g):
        o = getattr(optax, name)(1e-3)
        s = o.init(p)
        for _ in range(3):
            u, s = o.update(g, s, p)
            p = optax.apply_updates(p, u)
        return p
    update.__name__ = name
    library(f32(200, 301), f32(200, 301))(update)


for each in "adamw", "lion", "adafactor", "lamb", "rmsprop", "sm3":
    optimiser(each)
