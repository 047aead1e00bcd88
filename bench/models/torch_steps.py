"""Training steps, inference and operations of the table in PyTorch: each makes a
function without arguments that does one step."""
import torch
import torch.nn.functional as F

import decode
import torch_models
import values
from shapes import DECODE, GPT, LSTM, POINTWISE


def images(name, n, size, channels):
    return torch.from_numpy(values.images(name + "/x", n, size, channels))


def uniform(name, *shape, bound=values.SQRT3):
    return torch.from_numpy(values.uniform(name + "/x", shape, bound))


def labels(name, n, classes):
    return torch.from_numpy(values.labels(name + "/y", n, classes)).long()


def batch(name):
    """Inputs, and labels or None."""
    if name == "mnist_nhwc":
        return images("mnist", 128, 28, 1), labels("mnist", 128, 10)
    if name in ("resnet50", "efficientnet_b0"):
        n = 8 if name == "resnet50" else 4
        return images(name, n, 224, 3), labels(name, n, 1000)
    if name == "mlp":
        return uniform("mlp", 64, 784), labels("mlp", 64, 10)
    if name.startswith("gpt"):
        return uniform("gpt", GPT.batch, GPT.places, GPT.width), None
    if name.startswith("lstm"):
        return uniform("lstm", LSTM.steps, LSTM.batch, LSTM.width), None
    return uniform("pointwise50", POINTWISE, bound=1.0), None


def optimiser(name, params, fused=True):
    if name.startswith("gpt"):
        return torch.optim.AdamW(params, 1e-4, weight_decay=0.01, fused=fused)
    if name == "mlp":
        return torch.optim.Adam(params, 1e-3, fused=fused)
    rate = {"lstm": 1.0, "lstm_hoisted": 1.0, "pointwise50": 1e4}.get(name, 0.01)
    momentum = {"mnist_nhwc": 0.5, "resnet50": 0.9, "efficientnet_b0": 0.9}
    return torch.optim.SGD(params, rate, momentum.get(name, 0.0), fused=fused)


def training(name, channels_last=False, dtype=torch.float32, autocast=None):
    """The model and its step, which gives the loss. dtype: of everything."""
    autocast = name.endswith("_bf16") if autocast is None else autocast
    model, (x, y) = torch_models.make(name).to(dtype), batch(name)
    x = x.to(dtype)
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    o = optimiser(name, model.parameters())

    def step():
        o.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            out = model(x)
        out = out.to(dtype)
        loss = out.square().mean() if y is None else F.cross_entropy(out, y)
        loss.backward()
        o.step()
        return loss
    return model, step


def inference(name, channels_last, compiled):
    model, x = torch_models.make(name).eval(), images(name, 1, 224, 3)
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    if compiled:
        import torch._inductor.config
        torch._inductor.config.freezing = True  # weights are constants
        model = torch.compile(model)

    def step():
        with torch.no_grad():
            return model(x)
    return step


def decoding(kind):
    """The cache has room for all places; attention reads those that are filled,
    which eager code may do."""
    d, heads, place = DECODE.width, DECODE.heads, DECODE.places // 2
    small = torch.bfloat16 if kind == "bf16" else torch.float32
    params = {n: torch.from_numpy(v).to(small) for n, v in decode.vectors()}
    for n, w in decode.matrices():
        if kind == "int8" and n != "places":
            params[n] = tuple(map(torch.from_numpy, decode.quantise(w)))
        else:
            params[n] = torch.from_numpy(w).to(small)
    keys, vals = (torch.zeros(DECODE.blocks, 1, heads, DECODE.places, d // heads,
                              dtype=small) for _ in range(2))
    word = torch.from_numpy(values.labels("decode/word", 1, DECODE.words)).long()

    def product(x, w, bias=None):
        if not isinstance(w, tuple):
            return F.linear(x, w, bias)
        y = torch._weight_int8pack_mm(x, *w)
        return y if bias is None else y + bias

    def linear(x, name):
        return product(x, params[name], params[name + ".bias"])

    def norm(x, name):
        return F.layer_norm(x, (d,), params[name + ".weight"], params[name + ".bias"])

    def row(w, i):
        return w[0][i].float() * w[1][i][:, None] if isinstance(w, tuple) else w[i]

    def step():
        with torch.no_grad():
            x = row(params["words"], word) + params["places"][place]
            for i in range(DECODE.blocks):
                n = f"blocks.{i}."
                q, k, v = linear(norm(x, n + "norm1"), n + "qkv").view(
                    3, 1, heads, 1, -1)
                keys[i, :, :, place], vals[i, :, :, place] = k[:, :, 0], v[:, :, 0]
                h = F.scaled_dot_product_attention(
                    q, keys[i, :, :, :place + 1], vals[i, :, :, :place + 1])
                x = x + linear(h.reshape(1, d), n + "out")
                h = F.gelu(linear(norm(x, n + "norm2"), n + "up"), approximate="tanh")
                x = x + linear(h, n + "down")
            return product(norm(x, "norm"), params["words"])
    return step


def operation(name):
    if name == "top_k":
        x = torch.from_numpy(values.uniform("top_k", (64, 50000)))
        return lambda: torch.topk(x, 10)
    if name == "sort":
        x = torch.from_numpy((values.words("sort", 1000000) >> 32).astype("uint32").view("int32"))
        return lambda: torch.sort(x)
    x = torch.from_numpy(values.uniform("trivial", (16,)))
    return lambda: x + x


def step_of(name, channels_last=False, compiled=False):
    if name in torch_models.MODELS:
        return training(name, channels_last)[1]
    if name.startswith("gpt_decode"):
        return decoding(name[len("gpt_decode_"):] or "f32")
    if name.endswith("_b1"):
        return inference(name[:-len("_b1")], channels_last, compiled)
    return operation(name)
