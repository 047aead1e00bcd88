"""The MNIST step in JAX: one jitted function, its state donated.

On JAX's own CPU backend, or through a plugin file with
PJRT_NAMES_AND_LIBRARY_PATHS=calx:/path/lib.so JAX_PLATFORMS=calx.
"""
import os

import common

parser = common.options(__doc__)
parser.add_argument("--peer", default="jax")
parser.add_argument("--layout", choices=("nchw", "nhwc"), default="nchw",
                    help="of the convolutions; the batch comes as NCHW")
parser.add_argument("--cache", help="folder of compiled programs")
a = parser.parse_args()

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

if a.cache:
    jax.config.update("jax_compilation_cache_dir", a.cache)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

NCHW = a.layout == "nchw"
CHANNEL = 1 if NCHW else 3
SPACE = (0, 2, 3) if NCHW else (0, 1, 2)
LAYOUT = ("NCHW", "OIHW", "NCHW") if NCHW else ("NHWC", "OIHW", "NHWC")
WINDOW = (1, 1, 2, 2) if NCHW else (1, 2, 2, 1)


def along_channel(v):
    return v.reshape([-1 if i == CHANNEL else 1 for i in range(4)])


def conv(p, name, x):
    y = lax.conv_general_dilated(x, p[name + ".weight"], (1, 1), "VALID",
                                 dimension_numbers=LAYOUT)
    return y + along_channel(p[name + ".bias"])


def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, WINDOW, WINDOW, "VALID")


def norm(p, state, name, x, new):
    mean = x.mean(SPACE)
    var = x.var(SPACE)
    n = x.size / x.shape[CHANNEL]
    old = state[name]
    new[name] = (old[0] * 0.9 + lax.stop_gradient(mean) * 0.1,
                 old[1] * 0.9 + lax.stop_gradient(var) * (n / (n - 1)) * 0.1,
                 old[2] + 1)
    y = (x - along_channel(mean)) * along_channel(lax.rsqrt(var + 1e-5))
    return (y * along_channel(p[name + ".weight"]) +
            along_channel(p[name + ".bias"]))


def loss_of(p, state, x, target):
    new = {}
    if not NCHW:
        x = x.transpose(0, 2, 3, 1)
    x = norm(p, state, "bn1", jax.nn.relu(pool(conv(p, "conv1", x))), new)
    x = norm(p, state, "bn2", jax.nn.relu(pool(conv(p, "conv2", x))), new)
    if not NCHW:
        x = x.transpose(0, 3, 1, 2)
    x = x.reshape(x.shape[0], -1)
    x = jax.nn.relu(x @ p["fc1.weight"].T + p["fc1.bias"])
    x = x @ p["fc2.weight"].T + p["fc2.bias"]
    picked = jnp.take_along_axis(jax.nn.log_softmax(x), target[:, None], 1)
    return -picked.mean(), new


def train(state, x, target):
    p, norms, momentum = state
    (loss, norms), grads = jax.value_and_grad(loss_of, has_aux=True)(
        p, norms, x, target)
    momentum = jax.tree.map(lambda m, g: 0.5 * m + g, momentum, grads)
    p = jax.tree.map(lambda v, m: v - 0.01 * m, p, momentum)
    return (p, norms, momentum), loss


def norm_state(n):
    return np.zeros(n, np.float32), np.ones(n, np.float32), np.int32(0)


images, labels = common.batch(a.batch)
p = common.parameters()
device = jax.devices()[0]
state = jax.device_put((p, {"bn1": norm_state(10), "bn2": norm_state(20)},
                        jax.tree.map(np.zeros_like, p)), device)
x = jax.device_put(images, device)
target = jax.device_put(labels.astype(np.int32), device)
jitted = jax.jit(train, donate_argnums=0)


def step():
    global state
    state, loss = jitted(state, x, target)
    return loss


def wait():
    jax.block_until_ready(state)


if a.start:
    cache = "none" if a.cache is None else (
        "warm" if os.path.isdir(a.cache) and os.listdir(a.cache) else "cold")
    common.start(a.peer, a.batch, step, cache=cache)
else:
    common.measure(a.peer, a.batch, step, wait, a.seconds,
                   version=jax.__version__)
