"""The models of the table in PyTorch, as its users write them, with the names of
parameters of jax_models.py."""
import torch
import torch.nn as nn
import torch.nn.functional as F

import values
from shapes import EFFICIENTNET_B0, GPT, LSTM, POINTWISE, RESNET50


class Mnist(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 10, 5), nn.BatchNorm2d(10)
        self.conv2, self.bn2 = nn.Conv2d(10, 20, 5), nn.BatchNorm2d(20)
        self.fc1, self.fc2 = nn.Linear(320, 50), nn.Linear(50, 10)

    def forward(self, x):
        x = self.bn1(F.relu(F.max_pool2d(self.conv1(x), 2)))
        x = self.bn2(F.relu(F.max_pool2d(self.conv2(x), 2)))
        return self.fc2(F.relu(self.fc1(torch.flatten(x, 1))))


class Unit(nn.Module):
    """Convolution, batch norm, activation."""

    def __init__(self, cin, cout, size=1, stride=1, groups=1, act=None):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, size, stride, size // 2, groups=groups,
                              bias=False)
        self.bn, self.act = nn.BatchNorm2d(cout), act

    def forward(self, x):
        x = self.bn(self.conv(x))
        return self.act(x, inplace=True) if self.act else x


class Bottleneck(nn.Module):
    def __init__(self, cin, width, stride, first):
        super().__init__()
        self.a = Unit(cin, width, act=F.relu)
        self.b = Unit(width, width, 3, stride, act=F.relu)
        self.c = Unit(width, 4 * width)
        self.short = Unit(cin, 4 * width, 1, stride) if first else nn.Identity()

    def forward(self, x):
        return F.relu(self.c(self.b(self.a(x))) + self.short(x), inplace=True)


class Resnet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, blocks, cin = Unit(3, 64, 7, 2, act=F.relu), [], 64
        for stage, (width, n) in enumerate(RESNET50):
            for i in range(n):
                stride = 2 if stage > 0 and i == 0 else 1
                blocks.append(Bottleneck(cin, width, stride, i == 0))
                cin = 4 * width
        self.blocks, self.fc = nn.Sequential(*blocks), nn.Linear(2048, 1000)

    def forward(self, x):
        x = self.blocks(F.max_pool2d(self.stem(x), 3, 2, 1))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class MbBlock(nn.Module):
    def __init__(self, cin, expand, size, stride, cout):
        super().__init__()
        width = cin * expand
        self.expand = Unit(cin, width, act=F.silu) if expand > 1 else nn.Identity()
        self.depthwise = Unit(width, width, size, stride, width, act=F.silu)
        self.squeeze = nn.Conv2d(width, cin // 4, 1)
        self.excite = nn.Conv2d(cin // 4, width, 1)
        self.project = Unit(width, cout)
        self.residual = stride == 1 and cin == cout

    def forward(self, x):
        y = self.depthwise(self.expand(x))
        z = self.excite(F.silu(self.squeeze(F.adaptive_avg_pool2d(y, 1))))
        y = self.project(y * torch.sigmoid(z))
        return y + x if self.residual else y


class EfficientNetB0(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, blocks, cin = Unit(3, 32, 3, 2, act=F.silu), [], 32
        for expand, size, stride, cout, n in EFFICIENTNET_B0:
            for i in range(n):
                blocks.append(MbBlock(cin, expand, size, 1 if i else stride, cout))
                cin = cout
        self.blocks = nn.Sequential(*blocks)
        self.head, self.fc = Unit(320, 1280, act=F.silu), nn.Linear(1280, 1000)

    def forward(self, x):
        x = self.head(self.blocks(self.stem(x)))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = (p.view(n, t, GPT.heads, -1).transpose(1, 2)
                   for p in self.qkv(self.norm1(x)).split(d, 2))
        h = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(h.transpose(1, 2).reshape(n, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*(Block(GPT.width) for _ in range(GPT.blocks)))

    def forward(self, x):
        return self.blocks(x)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(784, 256), nn.Linear(256, 256)
        self.fc3 = nn.Linear(256, 10)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.LSTM(LSTM.width, LSTM.width)

    def forward(self, x):
        return self.cells(x)[0]


class Pointwise50(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(POINTWISE))

    def forward(self, x):
        y = self.w
        for i in range(10):
            y = torch.tanh(y * x + 0.5) * (1 + 0.01 * i) - x
        return y


MODELS = {"mnist_nhwc": Mnist, "resnet50": Resnet50,
          "efficientnet_b0": EfficientNetB0, "gpt": Gpt, "gpt_bf16": Gpt, "mlp": Mlp,
          "lstm": Lstm, "lstm_hoisted": Lstm, "pointwise50": Pointwise50}
LSTM_NAMES = {"cells.weight_ih_l0": "wi.weight", "cells.weight_hh_l0": "wh.weight",
              "cells.bias_ih_l0": "wi.bias", "cells.bias_hh_l0": "wh.bias"}


def make(name):
    """The model with the values of values.py."""
    model = MODELS[name]()
    with torch.no_grad():
        for n, p in model.named_parameters():
            n = LSTM_NAMES.get(n, n)
            p.copy_(torch.from_numpy(values.parameter(n, tuple(p.shape))))
    return model
