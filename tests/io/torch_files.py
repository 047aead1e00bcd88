"""torch_files.py pt|safetensors|SGD|Adam|AdamW FROM TO: reads a file of calx's
and writes it again; an optimiser's name: a step further.

For the test io_torch: PyTorch must take what calx wrote, with weights_only.
"""

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


def optimizer(kind, source, target):
    run = torch.load(source, weights_only=True)
    model = torch.nn.Linear(3, 2)
    model.load_state_dict({k.removeprefix("fc."): v for k, v in run["model"].items()})
    opt = getattr(torch.optim, kind)(model.parameters(), lr=1.0)
    opt.load_state_dict(run["optimizer"])
    (model(torch.ones(2, 3)) ** 2).sum().backward()
    opt.step()
    torch.save({"model": model.state_dict(), "optimizer": opt.state_dict()}, target)


verb, *files = sys.argv[1:]
if verb in ("pt", "safetensors"):
    {"pt": pt, "safetensors": safetensors}[verb](*files)
else:
    optimizer(verb, *files)
