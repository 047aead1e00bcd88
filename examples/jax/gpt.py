"""A small GPT on characters with Flax and Optax, on any platform of JAX.

    JAX_PLATFORMS=calx python examples/jax/gpt.py [--data FILE] [--steps N]

Without a FILE it learns the text of this program. At the end it writes some.
"""

import argparse
import pathlib

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Block(nn.Module):
    heads: int

    @nn.compact
    def __call__(self, x):  # (N, T, C)
        mask = nn.make_causal_mask(x[:, :, 0])
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads)(y, mask=mask)
        y = nn.Dense(4 * x.shape[-1])(nn.LayerNorm()(x))
        return x + nn.Dense(x.shape[-1])(nn.gelu(y))


class GPT(nn.Module):
    vocabulary: int
    context: int
    width: int
    layers: int
    heads: int

    @nn.compact
    def __call__(self, tokens):  # (N, T)
        embed = nn.Embed(self.vocabulary, self.width)
        place = nn.Embed(self.context, self.width)
        x = embed(tokens) + place(jnp.arange(tokens.shape[1]))
        for _ in range(self.layers):
            x = Block(self.heads)(x)
        return embed.attend(nn.LayerNorm()(x))


def write(model, params, tokens, count, key):
    """The text's next `count` tokens, drawn one after the other."""
    @jax.jit
    def following(params, window, key):
        scores = model.apply(params, window[None])[0, -1]
        return jax.random.categorical(key, scores / 0.8)

    for key in jax.random.split(key, count):
        window = jnp.asarray(tokens[-model.context:])
        tokens = np.append(tokens, following(params, window, key))
    return tokens[-count:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", default=__file__)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--write", type=int, default=200)
    args = parser.parse_args()

    text = pathlib.Path(args.data).read_text()
    letters = sorted(set(text))
    tokens = np.array([letters.index(c) for c in text], np.int32)
    model = GPT(len(letters), args.context, args.width, args.layers, 4)
    schedule = optax.warmup_cosine_decay_schedule(0, 1e-3, 20, max(args.steps, 21))
    optimizer = optax.chain(optax.clip_by_global_norm(1.0),
                            optax.adamw(schedule, weight_decay=0.1))
    params = model.init(jax.random.key(0), tokens[None, :args.context])
    state = optimizer.init(params)

    @jax.jit
    def step(params, state, batch):  # (N, T + 1)
        def loss(params):
            scores = model.apply(params, batch[:, :-1])
            return optax.softmax_cross_entropy_with_integer_labels(
                scores, batch[:, 1:]).mean()

        value, grads = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state, params)
        return value, optax.apply_updates(params, updates), state

    rng = np.random.default_rng(0)
    for i in range(args.steps):
        starts = rng.integers(0, len(tokens) - args.context, args.batch_size)
        batch = tokens[starts[:, None] + np.arange(args.context + 1)]
        value, params, state = step(params, state, batch)
        if i % 20 == 0 or i == args.steps - 1:
            print(f"step {i} loss {value:.5f}", flush=True)
    if args.write > 0:
        new = write(model, params, tokens[:args.context], args.write,
                    jax.random.key(1))
        print("".join(letters[i] for i in new))


if __name__ == "__main__":
    main()
