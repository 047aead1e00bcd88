"""torch_steps.py FROM TO: 50 steps of each of torch.optim's optimisers that FROM lists,
and the last 25 of them from calx's state after the first 25.

For the test optim_torch, which has the same steps.
"""

import copy
import sys

import torch

HALF, WHOLE, NONE_AT, RATES_AT = 25, 50, 5, 12


def make(case, data, two):
    w, b = (data[k].clone().requires_grad_() for k in ("W", "b"))
    options = eval(f"dict({case['options']})")
    kind = getattr(torch.optim, case["name"])
    groups = [{"params": [w]}, {"params": [b]}] if two else [w, b]
    opt = kind(groups, **options)
    if two:
        opt.param_groups[1]["lr"] /= 2
    return w, b, opt


def train(w, b, opt, data, start, end):
    for i in range(start, end):
        if i == RATES_AT:
            for group in opt.param_groups:
                group["lr"] *= 0.75
        opt.zero_grad()
        bias = b.detach() if i in (NONE_AT, NONE_AT + 1) else b
        y = torch.tanh(torch.nn.functional.linear(data["x"], w, bias))
        ((y - data["y"]).abs() ** 2).mean().backward()
        opt.step()


def both(i, case, data):
    w, b, opt = make(case, data, i % 2 == 1)
    train(w, b, opt, data, 0, HALF)
    out = {"half model": {"W": w.detach().clone(), "b": b.detach().clone()},
           "half optimizer": copy.deepcopy(opt.state_dict())}
    train(w, b, opt, data, HALF, WHOLE)
    out |= {"W": w.detach(), "b": b.detach()}
    w, b, opt = make(case, case, i % 2 == 1)
    opt.load_state_dict(case["optimizer"])
    train(w, b, opt, data, HALF, WHOLE)
    return out | {"went W": w.detach(), "went b": b.detach()}


run = torch.load(sys.argv[1], weights_only=True)
torch.save([both(i, case, run) for i, case in enumerate(run["cases"])], sys.argv[2])
