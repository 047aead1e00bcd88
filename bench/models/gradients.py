"""gradients.py ours|torch NAME FILE [--type float64|float32|bfloat16] [--steps N]
                [--feed PROGRAM]

The gradient of each parameter in the first step of a model, in PyTorch's shape, and
the losses of N steps, as FILE (npz). ours: JAX's text, run by bench/feed. torch's
bfloat16 is autocast.
"""
import argparse
import pathlib
import subprocess
import tempfile

import numpy as np


def feed(args, text, arguments, steps):
    """The results' bytes of the program in bench/feed, and the losses it printed."""
    import jax

    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder, n) for n in ("program", "arguments", "results")]
        files[0].write_text(text)
        with files[1].open("wb") as out:
            for a in jax.tree.leaves(arguments):
                out.write(np.ascontiguousarray(a).tobytes())
        printed = subprocess.run([args.feed, *files, f"--steps={steps}"], check=True,
                                 capture_output=True, text=True).stdout
        return files[2].read_bytes(), [float(x) for x in printed.split()]


def from_ours(args):
    import jax
    import jax_programs
    import jax_steps

    row = jax_steps.STEPS[args.name]
    batch = jax_steps.batch_of(row)
    params, stats, moments = jax_steps.start_of(row, batch[0])
    derive = jax.jit(lambda p, s, *b: jax.value_and_grad(
        lambda p: jax_steps.loss_of(row, p, s, *b)[0])(p)[::-1], keep_unused=True)
    arguments = params, stats, *batch
    raw, losses = feed(args, jax_programs.text(derive, arguments), arguments, 1)
    out, at = {}, 0
    for name in sorted(params):  # the order of a dictionary's leaves
        shape, n = params[name].shape, params[name].size
        g = np.frombuffer(raw, np.float32, n, at).reshape(shape).astype(np.float64)
        out[name] = g.transpose(3, 2, 0, 1) if g.ndim == 4 else g
        at += 4 * n
    if args.steps > 1:
        step, arguments = jax_programs.make(args.name)
        losses = feed(args, jax_programs.text(step, arguments), arguments, args.steps)[1]
    return out, losses


def from_torch(args):
    import torch
    import torch_models
    import torch_steps

    exact = torch.float64 if args.type == "float64" else torch.float32
    model, step = torch_steps.training(args.name, dtype=exact,
                                       autocast=args.type == "bfloat16")
    losses, out = [step().item()], {}
    for name, p in model.named_parameters():
        name = torch_models.LSTM_NAMES.get(name, name)
        out[name] = p.grad.double().numpy()
    for _ in range(args.steps - 1):
        losses.append(step().item())
    return out, losses


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=("ours", "torch"))
    parser.add_argument("name")
    parser.add_argument("file")
    parser.add_argument("--type", default="float32")
    parser.add_argument("--feed", default="build/release/bench/feed")
    parser.add_argument("--steps", type=int, default=1)
    args = parser.parse_args()
    grads, losses = (from_ours if args.peer == "ours" else from_torch)(args)
    np.savez(args.file, **grads, **{"losses of all steps": losses})


main()
