"""torch_files.py pt|safetensors FROM TO: reads a file and writes it again.

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
    try:
        from safetensors.torch import load_file, save_file
    except ImportError:
        return
    value = load_file(source)
    save_file({name: tensor.clone() for name, tensor in value.items()}, target)


{"pt": pt, "safetensors": safetensors}[sys.argv[1]](*sys.argv[2:])
