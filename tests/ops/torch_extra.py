"""The parts of torch_grid.py's grid about losses of linear layers, products in
groups and the factorisations by elimination and reflections."""

import itertools
import warnings

import torch
import torch.nn.functional as F

INF, NAN = float("inf"), float("nan")


def linear_cross_entropy(x, w, target, bias=None, weight=None, **attrs):
    return F.linear_cross_entropy(x, w, target, linear_bias=bias, weight=weight,
                                  **attrs)


def grouped_mm(x, y, offs=None):
    """PyTorch leaves what is behind the last group as the memory is, and its
    gradient, too."""
    out = F.grouped_mm(x, y, offs=offs)
    if offs is None or x.dim() == y.dim():
        return out
    inside = torch.arange(out.shape[x.dim() - 2]) < offs[-1]
    return torch.where(inside if x.dim() == 3 else inside[:, None], out, 0)


def lu_solve(lu, pivots, b, right=False, adjoint=False):
    return torch.linalg.lu_solve(lu, pivots, b, left=not right, adjoint=adjoint)


def triangular_solve(b, a, lower=False, transpose=False, unitriangular=False):
    return torch.triangular_solve(b, a, not lower, transpose, unitriangular)[0]


def ormqr(x, tau, other, right=False, transpose=False):
    return torch.ormqr(x, tau, other, not right, transpose)


warnings.filterwarnings("ignore", message="torch.triangular_solve")
def fractional(n):
    def call(x, samples, kernel_size, **attrs):
        return getattr(F, f"fractional_max_pool{n}d")(
            x, kernel_size, return_indices=True, _random_samples=samples.detach(),
            **attrs)
    return call


def histogramdd(x, weight=None, bins=None, **attrs):
    out = torch.histogramdd(x, bins, weight=weight, **attrs)
    return out.hist, *out.bin_edges


def histogramdd_edges(x, *edges, density=False):
    return torch.histogramdd(x, edges, density=density).hist


def lobpcg(x, b=None, k=1, largest=True):
    """By the whole decomposition: its own iterations end at 1e-4."""
    root = torch.linalg.cholesky(torch.eye(x.shape[-1]).to(x) if b is None else b)
    inverse = torch.linalg.inv(root)
    w, v = torch.linalg.eigh(inverse @ x @ inverse.mT)
    if largest:
        w, v = w.flip(-1), v.flip(-1)
    mine = w[..., :k]
    if x.dim() == 2:
        theirs = torch.lobpcg(x, k, b, niter=200, largest=largest)[0]
        assert torch.allclose(theirs, mine, rtol=1e-3), (theirs, mine)
    return mine, (inverse.mT @ v[..., :k]).abs()


def as_tuple(x):
    return None if x is None else tuple(x)


SPECIAL = {
    "log_ndtr": torch.special.log_ndtr, "ndtri": torch.special.ndtri,
    "tensorinv": torch.linalg.tensorinv,
    "tensorsolve": lambda a, b, dims=None:
        torch.linalg.tensorsolve(a, b, as_tuple(dims)),
    **{f"fractional_max_pool{n}d": fractional(n) for n in (2, 3)},
    "igamma_x": lambda a, x: torch.igamma(a.detach(), x),
    "igammac_x": lambda a, x: torch.igammac(a.detach(), x),
    "histogramdd": histogramdd, "histogramdd_edges": histogramdd_edges,
    "lobpcg_abs": lobpcg,
    "lu": torch.linalg.lu, "lu_factor": torch.linalg.lu_factor,
    "lu_unpack": torch.lu_unpack, "lu_solve": lu_solve,
    "geqrf": torch.geqrf, "orgqr": torch.orgqr, "ormqr": ormqr,
    "householder_product": torch.linalg.householder_product,
    "triangular_solve": triangular_solve,
    "matrix_rank_within": torch.linalg.matrix_rank,
    "pinv_within": torch.linalg.pinv,
    "linear_cross_entropy": linear_cross_entropy,
    "grouped_mm": grouped_mm,
}


def linear_losses(case, f):
    op = "linear_cross_entropy"
    for kind, s in itertools.product(("f32", "f64"), [(4, 3), (1, 1), (5, 0)]):
        x = f(*s, kind=kind)
        w, b = f(6, s[1], kind=kind), f(6, kind=kind, shift=2)
        t = torch.arange(s[0]) % 6
        q = f(s[0], 6, kind=kind).softmax(1)
        for reduction in ("mean", "sum", "none"):
            case(op, [x, w, t, b], reduction=reduction)
            case(op, [x, w, q, b], reduction=reduction)
            case(op, [x, w, t, b], reduction=reduction, label_smoothing=0.2)
            # PyTorch's weight has no gradient.
            case(op, [x, w, t, None, b.abs() + 1], grads=False,
                 reduction=reduction, label_smoothing=0.2)
            case(op, [x, w, t, b], reduction=reduction, ignore_index=1)
    deep, of_deep = f(5, 2, 2, 3), f(5, 2, 2)
    t = torch.tensor([[[0, 1], [4, 3]], [[2, -100], [1, 0]]])
    case(op, [f(2, 3), deep, t, of_deep])
    case(op, [f(2, 3), deep, f(2, 5, 2, 2).softmax(1), of_deep])
    case(op, [f(2, 3), deep, t.abs() % 5], reduction="none", ignore_index=0)
    case(op, [f(3), f(5, 3), torch.tensor(2), f(5)])
    case(op, [f(3), f(5, 3), f(5).softmax(0)])
    case(op, [f(2, 3, kind="bf16"), f(5, 3, kind="bf16"), torch.tensor([0, 4])])
    x, w, t = f(4, 3), f(6, 3), torch.tensor([0, 1, 2, 3])
    for bad in ([f(2, 4, 3), w, t], [f(4, 2), w, t], [x, f(3), t],
                [x, w, t, f(5)], [x, w, t, f(1, 6)], [f(3), f(6, 2, 3), t],
                [x, w, t[:3]], [x, w, t, None, f(5)], [x, deep, t, f(20)]):
        case(op, bad)
    case(op, [x, w, f(4, 6).softmax(1)], ignore_index=1)
    case(op, [x, w, t], label_smoothing=1.5)


def groups(case, f):
    """Sizes are multiples of 16 bytes, which PyTorch wants."""
    def ends(*at):
        return torch.tensor(at, dtype=torch.int32)

    op = "grouped_mm"
    for kind, e in itertools.product(
            ("f32", "bf16", "f16"),
            (ends(3, 6), ends(0, 6), ends(2, 2), ends(4, 5), ends(0, 0),
             ends(6, 6))):
        case(op, [f(6, 8, kind=kind), f(2, 8, 16, kind=kind), e],
             grads=bool(e[-1] == 6))
    for kind, e in itertools.product(
            ("f32", "bf16"), (ends(8, 16), ends(0, 16), ends(16, 16), ends(8, 8))):
        x, y = f(2, 4, 8, kind=kind), f(8, 16, kind=kind)
        case(op, [x, y, e], grads=bool(e[-1] == 16))
        case(op, [f(4, 16, kind=kind), f(16, 8, kind=kind), e],
             grads=bool(e[-1] == 16))
    case(op, [f(4, 16), f(16, 8), ends(4, 8, 12, 16)])
    case(op, [f(2, 4, 8), f(2, 8, 16)])
    far = f(2, 8, 16)
    far[0] = float("inf")
    case(op, [f(6, 8), far, ends(1, 6)], grads=False)
    x, y = f(6, 8), f(2, 8, 16)
    for bad in ([x, y], [x, y, ends(2, 4, 6)], [x, y, ends(2, 6).long()],
                [x, f(2, 4, 16), ends(2, 6)], [x, y.bfloat16(), ends(2, 6)],
                [x.int(), y.int(), ends(2, 6)], [f(8), y, ends(2, 6)],
                [f(2, 4, 8), y, ends(2, 6)], [f(2, 4, 8), f(3, 8, 16)],
                [x, y, ends(2, 6)[None]]):
        case(op, bad)


def regular(kind, *shape):
    """Matrices whose pivots are of other rows and whose condition is small."""
    m, n = shape[-2:]
    i = torch.arange(m * n).reshape(m, n)
    x = (torch.sin(i * 1.7) + 3 * torch.eye(m, n)).flip(-2)
    x = x + torch.cos(torch.arange(shape[0]) * 1.0).reshape(
        -1, *[1] * (len(shape) - 1)) / 4 if len(shape) > 2 else x
    return x.expand(shape).contiguous().to(
        torch.float32 if kind == "f32" else torch.float64)


SIZES = [(1, 1), (3, 3), (5, 3), (3, 5), (2, 4, 4), (2, 1, 3, 2), (2, 2, 3),
         (1, 4), (4, 1), (0, 3, 3), (3, 0), (0, 3), (0, 0)]


def elimination(case, f):
    for kind, s in itertools.product(("f32", "f64"), SIZES):
        x = regular(kind, *s)
        case("lu", [x])
        case("lu_factor", [x])
        case("lu_unpack", list(torch.linalg.lu_factor(x)))
        if s[-1] != s[-2]:
            continue
        factors = list(torch.linalg.lu_factor(x))
        for right, adjoint in itertools.product((False, True), repeat=2):
            b = f(*s[:-1], 2, kind=kind, shift=3)
            if right:
                b = b.mT.contiguous()
            case("lu_solve", factors + [b], right=right, adjoint=adjoint)
    for s in [(33, 33), (70, 70), (70, 40), (40, 70), (2, 65, 65), (31, 64)]:
        x = torch.randn(s, dtype=torch.float64)
        case("lu", [x])
        case("lu_factor", [x])
    case("lu", [torch.zeros(3, 3, dtype=torch.float64)], grads=False)
    case("lu", [torch.ones(3, 2, dtype=torch.float64)], grads=False)
    x = regular("f64", 3, 3)
    x[0, 0] = float("nan")
    case("lu_factor", [x], grads=False)
    many = list(torch.linalg.lu_factor(regular("f64", 2, 3, 3)))
    case("lu_solve", many + [f(3, 2, kind="f64")])
    case("lu_solve", many + [f(4, 1, 3, 2, kind="f64")])
    one = list(torch.linalg.lu_factor(regular("f64", 3, 3)))
    case("lu_solve", one + [f(4, 3, 2, kind="f64")])
    for bad in ([many[0], many[1].long(), f(3, 2, kind="f64")],
                [many[0], one[1], f(3, 2, kind="f64")],
                many + [f(3, kind="f64")], many + [f(2, 2, kind="f64")],
                many + [f(3, 2)], many + [f(3, 3, 2, kind="f64")]):
        case("lu_solve", bad)
    for op in ("lu", "lu_factor"):
        case(op, [f(3)])
    case("lu_unpack", [one[0], one[1].double()])


def reflections(case, f):
    for kind, s in itertools.product(("f32", "f64"), SIZES):
        x = regular(kind, *s)
        case("geqrf", [x], grads=False)
        a, tau = torch.geqrf(x)
        if s[-2] >= s[-1]:
            for op in ("householder_product", "orgqr"):
                case(op, [a, tau], grads=tau.numel() > 0)
            fewer = tau[..., :-1].contiguous()
            case("householder_product", [a, fewer], grads=fewer.numel() > 0)
        for right, transpose in itertools.product((False, True), repeat=2):
            other = f(*s[:-2], s[-2], 3, kind=kind, shift=5)
            if right:
                other = other.mT.contiguous()
            # PyTorch has no rule of fewer reflections than columns.
            case("ormqr", [a, tau, other], grads=0 not in s and s[-2] >= s[-1],
                 right=right, transpose=transpose)
    for s in [(40, 40), (70, 40), (40, 70)]:
        case("geqrf", [torch.randn(s, dtype=torch.float64)], grads=False)
    a, tau = torch.geqrf(torch.randn(70, 40, dtype=torch.float64))
    case("orgqr", [a, tau])
    case("geqrf", [torch.zeros(3, 3, dtype=torch.float64)], grads=False)
    case("geqrf", [f(3)])
    a, tau = torch.geqrf(regular("f64", 5, 3))
    for bad in ([a, tau.float()], [a, torch.ones(4).double()],
                [a.mT.contiguous(), tau], [a, tau[None]], [tau, tau]):
        case("householder_product", bad)
        case("ormqr", bad + [f(5, 2, kind="f64")])
    for other in (f(3, 2, kind="f64"), f(5, 2), f(5, kind="f64"),
                  f(2, 5, 2, kind="f64")):
        case("ormqr", [a, tau, other])


def tolerances(case, f):
    for kind, s in itertools.product(
            ("f32", "f64"), [(1, 1), (3, 3), (5, 3), (3, 5), (2, 4, 3)]):
        x, b = regular(kind, *s), f(*s[:-1], 2, kind=kind)
        u, w, vh = torch.linalg.svd(x, full_matrices=False)
        w = 10.0 ** -torch.arange(w.shape[-1]).to(w.dtype)  # 1, 0.1, …
        low = (u * w) @ vh
        for within in ({"atol": 0.05}, {"atol": 0.5}, {"rtol": 0.05},
                       {"rtol": 0.005, "atol": 0.5}, {"rtol": 0.0},
                       {"rtol": 0.5, "atol": 0.05}, {"atol": 5.0}):
            case("matrix_rank_within", [low], grads=False, **within)
            case("pinv_within", [low], grads=False, **within)
        if s[-1] != s[-2]:
            continue
        for lower, transpose, unit in itertools.product((False, True), repeat=3):
            case("triangular_solve", [b, x], grads=False, lower=lower,
                 transpose=transpose, unitriangular=unit)
    x = regular("f64", 3, 3)
    for bad in ([f(3, kind="f64"), x], [f(2, 2, kind="f64"), x], [f(3, 2), x],
                [f(3, 2, kind="f64"), x[:2]]):
        case("triangular_solve", bad)
    case("triangular_solve", [f(2, 3, 2, kind="f64"), x])


def fractional_pools(case, f):
    for n, kind in itertools.product((2, 3), ("f32", "f64", "bf16", "f16")):
        op = f"fractional_max_pool{n}d"
        for sizes, kernel, out in [
                ((5, 7, 6), [2, 3, 2], [3, 4, 3]), ((6, 6, 6), [2], [3]),
                ((5, 5, 5), [1], [5]), ((5, 5, 5), [5], [1]),
                ((4, 5, 6), [2], [2, 3, 5]), ((9, 4, 5), [3, 2, 2], [7, 3, 4])]:
            kernel = kernel[:n] if len(kernel) > 1 else kernel * n
            out = out[:n] if len(out) > 1 else out * n
            if n == 3 and any(o + k - 1 >= i
                              for i, k, o in zip(sizes, kernel, out)):
                continue  # PyTorch's bound is one less than in two dimensions
            for batch in ((2, 3), (3,)):
                x = f(*batch, *sizes[:n], kind=kind)
                u = torch.rand(batch[0] if len(batch) == 2 else 1, 3, n)
                case(op, [x, u.to(x.dtype)], kernel_size=kernel,
                     output_size=out)
        x, u = f(2, 3, 8, 9, 7, kind=kind), torch.rand(2, 3, n)
        if n == 2:
            x = x[..., 0].contiguous()
        case(op, [x, u.to(x.dtype)], kernel_size=[2] * n,
             output_ratio=[0.5, 0.7, 0.3][:n])
    x, u = f(2, 3, 6, 6), torch.rand(2, 3, 2)
    op = "fractional_max_pool2d"
    for kernel, attrs in [([2, 2], {}), ([2, 2], {"output_size": [6, 3]}),
                          ([7, 2], {"output_size": [1, 3]}),
                          ([2, 2, 2], {"output_size": [3, 3]}),
                          ([2, 2], {"output_size": [3, 3, 3]})]:
        case(op, [x, u], kernel_size=kernel, **attrs)
    for bad in ([x, u[:1]], [x, u[:, :2]], [x, u[..., :1]], [x, u.double()],
                [f(6, 6), u], [x.long(), u]):
        case(op, bad, kernel_size=[2, 2], output_size=[3, 3])


def gammas(case, f):
    rows = [1e-3, 0.1, 0.5, 1.0, 1.5, 2.0, 5.0, 9.5, 20.0, 70.0, 200.0, 1000.0]
    for op, kind in itertools.product(("igamma", "igammac"), ("f32", "f64")):
        a = torch.tensor(rows, dtype=f(1, kind=kind).dtype)
        for x in (a, a * 1.1, a * 0.9, a + 3, a * 0.3, a * 2, a * 8, a * 0.01):
            case(op + "_x", [a, x])
            case(op + "_x", [a[:, None].contiguous(), x[:4].contiguous()])
        # PyTorch forgets a NaN beside 0 or infinity.
        ends = torch.tensor([0.0, INF, -1.0, 1.0, -INF]).to(a)
        case(op, [ends * 0 + 1, ends * 0 + NAN], grads=False)
        case(op, [ends[:, None].contiguous(), ends], grads=False)
        case(op, [f(2, 3, kind=kind).abs(), f(0, 1, 3, kind=kind)], grads=False)
        case(op, [f(2, kind=kind), f(3, kind=kind)])
        case(op, [a[4], a[5]], grads=False)
        case(op, [a, f(1, kind="f64").abs() + 1], grads=False)
        for half in ("bf16", "f16"):
            case(op, [a[3:8].to(f(1, kind=half).dtype),
                      f(5, kind=half).abs() + 1], grads=False)


def point_histograms(case, f):
    for kind, d in itertools.product(("f32", "f64"), (1, 2, 3)):
        x = f(40, d, kind=kind)
        w = f(40, kind=kind, shift=3)
        bins = [3, 4, 2][:d]
        span = [-1.0, 2.0, -2.5, 2.5, 0.0, 0.0][:2 * d]
        for dense in (False, True):
            case("histogramdd", [x], grads=False, bins=bins, density=dense)
            # Half of the sum may be 0 where weights have both signs.
            case("histogramdd", [x, w.abs()], grads=False, bins=bins,
                 density=dense)
            case("histogramdd", [x], grads=False, bins=bins, density=dense,
                 range=span if d < 3 else span[:4] + [-1.0, 1.0])
            edges = [torch.tensor(e).to(x) for e in
                     ([-2.0, 0.0, 0.5, 3.0], [-1.0, 1.0], [0.0, 0.5, 1.0])][:d]
            case("histogramdd_edges", [x] + edges, grads=False, density=dense)
    x = f(2, 4, 5, 2)
    case("histogramdd", [x, f(2, 4, 5).abs()], grads=False, bins=[2, 3])
    case("histogramdd", [f(0, 2)], grads=False, bins=[2, 3])
    case("histogramdd", [torch.ones(3, 2)], grads=False, bins=[2, 3])
    case("histogramdd", [x], grads=False, bins=[2, 3], range=[0.0, 0.0] * 2)
    x[0, 0, 0, 0] = NAN
    case("histogramdd", [x], grads=False, bins=[2, 2], range=[-1.0, 1.0] * 2)
    x = f(5, 2)
    case("histogramdd", [f(5)], bins=[2])
    case("histogramdd", [x.long()], bins=[2, 2])
    case("histogramdd", [x, f(4)], bins=[2, 2])
    case("histogramdd", [x, f(5, kind="f64")], bins=[2, 2])
    for bins in ([2, 2, 2], [2, 0], [-1, 2]):
        case("histogramdd", [x], bins=bins)
    case("histogramdd", [x], bins=[2, 2], range=[1.0, 0.0, 0.0, 1.0])
    case("histogramdd_edges", [x, torch.ones(1), torch.ones(3)])


def eigenpairs(case, f):
    for kind, n, largest in itertools.product(("f32", "f64"), (6, 9),
                                              (True, False)):
        q = torch.linalg.qr(regular(kind, n, n))[0]
        x = (q * (torch.arange(n) + 1.0).to(q) ** 2) @ q.mT
        b = torch.eye(n).to(q) + x / 100
        for k in (1, 2):
            case("lobpcg_abs", [x], grads=False, k=k, largest=largest)
            case("lobpcg_abs", [x, b], grads=False, k=k, largest=largest)
        case("lobpcg_abs", [torch.stack([x, 2 * x])], grads=False, k=2,
             largest=largest)


def normals(case, f):
    p = torch.cat([torch.linspace(0.01, 0.99, 50), torch.tensor(
        [1e-3, 1e-6, 1e-12, 1e-30, 0.019, 0.0201, 1 - 1e-3, 1 - 1e-6])])
    x = torch.cat([torch.linspace(-12, 8, 81), torch.tensor(
        [-9.85, -9.95, -1.0, -1.001, -40.0, 0.0])])
    for dtype in (torch.float32, torch.float64):
        case("ndtri", [p.to(dtype)])
        case("log_ndtr", [x.to(dtype)])
        ends = torch.tensor([0.0, 1.0, -0.1, 1.1, NAN, INF, -INF], dtype=dtype)
        case("ndtri", [ends], grads=False)
        case("log_ndtr", [ends], grads=False)
        # PyTorch's f32 gradient is 4 % off here.
        case("log_ndtr", [torch.tensor([-1e3], dtype=dtype)], grads=False)
    for op, kind in itertools.product(("ndtri", "log_ndtr"), ("i64", "bool")):
        case(op, [f(2, 3, kind=kind)], grads=False)
    for op, s in itertools.product(("ndtri", "log_ndtr"), [(), (0,), (2, 1)]):
        case(op, [f(*s).abs() / 8 + 0.1])


def tensor_equations(case, f):
    for kind in ("f32", "f64"):
        for s, ind in [((2, 3, 6), 2), ((4, 4), 1), ((2, 3, 3, 2), 2),
                       ((6, 2, 3), 1), ((1, 1), 1), ((4, 2, 2), 1)]:
            n = 1
            for d in s[:ind]:
                n *= d
            x = regular(kind, n, n).reshape(s)
            case("tensorinv", [x], ind=ind)
            case("tensorsolve", [x, f(*s[:ind], kind=kind)])
        x = regular(kind, 6, 6).reshape(2, 3, 3, 2)
        case("tensorinv", [x])
        b = f(3, 2, kind=kind)
        for dims in ([0, 1], [0, 2], [-1], [1], [0, 0], [4], [3, 1, 0]):
            case("tensorsolve", [x, b], dims=dims)
    x = f(2, 3, 6, kind="f64")
    for ind in (-1, 1, 3, 4):
        case("tensorinv", [x], ind=ind)
    case("tensorsolve", [x, f(2, kind="f64")])
    case("tensorsolve", [x, f(2, 3)])
    case("tensorsolve", [f(3, 3), f(1, 3, 3, 3)])


PARTS = (linear_losses, groups, elimination, reflections, tolerances,
         fractional_pools, gammas, point_histograms, eigenpairs, normals,
         tensor_equations)


def parts(case, values, only):
    def f(*shape, kind="f32", shift=0):
        return values(kind, shape, shift=sum(shape) + shift)
    for part in PARTS:
        if only is None or part.__name__ == only:
            part(case, f)
