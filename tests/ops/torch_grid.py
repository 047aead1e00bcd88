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
from safetensors.torch import save_file

INF, NAN = float("inf"), float("nan")
TYPES = {
    "f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16,
    "f16": torch.float16, "i8": torch.int8, "u8": torch.uint8,
    "i32": torch.int32, "i64": torch.int64, "bool": torch.bool,
}
# What each element type's result may be off, in the measure of oracle.c.
ALLOWED = {torch.float64: 1e-5, torch.float32: 1e-4, torch.float16: 4e-3,
           torch.bfloat16: 3e-2}
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
    return isinstance(e, NotImplementedError) or "not implemented" in text


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
    if op == "linear":                         # a weight of rank 1 is refused
        return inputs[1].dim() == 1
    if op == "einsum":                         # letters alone
        return "..." in attrs["equation"]
    if op == "gelu":                           # PyTorch makes NaN of infinity
        return bool(first.isinf().any()) if not whole else False
    return False


def keep(name, t):
    tensors[name] = t.detach().clone().contiguous()
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
              (torch.float32, torch.float64)] if grads else []
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
    for i, t in enumerate(outs):
        c["outputs"].append(keep(f"{here}/out{i}", t))
        c["torch_f32_error"].append(ALLOWED.get(t.dtype, 0) / 8)
    gradients(c, here, outs, took, wanted)
    cases.append(c)


def gradients(c, here, outs, took, wanted):
    up = [o if o.requires_grad and o.is_floating_point() else None for o in outs]
    if any(o is not None for o in up):
        c["upstream"], total = [], 0
        for i, o in enumerate(up):
            if o is None:
                c["upstream"].append(None)
                continue
            u = values("f64", o.shape, shift=i + 3).to(o.dtype)
            c["upstream"].append(keep(f"{here}/up{i}", u))
            total = total + (o * u).sum()
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
        for shape in [(2, 3), (0, 3), (3, 0), (1,), ()]:
            for dim in (0, -1, 1, 3, -4):
                case(op, [values("f32", shape, shift=3)], dim=dim)
        for kind in TYPES:
            case(op, [values(kind, (2, 3))], grads=False, dim=-1)
    for shape in [(2, 5), (0, 3), (3, 0), (1,), ()]:
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
                        ("i->k", [(2,)]), ("i,i->i", [(0,), (0,)])]:
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


def main():
    torch.manual_seed(0)
    for part in (elementwise, reductions, shapes, indices, products, model):
        part()
    folder = os.path.join(sys.argv[1], "oracle")
    os.makedirs(folder, exist_ok=True)
    save_file(tensors, os.path.join(folder, "ops.safetensors"))
    with open(os.path.join(folder, "ops.json"), "w") as f:
        json.dump({"torch": torch.__version__, "cases": cases}, f)
    print(f"{len(cases)} cases, {sum('raises' in c for c in cases)} refused")


main()
