"""transformer_torch.py FILE: attention and transformers of PyTorch, their outputs and
gradients. For the test nn_transformer; a case is as in recurrent_torch.py, with the
masks of the call among the inputs.
"""

import sys
import warnings

import torch

warnings.simplefilter("ignore")
torch.manual_seed(11)
E, HEADS, L, S, N = 6, 2, 4, 5, 3


def draw(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=torch.float64).to(dtype)


def some(*shape):
    """True here and there, and never in the first place of a row."""
    mask = torch.rand(*shape) < 0.4
    mask[..., 0] = False
    return mask


def causal(n):
    return torch.triu(torch.full((n, n), -torch.inf, dtype=torch.float64), 1)


def placed(x, options):
    return x.transpose(0, 1).contiguous() if options.get("batch_first") and x.dim() == 3 \
        else x


def finish(kind, layer, options, given, masks, call, outs, flags=None):
    factors = {name: draw(*t.shape, dtype=t.dtype) for name, t in outs.items()}
    sum((outs[name] * factors[name]).sum() for name in outs).backward()
    leaves = {**given, **dict(layer.named_parameters())}
    grads = {k: torch.zeros_like(t) if t.grad is None else t.grad
             for k, t in leaves.items()}
    return {"kind": kind, "options": options, "state": layer.state_dict(),
            "repr": repr(layer), "call": {**call, **(flags or {})},
            "in": {k: v.detach() for k, v in {**given, **masks}.items()},
            "out": {k: v.detach() for k, v in outs.items()}, "factors": factors,
            "grads": grads, "dtype": str(next(iter(given.values())).dtype)}


def attention(same=False, pair=False, batched=True, weights=True, average=True,
              call=None, dtype=torch.float64, causal_flag=False, **options):
    """`call`: masks by their names in PyTorch."""
    layer = torch.nn.MultiheadAttention(E, HEADS, dtype=dtype, **options)
    with torch.no_grad():
        for p in layer.parameters():  # PyTorch's biases begin with zeros
            p.copy_(draw(*p.shape, dtype=dtype))
    middle = (N,) if batched else ()
    query = placed(draw(L, *middle, E, dtype=dtype), options)
    given = {"query": query}
    if not same:
        given["key"] = placed(draw(S, *middle, options.get("kdim") or E, dtype=dtype),
                              options)
    if not same and not pair:
        given["value"] = placed(draw(S, *middle, options.get("vdim") or E, dtype=dtype),
                                options)
    for t in given.values():
        t.requires_grad_()
    key = given.get("key", query)
    value = given.get("value", key)
    masks = dict(call or {})
    flags = {"is_causal": True} if causal_flag else {}
    both = {**masks, **({"attn_mask": causal(L).to(dtype)} if causal_flag else {})}
    y, w = layer(query, key, value, need_weights=weights, average_attn_weights=average,
                 **both)
    outs = {"y": y}
    if weights:
        outs["weights"] = w
    flags["average"] = average
    return finish("MultiheadAttention", layer, options, given, masks, flags, outs)


def attentions():
    yield attention()
    yield attention(weights=False)
    yield attention(same=True)
    yield attention(same=True, weights=False, batch_first=True)
    yield attention(pair=True, bias=False)
    yield attention(kdim=3, vdim=5)
    yield attention(kdim=6, vdim=2, bias=False, batch_first=True)
    yield attention(batched=False)
    yield attention(batched=False, same=True, batch_first=True, weights=False)
    yield attention(add_bias_kv=True)
    yield attention(add_zero_attn=True, pair=True)
    yield attention(average=False)
    yield attention(average=False, batched=False)
    for weights in [True, False]:
        for call in [{"attn_mask": some(L, S)}, {"attn_mask": draw(L, S)},
                     {"attn_mask": some(N * HEADS, L, S)},
                     {"key_padding_mask": some(N, S)},
                     {"key_padding_mask": draw(N, S), "attn_mask": draw(N * HEADS, L, S)},
                     {"key_padding_mask": some(N, S), "attn_mask": some(L, S)}]:
            yield attention(call=call, weights=weights)
    yield attention(call={"key_padding_mask": some(S), "attn_mask": some(HEADS, L, S)},
                    batched=False)
    yield attention(call={"key_padding_mask": some(N, S), "attn_mask": some(L, S)},
                    add_bias_kv=True, add_zero_attn=True, batch_first=True)
    yield attention(same=True, causal_flag=True)
    yield attention(same=True, causal_flag=True, weights=False)
    yield attention(dtype=torch.float32)


def transformer(kind, layers=0, batched=True, call=None, causal_flags=(), final=False,
                evaluate=False, dtype=torch.float64, **options):
    """`call`: masks by the names of calx's options; causal_flags: "src", "tgt"."""
    torch_options = {"dropout": 0.3 if evaluate else 0.0, "dim_feedforward": 7, **options}
    decoder = "Decoder" in kind
    layer = getattr(torch.nn, kind + "Layer")(E, HEADS, dtype=dtype, **torch_options)
    if layers:
        norm = torch.nn.LayerNorm(E, bias=options.get("bias", True), dtype=dtype,
                                  eps=options.get("layer_norm_eps", 1e-5)) \
            if final else None
        layer = getattr(torch.nn, kind)(layer, layers, norm)
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(draw(*p.shape, dtype=dtype))
    layer.train(not evaluate)
    middle = (N,) if batched else ()
    given = {"x": placed(draw(L if decoder else S, *middle, E, dtype=dtype), options)}
    if decoder:
        given["memory"] = placed(draw(S, *middle, E, dtype=dtype), options)
    for t in given.values():
        t.requires_grad_()
    masks = dict(call or {})
    both = dict(masks)
    for name in causal_flags:
        both[name + "_mask"] = causal(L if decoder else S).to(dtype)
    if not decoder and layers and "src_mask" in both:
        both["mask"] = both.pop("src_mask")
    y = layer(*given.values(), **both)
    options = {**torch_options, "layers": layers, "final": final, "evaluate": evaluate}
    flags = {name + "_is_causal": True for name in causal_flags}
    name = kind if layers else kind + "Layer"
    return finish(name, layer, options, given, masks, flags, {"y": y})


def transformers():
    for kind in ["TransformerEncoder", "TransformerDecoder"]:
        for evaluate in [False, True]:
            yield transformer(kind, evaluate=evaluate)
            yield transformer(kind, evaluate=evaluate, norm_first=True, activation="gelu",
                              batch_first=True)
            yield transformer(kind, evaluate=evaluate, layers=2, final=True,
                              batch_first=True)
        yield transformer(kind, bias=False, layer_norm_eps=1e-2)
        yield transformer(kind, batched=False, layers=1, activation="gelu")
        yield transformer(kind, layers=2, final=True, norm_first=True, bias=False)
        yield transformer(kind, dtype=torch.float32, layers=2)
    for layers in [0, 2]:
        yield transformer("TransformerEncoder", layers, causal_flags=["src"])
        yield transformer("TransformerEncoder", layers,
                          call={"src_mask": some(S, S), "src_key_padding_mask": some(N, S)})
        yield transformer("TransformerDecoder", layers, causal_flags=["tgt"],
                          call={"memory_key_padding_mask": some(N, S)})
        yield transformer("TransformerDecoder", layers, norm_first=True, batch_first=True,
                          call={"tgt_mask": some(L, L), "memory_mask": draw(L, S),
                                "tgt_key_padding_mask": draw(N, L)})


def whole(call=None, causal_flags=(), **options):
    layer = torch.nn.Transformer(E, HEADS, 2, 1, 7, dropout=0.0, dtype=torch.float64,
                                 **options)
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(draw(*p.shape))
    given = {"x": placed(draw(S, N, E), options), "memory": placed(draw(L, N, E), options)}
    for t in given.values():
        t.requires_grad_()
    both = {**(call or {}), **{f + "_mask": causal(L if f == "tgt" else S)
                               for f in causal_flags}}
    y = layer(given["x"], given["memory"], **both)
    return finish("Transformer", layer, {"dropout": 0.0, "dim_feedforward": 7, **options},
                  given, call or {}, {f + "_is_causal": True for f in causal_flags},
                  {"y": y})


def wholes():
    yield whole()
    yield whole(batch_first=True, norm_first=True, bias=False, activation="gelu")
    yield whole(causal_flags=["src", "tgt"],
                call={"src_key_padding_mask": some(N, S), "memory_mask": some(L, S)})
    yield whole(call={"src_mask": draw(S, S), "tgt_mask": draw(L, L),
                      "tgt_key_padding_mask": draw(N, L),
                      "memory_key_padding_mask": some(N, S)})


torch.save([*attentions(), *transformers(), *wholes()], sys.argv[1])
