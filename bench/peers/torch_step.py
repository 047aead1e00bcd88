"""The MNIST step in PyTorch: eager on the CPU, or with --xla in PyTorch/XLA."""
import os
import time

import common

parser = common.options(__doc__)
parser.add_argument("--xla", action="store_true")
parser.add_argument("--channels-last", action="store_true",
                    help="eager: the memory format of the convolutions")
parser.add_argument("--peer")
a = parser.parse_args()
if a.xla:
    os.environ.setdefault("PJRT_DEVICE", "CPU")

import torch
import torch.nn as nn
import torch.nn.functional as F

if a.xla:
    import torch_xla
    import torch_xla.core.xla_model as xm

    device = torch_xla.device()
else:
    device = torch.device("cpu")
    torch.set_num_threads(len(os.sched_getaffinity(0)))


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
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        return F.log_softmax(self.fc2(x), dim=1)


images, labels = (torch.from_numpy(v).to(device) for v in common.batch(a.batch))
model = MNIST()
if not a.start:
    model.load_state_dict({k: torch.from_numpy(v)
                           for k, v in common.parameters().items()},
                          strict=False)
model = model.train().to(device)
if a.channels_last:
    model = model.to(memory_format=torch.channels_last)
    images = images.contiguous(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
traced = []


def step():
    begin = time.perf_counter()
    optimizer.zero_grad()
    loss = F.nll_loss(model(images), labels)
    loss.backward()
    optimizer.step()
    traced.append((time.perf_counter() - begin) * 1e6)
    if a.xla:
        torch_xla.sync()
    return loss


def wait():
    if a.xla:
        xm.wait_device_ops()


peer = a.peer or ("torch_xla" if a.xla else "torch")
if a.start:
    common.start(peer, a.batch, step, torch.Tensor.item, cache="none")
else:
    # What recording costs is known after the steps, so it is a line of its own.
    common.measure(peer, a.batch, step, wait, a.seconds, torch.Tensor.item,
                   version=torch.__version__)
    if a.xla:
        common.say(peer=peer + "-tracing", batch=a.batch,
                   us=f"{common.median(traced):.0f}")
