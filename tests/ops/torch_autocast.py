"""torch_autocast.py FROM TO: the calls that FROM lists, in a region of
torch.autocast("cpu", torch.bfloat16), of operands of f32 and then of bf16: results and
gradients.

For the test ops_autocast_torch.
"""

import sys

import torch
import torch.nn.functional as F

question = torch.load(sys.argv[1], weights_only=True)
calls, factors = question.pop("calls"), question.pop("factors")


def answer(text, dtype):
    leaves = {name: t.to(dtype).detach().requires_grad_(name not in "qs")
              for name, t in question.items() if t.is_floating_point()}
    others = {name: t for name, t in question.items() if not t.is_floating_point()}
    with torch.autocast("cpu", torch.bfloat16):
        y = eval(text, {"torch": torch, "F": F} | leaves | others)
    (y.float().reshape(-1) * factors[: y.numel()]).sum().backward()
    grads = {name: t.grad for name, t in leaves.items() if t.grad is not None}
    return {"y": y.detach()} | grads


torch.save([answer(text, dtype) for dtype in (torch.float32, torch.bfloat16)
            for text in calls], sys.argv[2])
