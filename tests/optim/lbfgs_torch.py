"""lbfgs_torch.py FROM TO: 20 steps of torch.optim.LBFGS on the problems and with the
options that FROM lists, and the last 10 of them from calx's state after the first 10.

For the test optim_lbfgs, which has the same steps.
"""

import copy
import sys

import torch

HALF, WHOLE = 10, 20


def loss_of(problem, params, data):
    if problem == 0:
        x, y = params[0][:3], params[0][1:]
        return ((y - x * x) ** 2 * 100 + (1 - x) ** 2).sum()
    y = torch.tanh(torch.nn.functional.linear(data["x"].reshape(8, 3), *params))
    return ((y - data["y"][:16].reshape(8, 2)) ** 2).mean()


def make(case, w, b):
    params = [w.clone().requires_grad_()]
    if case["problem"] == 1:
        params.append(b.clone().requires_grad_())
    options = eval(f"dict({case['options']})")
    return params, torch.optim.LBFGS(params, **options)


def train(case, params, opt, data, count):
    rows = []

    def closure():
        opt.zero_grad()
        loss = loss_of(case["problem"], params, data)
        loss.backward()
        return loss

    for _ in range(count):
        loss = float(opt.step(closure))
        state = opt.state[params[0]]
        rows.append([loss, state["func_evals"], state["n_iter"]])
    return rows


def named(params):
    return {n: p.detach().clone() for n, p in zip(("W", "b"), params, strict=False)}


def both(case, data):
    w = data["W"][:4] if case["problem"] == 0 else data["W"][:6].reshape(2, 3)
    params, opt = make(case, w, data["b"][:2])
    rows = train(case, params, opt, data, HALF)
    out = {"half model": named(params), "half optimizer": copy.deepcopy(opt.state_dict())}
    rows += train(case, params, opt, data, WHOLE - HALF)
    out |= named(params) | {"rows": rows}
    params, opt = make(case, case["W"], case.get("b"))
    opt.load_state_dict(case["optimizer"])
    train(case, params, opt, data, WHOLE - HALF)
    return out | {"went " + n: p for n, p in named(params).items()}


run = torch.load(sys.argv[1], weights_only=True)
torch.save([both(case, run) for case in run["cases"]], sys.argv[2])
