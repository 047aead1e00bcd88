"""scheduler_torch.py: reads lines STEPS EXPRESSION, of a schedule as PyTorch makes it,
and prints for each a JSON list of the rates of two groups and the momentum, step by
step. For the test optim_scheduler_torch.
"""

import json
import sys
import warnings

import torch
from torch.optim.lr_scheduler import *  # noqa: F403
from torch.optim.swa_utils import SWALR  # noqa: F401

warnings.simplefilter("ignore")

for line in sys.stdin:
    steps, expression = line.split(maxsplit=1)
    a, b = (torch.zeros((), requires_grad=True) for _ in range(2))
    opt = torch.optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.05}], lr=0.1,
                          momentum=0.9)
    schedule = eval(expression)
    rows = []
    for _ in range(int(steps)):
        one, two = opt.param_groups
        rows.append([one["lr"], two["lr"], one["momentum"]])
        opt.step()
        schedule.step()
    print(json.dumps(rows))
