"""The parts of torch_grid.py's grid about functions of torch named rarely."""

import itertools

import torch
import torch.nn.functional as F

INF = float("inf")


def power(p):
    return INF if p == "inf" else p


def trapezoid(fn):
    def call(y, x=None, dx=None, dim=-1):
        if x is not None:
            return fn(y, x, dim=dim)
        return fn(y, dx=1 if dx is None else dx, dim=dim)
    return call


def gradient(x, *at, spacing=1, dim=None, edge_order=1):
    if dim is None:
        dim = list(range(x.dim()))
    return torch.gradient(x, spacing=at if at else spacing, dim=dim,
                          edge_order=edge_order)


def histogram(x, weight=None, bins=100, min=0, max=0, density=False):
    span = {} if min == max == 0 else {"range": (min, max)}
    return torch.histogram(x, bins, weight=weight, density=density, **span)


def window(op):
    def call(x, dtype="float32", **k):
        return getattr(torch, op)(**k, dtype=getattr(torch, dtype))
    return call


def parts_of(fn, key):
    return lambda x, **k: fn(x, k[key])


WINDOWS = ["bartlett_window", "blackman_window", "hamming_window", "hann_window",
           "kaiser_window"]
SPECIAL = {
    "equal": lambda x, y: torch.tensor(torch.equal(x, y)),
    "dist": lambda x, y, p=2: torch.dist(x, y, power(p)),
    "pdist": lambda x, p=2: F.pdist(x, power(p)),
    "unique_consecutive": lambda x: torch.unique_consecutive(
        x, return_inverse=True, return_counts=True),
    "index_reduce": lambda x, i, s, dim, reduce, include_self:
        x.index_reduce(dim, i, s, reduce, include_self=include_self),
    "broadcast_tensors": torch.broadcast_tensors,
    "cartesian_prod": torch.cartesian_prod,
    "column_stack": lambda *x: torch.column_stack(x),
    **{op: parts_of(getattr(torch, op), "sections")
       for op in ("hsplit", "vsplit", "dsplit")},
    **{op + "_at": parts_of(getattr(torch, op), "indices")
       for op in ("hsplit", "vsplit", "dsplit")},
    "trapezoid": trapezoid(torch.trapezoid),
    "cumulative_trapezoid": trapezoid(torch.cumulative_trapezoid),
    "gradient": gradient,
    "histogram": histogram,
    "histogram_edges": lambda x, e, w=None, density=False:
        torch.histogram(x, e, weight=w, density=density),
    **{op: window(op) for op in WINDOWS},
    **{op: getattr(torch.special, op)
       for op in ("i0e", "i1", "i1e", "ndtr")},
}
INTEGERS = ["i8", "u8", "i32", "i64"]


def elements(case, f):
    for a, b in itertools.product(INTEGERS + ["bool", "f32"], INTEGERS):
        for op in ("gcd", "lcm"):
            case(op, [f(2, 3, kind=a), f(3, kind=b, shift=4)], grads=False)
        n = torch.tensor([0, 1, 5], dtype=f(1, kind=b).dtype)
        for op in ("bitwise_left_shift", "bitwise_right_shift"):
            case(op, [f(2, 3, kind=a), n], grads=False)
    far = torch.tensor([7, 8, 31, 32, 63, 64, 127], dtype=torch.int64)
    for kind in INTEGERS:
        for op in ("bitwise_left_shift", "bitwise_right_shift"):
            case(op, [f(7, kind=kind), far.to(f(1, kind=kind).dtype)],
                 grads=False)
    big = torch.tensor([7540113804746346429, 4660046610375530309, 0, 6, -12])
    case("gcd", [big, big.roll(1)], grads=False)
    case("gcd", [torch.tensor([1836311903, -84], dtype=torch.int32),
                 torch.tensor([1134903170, 36], dtype=torch.int32)],
         grads=False)
    for kind in ("f32", "f64", "bf16", "f16", "i64"):
        case("nextafter", [f(2, 3, kind=kind), f(3, kind=kind, shift=4)],
             grads=False)
        case("frexp", [f(2, 5, kind=kind)], grads=kind == "f32")
        case("logaddexp2", [f(2, 3, kind=kind), f(3, kind=kind, shift=4)],
             grads=kind == "f32")
        # PyTorch's gradient of an integer exponent is computed in integers.
        case("ldexp", [f(2, 3, kind=kind), f(3, kind="i32", shift=4)],
             grads=False)
        case("isreal", [f(2, 3, kind=kind)], grads=False)
    case("frexp", [torch.tensor([3e38, -1e-37, 0.0, -0.0, 1.0, 0.5, 0.49999997,
                                 2.0 ** 127, 2.0 ** -126])], grads=False)
    case("frexp", [torch.tensor([1.7e308, -2.3e-308, 2.0 ** 1023],
                                dtype=torch.float64)], grads=False)
    case("nextafter", [torch.tensor([INF, 1.0, 0.0, -1.0]),
                       torch.tensor([0.0, 1.0, -1.0, -INF])], grads=False)
    case("logaddexp2", [torch.tensor([INF, -INF, 1000.0]),
                        torch.tensor([INF, -INF, 999.0])], grads=False)
    case("gcd", [f(2, kind="i64"), f(3, kind="i64")])
    x = f(2, 3)
    for y in (x, x + 1, x[:1], f(2, 3, kind="i64"), x[:0]):
        case("equal", [x, y], grads=False)
    case("equal", [x[:0], x[:0]], grads=False)


def vectors(case, f):
    for p in (None, 0, 1, 3, "inf"):
        k = {} if p is None else {"p": p}
        case("dist", [f(2, 3), f(3, shift=5)], grads=p != 0, **k)
        # The gradient of the greatest of several is a matter of choice.
        case("pdist", [f(4, 3)], grads=p not in (0, "inf"), **k)
        case("pdist", [f(1, 3)], grads=False, **k)
        case("pdist", [f(0, 3)], grads=False, **k)
    case("pdist", [f(4)])
    case("pdist", [f(4, 3)], p=-1)
    case("dist", [f(2, 3), f(2)])
    for a, b in [((3,), (3,)), ((2, 3), (4, 3)), ((), (2, 3)), ((2, 3), ()),
                 ((2, 0), (3, 0)), ((2, 2, 3), (3,)), ((2, 3), (2,))]:
        case("inner", [f(*a), f(*b, shift=3)])
        case("vdot", [f(*a), f(*b, shift=3)])
    case("inner", [f(3), f(3, kind="i64")])
    for b, a in [(None, None), (0, 2), (2, 0), (0.5, 3)]:
        k = {} if b is None else {"beta": b, "alpha": a}
        case("addbmm", [f(2, 4), f(3, 2, 5), f(3, 5, 4)], grads=b != 0, **k)
        case("addbmm", [f(4), f(0, 2, 5), f(0, 5, 4)], grads=False, **k)
    case("addbmm", [f(4), f(2, 2, 5), f(3, 5, 4)])
    case("addbmm", [f(3), f(3, 2, 5), f(3, 5, 4)])
    for p, dim, most in itertools.product((1, 2, 3), (0, -1, 2), (0.5, 3, 100)):
        case("renorm", [f(2, 3)], p=p, dim=dim, maxnorm=most)
    case("renorm", [f(3)], p=2, dim=0, maxnorm=1)
    case("renorm", [f(2, 3)], p=2, dim=0, maxnorm=-1)
    case("renorm", [f(2, 3)], p=0, dim=0, maxnorm=1)


def rows(case, f):
    i = torch.tensor([2, 0, 2])
    for reduce, own, dim in itertools.product(
            ("prod", "mean", "amax", "amin"), (True, False), (0, 1, -1, 2)):
        s = (3, 4) if dim == 0 else (4, 3)
        for kind in ("f32", "f64", "bf16", "i64", "u8"):
            x = f(4, 4, kind=kind)
            case("index_reduce", [x, i, f(*s, kind=kind, shift=2)],
                 grads=kind == "f32" and reduce == "mean", dim=dim,
                 reduce=reduce, include_self=own)
    case("index_reduce", [f(4, 4), i, f(2, 4)], dim=0, reduce="mean",
         include_self=True)
    case("index_reduce", [f(4, 4), i, f(3, 4, kind="f64")], dim=0,
         reduce="mean", include_self=True)
    for kind in ("f32", "bf16", "i64", "bool", "u8"):
        for s in [(2, 3), (3,), (), (0,), (2, 0), (2, 3, 4)]:
            x = f(*s, kind=kind)
            case("msort", [x], grads=kind == "f32")
            case("argwhere", [x], grads=False)
            case("ravel", [x])
            case("diagflat", [x], offset=1)
            case("diagflat", [x], offset=-2)
            case("column_stack", [x, x])
            case("unique_consecutive", [x.repeat_interleave(2, 0)
                                        if x.dim() else x], grads=False)
            for n, end in itertools.product((1, 2, 3), ("h", "v", "d")):
                case(end + "split", [x], sections=n)
            for end in "hvd":
                case(end + "split_at", [x], indices=[1, 2])
    case("unique_consecutive", [torch.tensor([1., 1., 3., 3., 1., 2., 2., 2.])],
         grads=False)
    for k, dims in itertools.product((-9, -1, 0, 2, 3),
                                     ((0, 1), (1, 0), (-1, 1), (2, 0), (1, 1))):
        x = f(3, 2, 4)
        try:
            d = x.diagonal(k, *dims)
        except (RuntimeError, IndexError):
            d = x
        dim1, dim2 = dims
        case("diagonal_scatter", [x, d.flip(0).contiguous()], offset=k,
             dim1=dim1, dim2=dim2)
    case("diagonal_scatter", [f(3, 3), f(2)])
    for shape in [[2, 3], [4], [3, 1, 2], [0, 3]]:
        case("unravel_index", [torch.tensor([[0, 1], [3, 2]])[:, :shape[0]]],
             grads=False, shape=shape)
    case("unravel_index", [f(3)], shape=[2, 2])
    for s in [[(2, 3), (3,)], [(), (2, 1), (1, 4)], [(0,), (1,)], [(2,), (3,)]]:
        case("broadcast_tensors", [f(*one) for one in s])
    for s in [[(2,)], [(2,), (3,)], [(2,), (1,), (3,)], [(2,), (0,)],
              [(2,), (2, 2)]]:
        case("cartesian_prod", [f(*one) for one in s])
    for n, r, again in itertools.product((0, 1, 4, 5), (0, 1, 2, 3, 5),
                                         (False, True)):
        case("combinations", [f(n)], r=r, with_replacement=again)
    case("combinations", [f(2, 2)], r=2)
    case("combinations", [f(3)], r=-1)


def samples(case, f):
    for op in ("trapezoid", "cumulative_trapezoid"):
        for s, dim in [((4,), -1), ((3, 4), 0), ((3, 4), -1), ((1,), 0),
                       ((3, 4), 2)]:
            case(op, [f(*s)], dim=dim)
            case(op, [f(*s)], dim=dim, dx=0.5)
            case(op, [f(*s), f(*s, shift=7)], dim=dim)
        case(op, [f(3, 4), f(4, shift=2)], dim=-1)
        case(op, [f(3, 4), f(3, shift=2)], dim=0)
        case(op, [f(3, 4), f(3, shift=2)], dim=-1)
        case(op, [f(3, 4, kind="i64")], grads=False, dim=1)
    at = torch.tensor([0.0, 0.5, 2.0, 3.0, 7.0])
    for order in (1, 2):
        for s in [(5,), (5, 4), (2, 5), (3, 4, 5), (2,), (1,)]:
            case("gradient", [f(*s)], edge_order=order)
            case("gradient", [f(*s)], edge_order=order, spacing=0.5)
        case("gradient", [f(5), at], edge_order=order)
        case("gradient", [f(5, 3), at, at[:3]], edge_order=order)
        case("gradient", [f(5, 3), at], edge_order=order, dim=[0])
        case("gradient", [f(5, 3)], edge_order=order, dim=[-1])
        case("gradient", [f(5, 3), at[:4]], edge_order=order, dim=[0])
    case("gradient", [f(5)], edge_order=3)
    x = f(40)
    for bins, dense in itertools.product((1, 3, 7), (False, True)):
        case("histogram", [x], grads=False, bins=bins, density=dense)
        case("histogram", [x], grads=False, bins=bins, density=dense, min=-1,
             max=2)
        case("histogram", [x, x.abs()], grads=False, bins=bins, density=dense,
             min=-1, max=2)
    case("histogram", [x[:0]], grads=False, bins=3)
    case("histogram", [x[:1].repeat(3)], grads=False, bins=3)
    case("histogram", [x], grads=False, bins=3, min=1, max=-1)
    case("histogram", [x.long()], grads=False, bins=3)
    case("histogram", [f(6, 4, kind="f64")], grads=False, bins=4)
    case("histogram_edges", [x, at], grads=False)
    case("histogram_edges", [x, at, x.abs()], grads=False, density=True)
    case("histogram_edges", [x, at.double()], grads=False)
    for op, n, periodic, dtype in itertools.product(
            WINDOWS, (0, 1, 2, 7, 8), (True, False), ("float32", "float64")):
        if op == "blackman_window" and n == 2 and not periodic:
            continue  # nothing but rounding
        k = {"window_length": n, "periodic": periodic, "dtype": dtype}
        case(op, [f(1)], grads=False, **k)
        if op == "hamming_window":
            case(op, [f(1)], grads=False, alpha=0.6, beta=0.3, **k)
        if op == "kaiser_window":
            case(op, [f(1)], grads=False, beta=3.0, **k)
    for op in WINDOWS:
        case(op, [f(1)], grads=False, window_length=-1, periodic=True)


def special(case, f):
    far = torch.tensor([0.0, 1e-3, -7.9, 8.1, -30.0, 80.0, 8.0])
    for op in ("i0", "i0e", "i1", "i1e", "ndtr"):
        for kind in ("f32", "f64", "bf16", "f16", "i64", "bool"):
            if op == "ndtr" and kind in ("bf16", "f16"):
                continue  # PyTorch rounds in between
            case(op, [f(2, 5, kind=kind)], grads=kind in ("f32", "f64"))
        case(op, [far], grads=False)
        case(op, [far.double()])
        case(op, [torch.tensor([INF, -INF, float("nan")])], grads=False)
    for p in (1, 2, 5):
        for kind in ("f32", "f64", "i64"):
            case("mvlgamma", [f(2, 3, kind=kind).abs() + p], p=p)
    case("mvlgamma", [f(3).abs() + 1], p=0)


PARTS = (elements, vectors, rows, samples, special)


def parts(case, values, only):
    def f(*shape, kind="f32", shift=0):
        return values(kind, shape, shift=sum(shape) + shift)
    for part in PARTS:
        if only is None or part.__name__ == only:
            part(case, f)
