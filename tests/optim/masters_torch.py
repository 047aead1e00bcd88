"""masters_torch.py FROM TO: the steps of tests/optim/masters.c, with f32 masters that
this program keeps by hand: the optimiser has them, and the model has their roundings."""

import math
import sys

import torch

WHOLE = 50


def wave(start, dtype):
    x = [math.sin(start + 1.7 * i * i) for i in range(12)]
    return torch.tensor(x, dtype=torch.float64).float().reshape(4, 3).to(dtype)


def train(case, dtype):
    weight = wave(1, dtype).requires_grad_()
    master = weight.detach().float().requires_grad_()
    options = eval(f"dict({case['options']})")
    opt = getattr(torch.optim, case["name"])([master], **options)
    for i in range(WHOLE):
        weight.grad = None
        off = weight - wave(2 + i, dtype)
        ((off * off).sum() * 0.5).backward()
        master.grad = weight.grad.float()
        opt.step()
        with torch.no_grad():
            weight.copy_(master)
    return {"weight": weight.detach(), "master": master.detach()}


cases = torch.load(sys.argv[1], weights_only=True)
torch.save([train(case, dtype) for dtype in (torch.bfloat16, torch.float16)
            for case in cases], sys.argv[2])
