"""A ResNet on images of 32 x 32 with Flax and Optax, on any platform of JAX.

    JAX_PLATFORMS=calx python examples/jax/resnet.py [--steps N] [--width W]

ResNet-18 with a first convolution of 3 x 3 (He et al., 2015, arXiv:1512.03385). The
images are made up: waves, each class in a direction and colour of its own.
"""

import argparse

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Block(nn.Module):
    channels: int
    stride: int

    @nn.compact
    def __call__(self, x, train):
        def norm(y):
            return nn.BatchNorm(not train, momentum=0.9)(y)

        def conv(y, size, stride=1):
            return nn.Conv(self.channels, (size, size), (stride, stride),
                           use_bias=False)(y)

        y = nn.relu(norm(conv(x, 3, self.stride)))
        y = norm(conv(y, 3))
        if x.shape != y.shape:
            x = norm(conv(x, 1, self.stride))
        return nn.relu(x + y)


class ResNet(nn.Module):
    width: int
    classes: int
    blocks: tuple = (2, 2, 2, 2)

    @nn.compact
    def __call__(self, x, train):  # (N, 32, 32, 3)
        x = nn.Conv(self.width, (3, 3), use_bias=False)(x)
        x = nn.relu(nn.BatchNorm(not train, momentum=0.9)(x))
        for stage, count in enumerate(self.blocks):
            for i in range(count):
                stride = 2 if stage > 0 and i == 0 else 1
                x = Block(self.width << stage, stride)(x, train)
        return nn.Dense(self.classes)(x.mean((1, 2)))


def draw(rng, count, classes):
    """Images (count, 32, 32, 3) and their classes."""
    labels = rng.integers(0, classes, count)
    angle = (np.pi * labels / classes)[:, None, None]
    y, x = np.mgrid[:32, :32]
    wave = np.sin(0.6 * (np.cos(angle) * x + np.sin(angle) * y)
                  + rng.uniform(0, 2 * np.pi, (count, 1, 1)))
    colours = np.random.default_rng(0).uniform(0.2, 1, (classes, 3))
    images = wave[..., None] * colours[labels][:, None, None]
    images = images + 0.5 * rng.standard_normal(images.shape)
    return images.astype(np.float32), labels


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--classes", type=int, default=10)
    args = parser.parse_args()

    net = ResNet(args.width, args.classes)
    optimizer = optax.chain(optax.add_decayed_weights(1e-4),
                            optax.sgd(0.02, momentum=0.9, nesterov=True))
    variables = net.init(jax.random.key(0), jnp.zeros((1, 32, 32, 3)), False)
    params, stats = variables["params"], variables["batch_stats"]
    state = optimizer.init(params)

    @jax.jit
    def step(params, stats, state, images, labels):
        def loss(params):
            scores, changed = net.apply(
                {"params": params, "batch_stats": stats}, images, True,
                mutable=["batch_stats"])
            value = optax.softmax_cross_entropy_with_integer_labels(
                scores, labels).mean()
            return value, changed["batch_stats"]

        (value, stats_after), grads = jax.value_and_grad(
            loss, has_aux=True)(params)
        updates, after = optimizer.update(grads, state, params)
        return value, optax.apply_updates(params, updates), stats_after, after

    @jax.jit
    def correct(params, stats, images, labels):
        scores = net.apply({"params": params, "batch_stats": stats}, images, False)
        return jnp.mean(scores.argmax(1) == labels)

    rng = np.random.default_rng(1)
    for i in range(args.steps):
        batch = draw(rng, args.batch_size, args.classes)
        value, params, stats, state = step(params, stats, state, *batch)
        if i % 2 == 0 or i == args.steps - 1:
            print(f"step {i} loss {value:.5f}", flush=True)
    tests = draw(np.random.default_rng(2), 512, args.classes)
    print(f"accuracy {100 * correct(params, stats, *tests):.2f} %")


if __name__ == "__main__":
    main()
