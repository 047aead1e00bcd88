"""torch_layers.py FILE: the rows of tests/nn/torch.c against torch.nn.

PyTorch computes in f64 from the same weights. Prints what differs; the exit code
is 1 if anything does.
"""

import sys

import torch
from torch.nn import *  # noqa: F403  (the rows are spelled in its names)
from torch.nn.utils.parametrizations import spectral_norm, weight_norm  # noqa: F401

failed = 0
here = ""


class Net(Module):
    """That of models() in torch.c."""

    def __init__(self):
        super().__init__()
        self.layers = ModuleList([Linear(4, 4) for _ in range(3)] + [Tanh()])
        self.heads = ModuleDict({"out": Linear(4, 2)})

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.heads["out"](x)


def offend(text):
    global failed
    failed += 1
    print(f"{here}: {text}")


def close(what, got, wanted):
    if wanted is None or got is None:
        # PyTorch gives no gradient, or zeros, where nothing flows.
        other = got if wanted is None else wanted
        if other is not None and other.abs().max() != 0:
            offend(f"{what}: one has none")
        return
    if got.shape != wanted.shape:
        offend(f"{what}: shape {tuple(got.shape)}, PyTorch {tuple(wanted.shape)}")
        return
    if not wanted.is_floating_point():
        if not torch.equal(got, wanted):
            offend(f"{what}: {got}, PyTorch {wanted}")
        return
    wanted, got = wanted.detach().double(), got.double()
    error = (got - wanted).abs().max().item() if got.numel() else 0
    scale = wanted.abs().max().item() if got.numel() else 0
    if not error <= 1e-5 * max(1, scale):
        offend(f"{what}: differs by {error:.3g}, of at most {scale:.3g}")


def close_dicts(what, got, wanted):
    if list(got) != list(wanted):
        offend(f"{what}: {list(got)}, PyTorch {list(wanted)}")
        return False
    for name in got:
        close(f"{what} {name}", got[name], wanted[name])
    return True


def call(row, model, x):
    return model(x, row["second"].double() if row["second"].is_floating_point()
                 else row["second"]) if "second" in row else model(x)


def check_training(row, model):
    x = row["x"]
    if x.is_floating_point():
        x = x.double().requires_grad_(True)
    y = call(row, model, x)
    close("training", row["y"], y)
    weights = torch.cos(0.7 * torch.arange(y.numel()).double()).reshape(y.shape)
    (y * weights).sum().backward()
    if x.is_floating_point():
        close("gradient of x", row["dx"], x.grad)
    for name, parameter in model.named_parameters():
        close(f"gradient of {name}", row["grads"].get(name), parameter.grad)
    close_dicts("state after training", row["after"], model.state_dict())


def summary_of(model, x):
    """[name, shape, parameters, operations] of each module, as PyTorch counts."""
    from torch.utils.flop_counter import FlopCounterMode
    shapes = {}
    for name, module in model.named_modules():
        module.register_forward_hook(
            lambda m, i, y, name=name: shapes.__setitem__(name, tuple(y.shape)))
    with FlopCounterMode(display=False, depth=None) as counter:
        model(x)
    counts = {path.removeprefix(type(model).__name__).removeprefix("."): sum(ops.values())
              for path, ops in counter.get_flop_counts().items() if path != "Global"}
    return [[f"{name.split('.')[-1]} ({type(module).__name__})" if name
             else type(module).__name__, str(shapes.get(name, "-")),
             sum(p.numel() for p in module.parameters()),
             counts.get(name, 0) if module is not model
             else counter.get_total_flops()]
            for name, module in model.named_modules()]


def check_summary(text, model, x):
    lines = [[line[:36].strip(), line[37:59].strip(),
              *(int(n.replace(",", "")) for n in line[59:].split())]
             for line in text.splitlines()[1:-1]]
    # Containers that are not called count what is below them.
    wanted = summary_of(model, x)
    for got, want in zip(lines, wanted):
        if want[1] == "-":
            want[3] = got[3]
        if got != want:
            offend(f"summary: {got}, PyTorch {want}")
    if len(lines) != len(wanted):
        offend(f"summary: {len(lines)} modules, PyTorch {len(wanted)}")
    total = sum(p.numel() for p in model.parameters())
    if not text.endswith(f"trained parameters: {total:,}\n"):
        offend(f"summary ends {text.splitlines()[-1]}")


def check_row(row, model):
    if row["text"] != str(model):
        offend(f"prints {row['text']}\nPyTorch {model}")
    state = model.state_dict()
    if list(state) != list(row["state"]):
        offend(f"names {list(row['state'])}, PyTorch {list(state)}")
        return
    for name, t in state.items():
        if t.dtype != row["state"][name].dtype or t.shape != row["state"][name].shape:
            offend(f"{name} is {row['state'][name].dtype}, {row['state'][name].shape}")
    model.load_state_dict(row["state"])
    model = model.double()
    if "y" in row:
        check_training(row, model)
    model.eval()
    x = row["x"].double() if row["x"].is_floating_point() else row["x"]
    close("evaluation", row["y_eval"], call(row, model, x))
    if "summary" in row:
        check_summary(row["summary"], model, x)


def check_initial(row, model):
    """Constants are equal; drawn values have PyTorch's spread."""
    wanted = model.state_dict()
    if list(wanted) != list(row["initial"]):
        offend(f"names {list(row['initial'])}, PyTorch {list(wanted)}")
        return
    for name, t in wanted.items():
        got = row["initial"][name]
        if t.numel() < 1000:
            if not torch.equal(got, t):
                offend(f"{name} begins as {got}, PyTorch {t}")
            continue
        n = t.numel()
        at = torch.tensor([0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99])
        a, b = torch.quantile(got.flatten(), at), torch.quantile(t.flatten(), at)
        if not ((a - b).abs() < (8 / n ** 0.5) * b.abs().max()).all():
            offend(f"{name} is spread as {a.tolist()}, PyTorch {b.tolist()}")


torch.manual_seed(0)
rows = torch.load(sys.argv[1], weights_only=True)
for row in rows:
    here = row["code"]
    model = eval(row["code"])
    (check_initial if "initial" in row else check_row)(row, model)
print(f"{len(rows)} layers, {failed} differences")
sys.exit(1 if failed or len(rows) < 100 else 0)
