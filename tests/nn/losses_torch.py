"""losses_torch.py FILE: the rows of tests/nn/losses.c against torch.nn, in f64.

Prints what differs; the exit code is 1 if anything does.
"""

import sys

import torch
from torch.nn import *  # noqa: F403  (the rows are spelled in its names)

failed = 0


def offend(row, text):
    global failed
    failed += 1
    print(f"{row['code']}: {text}")


def far(got, wanted):
    return (got.shape != wanted.shape or
            not torch.allclose(got.double(), wanted, rtol=2e-5, atol=1e-6))


rows = torch.load(sys.argv[1], weights_only=True)
for row in rows:
    weights = {k: v.double() for k, v in row["state"].items()}
    model = eval(row["code"], globals(), weights).double()
    # A distance is a function here, a module in PyTorch's text.
    if "Distance" not in row["code"] and str(model) != row["text"]:
        offend(row, f"prints {row['text']}, PyTorch {model}")
    if list(model.state_dict()) != list(row["state"]):
        offend(row, f"has {list(row['state'])}, PyTorch {list(model.state_dict())}")
    model.load_state_dict(weights)
    inputs = [t.double() if t.is_floating_point() else t for t in row["inputs"]]
    inputs[0].requires_grad_(True)
    y = model(*inputs)
    if "log_prob" in row:  # AdaptiveLogSoftmaxWithLoss
        alone = model(inputs[0][0], inputs[1][0]).output
        for name, wanted in [("output", y.output), ("loss", y.loss),
                             ("log_prob", model.log_prob(inputs[0])),
                             ("one", alone),
                             ("predict", model.predict(inputs[0]).double())]:
            if far(row[name], wanted):
                offend(row, f"{name} {row[name]}, PyTorch {wanted}")
        y = y.loss
    (y * torch.arange(1, y.numel() + 1).reshape(y.shape)).sum().backward()
    if far(row["y"], y):
        offend(row, f"{row['y']}, PyTorch {y}")
    if far(row["dx"], inputs[0].grad):
        offend(row, f"gradient {row['dx']}, PyTorch {inputs[0].grad}")
print(f"{len(rows)} losses, {failed} differences")
sys.exit(1 if failed or len(rows) < 40 else 0)
