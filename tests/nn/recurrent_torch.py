"""recurrent_torch.py FILE: recurrent layers of PyTorch, their outputs and gradients.

For the test nn_recurrent. A case has a kind, options, the layer's state dict, inputs
with states, outputs, factors of the outputs whose sum is the loss, and gradients.
"""

import sys

import torch
from torch.nn.utils import rnn

torch.manual_seed(7)
T, N, F, H = 5, 3, 4, 6


def draw(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=torch.float64).to(dtype)


def gradients(named):
    """Of leaves; zeros where nothing flows, as an optimiser would see none."""
    return {name: torch.zeros_like(t) if t.grad is None else t.grad
            for name, t in named.items()}


def packed(layer, x, hx, lengths, first, ordered):
    """The layer on the rows of these lengths, padded again."""
    p = rnn.pack_padded_sequence(x, lengths, first, enforce_sorted=ordered)
    y, states = layer(p, hx)
    y, _ = rnn.pad_packed_sequence(y, first, total_length=x.shape[1 if first else 0])
    return y, states


def spoil(x, lengths, first):
    """x with NaN past the rows' lengths, which no result may show."""
    x = x.detach().clone()
    for i, n in enumerate(lengths):
        if first:
            x[i, n:] = float("nan")
        else:
            x[n:, i] = float("nan")
    return x


def case(kind, states=True, batched=True, steps=T, batch=N, dtype=torch.float64,
         lengths=None, ordered=True, **options):
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
    first = bool(options.get("batch_first"))
    result = packed(layer, x, hx, lengths, first, ordered) if lengths else layer(x, hx)
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
    if lengths:
        given["x"] = spoil(x, lengths, first)
    more = {"lengths": torch.tensor(lengths), "ordered": ordered} if lengths else {}
    return more | {"kind": kind, "input": F, "hidden": H, "options": options,
            "state": layer.state_dict(), "in": {k: v.detach() for k, v in given.items()},
            "out": {k: v.detach() for k, v in outs.items()}, "factors": factors,
            "grads": grads, "dtype": str(dtype), "repr": repr(layer)}


def cases():
    for kind in ["RNN", "LSTM", "GRU"]:
        yield case(kind)
        yield case(kind, states=False)
        yield case(kind, bias=False)
        for first in (False, True):
            yield case(kind, lengths=[5, 3, 1], batch_first=first)
            yield case(kind, lengths=[2, 5, 1], ordered=False, batch_first=first,
                       bidirectional=True)
        yield case(kind, lengths=[1, 4, 3], ordered=False, states=False,
                   bidirectional=True, num_layers=3)
        yield case(kind, lengths=[4, 4, 2], num_layers=2, bias=False)
        yield case(kind, lengths=[3, 5, 2], ordered=False, dtype=torch.float32,
                   bidirectional=True)
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
    yield case("RNN", nonlinearity="relu", lengths=[2, 5, 4], ordered=False,
               bidirectional=True)
    yield case("LSTM", proj_size=2)
    yield case("LSTM", proj_size=3, num_layers=2, bidirectional=True, batch_first=True,
               lengths=[1, 3, 5], ordered=False)
    yield case("LSTM", proj_size=3, num_layers=2, bidirectional=True, bias=False)
    yield case("LSTM", proj_size=5, batched=False, num_layers=2)
    yield case("LSTM", steps=70, num_layers=2, bidirectional=True)
    for kind in ["RNNCell", "LSTMCell", "GRUCell"]:
        yield case(kind)
        yield case(kind, states=False, bias=False)
        yield case(kind, batched=False)
    yield case("RNNCell", nonlinearity="relu")


torch.save(list(cases()), sys.argv[1])
