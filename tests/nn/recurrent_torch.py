"""recurrent_torch.py FILE: recurrent layers of PyTorch, their outputs and gradients.

For the test nn_recurrent. A case has a kind, options, the layer's state dict, inputs
with states, outputs, factors of the outputs whose sum is the loss, and gradients.
"""

import sys

import torch

torch.manual_seed(7)
T, N, F, H = 5, 3, 4, 6


def draw(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=torch.float64).to(dtype)


def gradients(named):
    """Of leaves; zeros where nothing flows, as an optimiser would see none."""
    return {name: torch.zeros_like(t) if t.grad is None else t.grad
            for name, t in named.items()}


def case(kind, states=True, batched=True, steps=T, batch=N, dtype=torch.float64,
         **options):
    layer = getattr(torch.nn, kind)(F, H, dtype=dtype, **options)
    layers = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    if kind.endswith("Cell"):
        x = draw(*([batch] if batched else []), F, dtype=dtype)
        shapes = [(*([batch] if batched else []), H)] * (2 if kind == "LSTMCell" else 1)
    else:
        middle = (batch,) if batched else ()
        x = draw(steps, *middle, F, dtype=dtype)
        if batched and options.get("batch_first"):
            x = x.transpose(0, 1).contiguous()
        out = options.get("proj_size") or H
        shapes = [(layers, *middle, out)]
        if kind == "LSTM":
            shapes.append((layers, *middle, H))
    given = {"x": x}
    for name, shape in zip(["hx", "cx"], shapes):
        if states:
            given[name] = draw(*shape, dtype=dtype)
    for t in given.values():
        t.requires_grad_()
    hx = None
    if states:
        hx = (given["hx"], given["cx"]) if "cx" in given else given["hx"]
    result = layer(x, hx)
    if kind == "LSTMCell":
        outs = {"y": result[0], "cn": result[1]}
    elif kind.endswith("Cell"):
        outs = {"y": result}
    elif kind == "LSTM":
        outs = {"y": result[0], "hn": result[1][0], "cn": result[1][1]}
    else:
        outs = {"y": result[0], "hn": result[1]}
    factors = {name: draw(*t.shape, dtype=dtype) for name, t in outs.items()}
    sum((outs[name] * factors[name]).sum() for name in outs).backward()
    grads = gradients(given)
    grads.update(gradients(dict(layer.named_parameters())))
    return {"kind": kind, "input": F, "hidden": H, "options": options,
            "state": layer.state_dict(), "in": {k: v.detach() for k, v in given.items()},
            "out": {k: v.detach() for k, v in outs.items()}, "factors": factors,
            "grads": grads, "dtype": str(dtype), "repr": repr(layer)}


def cases():
    for kind in ["RNN", "LSTM", "GRU"]:
        yield case(kind)
        yield case(kind, states=False)
        yield case(kind, bias=False)
        yield case(kind, batched=False)
        yield case(kind, batched=False, states=False, batch_first=True)
        yield case(kind, batch_first=True)
        yield case(kind, steps=1)
        yield case(kind, steps=1, bidirectional=True)
        yield case(kind, batch=1, steps=2, bidirectional=True)
        yield case(kind, num_layers=3, bidirectional=True)
        yield case(kind, num_layers=2, bidirectional=True, bias=False, batch_first=True,
                   states=False)
        yield case(kind, dtype=torch.float32, num_layers=2)
        yield case(kind, dtype=torch.bfloat16)
    yield case("RNN", nonlinearity="relu")
    yield case("RNN", nonlinearity="relu", num_layers=2, bidirectional=True)
    yield case("LSTM", proj_size=2)
    yield case("LSTM", proj_size=3, num_layers=2, bidirectional=True, bias=False)
    yield case("LSTM", proj_size=5, batched=False, num_layers=2)
    yield case("LSTM", steps=70, num_layers=2, bidirectional=True)
    for kind in ["RNNCell", "LSTMCell", "GRUCell"]:
        yield case(kind)
        yield case(kind, states=False, bias=False)
        yield case(kind, batched=False)
    yield case("RNNCell", nonlinearity="relu")


torch.save(list(cases()), sys.argv[1])
