"""tutorial.py PAGE EXAMPLE PROGRAM [OPTION...]: a page of docs/tutorials is true.

Each block of C stands in the example's source or a header that it includes. The blocks of Python
together are a program, which is run here with PyTorch on 20 random batches; its
weights, batches and noise are recorded, and PROGRAM, the example linked with
replay.c, trains from them. What both print of each step is the same to 1e-4.
"""

import os
import re
import subprocess
import sys
import tempfile

import torch

STEPS = 20
BOUND = 1e-4  # of max(1, |value|)


def batch(name, options):
    """One random batch of an example, as its loader gives it."""
    size = int(options.get("batch-size", 8))
    images = int(options.get("image-size", 64))
    return {
        "autoencoder": lambda: [torch.randn(64, 32)],
        "gan": lambda: [torch.randn(256, 2)],
        "efficientnet": lambda: [torch.randn(size, 3, images, images),
                                 torch.randint(4, (size,))],
        "resnet50": lambda: [torch.randn(size, 3, images, images),
                             torch.randint(1000, (size,))],
        "transfer": lambda: [digits(64), torch.randint(10, (64,))],
        "vae": lambda: [digits(128), torch.randint(10, (128,))],
        "gpt": lambda: [torch.randint(97, 123, (16, 64)),
                        torch.randint(97, 123, (16, 64))],
        "lstm": lambda: [torch.randint(97, 123, (32, 64)),
                         torch.randint(97, 123, (32, 64))],
        "regression": lambda: [torch.randn(200, 4) * 30 + 70,
                               torch.randn(200) * 120 + 400],
    }[name]()


def digits(count):
    """Images of random blots, normalised as MNIST's."""
    coarse = torch.rand(count, 1, 7, 7).gt(0.7).float()
    images = torch.nn.functional.interpolate(coarse, scale_factor=4, mode="bilinear")
    return (images - 0.1307) / 0.3081


class Loader:
    """Records the models when the first batch is asked for."""

    def __init__(self, name, options, names):
        self.batches = [batch(name, options) for _ in range(STEPS)]
        self.names, self.models, self.noise = names, None, []

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        assert self.models is None, "the page's program has one epoch here"
        self.models = {
            type(value).__name__: {k: v.clone() for k, v in
                                   value.state_dict().items()}
            for value in self.names.values()
            if isinstance(value, torch.nn.Module)}
        for one in self.batches:
            yield one if len(one) > 1 else one[0]

    def recorded(self, function):
        def draw(*args, **options):
            values = function(*args, **options)
            if self.models is not None:
                self.noise.append(values.detach().clone())
            return values
        return draw


def run_python(page, name, options):
    values = []

    def record(*words):
        values.extend(zip(words[::2], words[1::2]))

    names = {"print": record, "epochs": 1}
    loader = names["loader"] = Loader(name, options, names)
    names["weights"] = None
    for option, value in options.items():
        number = int(value) if value.isdigit() else float(value)
        names[option.replace("-", "_")] = number
    torch.randn = loader.recorded(torch.randn)
    torch.randn_like = loader.recorded(torch.randn_like)
    exec(compile("\n".join(blocks(page, "python")), name, "exec"), names)
    return loader, values


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S)


def read_source(path):
    """The example and the headers of its folder that it includes."""
    text = open(path, encoding="utf-8").read()
    for name in re.findall(r'^#include "(.*)"$', text, re.M):
        text += read_source(os.path.join(os.path.dirname(path), name))
    return text


def run_program(program, words, loader):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "replay.pt")
        torch.save({"models": loader.models, "batches": loader.batches,
                    "noise": loader.noise}, path)
        done = subprocess.run([program, *words], text=True, check=False,
                              env={**os.environ, "REPLAY": path},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lines = re.findall(r"^REPLAY (\S+) (\S+)$", done.stdout, re.M)
    if done.returncode != 0:
        print(done.stdout[-2000:], done.stderr[-2000:])
        sys.exit(f"FAILED: exit code {done.returncode}")
    return [(name, float(value)) for name, value in lines]


def main():
    page = open(sys.argv[1], encoding="utf-8").read()
    folder = os.path.dirname(sys.argv[2])
    named = set(re.findall(r"`examples/([\w.]+)`", page))
    source = "".join(read_source(os.path.join(folder, n)) for n in named)
    pieces = blocks(page, "c")
    for piece in pieces:
        if piece not in source:
            sys.exit(f"FAILED: not in {sys.argv[2]}:\n{piece}")
    assert pieces, "the page has no C"
    torch.manual_seed(1)
    name = os.path.splitext(os.path.basename(sys.argv[2]))[0]
    words = sys.argv[4:]
    options = dict(word.lstrip("-").split("=") for word in words if "=" in word)
    loader, wanted = run_python(page, name, options)
    found = run_program(sys.argv[3], words, loader)
    assert len(wanted) >= STEPS and len({v for _, v in wanted}) >= STEPS
    assert [n for n, _ in found] == [n for n, _ in wanted], (found, wanted)
    worst = 0
    for (key, value), (_, other) in zip(wanted, found):
        worst = max(worst, abs(value - other) / max(1, abs(value)))
        print(f"{key} {value:.7f} {other:.7f}")
    assert worst <= BOUND, worst  # a NaN too
    print(f"{len(wanted)} values of {STEPS} steps: at most {worst:.2g} apart")


main()
