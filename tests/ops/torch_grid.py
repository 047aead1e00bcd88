"""torch_grid.py FOLDER: PyTorch's results of a grid of calls.

Each op with the element types, the shapes of size 0, of size 1 and of rank 0,
the negative dims and the broadcasts that it takes, and with those that it
refuses. Writes FOLDER/oracle/ops.json and ops.safetensors in the form of the
recorded cases (oracle.c), with "raises" true where PyTorch refuses the call. An
op and element type that PyTorch's CPU lacks makes no case.
"""

import itertools
import json
import os
import sys

import torch
import torch.nn.functional as F
import torch_complex
import torch_extra
import torch_linalg
import torch_model
import torch_rest
from safetensors.torch import save_file

INF, NAN = float("inf"), float("nan")
TYPES = {
    "f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16,
    "f16": torch.float16, "i8": torch.int8, "u8": torch.uint8,
    "i32": torch.int32, "i64": torch.int64, "bool": torch.bool,
}
# What each element type's result may be off, in the measure of oracle.c.
ALLOWED = {torch.float64: 1e-5, torch.float32: 1e-4, torch.float16: 4e-3,
           torch.bfloat16: 3e-2, torch.complex64: 1e-4, torch.complex128: 1e-5}
cases, tensors = [], {}


def values(kind, shape, special=False, shift=0):
    """Distinct values in no order, with 0 among them; of `special`, NaN too."""
    n = 1
    for d in shape:
        n *= d
    if special:
        row = [NAN, INF, -INF, 0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 10.0, -10.0]
        v = [row[(i * 5 + shift) % len(row)] for i in range(n)]
    else:
        v = [((i * 7 + shift) % 23 - 11) / 4 for i in range(n)]
    dtype = TYPES[kind]
    if dtype == torch.bool:
        return torch.tensor([x > 0 for x in v], dtype=dtype).reshape(shape)
    if not dtype.is_floating_point:
        least = 0 if kind == "u8" else -128
        v = [max(least, int(x * 4)) for x in v]
    return torch.tensor(v, dtype=dtype).reshape(shape)


def slice_of(x, dim, start, end, step):
    at = [slice(None)] * x.dim()
    at[dim] = slice(start, end, step)
    return x[tuple(at)]


def assigned(x, value, dim, at):
    x = x.clone()
    if not -x.dim() <= dim < x.dim():
        raise IndexError("no such dimension")
    x[(slice(None),) * (dim % x.dim()) + (at,)] = value
    return x


def with_dims(fn):
    def call(x, dim=None, keepdim=False):
        return fn(x, tuple(range(x.dim())) if dim is None else dim, keepdim)
    return call


def over_each(fn):
    """torch.prod, all, any: dim is one or none."""
    def call(x, dim=None, keepdim=False):
        return fn(x) if dim is None else fn(x, dim, keepdim=keepdim)
    return call


SPECIAL = {
    "rsub": torch.rsub, "square": torch.square,
    "slice": slice_of,
    "select": lambda x, dim, index: x.select(dim, index),
    "expand": lambda x, size: x.expand(size),
    "repeat": lambda x, repeats: x.repeat(repeats),
    "cat": lambda *x, dim: torch.cat(x, dim),
    "stack": lambda *x, dim: torch.stack(x, dim),
    "to_dtype": lambda x, dtype: x.to(getattr(torch, dtype)),
    "prod": over_each(torch.prod), "max": over_each(torch.max),
    "min": over_each(torch.min), "argmax": over_each(torch.argmax),
    "argmin": over_each(torch.argmin),
    "logsumexp": with_dims(torch.logsumexp),
    "masked_fill": lambda x, mask, value: x.masked_fill(mask, value),
    "split": lambda x, split_size_or_sections, dim:
        torch.split(x, split_size_or_sections, dim),
    "unbind": lambda x, dim: torch.unbind(x, dim),
    "scatter_reduce": lambda x, i, s, dim, reduce:
        x.scatter_reduce(dim, i, s, reduce),
    "scatter": lambda x, i, s, dim: x.scatter(dim, i, s),
    "scatter_add": lambda x, i, s, dim: x.scatter_add(dim, i, s),
    "index_add": lambda x, i, s, dim: x.index_add(dim, i, s),
    "gather": lambda x, i, dim: x.gather(dim, i),
    "index_select": lambda x, i, dim: x.index_select(dim, i),
    "take_along_dim": lambda x, i, dim: torch.take_along_dim(x, i, dim),
    "embedding": lambda i, w: F.embedding(i, w),
    "norm": lambda x, dim=None, keepdim=False, p=2:
        torch.linalg.vector_norm(x, INF if p == "inf" else p, dim, keepdim),
    "einsum": lambda *x, equation: torch.einsum(equation, *x),
    "layer_norm": lambda x, w, b, normalized_shape:
        F.layer_norm(x, normalized_shape, w, b),
    "batch_norm": lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b),
    "group_norm": lambda x, w, b, num_groups: F.group_norm(x, num_groups, w, b),
    "unique": lambda x: torch.unique(x, return_inverse=True,
                                     return_counts=True),
    "sort": lambda x, dim, descending:
        torch.sort(x, stable=True, dim=dim, descending=descending),
    "argsort": lambda x, dim, descending:
        torch.argsort(x, stable=True, dim=dim, descending=descending),
}
SPECIAL.update({
    **{op: lambda *x, op=op, dtype=None, **k: getattr(torch, op)(
        **k, dtype=dtype and getattr(torch, dtype))
       for op in ("linspace", "logspace", "eye")},
    **{op: lambda x, op=op, **k: getattr(torch, op)(**k)
       for op in ("tril_indices", "triu_indices")},
    "meshgrid": lambda *x, indexing: torch.meshgrid(*x, indexing=indexing),
    # The one element of weight: every draw is it.
    "multinomial_0": lambda x, n, replacement:
        torch.multinomial(x, n, replacement=replacement),
    "xlog1py": torch.special.xlog1py,
    "allclose": lambda x, y, **a: torch.tensor(torch.allclose(x, y, **a)),
    "expand_as": lambda x, y: x.expand_as(y),
    "tensor_split_at": lambda x, indices, dim:
        torch.tensor_split(x, indices, dim),
    "assign_slice": lambda x, v, dim, start, end, step:
        assigned(x, v, dim, slice(start, end, step)),
    "assign_select": lambda x, v, dim, index: assigned(x, v, dim, index),
    "slice_scatter": lambda x, s, dim, start, end, step:
        torch.slice_scatter(x, s, dim, start, end, step),
    "index_fill": lambda x, i, dim, value: x.index_fill(dim, i, value),
    "index_put": lambda x, v, *i, accumulate: x.index_put(i, v, accumulate),
    "mode": lambda x, dim, keepdim: torch.mode(x, dim, keepdim)[0],
    "median_dim": torch.median, "nanmedian_dim": torch.nanmedian,
    "diff": lambda x, p=None, a=None, **k: torch.diff(x, prepend=p, append=a,
                                                      **k),
    "cov": lambda x, f=None, a=None, **k: torch.cov(x, fweights=f, aweights=a,
                                                    **k),
    "tensordot": lambda x, y, dims=2, x_dims=None, y_dims=None:
        torch.tensordot(x, y, dims if x_dims is None else (x_dims, y_dims)),
    "cdist": lambda x, y, p: torch.cdist(x, y, INF if p == "inf" else p),
    "vecdot": torch.linalg.vecdot, "cross": torch.linalg.cross,
    "multi_dot": lambda *x: torch.linalg.multi_dot(x),
    "block_diag": torch.block_diag, "chain_matmul": torch.chain_matmul,
    **{op: lambda *x, op=op: getattr(torch, op)(x)
       for op in ("hstack", "vstack", "dstack")},
    **{op: lambda x, *y, op=op, **k: getattr(x.clone(), op)(*y, **k)
       for op in ("add_", "sub_", "mul_", "div_", "copy_", "zero_", "clamp_")},
    "fill_": lambda x, *y, other=0: x.clone().fill_(*y if y else (other,)),
})
SPECIAL.update(torch_linalg.SPECIAL)
SPECIAL.update(torch_complex.SPECIAL)
SPECIAL.update(torch_model.SPECIAL)
SPECIAL.update(torch_rest.SPECIAL)
SPECIAL.update(torch_extra.SPECIAL)
TAKES_FUNCTIONAL = {"softmax", "log_softmax", "gelu", "elu", "leaky_relu",
                    "hardtanh", "softplus", "mish", "silu", "relu6", "normalize",
                    "hardswish", "hardsigmoid", "logsigmoid", "kl_div",
                    "binary_cross_entropy_with_logits"}


def function(op):
    if op in SPECIAL:
        return SPECIAL[op]
    if op in TAKES_FUNCTIONAL or not hasattr(torch, op):
        return getattr(F, op)
    return getattr(torch, op)


def missing(e):
    """PyTorch lacks the op on its CPU, which says nothing about the call."""
    text = str(e)
    return (isinstance(e, NotImplementedError) or "not implemented" in text or
            "oneMKL" in text or         # MKL takes no empty tensors
            "window overlap add" in text)  # calx makes NaN


LOSSES = {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div",
          "binary_cross_entropy_with_logits"}


def by_design(op, inputs, attrs):
    """What calx takes or refuses otherwise, in words of its headers."""
    first = next(t for t in inputs if t is not None)
    whole = not first.is_floating_point()
    if op in ("all", "any"):
        return first.dtype == torch.uint8      # bool, of which PyTorch makes u8
    if op == "roll":                           # PyTorch does not look at the
        return first.numel() == 0              # dims of what has no elements
    if op == "pad":                            # an empty result is one
        return first.numel() == 0 and attrs["mode"] != "constant"
    if op in LOSSES:                           # integers become f32
        return whole
    if op.startswith(("conv", "avg_pool")):    # integers are refused
        return whole
    if op in ("sub", "rsub"):                  # one bool counts as 0 and 1
        return any(t.dtype == torch.bool for t in inputs)
    if op in ("cummax", "cummin"):             # as roll
        return first.numel() == 0
    if op == "isin":                           # bool too
        return first.dtype == torch.bool
    if op == "linear":                         # a weight of rank 1 is refused
        return inputs[1].dim() == 1
    if op == "gelu":                           # PyTorch makes NaN of infinity
        return bool(first.isinf().any()) if not whole else False
    return False


def keep(name, t):
    """Complex tensors are kept as pairs: safetensors lacks complex128."""
    t = t.detach().clone().contiguous()
    if t.is_complex():
        name, t = "complex/" + name, torch.view_as_real(t).contiguous()
    tensors[name] = t
    return name


def case(op, inputs, grads=True, **attrs):
    if by_design(op, inputs, attrs):
        return
    here = f"g{len(cases):04}"
    c = {"id": here, "op": op, "attrs": attrs,
         "inputs": [None if t is None else keep(f"{here}/in{i}", t)
                    for i, t in enumerate(inputs)],
         "torch_f32_error": [], "outputs": []}
    took = [None if t is None else t.clone() for t in inputs]
    wanted = [t for t in took if t is not None and t.dtype in
              (torch.float32, torch.float64, torch.complex64,
               torch.complex128)] if grads else []
    for t in wanted:
        t.requires_grad_(True)
    try:
        out = function(op)(*took, **attrs)
    except (RuntimeError, IndexError, ValueError, TypeError,
            ZeroDivisionError) as e:
        if not missing(e):
            c["raises"] = True
            c["said"] = str(e).split("\n")[0]
            cases.append(c)
        return
    outs = [out] if isinstance(out, torch.Tensor) else list(out)
    if any(o.dtype == torch.complex32 for o in outs):
        return  # c64 in calx
    for i, t in enumerate(outs):
        c["outputs"].append(keep(f"{here}/out{i}", t))
        c["torch_f32_error"].append(ALLOWED.get(t.dtype, 0) / 8)
    gradients(c, here, outs, took, wanted)
    cases.append(c)


def gradients(c, here, outs, took, wanted):
    up = [o if o.requires_grad and (o.is_floating_point() or o.is_complex())
          else None for o in outs]
    if any(o is not None for o in up):
        c["upstream"], total = [], 0
        for i, o in enumerate(up):
            if o is None:
                c["upstream"].append(None)
                continue
            u = values("f64", o.shape, shift=i + 3).to(o.dtype)
            if o.is_complex():
                u = u + 1j * values("f64", o.shape, shift=i + 8).to(o.dtype)
            c["upstream"].append(keep(f"{here}/up{i}", u))
            total = total + (o * u.conj()).sum().real
        try:
            got = torch.autograd.grad(total, wanted, allow_unused=True)
        except RuntimeError:  # PyTorch has no rule for these element types
            del c["upstream"]
            return
        by = {id(t): g for t, g in zip(wanted, got)}
        c["input_grads"], c["torch_f32_grad_error"] = [], []
        for i, t in enumerate(took):
            g = by.get(id(t))
            c["input_grads"].append(None if g is None
                                    else keep(f"{here}/d{i}", g))
            if g is not None:
                c["torch_f32_grad_error"].append(4 * ALLOWED[g.dtype] / 8)


# ---- the grid ----------------------------------------------------------------

UNARY = """neg abs sign exp expm1 log log2 log1p sqrt rsqrt reciprocal square sin
cos tanh sigmoid relu floor ceil round isnan isfinite isinf tan asin acos atan sinh
cosh asinh acosh atanh exp2 log10 erf erfc erfinv lgamma digamma trunc frac
bitwise_not isposinf isneginf logical_not silu relu6 hardswish hardsigmoid mish
logsigmoid gelu elu leaky_relu hardtanh softplus""".split()
BINARY = """add sub mul div pow maximum minimum remainder fmod atan2 logaddexp
bitwise_and bitwise_or bitwise_xor eq ne lt le gt ge logical_and logical_or
logical_xor rsub""".split()
PAIRS = [("f32", "f32"), ("f32", "i64"), ("bf16", "f16"), ("i32", "i64"),
         ("u8", "i8"), ("bool", "i64"), ("bool", "bool"), ("f16", "f32"),
         ("f64", "f32"), ("i64", "bf16"), ("bool", "f32")]
BROADCASTS = [((2, 3), (3,)), ((), (2, 3)), ((0, 3), (1, 3)), ((2, 1), (1, 3)),
              ((1,), (4, 1, 2))]
REFUSED = [((2, 3), (2,)), ((0,), (2,)), ((2, 3), (3, 2))]
SHAPES = [(), (0,), (1,), (2, 0, 3), (2, 1, 3)]
# The gradient where a function jumps or bends is a matter of choice.
BENT = {"remainder", "fmod", "pow", "atan2", "maximum", "minimum"}


def elementwise():
    for op, kind in itertools.product(UNARY, TYPES):
        case(op, [values(kind, (7,))], grads=False)
    for op in UNARY:
        for shape in SHAPES:  # digamma has no slope at its poles
            case(op, [values("f32", shape, shift=9)], grads=op != "digamma")
        case(op, [values("f32", (11,), special=True)], grads=False)
    for op in BINARY:
        for i, (a, b) in enumerate(PAIRS):
            one, two = BROADCASTS[i % len(BROADCASTS)]
            x, y = values(a, one), values(b, two, shift=5)
            if not y.is_floating_point():
                y = torch.where(y == 0, torch.ones_like(y), y)
                if op == "pow" and y.dtype != torch.bool:
                    y = y.abs()
            case(op, [x, y], grads=op not in BENT)
        for one, two in BROADCASTS:
            case(op, [values("f32", one), values("f32", two, shift=5)],
                 grads=op not in BENT)
        for one, two in REFUSED:
            case(op, [values("f32", one), values("f32", two)])
        # A tensor of rank 0 takes part by its kind alone.
        case(op, [values("i64", (3,)), values("f32", (), shift=4)], grads=False)
        case(op, [values("f32", (3,)), values("f64", (), shift=4)], grads=False)
        x = values("f32", (11, 1), special=True)
        case(op, [x, x.T.contiguous()], grads=False)
        # A NaN or a 0 against each.
    for op in ("addcmul", "addcdiv"):
        for kind in ("f32", "bf16", "i64"):
            for s in [((2, 3), (3,), ()), ((), (2, 1), (1, 3)), ((0,), (1,), ())]:
                t = [values(kind, shape, shift=8) for shape in s]
                case(op, t, grads=kind == "f32", value=2)
    for kind in TYPES:
        x = values(kind, (2, 3))
        case("clamp", [x], grads=False, min=-1, max=1)
        case("clamp", [x], grads=False, min=0.5)
        case("lerp", [x, values(kind, (3,), shift=2)], grads=False, weight=0.5)
        case("masked_fill", [x, values("bool", (3,))], grads=False, value=1)
        case("where", [values("bool", (2, 1)), x, values("f32", (3,))],
             grads=False)
    for a, b in itertools.product(TYPES, ["float32", "int64", "bool", "uint8",
                                          "bfloat16", "float16", "float64"]):
        x = values(a, (5,)).abs() if a != "bool" else values(a, (5,))
        case("to_dtype", [x], grads=False, dtype=b)


def reductions():
    dims = [{}, {"dim": 0}, {"dim": -1, "keepdim": True}, {"dim": [0, -1]},
            {"dim": 2}, {"dim": -3}, {"dim": [0, 0]}]
    shapes = [(2, 3), (0, 3), (1, 1)]
    many = "sum mean amax amin var std logsumexp norm any all".split()
    one = "prod max min argmax argmin count_nonzero".split()
    for op in many + one:
        for d, shape in itertools.product(dims, shapes):
            if op in one and isinstance(d.get("dim"), list):
                continue
            if op == "count_nonzero":
                d = {k: v for k, v in d.items() if k != "keepdim"}
            case(op, [values("f32", shape, shift=3)], **d)
        for kind in TYPES:
            if kind != "f32":
                case(op, [values(kind, (2, 3))], grads=False)
                case(op, [values(kind, (2, 3))], grads=False, dim=1)
        case(op, [values("f32", ())])
        case(op, [values("f32", (3, 11), special=True)], grads=False, dim=-1)
    for op in ("cumsum", "cumprod", "softmax", "log_softmax"):
        for shape in [(2, 3), (0, 3), (3, 0), (1,), (), (3, 2, 1, 2, 2, 1)]:
            for dim in (0, -1, 1, 3, -4):
                case(op, [values("f32", shape, shift=3)], dim=dim)
        for kind in TYPES:
            case(op, [values(kind, (2, 3))], grads=False, dim=-1)
    for shape in [(2, 5), (0, 3), (3, 0), (1,), (), (3, 2, 1, 2, 2, 1)]:
        for dim, down in itertools.product((0, -1, 2), (False, True)):
            x = values("f32", shape)
            case("sort", [x], dim=dim, descending=down)
            case("argsort", [x], dim=dim, descending=down)
        for k, dim in itertools.product((0, 1, 2, 9, -1), (0, -1)):
            case("topk", [values("f32", shape)], k=k, dim=dim, largest=True)
    for kind in TYPES:
        case("sort", [values(kind, (9,))], grads=False, dim=0, descending=True)
        case("unique", [values(kind, (2, 9))], grads=False)
        case("nonzero", [values(kind, (3, 4))], grads=False)
    case("sort", [values("f32", (22,), special=True)], grads=False, dim=0,
         descending=False)
    for shape in [(), (0,), (1,), (2, 0)]:
        case("nonzero", [values("f32", shape)], grads=False)


def shapes():
    kinds = ["f32", "bf16", "i64", "bool"]
    for n, kind in enumerate(kinds):
        for shape in [(2, 3), (2, 0), (1, 1), (3,), ()]:
            x = values(kind, shape)
            for dim in (0, -1, 2, -3):
                case("unbind", [x], dim=dim)
                case("select", [x], dim=dim, index=0)
                case("select", [x], dim=dim, index=-1)
                case("narrow", [x], dim=dim, start=0, length=1)
                case("flip", [x], dims=[dim])
                case("squeeze", [x], dim=dim)
                case("unsqueeze", [x], dim=dim)
                case("cat", [x, x], dim=dim)
                case("stack", [x, x], dim=dim)
                case("chunk", [x], chunks=2, dim=dim)
                case("roll", [x], shifts=[-4], dims=[dim])
                case("movedim", [x], source=dim, destination=0)
                case("transpose", [x], dim0=dim, dim1=0)
                case("slice", [x], dim=dim, start=-2, end=9, step=2)
                case("flatten", [x], start_dim=dim)
            for s in [[-1], [3, 2], [0, 2], [], [1, -1]]:
                if not (s == [-1] and x.numel() == 0):
                    case("reshape", [x], shape=s)
            for s in [[2, 3], [4, 2, 3], [2, -1], [0, 3], [1]]:
                case("expand", [x], size=s)
                if min(s) >= 0:
                    case("repeat", [x], repeats=s)
            for k in (0, 1, -1, -9):
                case("tril", [x], diagonal=k)
                case("triu", [x], diagonal=k)
            case("diagonal", [x])
            case("permute", [x], dims=[1, 0])
            case("permute", [x], dims=[-1, -1])
    for mode, pad in itertools.product(
            ("constant", "reflect", "replicate", "circular"),
            ([1, 2], [-1, 0], [0, 0, 1, 1], [3, 0], [9, 0], [-4, 0])):
        for shape in [(1, 2, 3), (2, 3), (1, 0, 3), (1, 2, 3, 3)]:
            case("pad", [values("f32", shape)], pad=pad, mode=mode)
    case("cat", [values("f32", (2,)), values("i64", (3,))], dim=0)
    case("cat", [values("bf16", (2,)), values("f16", (3,))], dim=0)
    case("stack", [values("f32", (2,)), values("f32", (3,))], dim=0)


def indices():
    x = values("f32", (3, 4))
    i = torch.tensor([[0, 2, 1], [2, 0, 0]])
    flat = torch.tensor([2, 0])
    for dim in (0, -1, 1, -2, 2, -3):
        case("gather", [x, i], dim=dim)
        case("index_select", [x, flat], dim=dim)
        source = values("f32", (2, 3), shift=2)
        case("scatter", [x, i, source], grads=False, dim=dim)
        case("scatter_add", [x, i, source], dim=dim)
        case("scatter_reduce", [x, i, source], grads=False, dim=dim,
             reduce="amax")
        case("take_along_dim", [x, i[:, :1]], dim=dim)
        case("index_add", [x, flat, values("f32", (2, 4))], dim=dim)
    none = torch.zeros((0,), dtype=torch.int64)
    case("index_select", [x, none], dim=0)
    case("gather", [x, none.reshape(0, 4)], dim=0)
    case("scatter_add", [x, none.reshape(0, 4), values("f32", (0, 4))], dim=0)
    case("gather", [x, flat], dim=0)
    case("gather", [x, i.to(torch.float32)], dim=0)
    case("index_select", [x, i], dim=0)
    case("scatter_add", [x, i, values("f64", (2, 3))], dim=0)
    for kind in TYPES:
        y = values(kind, (3, 4))
        case("gather", [y, i], grads=False, dim=0)
        case("index_select", [y, flat], grads=False, dim=1)
        case("scatter_add", [y, i, values(kind, (2, 3))], grads=False, dim=0)
        case("embedding", [i, y], grads=False)
        case("masked_select", [y, y != 0], grads=False)
    case("embedding", [none, x])
    case("embedding", [torch.tensor(1), x])
    case("one_hot", [i], num_classes=3)
    case("one_hot", [none], num_classes=3)
    case("bincount", [flat])
    case("bincount", [i])
    case("bincount", [values("f32", (3,))])


def products():
    def f(*shape, kind="f32"):
        return values(kind, shape, shift=sum(shape))
    for kind in ("f32", "f64", "bf16", "f16", "i32", "i64"):
        case("mm", [f(2, 3, kind=kind), f(3, 4, kind=kind)], grads=kind == "f32")
        case("matmul", [f(3, kind=kind), f(3, kind=kind)], grads=False)
        case("dot", [f(3, kind=kind), f(3, kind=kind)], grads=False)
        case("outer", [f(3, kind=kind), f(2, kind=kind)], grads=False)
        case("addmm", [f(4, kind=kind), f(2, 3, kind=kind), f(3, 4, kind=kind)],
             grads=False)
    sizes = [(), (3,), (2, 3), (3, 2), (4, 2, 3), (4, 3, 2), (0, 3), (3, 0),
             (1, 3, 3), (2, 1, 3, 2)]
    for a, b in itertools.product(sizes, sizes):
        case("matmul", [f(*a), f(*b)])
    for op in ("mm", "bmm", "dot", "outer"):
        for a, b in [((2, 3), (3, 2)), ((4, 2, 3), (4, 3, 2)), ((3,), (3,)),
                     ((2, 0), (0, 3)), ((0, 2, 3), (0, 3, 2)), ((0,), (0,)),
                     ((2, 3), (2, 3)), ((2, 2, 3), (1, 3, 2)), ((), ())]:
            case(op, [f(*a), f(*b)])
    case("mm", [f(2, 3), f(3, 4, kind="f64")])
    case("mm", [f(2, 3), f(3, 4, kind="i64")])
    for c, b, a in itertools.product([(), (4,), (2, 1), (2, 4), (3,), (1, 2, 4)],
                                     (0, 2), (0, 3)):
        case("addmm", [f(*c), f(2, 3), f(3, 4)], grads=b != 0, beta=b, alpha=a)
    for w, b in [((4, 3), None), ((4, 3), (4,)), ((3,), None), ((4, 2), None),
                 ((0, 3), (0,)), ((4, 3), (3,))]:
        for shape in [(3,), (2, 3), (0, 3), (2, 2, 3)]:
            case("linear", [f(*shape), f(*w), None if b is None else f(*b)])
    for equation, s in [("ij,jk->ik", [(2, 3), (3, 4)]), ("ii", [(3, 3)]),
                        ("ij->ji", [(2, 3)]), ("i,j", [(2,), (3,)]),
                        ("bij,bjk", [(2, 2, 3), (2, 3, 1)]), ("ij->", [(2, 3)]),
                        ("...i,i->...", [(2, 2, 3), (3,)]),
                        ("ij,jk->ik", [(2, 3), (2, 4)]), ("ij", [(2, 3, 1)]),
                        ("i->k", [(2,)]), ("i,i->i", [(0,), (0,)]),
                        ("ij,jk->ik", [(2, 3), (1, 4)]), ("ii->i", [(3, 1)]),
                        ("...i->i", [(2, 3)]), ("i->...i", [(3,)]),
                        ("...i,...i", [(2, 3), (4, 2, 3)]),
                        ("...i,...j->...ij", [(1, 2, 3), (4, 1, 5)]),
                        ("i...j->j...i", [(2, 3, 4)]), ("...", [(2, 3)]),
                        ("...,...", [(2, 3), (3,)]), ("...ii->...i", [(2, 3, 3)]),
                        ("i...,i...->", [(2, 3), (2, 1)]), ("...i...", [(2,)]),
                        ("..i", [(2,)]), ("i,->i", [(2,), ()]), ("", [()]),
                        ("ij,jk -> ik", [(2, 3), (3, 4)]), ("ij->i...", [(2, 3)]),
                        ("a...b->ab", [(2, 5, 3)]), ("i,i->i", [(0,), (1,)]),
                        ("iij->j", [(2, 2, 3)]), ("Ab->bA", [(2, 3)]),
                        ("bA", [(2, 3)]), ("i->ii", [(2,)]), ("->", [()]),
                        ("ij,ij->...", [(2, 3), (2, 3)]),
                        ("...a,...b,...c", [(2, 1, 3), (1, 4, 2), (2, 4, 5)]),
                        ("ij,jk->ik", [(2, 3), (3, 4), (1,)]),
                        ("...ij,...jk->...ik", [(3, 1, 2, 3), (4, 3, 2)])]:
        case("einsum", [f(*one) for one in s], equation=equation)


def model():
    def f(*shape, kind="f32"):
        return values(kind, shape, shift=sum(shape))
    for op, r in itertools.product(sorted(LOSSES), ("mean", "sum", "none")):
        for shape in [(2, 3), (), (0, 3), (1,)]:
            t = f(*shape) if op != "kl_div" else f(*shape).abs() + 0.1
            case(op, [f(*shape) + 0.3, t], reduction=r)
        for kind in ("f64", "bf16", "f16", "i64"):
            case(op, [f(2, 3, kind=kind), f(2, 3, kind=kind).abs()], grads=False,
                 reduction=r)
    for r in ("mean", "sum", "none"):
        p = f(2, 3).sigmoid()
        case("binary_cross_entropy", [p, p.flip(0).contiguous()], reduction=r)
        case("binary_cross_entropy", [p, f(3)], reduction=r)
        for op in ("cross_entropy", "nll_loss"):
            for x, y in [((2, 3), (2,)), ((3,), ()), ((2, 3, 2), (2, 2)),
                         ((0, 3), (0,)), ((2, 3), (3,)), ((2, 3), (2, 2))]:
                target = torch.zeros(y, dtype=torch.int64) + 1
                case(op, [f(*x), target], reduction=r)
    case("cross_entropy", [f(2, 3), f(2, 3).flip(1).softmax(1)],
         reduction="mean")
    for n, w in [((3,), (3,)), ((2, 3), (2, 3)), ((2,), (2,)), ((), ()),
                 ((3,), (2,))]:
        for shape in [(2, 3), (0, 3), (3,)]:
            case("layer_norm", [f(*shape), f(*w), f(*w)], normalized_shape=list(n))
    for groups in (1, 2, 3, 0):
        for shape in [(2, 4, 3), (2, 4), (0, 4, 2), (4,)]:
            # Of groups of two elements nothing but rounding is in the slope.
            case("group_norm", [f(*shape), f(4), f(4)], grads=len(shape) > 2,
                 num_groups=groups)
    for shape in [(2, 4, 3), (2, 4), (0, 4, 2), (4,)]:
        case("batch_norm", [f(*shape), f(4), f(4), f(4), f(4).abs() + 1],
             grads=False)
        case("normalize", [f(*shape)], dim=1)
    for kind in ("f32", "f64", "bf16", "f16", "i64"):
        x, w = f(2, 4, 6, kind=kind), f(4, 2, 3, kind=kind)
        g = kind == "f32"
        case("conv1d", [x, w], grads=g, padding=1)
        case("conv1d", [f(2, 2, 5, kind=kind), w, f(4, kind=kind)], grads=g)
        case("conv2d", [f(1, 2, 5, 5, kind=kind), f(4, 2, 3, 3, kind=kind)],
             grads=g, stride=2)
        case("max_pool1d", [x], grads=g, kernel_size=2)
        case("avg_pool1d", [x], grads=g, kernel_size=2)
        case("avg_pool2d", [f(1, 2, 5, 5, kind=kind)], grads=g, kernel_size=2)
        case("max_pool2d", [f(1, 2, 5, 5, kind=kind)], grads=g, kernel_size=2)
        case("softmax", [x], grads=g, dim=1)
        case("scaled_dot_product_attention", [f(2, 3, 4, kind=kind)] * 3,
             grads=False)
    for shape in [(0, 2, 5), (2, 5), (1, 2, 2), (1, 3, 5), (5,)]:
        case("conv1d", [f(*shape), f(4, 2, 3)])
        case("max_pool1d", [f(*shape)], kernel_size=3)
        case("avg_pool1d", [f(*shape)], kernel_size=3)
    for a, causal in itertools.product(
            [((2, 3, 4), (2, 3, 4), (2, 3, 4)), ((2, 2, 3, 4), (2, 2, 5, 4),
             (2, 2, 5, 6)), ((3, 4), (3, 4), (3, 4)), ((2, 3, 4), (2, 3, 5),
             (2, 3, 4)), ((2, 0, 4), (2, 3, 4), (2, 3, 4))], (False, True)):
        case("scaled_dot_product_attention", [f(*s) for s in a],
             is_causal=causal)


def more_elements():
    for i, (a, b) in enumerate(PAIRS):
        one, two = BROADCASTS[i % len(BROADCASTS)]
        for op in ("fmax", "fmin", "xlog1py"):
            case(op, [values(a, one), values(b, two, shift=5)], grads=False)
        x, y = values(a, one), values(b, two, shift=5)
        if y.dtype != torch.bool:
            y = y.abs()
        case("float_power", [x.abs() if a != "bool" else x, y], grads=False)
        for op in ("add_", "sub_", "mul_", "div_", "copy_"):
            case(op, [x, y], grads=False)
            case(op, [y, x], grads=False)
    x = values("f32", (11, 1), special=True)
    for op in ("fmax", "fmin", "xlog1py"):
        case(op, [x, x.T.contiguous()], grads=False)
        case(op, [values("f32", (2, 3)).abs(), values("f32", (3,)).abs() + 0.1])
        for one, two in REFUSED:
            case(op, [values("f32", one), values("f32", two)])
    case("float_power", [values("f32", (2, 3)).abs() + 0.5], exponent=2)
    case("float_power", [values("i64", (2, 3))], exponent=3, grads=False)
    for kind in TYPES:
        case("signbit", [values(kind, (7,))], grads=False)
        case("zero_", [values(kind, (7,))], grads=False)
        case("fill_", [values(kind, (7,))], grads=False, other=1)
        case("clip", [values(kind, (7,))], grads=False, min=-1, max=1)
        case("clamp_", [values(kind, (7,))], grads=False, min=-1, max=1)
        case("clamp_", [values(kind, (7,))], grads=False, min=-1.5, max=1.5)
    case("fill_", [values("f32", (2,)), values("f32", (2,))], grads=False)
    case("fill_", [values("f32", (2,)), values("f32", ())], grads=False)
    case("add_", [values("f32", (2, 3)), values("f32", (3,))], grads=False,
         alpha=2)
    case("sub_", [values("f32", (2, 3)), values("f32", (2, 1))], grads=False,
         alpha=-0.5)
    x = values("f32", (11,), special=True)
    case("signbit", [torch.where(x.isnan(), torch.zeros_like(x), x)],
         grads=False)
    for equal in (False, True):
        case("allclose", [x, x], grads=False, equal_nan=equal)
        y = values("f32", (2, 3))
        case("allclose", [y, y + 1e-7], grads=False, equal_nan=equal)
        case("allclose", [y, y[:1] + 1e-2], grads=False, equal_nan=equal)
        case("allclose", [y[:0], y[:0]], grads=False, equal_nan=equal)


def creation():
    x = values("f32", (1,))  # of no account
    for start, end, n in itertools.product((0, -1.5, 3), (2, -7), (0, 1, 2, 5)):
        case("linspace", [x], grads=False, start=start, end=end, steps=n)
        case("logspace", [x], grads=False, start=start, end=end, steps=n, base=2)
    for dtype in ("float64", "bfloat16", "float16", "int64", "int32"):
        case("linspace", [x], grads=False, start=-3, end=9, steps=5, dtype=dtype)
        case("eye", [x], grads=False, n=2, m=3, dtype=dtype)
    case("linspace", [x], grads=False, start=0, end=1, steps=-1)
    case("linspace", [x], grads=False, start=0, end=1, steps=33)
    for n, m in itertools.product((0, 1, 3, -1), (0, 2, 4)):
        case("eye", [x], grads=False, n=n, m=m)
        for offset in (-2, 0, 1, 9):
            for op in ("tril_indices", "triu_indices"):
                case(op, [x], grads=False, row=n, col=m, offset=offset)
    for kind in TYPES:
        for shape in ((2, 3), (0,), ()):
            case("zeros_like", [values(kind, shape)], grads=False)
            case("ones_like", [values(kind, shape)], grads=False)
            case("full_like", [values(kind, shape)], grads=False, fill_value=3)
    y, z = values("f32", (3,)), values("f32", (2,))
    for indexing in ("ij", "xy"):
        case("meshgrid", [y, z], indexing=indexing)
        case("meshgrid", [y], indexing=indexing)
        case("meshgrid", [y, z, values("f32", ())], indexing=indexing)
        case("meshgrid", [y, values("f32", (2, 2))], indexing=indexing)
        case("meshgrid", [y, values("f32", (0,))], indexing=indexing)
    one = torch.tensor([[0.0, 2.0, 0.0], [3.0, 0.0, 0.0]])
    for replacement in (False, True):
        case("multinomial_0", [one], grads=False, n=1, replacement=replacement)
        case("multinomial_0", [one], grads=False, n=0, replacement=replacement)
        case("multinomial_0", [one[0].contiguous()], grads=False, n=1,
             replacement=replacement)
    case("multinomial_0", [one], grads=False, n=4, replacement=True)
    case("multinomial_0", [one], grads=False, n=4, replacement=False)
    case("multinomial_0", [one.long()], grads=False, n=1, replacement=True)


def more_shapes():
    for kind in ("f32", "bf16", "i64", "bool"):
        for shape in [(2, 3), (2, 0), (1, 1), (3,), (), (2, 3, 4)]:
            x = values(kind, shape)
            for op in ("fliplr", "flipud", "atleast_1d", "atleast_2d",
                       "atleast_3d", "trace"):
                case(op, [x])
            for op in ("hstack", "vstack", "dstack", "block_diag"):
                case(op, [x, x])
            for k in (-1, 0, 1, 2, 7):
                case("rot90", [x], k=k, dims=[0, 1])
                case("diag", [x], diagonal=k)
                case("diag_embed", [x], offset=k)
            case("rot90", [x], k=1, dims=[1, -1])
            case("rot90", [x], k=3, dims=[-1, 0])
            case("diag_embed", [x], offset=1, dim1=0, dim2=-1)
            case("diag_embed", [x], dim1=1, dim2=0)
            case("diag_embed", [x], dim1=1, dim2=1)
            case("broadcast_to", [x], size=[2, 2, 3])
            case("expand_as", [x, values("f32", (2, 2, 3))])
            for dim in (0, -1, 1, 3):
                case("swapaxes", [x], axis0=dim, axis1=0)
                case("swapdims", [x], dim0=dim, dim1=-1)
                case("moveaxis", [x], source=dim, destination=0)
                for n in (1, 2, 4):
                    case("tensor_split", [x], sections=n, dim=dim)
                case("tensor_split_at", [x], indices=[1, 1, -1, 9], dim=dim)
                case("split_with_sizes", [x], split_sizes=[1, 2], dim=dim)
                case("slice_scatter", [x, slice_first(x, dim)], dim=dim, start=0,
                     end=1, step=1)
                v = values(kind, (1,))
                case("assign_slice", [x, v], grads=False, dim=dim, start=1,
                     end=9, step=2)
                case("assign_select", [x, v], grads=False, dim=dim, index=-1)
    x = values("f32", (2, 3))
    case("hstack", [x, values("f32", (2, 1))])
    case("vstack", [x, values("f32", (3,))])
    case("dstack", [x, x, x])
    case("block_diag", [x, values("i64", (2,)), values("f32", ())])
    # PyTorch gives the gradient of other rows here.
    case("block_diag", [values("f32", (0,)), x], grads=False)
    case("slice_scatter", [x, values("f32", (2, 2))], dim=1, start=-2, end=9,
         step=1)
    case("slice_scatter", [x, values("f32", (2, 1))], dim=1, start=0, end=9,
         step=1)
    case("select_scatter", [x, values("f32", (2,))], dim=1, index=-1)
    case("select_scatter", [x, values("f32", (3,))], dim=0, index=1)
    case("select_scatter", [x, values("f32", (3,))], dim=0, index=2)
    case("select_scatter", [x, values("f32", (2,))], dim=0, index=1)
    case("assign_slice", [x, values("f32", (2, 2), shift=4)], grads=False, dim=1,
         start=0, end=9, step=2)
    case("assign_slice", [x, values("f32", (4,), shift=4)], grads=False, dim=1,
         start=0, end=9, step=2)
    case("assign_select", [x, values("f32", (3,), shift=4)], grads=False, dim=0,
         index=5)


def slice_first(x, dim):
    if x.dim() == 0 or not -x.dim() <= dim < x.dim():
        return x
    return x.narrow(dim, 0, min(1, x.shape[dim])).clone() * 0


def more_indices():
    x, i = values("f32", (3, 4)), torch.tensor([2, 0])
    pair = torch.tensor([[0, 2], [1, 1]])
    for kind in TYPES:
        y = values(kind, (3, 4))
        case("index_fill", [y, i], grads=False, dim=1, value=1)
        case("index_put", [y, values(kind, (2,)), i, torch.tensor([3, -1])],
             grads=False, accumulate=False)
        case("masked_scatter", [y, values("bool", (4,)), values(kind, (12,))],
             grads=False)
        case("isin", [y, values(kind, (5,), shift=6)], grads=False)
        case("bucketize", [y, torch.sort(values(kind, (5,)))[0]], grads=False)
        case("histc", [y], grads=False, bins=4, min=-1, max=1)
    for dim in (0, -1, 2):
        case("index_fill", [x, i], dim=dim, value=0.5)
    case("index_fill", [x, torch.tensor(-1)], dim=0, value=2.0)
    case("index_fill", [x, pair], dim=0, value=2.0)
    for accumulate in (False, True):
        case("index_put", [x, values("f32", (2, 4)), i], accumulate=accumulate)
        case("index_put", [x, values("f32", (4,)), pair[:, :1]],
             grads=accumulate, accumulate=accumulate)
        case("index_put", [x, values("f32", (2, 2)), pair, i],
             grads=accumulate, accumulate=accumulate)
        case("index_put", [x, values("f32", (3,)), i], accumulate=accumulate)
        case("index_put", [x, values("f64", (4,)), i], accumulate=accumulate)
        case("index_put", [x, values("f32", ()), i, i, i], accumulate=accumulate)
    case("masked_scatter", [x, x > 0, values("f32", (3, 4), shift=2)])
    case("masked_scatter", [x, x > 0, values("f64", (3, 4))])
    case("masked_scatter", [x, values("bool", (3,)), x])
    case("masked_scatter", [x, x, x])
    none = values("f32", (0,))
    for invert in (False, True):
        case("isin", [x, values("f32", (5,), shift=2)], grads=False,
             invert=invert)
        case("isin", [x, none], grads=False, invert=invert)
        case("isin", [none, x], grads=False, invert=invert)
        case("isin", [values("f32", (7,), special=True), x], grads=False,
             invert=invert)
    for right in (False, True):
        case("bucketize", [x, torch.sort(values("f32", (5,)))[0]], grads=False,
             right=right)
        case("bucketize", [x, none], grads=False, right=right)
        case("bucketize", [x, x], grads=False, right=right)
    for bins in (1, 7, 100):
        case("histc", [x], grads=False, bins=bins)
    case("histc", [values("f32", (5,)) * 0 + 2], grads=False, bins=3)
    case("histc", [x], grads=False, bins=5, min=2, max=-2)
    case("histc", [none], grads=False, bins=3)


def more_reductions():
    dims = (0, -1, 1, 3)
    for shape in [(3, 4), (1, 1), (0, 3), (3, 0), (5,), (), (3, 2, 1, 2, 2, 1)]:
        x = values("f32", shape, shift=3)
        for op in ("median", "nanmedian"):
            case(op, [x])
        for dim in dims:
            for op in ("cummax", "cummin", "logcumsumexp"):
                case(op, [x], dim=dim)
            case("diff", [x], dim=dim, n=1)
            case("diff", [x], dim=dim, n=2)
            case("diff", [x], dim=dim, n=9)
            for keep in (False, True):
                for op in ("median_dim", "nanmedian_dim", "mode"):
                    case(op, [x], grads=op != "mode", dim=dim, keepdim=keep)
                for k in (0, 1, 3):
                    case("kthvalue", [x], k=k, dim=dim, keepdim=keep)
                for op in ("quantile", "nanquantile"):
                    case(op, [x], q=0.3, dim=dim, keepdim=keep)
                case("aminmax", [x], dim=dim, keepdim=keep)
                case("var_mean", [x], dim=dim, keepdim=keep, correction=1)
                case("std_mean", [x], dim=dim, keepdim=keep, correction=0)
    x = values("f32", (3, 11), special=True)
    for dim in (0, 1):
        for op in ("cummax", "cummin"):
            case(op, [x], grads=False, dim=dim)
        for op in ("median_dim", "nanmedian_dim"):
            case(op, [values("f32", (3, 4), special=True)], grads=False, dim=dim)
        for op in ("quantile", "nanquantile"):
            case(op, [x[:, :3].contiguous()], grads=False, q=0.5, dim=dim,
                 interpolation="lower")
    for way in ("linear", "lower", "higher", "midpoint", "nearest", "odd"):
        x, q = values("f64", (4, 5)), torch.tensor([0, 0.25, 0.9, 1.0])
        case("quantile", [x, q.double()], dim=1, keepdim=True, interpolation=way)
        case("quantile", [x, q.double()], interpolation=way)
        case("nanquantile", [x, q.double()], keepdim=True, interpolation=way)
        case("quantile", [x], q=1.5, interpolation=way)
    case("quantile", [values("f32", (4,)), torch.zeros(2, 2)])
    runs = torch.tensor([[2, 1, 1, 2, 3, 0], [5, 4, 4, 5, 5, 4]])
    for kind in ("f32", "i32", "i64", "u8"):
        case("mode", [runs.to(TYPES[kind])], grads=False, dim=1, keepdim=False)
    for kind in TYPES:
        x = values(kind, (3, 4))
        for op in ("cummax", "cummin", "logcumsumexp"):
            case(op, [x], grads=False, dim=1)
        case("median", [x], grads=False)
        if kind not in ("u8", "bool"):  # equal ones
            case("kthvalue", [x], grads=False, k=2, dim=0, keepdim=False)
        case("aminmax", [x], grads=False)
        case("quantile", [x], grads=False, q=0.5)
        case("diff", [x], grads=False, dim=0, n=1)
    x = values("f32", (3, 4))
    case("diff", [x, values("f32", (3, 1)), values("f32", (3, 2))], dim=1, n=1)
    case("diff", [x, values("f32", (2, 1))], dim=1, n=1)
    count, weight = torch.tensor([1, 2, 0, 3]), torch.tensor([0.5, 1, 2, 0.25])
    for correction in (0, 1, 2):
        case("cov", [x], correction=correction)
        case("cov", [x, count], correction=correction)
        case("cov", [x, None, weight], correction=correction)
        case("cov", [x, count, weight], correction=correction)
    case("cov", [x, weight])
    case("cov", [x, count[:2]])
    for shape in [(4,), (1, 4), (2, 2, 2), (3, 5)]:
        case("cov", [values("f32", shape)])
        case("corrcoef", [values("f32", shape)])


def more_products():
    def f(*shape, kind="f32"):
        return values(kind, shape, shift=sum(shape))
    for kind in ("f32", "f64", "bf16", "i64"):
        g = kind == "f32"
        case("tensordot", [f(2, 3, 4, kind=kind), f(3, 4, 2, kind=kind)], grads=g)
        case("kron", [f(2, 3, kind=kind), f(3, 2, kind=kind)], grads=g)
        case("vecdot", [f(2, 3, kind=kind), f(3, kind=kind)], grads=g)
        case("cross", [f(2, 3, kind=kind), f(2, 3, kind=kind) + 1], grads=g)
        case("matrix_power", [f(2, 3, 3, kind=kind)], grads=g, n=2)
        case("vander", [f(3, kind=kind)], grads=g, N=4, increasing=True)
        case("addr", [f(3, kind=kind), f(2, kind=kind), f(3, kind=kind)],
             grads=g, beta=2, alpha=3)
        case("ger", [f(3, kind=kind), f(2, kind=kind)], grads=g)
    for n in (0, 1, 2, 4):
        case("tensordot", [f(2, 3), f(2, 3)], dims=n)
        case("matrix_power", [f(3, 3) / 4], grads=n != 0, n=n)
        case("vander", [f(3)], N=n, increasing=False)
    for a, b in [([0], [1]), ([1, 0], [0, 1]), ([0, 0], [1, 1]), ([0], [0, 1]),
                 ([-1], [0])]:
        case("tensordot", [f(2, 3), f(3, 2)], x_dims=a, y_dims=b)
    for a, b in [((2,), (3,)), ((), (2, 2)), ((2, 1, 3), (2, 2)), ((0, 2), (2,))]:
        case("kron", [f(*a), f(*b)])
    for p in (0, 1, 2, 3, "inf"):
        case("cdist", [f(3, 4), f(2, 4) + 0.1], grads=p in (1, 2, 3), p=p)
        case("cdist", [f(2, 1, 3, 4), f(5, 2, 4)], grads=False, p=p)
    case("cdist", [f(0, 4), f(2, 4)], p=2)
    case("cdist", [f(3, 0), f(2, 0)], grads=False, p=2)
    case("cdist", [f(3, 4), f(2, 3)], p=2)
    case("cdist", [f(4), f(2, 4)], p=2)
    case("cdist", [f(3, 4), f(2, 4)], p=-1)
    for a, b in [((2, 3), (2, 3)), ((3,), (3,)), ((2, 3), (3,)), ((2, 3), (2, 2))]:
        case("pairwise_distance", [f(*a), f(*b) + 0.3], p=1, keepdim=True)
        case("pairwise_distance", [f(*a), f(*b) + 0.3], p=2, keepdim=False)
        case("vecdot", [f(*a), f(*b)])
        case("cross", [f(*a), f(*b)])
    case("cross", [f(3, 2), f(3, 2)], dim=0)
    case("cross", [f(3, 2), f(3, 2)], dim=1)
    case("matrix_power", [f(2, 3)], n=2)
    for kind in ("f32", "f64"):
        eye = 3 * torch.eye(3, dtype=TYPES[kind])
        for n in (-1, -2, -5):
            case("matrix_power", [f(3, 3, kind=kind) / 4 + eye], n=n)
            case("matrix_power", [f(2, 3, 3, kind=kind) / 4 + eye], n=n)
        for size, scale in itertools.product((0, 1, 2, 5), (0, 1e-3, 0.3, 1, 4)):
            case("matrix_exp", [f(size, size, kind=kind) * scale])
        case("matrix_exp", [f(2, 3, 3, kind=kind) / 2])
        case("matrix_exp", [torch.tensor([[0, 1e5], [0, 0]], dtype=TYPES[kind])])
    case("matrix_power", [f(3, 3, kind="i64")], grads=False, n=-1)
    case("matrix_exp", [f(2, 3)])
    case("matrix_exp", [f(3)])
    case("matrix_power", [f(3)], n=2)
    for s in [[(2, 3), (3, 4), (4, 1), (1, 5)], [(3,), (3, 4), (4,)],
              [(2, 3), (3,)], [(2, 3), (2, 3)], [(2, 3)], [(2, 3), (3,), (3, 2)],
              [(1, 9), (9, 1), (1, 9)]]:
        case("multi_dot", [f(*one) for one in s])
        if len(s[0]) == len(s[-1]) == 2:
            case("chain_matmul", [f(*one) for one in s])
    case("vander", [f(2, 2)])
    case("addr", [f(2, 3), f(2), f(3)], grads=False, beta=0, alpha=1)
    case("addr", [f(2, 2), f(2), f(3)], beta=1, alpha=1)
    case("addr", [f(3), f(2, 1), f(3)], beta=1, alpha=1)
    case("ger", [f(2, 1), f(3)])


def main():
    torch.manual_seed(0)
    # CALX_TEST_PARTS=losses: one part of the grid, to look at it alone.
    only = os.environ.get("CALX_TEST_PARTS")
    for part in (elementwise, reductions, shapes, indices, products, model,
                 creation, more_elements, more_shapes, more_indices, more_reductions,
                 more_products):
        if only is None or part.__name__ == only:
            part()
    for part in (torch_linalg.factorisations, torch_linalg.spectra):
        if only in (None, part.__name__):
            part(case, values)
    if only == "complex":  # a test of its own
        torch_complex.parts(case, values)
    torch_model.parts(case, values, only)
    torch_rest.parts(case, values, only)
    torch_extra.parts(case, values, only)
    folder = os.path.join(sys.argv[1], "oracle")
    os.makedirs(folder, exist_ok=True)
    save_file(tensors, os.path.join(folder, "ops.safetensors"))
    with open(os.path.join(folder, "ops.json"), "w") as f:
        json.dump({"torch": torch.__version__, "cases": cases}, f)
    print(f"{len(cases)} cases, {sum('raises' in c for c in cases)} refused")


main()
