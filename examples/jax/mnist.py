"""MNIST with Flax and Optax, on any platform of JAX.

    JAX_PLATFORMS=calx python examples/jax/mnist.py [--data DIR] [--epochs N]

DIR has the IDX files of MNIST, plain or .gz. Without it the images are made up: a
pattern of 5 x 5 squares for each digit, shifted, with noise.
"""

import argparse
import gzip
import pathlib

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):  # (N, 28, 28, 1)
        x = nn.max_pool(nn.relu(nn.Conv(32, (3, 3))(x)), (2, 2), (2, 2))
        x = nn.max_pool(nn.relu(nn.Conv(64, (3, 3))(x)), (2, 2), (2, 2))
        x = nn.relu(nn.Dense(128)(x.reshape(len(x), -1)))
        return nn.Dense(10)(x)


def read_idx(folder, name, header):
    path = pathlib.Path(folder) / name
    data = (path.read_bytes() if path.exists()
            else gzip.open(f"{path}.gz").read())
    return np.frombuffer(data, np.uint8, offset=header)


def load(folder, kind, prefix, count):
    """Images (N, 28, 28, 1) from 0 to 1, and the digits."""
    if folder:
        images = read_idx(folder, f"{prefix}-images-idx3-ubyte", 16)
        labels = read_idx(folder, f"{prefix}-labels-idx1-ubyte", 8)
        return images.reshape(-1, 28, 28, 1) / np.float32(255), labels
    patterns = np.random.default_rng(0).integers(0, 2, (10, 5, 5))
    rng = np.random.default_rng(kind)
    labels = rng.integers(0, 10, count)
    images = np.zeros((count, 28, 28, 1), np.float32)
    for image, label, (y, x) in zip(images, labels, rng.integers(0, 9, (count, 2))):
        image[y:y + 20, x:x + 20, 0] = np.kron(patterns[label], np.ones((4, 4)))
    return images + 0.3 * rng.standard_normal(images.shape, np.float32), labels


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--count", type=int, default=8192,
                        help="images of an epoch that are made up")
    args = parser.parse_args()

    net, optimizer = Net(), optax.adam(1e-3)
    params = net.init(jax.random.key(0), jnp.zeros((1, 28, 28, 1)))
    state = optimizer.init(params)

    @jax.jit
    def step(params, state, images, labels):
        def loss(params):
            scores = net.apply(params, images)
            return optax.softmax_cross_entropy_with_integer_labels(
                scores, labels).mean()

        value, grads = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state)
        return value, optax.apply_updates(params, updates), state

    @jax.jit
    def correct(params, images, labels):
        return jnp.mean(net.apply(params, images).argmax(1) == labels)

    images, labels = load(args.data, 1, "train", args.count)
    tests = load(args.data, 2, "t10k", 1000)
    for epoch in range(args.epochs):
        order = np.random.default_rng(epoch).permutation(len(images))
        for i in range(0, len(order) - args.batch_size + 1, args.batch_size):
            at = order[i:i + args.batch_size]
            value, params, state = step(params, state, images[at], labels[at])
            if i // args.batch_size % 20 == 0:
                print(f"epoch {epoch} step {i // args.batch_size} "
                      f"loss {value:.5f}", flush=True)
        print(f"epoch {epoch} accuracy {100 * correct(params, *tests):.2f} %")


if __name__ == "__main__":
    main()
