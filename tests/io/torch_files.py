"""torch_files.py pt|safetensors|module|SGD|Adam|AdamW|mixed FROM TO: reads a file of
calx's and writes it again; an optimiser's name, and mixed: a step further.

For the test io_torch: PyTorch must take what calx wrote, with weights_only.
"""

import copy
import sys

import torch


def pt(source, target):
    value = torch.load(source, weights_only=True)
    again = value["again"], value["f32"]
    assert again[0].data_ptr() == again[1].data_ptr(), "a shared storage"
    assert torch.load(source, weights_only=True, mmap=True)["i64"].shape == (3, 5)
    torch.save(value, target)


def safetensors(source, target):
    from safetensors.torch import load_file, save_file
    value = load_file(source)
    save_file({name: tensor.clone() for name, tensor in value.items()}, target)


def module(source, target):
    """What a module has, as it is: a Buffer, a parameter with an attribute, a large
    tensor of one number."""
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(2, 2)
            self.mean = torch.nn.Buffer(torch.arange(3.0))
            self.scale = torch.nn.Parameter(torch.full((2,), 4.0))
            self.scale.tag = 5
    net = Net()
    net.mean.source = "somewhere"
    torch.save({"state": net.state_dict(), "kept": net.state_dict(keep_vars=True),
                "wide": torch.full((1,), 7.0).expand(2048, 4096)}, target)
    torch.load(target, weights_only=True)


def optimizer(kind, source, target):
    run = torch.load(source, weights_only=True)
    model = torch.nn.Linear(3, 2)
    model.load_state_dict({k.removeprefix("fc."): v for k, v in run["model"].items()})
    opt = getattr(torch.optim, kind)(model.parameters(), lr=1.0)
    opt.load_state_dict(run["optimizer"])
    (model(torch.ones(2, 3)) ** 2).sum().backward()
    opt.step()
    torch.save({"model": model.state_dict(), "optimizer": opt.state_dict()}, target)


class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.c = torch.nn.Linear(2, 2, bias=False)
        self.v = torch.nn.Parameter(torch.zeros(2, 2))


class Mixed(torch.nn.Module):
    """That of tests/support/mixed_net.h."""

    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(2, 2, bias=False)
        self.register_buffer("k", torch.zeros(2, 2))
        self.w = torch.nn.Parameter(torch.zeros(2, 2))
        self.b = Inner()
        self.z = torch.nn.Parameter(torch.zeros(2, 2))

    def step(self, opt):
        opt.zero_grad()
        made = [self.a.weight, self.w, self.b.c.weight, self.b.v, self.z]
        sum(((i + 1) * p).square().sum() / 2 for i, p in enumerate(made)).backward()
        opt.step()


def mixed(source, target):
    run = torch.load(source, weights_only=True)
    model = Mixed()
    assert list(run["model"]) == list(model.state_dict()), list(run["model"])
    model.load_state_dict(run["model"])
    opt = torch.optim.Adam(model.parameters())
    opt.load_state_dict(run["optimizer"])
    model.step(opt)
    after = {k: v.clone() for k, v in model.state_dict().items()}
    state = copy.deepcopy(opt.state_dict())
    model.step(opt)
    torch.save({"model": after, "optimizer": state, "next model": model.state_dict()},
               target)


verb, *files = sys.argv[1:]
others = {"pt": pt, "safetensors": safetensors, "mixed": mixed, "module": module}
if verb in others:
    others[verb](*files)
else:
    optimizer(verb, *files)
