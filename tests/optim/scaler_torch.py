"""scaler_torch.py FILE: the steps of tests/optim/scaler.c with PyTorch's
GradScaler. The exit code is 1 if anything differs."""

import sys

import torch

FACTORS = [float("inf"), 1, 1, 2, 1, float("inf"), 1, -1, 1, float("nan"), 2, 1, 1, 3]
file = torch.load(sys.argv[1], weights_only=True)
model = torch.nn.Linear(3, 2)
model.load_state_dict({"weight": file["w"], "bias": file["b"]})
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_factor=1.5,
                              backoff_factor=0.25, growth_interval=3)
failed = 0


def compare(i, what, got, wanted, close=False):
    global failed
    same = torch.allclose(got, wanted, rtol=1e-5, atol=1e-6) if close \
        else got == wanted
    if not same:
        failed += 1
        print(f"step {i}: {what} {got}, PyTorch {wanted}")


for i, (factor, row) in enumerate(zip(FACTORS, file["rows"], strict=True)):
    optimizer.zero_grad()
    loss = model(torch.ones(2, 3)).square().sum() * factor
    scaler.scale(loss).backward()
    if i % 2 == 1:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    scaler.step(optimizer)
    scaler.update()
    compare(i, "counted", row["counted"], True)
    compare(i, "scale", row["scale"], scaler.get_scale())
    compare(i, "tracker", row["tracker"], scaler._get_growth_tracker())
    compare(i, "weight", row["w"], model.weight.detach(), True)
    compare(i, "bias", row["b"], model.bias.detach(), True)
compare(len(FACTORS), "state", file["state"], scaler.state_dict())
other = torch.amp.GradScaler("cpu")
other.load_state_dict(file["state"])
sys.exit(1 if failed else 0)
