"""muon_torch.py FROM TO: 50 steps of torch.optim.Muon with the options that FROM lists,
and the last 25 of them from calx's state after the first 25.

For the test optim_muon, which has the same steps.
"""

import copy
import sys

import torch

HALF, WHOLE, RATES_AT = 25, 50, 12


def of(numbers, like):
    return numbers[:like.numel()].reshape(like.shape)


def make(case, w, v, two):
    w, v = (x.clone().requires_grad_() for x in (w, v))
    options = eval(f"dict({case['options']})")
    groups = [{"params": [w]}, {"params": [v]}] if two else [w, v]
    opt = torch.optim.Muon(groups, **options)
    if two:
        opt.param_groups[1]["lr"] /= 2
    return w, v, opt


def train(w, v, opt, data, start, end):
    for i in range(start, end):
        if i == RATES_AT:
            for group in opt.param_groups:
                group["lr"] *= 0.75
        opt.zero_grad()
        x = of(data["x"], w) + of(data["V"], w) * (i % 7 - 3)
        y = of(data["y"], v) + of(data["W"], v) * (i % 5 - 2)
        ((w * x).sum() + (v * y).sum()).backward()
        opt.step()


def both(i, case, data):
    w, v = data["W"][:15].reshape(5, 3), data["V"][:10].reshape(2, 5)
    w, v, opt = make(case, w, v, i % 2 == 1)
    train(w, v, opt, data, 0, HALF)
    out = {"half model": {"W": w.detach().clone(), "V": v.detach().clone()},
           "half optimizer": copy.deepcopy(opt.state_dict())}
    train(w, v, opt, data, HALF, WHOLE)
    out |= {"W": w.detach(), "V": v.detach()}
    w, v, opt = make(case, case["W"], case["V"], i % 2 == 1)
    opt.load_state_dict(case["optimizer"])
    train(w, v, opt, data, HALF, WHOLE)
    return out | {"went W": w.detach(), "went V": v.detach()}


run = torch.load(sys.argv[1], weights_only=True)
torch.save([both(i, case, run) for i, case in enumerate(run["cases"])], sys.argv[2])
