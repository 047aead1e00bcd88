"""The training steps of tools/make-models in PyTorch: `gpt` and `resnet50`.

  torch_models.py MODEL [--seconds S] [--threads N] [--channels-last]

Prints the median and the best step in ms, to hold against bench/program.
"""
import argparse
import math
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = (part.view(n, t, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(d, 2))
        score = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)
        mask = torch.ones(t, t, dtype=torch.bool).tril()
        score = score.masked_fill(~mask, -1e30).softmax(-1)
        x = x + self.out((score @ v).transpose(1, 2).reshape(n, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


def gpt():
    model = nn.Sequential(*(Block(768, 12) for _ in range(4)))
    x, y = torch.randn(4, 256, 768), torch.randn(4, 256, 768)
    return (model, torch.optim.AdamW(model.parameters(), 1e-3),
            lambda: F.mse_loss(model(x), y))


def unit(cin, cout, size, stride=1):
    return nn.Sequential(nn.Conv2d(cin, cout, size, stride, size // 2, bias=False),
                         nn.BatchNorm2d(cout))


class Bottleneck(nn.Module):
    def __init__(self, cin, width, stride):
        super().__init__()
        self.body = nn.Sequential(unit(cin, width, 1), nn.ReLU(),
                                  unit(width, width, 3, stride), nn.ReLU(),
                                  unit(width, 4 * width, 1))
        self.short = (nn.Identity() if cin == 4 * width
                      else unit(cin, 4 * width, 1, stride))

    def forward(self, x):
        return F.relu(self.body(x) + self.short(x))


def resnet50(channels_last):
    layers = [unit(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    cin = 64
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(Bottleneck(cin, width, stride))
            cin = 4 * width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)]
    model = nn.Sequential(*layers)
    x, y = torch.randn(8, 3, 224, 224), torch.randint(0, 1000, (8,))
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    return (model, torch.optim.SGD(model.parameters(), 0.01, momentum=0.5),
            lambda: F.cross_entropy(model(x), y))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=("gpt", "resnet50"))
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--channels-last", action="store_true")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model, optimiser, loss = gpt() if args.model == "gpt" else resnet50(args.channels_last)
    model.train()
    times = []
    end = None
    while end is None or time.perf_counter() < end or len(times) < 4:
        start = time.perf_counter()
        optimiser.zero_grad()
        loss().backward()
        optimiser.step()
        times.append((time.perf_counter() - start) * 1e3)
        if end is None:  # the first is for warming up
            times.clear()
            end = time.perf_counter() + args.seconds
    print(f"peer=torch model={args.model} ms={statistics.median(times):.1f} "
          f"best={min(times):.1f} threads={torch.get_num_threads()} "
          f"channels_last={args.channels_last}")


main()
