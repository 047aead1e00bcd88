"""The part of torch_grid.py's grid about factorisations of matrices."""

import torch


def solve_triangular(a, b, upper=False, right=False, unitriangular=False):
    return torch.linalg.solve_triangular(a, b, upper=upper, left=not right,
                                         unitriangular=unitriangular)


def eigh(x, upper):
    """The vectors' signs are open."""
    w, v = torch.linalg.eigh(x, "U" if upper else "L")
    return w, v.abs()


def svd(x, full):
    u, s, vh = torch.linalg.svd(x, full_matrices=full)
    k = s.shape[-1]  # further vectors of `full` are any of their space
    return u[..., :k].abs(), s, vh[..., :k, :].abs()


SPECIAL = {
    "cholesky": lambda x, upper=False: torch.linalg.cholesky(x, upper=upper),
    "cholesky_solve": lambda b, l, upper=False: torch.cholesky_solve(b, l, upper),
    "cholesky_inverse": lambda l, upper=False: torch.cholesky_inverse(l, upper),
    "solve_triangular": solve_triangular,
    "qr": lambda x, complete=False: torch.linalg.qr(
        x, "complete" if complete else "reduced"),
    "solve": torch.linalg.solve, "inverse": torch.linalg.inv,
    "lstsq": lambda a, b: torch.linalg.lstsq(a, b, driver="gels").solution,
    "det": torch.linalg.det, "slogdet": lambda x: tuple(torch.linalg.slogdet(x)),
    "logdet": torch.logdet,
    "eigh_abs": lambda x, upper=False: eigh(x, upper),
    "svd_abs": lambda x, full=False: svd(x, full),
    "eigvalsh": lambda x, upper=False: torch.linalg.eigvalsh(
        x, "U" if upper else "L"),
    "cond": torch.linalg.cond,
    "svdvals": torch.linalg.svdvals, "pinv": torch.linalg.pinv,
    "matrix_rank": torch.linalg.matrix_rank,
}


def spectra(case, values):
    def f(*shape, kind="f64", shift=0):
        x = values("f64", shape, shift=shift) + torch.randn(shape).double() / 4
        return x.to(torch.float64 if kind == "f64" else torch.float32)

    for kind in ("f32", "f64"):
        for s in [(1, 1), (2, 2), (3, 3), (4, 4), (2, 5, 5), (0, 3, 3)]:
            x = f(*s, kind=kind)
            for upper in (False, True):
                case("eigh_abs", [x + x.mT], upper=upper)
                case("eigh_abs", [x], grads=False, upper=upper)
        for s in [(1, 1), (2, 2), (3, 3), (4, 2), (2, 4), (2, 5, 3), (2, 3, 5),
                  (1, 3), (3, 1), (0, 2, 3)]:
            x = f(*s, kind=kind)
            case("svd_abs", [x])
            case("svd_abs", [x], grads=False, full=True)
            case("svdvals", [x])
            case("pinv", [x])
            case("matrix_rank", [x])
    low = f(6, 2) @ f(2, 5, shift=4)
    case("matrix_rank", [low])
    case("pinv", [low], rtol=1e-10)
    case("pinv", [low.mT.contiguous()], rtol=1e-10)
    case("pinv", [torch.eye(3, 2, dtype=torch.float64)])  # equal values
    for s in [(1, 1), (3, 3), (2, 4, 4), (3, 3, 3), (5, 3), (3, 5)]:
        if s[-2] == s[-1]:
            case("eigvalsh", [f(*s)], upper=False)
            case("eigvalsh", [f(*s)], upper=True)
        case("cond", [f(*s)])
    case("eigvalsh", [f(2, 3)])
    case("cond", [values("f32", (3,))])
    case("cond", [f(0, 3)])
    for op in ("pinv", "matrix_rank", "svdvals"):
        case(op, [torch.zeros(3, 4, dtype=torch.float64)], grads=False)
        case(op, [values("i64", (2, 2))])
        case(op, [f(3)])
    case("eigh_abs", [f(2, 3)])
    large = torch.randn(40, 37, dtype=torch.float64)
    case("svdvals", [large])
    case("eigh_abs", [large.mT @ large], grads=False)


def factorisations(case, values):
    """Matrices whose condition is small: what is compared is the method."""
    def f(*shape, kind="f64", shift=0):
        m, n = shape[-2:]
        eye = 5 * torch.eye(m, n, dtype=torch.float64)
        return (values("f64", shape, shift=shift) + eye).to(
            torch.float64 if kind == "f64" else torch.float32)

    def symmetric(*shape, kind="f64"):
        x = f(*shape, kind=kind)
        return x @ x.mT

    for kind in ("f32", "f64"):
        for s in [(1, 1), (3, 3), (2, 4, 4), (2, 1, 3, 3), (0, 3, 3)]:
            x, b = f(*s, kind=kind), f(*s[:-1], 2, kind=kind, shift=3)
            for op in ("inverse", "det", "slogdet", "logdet"):
                case(op, [x])
            case("det", [-x])
            case("logdet", [-x])
            for upper in (False, True):
                case("cholesky", [symmetric(*s, kind=kind)], grads=False,
                     upper=upper)
                case("cholesky_solve", [b, f(*s, kind=kind).tril()], grads=False,
                     upper=False)
                case("cholesky_solve", [b, f(*s, kind=kind).triu()], grads=False,
                     upper=True)
                for unit in (False, True):
                    case("solve_triangular", [x, b], grads=False, upper=upper,
                         unitriangular=unit)
                    case("solve_triangular", [x, b.mT.contiguous()], grads=False,
                         upper=upper, right=True, unitriangular=unit)
            case("cholesky_inverse", [x.tril()], grads=False)
            case("solve", [x, b])
            case("solve", [x, b[..., 0].contiguous()])
            case("lstsq", [x, b], grads=False)
        for s in [(1, 1), (3, 3), (5, 3), (3, 5), (2, 4, 3), (2, 3, 4), (1, 4),
                  (4, 1), (0, 2, 2)]:
            case("qr", [f(*s, kind=kind)])
            if s[-2] <= s[-1]:
                case("qr", [f(*s, kind=kind)], complete=True)
            else:
                case("qr", [f(*s, kind=kind)], grads=False, complete=True)
    case("qr", [torch.zeros(3, 3, dtype=torch.float64)], grads=False)
    case("lstsq", [f(5, 3), f(5, 2)], grads=False)
    case("lstsq", [f(3, 5), f(3, 2)], grads=False)
    case("solve", [f(2, 3, 3), f(3, 2)])
    case("solve", [f(3, 3), f(2, 3, 2)])
    case("solve_triangular", [f(2, 3, 3), f(3, 2)], grads=False)
    large = torch.randn(70, 70, dtype=torch.float64)
    for op in ("inverse", "slogdet", "qr"):
        case(op, [large], grads=op != "inverse")
    case("qr", [large[:, :40].contiguous()])
    case("qr", [large[:40].contiguous()])
    for op in ("inverse", "det", "slogdet", "logdet", "cholesky"):
        for x in (values("f32", (2, 3)), values("f32", (3,)), values("i64", (2, 2))):
            case(op, [x])
    case("solve", [f(3, 3), f(2, 2)])
    case("solve", [f(3, 3), f(3, 2, kind="f32")])
    case("solve_triangular", [f(3, 3), f(2, 2)])
    case("lstsq", [f(3, 2), f(2, 2)])
    case("qr", [values("f32", (3,))])
