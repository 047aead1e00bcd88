"""transfer.py PROGRAM: what PyTorch has learned helps. PyTorch trains the MNIST
model on digits that PROGRAM, examples/transfer.c, neither trains nor tests with,
and saves it; with these weights the example reaches the stated accuracy, without
them it does not.
"""

import gzip
import os
import re
import subprocess
import sys

import torch
from torch import nn
from torch.nn import functional as F

TARGET = 96.5
FOLDER = os.path.join(os.environ["CALX_SHARED"], "data", "mnist")


def idx(name, skip):
    with gzip.open(os.path.join(FOLDER, name)) as file:
        return torch.frombuffer(bytearray(file.read()[skip:]), dtype=torch.uint8)


class MNIST(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, 5)
        self.bn1 = nn.BatchNorm2d(10)
        self.conv2 = nn.Conv2d(10, 20, 5)
        self.bn2 = nn.BatchNorm2d(20)
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = self.bn1(F.relu(F.max_pool2d(self.conv1(x), 2)))
        x = self.bn2(F.relu(F.max_pool2d(self.conv2(x), 2)))
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def learn(path):
    torch.manual_seed(0)
    images = (idx("t10k-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28) / 255
              - 0.1307) / 0.3081
    labels = idx("t10k-labels-idx1-ubyte.gz", 8).long()
    model = MNIST()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(2):
        for rows in (512 + torch.randperm(7488)).split(64):
            optimizer.zero_grad()
            F.cross_entropy(model(images[rows]), labels[rows]).backward()
            optimizer.step()
    torch.save(model.state_dict(), path)


def run(program, *words):
    done = subprocess.run([program, "--data", FOLDER, "--target", str(TARGET), *words],
                          text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    accuracy = re.findall(r"^Epoch \d+: ([0-9.]+)%$", done.stdout, re.M)
    print(*words, "exit code", done.returncode, "accuracy", accuracy[-1:])
    if not accuracy:
        print(done.stdout[-2000:])
    return done.returncode


def main():
    path = os.path.join(os.environ["TMPDIR"], "mnist.pt")
    learn(path)
    codes = (run(sys.argv[1], "--weights", path), run(sys.argv[1]),
             run(sys.argv[1], "--weights", sys.argv[0]))
    assert codes == (0, 21, 1), codes


main()
