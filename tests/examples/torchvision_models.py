"""torchvision_models.py PROGRAM: torchvision's weights load into the examples' models,
which compute and learn the same. PROGRAM is torchvision.c's.

Compared: the numbers of parameters, the state dicts' names, the logits in evaluation,
the loss of a training step, all weights and running statistics after it. All models
where CALX_TEST_LONG=1 asks, else a few.
"""

import os
import subprocess
import sys
import tempfile

import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import with_torchvision  # noqa: E402, F401
from torchvision import models, ops  # noqa: E402

LONG = os.environ.get("CALX_TEST_LONG") == "1"
RESNETS = ["resnet50", "resnet101", "resnet152"]
SAMPLE = ["resnet50", "b0", "b1"]


def make(name):
    model = getattr(models, name if name in RESNETS else f"efficientnet_{name}")()
    for m in model.modules():
        if isinstance(m, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(m.weight, 0.5, 1.5)
            torch.nn.init.normal_(m.bias, 0, 0.1)
            torch.nn.init.normal_(m.running_mean, 0, 0.1)
            torch.nn.init.uniform_(m.running_var, 0.5, 1.5)
        if isinstance(m, (torch.nn.Dropout, ops.StochasticDepth)):
            m.p = 0.0
    return model.double()


def differ(got, wanted, within):
    scale = wanted.abs().max().clamp(min=1e-3)
    off = ((got - wanted).abs().max() / scale).item()
    return off if not off <= within else 0


def compare(name, program, folder):
    torch.manual_seed(1)
    model = make(name)
    x, y = torch.randn(4, 3, 64, 64).double(), torch.tensor([3, 999, 0, 500])
    paths = [os.path.join(folder, f) for f in ("from.pt", "to.pt")]
    torch.save({"model": model.state_dict(), "x": x, "y": y}, paths[0])
    subprocess.run([program, name, *paths], check=True)
    got = torch.load(paths[1], weights_only=True)
    assert got["parameters"] == sum(p.numel() for p in model.parameters()), name
    model.eval()
    with torch.no_grad():
        logits = model(x)
    assert not differ(got["logits"], logits, 1e-9), (name, "logits")
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    assert not differ(got["loss"], loss.detach(), 1e-9), (name, "loss")
    wanted = model.state_dict()
    assert list(got["model"]) == list(wanted), name
    worst = {k: differ(got["model"][k].double(), v.double(), 1e-7)
             for k, v in wanted.items()}
    worst = {k: v for k, v in worst.items() if v}
    assert not worst, (name, worst)
    make(name).load_state_dict(got["model"])
    print(f"{name}: {got['parameters']} parameters, loss {loss.item():.4f}")


def main():
    program, = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        for name in RESNETS + [f"b{i}" for i in range(8)] if LONG else SAMPLE:
            compare(name, program, folder)


main()
