"""The part of torch_grid.py's grid about complex numbers and torch.fft."""

import itertools

import torch

ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
TWO = ["fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2"]
MANY = ["fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"]


def freq(op):
    return lambda x, n, d=1: getattr(torch.fft, op)(n, d)


def stft(x, window=None, **k):
    return torch.stft(x, window=window, return_complex=True, **k)


def istft(x, window=None, **k):
    return torch.istft(x, window=window, **k)


SPECIAL = {
    "stft": stft, "istft": istft,
    "index_copy": lambda x, i, s, dim: x.index_copy(dim, i, s),
    **{op: getattr(torch.fft, op) for op in ONE + MANY + TWO},
    **{op: freq(op) for op in ("fftfreq", "rfftfreq")},
    **{op: getattr(torch.fft, op) for op in ("fftshift", "ifftshift")},
    "view_as_real": lambda x: torch.view_as_real(x.resolve_conj()),
}

HOLOMORPHIC = """neg exp expm1 log log2 log1p sqrt rsqrt reciprocal square sin cos
tanh sigmoid tan asin acos atan sinh cosh asinh acosh atanh exp2 log10""".split()
PARTS = "real imag view_as_real conj conj_physical angle sgn abs".split()


def makers(values):
    def f(*shape, kind="f32", shift=0):
        return values(kind, shape, shift=sum(shape) + shift)

    def z(*shape, kind="c64", shift=0):
        part = "f32" if kind == "c64" else "f64"
        # Off the axes, on which branch cuts are.
        return torch.complex(f(*shape, kind=part, shift=shift) + 0.1,
                             f(*shape, kind=part, shift=shift + 5) + 0.07)
    return f, z


def elementwise(case, f, z):
    for kind in ("c64", "c128"):
        for op in HOLOMORPHIC + PARTS:
            for s in [(7,), (), (0,), (2, 1, 3)]:
                case(op, [z(*s, kind=kind)])
        for op in ("isnan", "isfinite", "isinf", "logical_not"):
            case(op, [z(7, kind=kind)])
        for op in ("add", "sub", "mul", "div", "pow", "eq", "ne"):
            case(op, [z(2, 3, kind=kind), z(3, kind=kind, shift=4)])
            case(op, [z(2, 1, kind=kind), f(1, 3, shift=4)])
            case(op, [f(2, 3) + 8, z(3, kind=kind, shift=4)])
            case(op, [z(2, 3, kind=kind), z(kind=kind, shift=2)])
            case(op, [f(2, 3, kind="i64"), z(3, kind=kind)])
            case(op, [z(3, kind=kind), f(3, kind="bool")])
    for op in ("add", "mul"):  # promotion
        for real in ("f32", "f64", "bf16", "f16", "i64", "u8", "bool"):
            for kind in ("c64", "c128"):
                case(op, [z(3, kind=kind), f(3, kind=real)], grads=False)
                case(op, [z(kind=kind), f(3, kind=real)], grads=False)
                case(op, [z(3, kind=kind), f(kind=real)], grads=False)
        case(op, [z(3), z(3, kind="c128")])
        case(op, [z(3), z(kind="c128")])
    for op in PARTS:
        for kind in ("f32", "f64", "i64", "bool", "u8"):
            case(op, [f(7, kind=kind)], grads=op not in ("angle", "sgn"))
        zero = torch.tensor([0, 1j, -1, 0, -1 - 1j, 3], dtype=torch.complex128)
        case(op, [zero])
    for kind in ("f32", "f64"):
        case("complex", [f(2, 3, kind=kind), f(3, kind=kind, shift=3)])
        case("complex", [f(0, kind=kind), f(1, kind=kind)])
        # PyTorch's gradient has the other sign where the length is negative.
        case("polar", [f(2, 3, kind=kind).abs() + 0.1, f(3, kind=kind)])
        case("polar", [f(0, kind=kind), f(1, kind=kind)])
        case("view_as_complex", [f(3, 2, kind=kind)])
        case("view_as_complex", [f(0, 2, kind=kind)])
    for a, b in [("f32", "f64"), ("i64", "i64"), ("bool", "f32")]:
        for op in ("complex", "polar"):
            case(op, [f(3, kind=a), f(3, kind=b)])
    case("complex", [z(3), z(3)])
    case("complex", [f(2), f(3)])
    for x in (f(2, 3), f(2, kind="i64"), z(2), f()):
        case("view_as_complex", [x])
    special = torch.tensor([float("nan"), float("inf"), 0., -float("inf")])
    x = torch.complex(special.repeat(4), special.repeat_interleave(4))
    for op in ("isnan", "isfinite", "isinf", "real", "imag", "logical_not"):
        case(op, [x], grads=False)


# Where PyTorch refuses complex numbers, or calx does and says so.
REAL = """sign relu floor ceil round erf erfc erfinv lgamma digamma trunc frac
bitwise_not isposinf isneginf relu6 hardswish hardsigmoid logsigmoid gelu
leaky_relu hardtanh""".split()
REAL_PAIRS = """maximum minimum remainder fmod atan2 bitwise_and
bitwise_or bitwise_xor lt le gt ge""".split()


def refused(case, f, z):
    for op in REAL:
        case(op, [z(3)])
    for op in REAL_PAIRS:
        case(op, [z(3), z(3, shift=2)])
        case(op, [z(3), f(3)])
    for op in ("amax", "amin", "argmax", "argmin", "median"):
        case(op, [z(3, 4)], dim=1)
    for op in ("clamp_min", "clamp_max", "fmax", "fmin", "hypot",
               "copysign", "nextafter", "gcd"):
        case(op, [z(3), z(3)])
    for op in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
        case(op, [z(3), z(3, shift=1)], reduction="mean")
    case("softmax", [z(3, 4)], dim=1)
    case("sort", [z(5)], dim=-1, descending=False)
    case("topk", [z(5)], k=2, dim=-1, largest=True, sorted=True)
    case("cummax", [z(5)], dim=0)


def moved(case, f, z):
    for kind in ("c64", "c128"):
        x, y = z(2, 3, kind=kind), z(3, 2, kind=kind, shift=3)
        for op in ("sum", "mean"):
            case(op, [x])
            case(op, [x], dim=[1], keepdim=True)
            case(op, [z(0, 3, kind=kind)], dim=[1])
        for op in ("var", "std"):
            case(op, [x])
            case(op, [x], dim=[1], keepdim=True)
            case(op, [z(2, 3, 2, kind=kind)], dim=[0, 2], correction=0)
        case("prod", [x])
        case("prod", [x], dim=1, keepdim=False)
        case("cumsum", [x], dim=1)
        case("cumprod", [x], dim=0)
        case("matmul", [x, y])
        case("matmul", [z(2, 2, 3, kind=kind), y])
        case("matmul", [z(3, kind=kind), y])
        case("mm", [x, y])
        case("bmm", [z(2, 2, 3, kind=kind), z(2, 3, 1, kind=kind)])
        for op in ("dot", "vdot", "outer", "inner", "ger"):
            case(op, [z(3, kind=kind), z(3, kind=kind, shift=4)])
        case("linear", [x, z(4, 3, kind=kind), z(4, kind=kind)])
        case("addmm", [z(2, kind=kind), x, y], beta=2, alpha=3)
        case("einsum", [x, y], equation="ij,jk->ik")
        case("kron", [x, y])
        case("cross", [x, x + 1], dim=1)
        case("where", [f(2, 3, kind="bool"), x, x + 1])
        case("where", [f(2, 3, kind="bool"), x, f(3)])
        case("cat", [x, x + 1], dim=0)
        case("stack", [x, x + 1], dim=1)
        case("flip", [x], dims=[0, 1])
        case("roll", [x], shifts=[1], dims=[1])
        case("pad", [x], pad=[1, 2], mode="constant", value=0.5)
        case("tril", [x], diagonal=0)
        case("diagonal", [x], offset=0, dim1=0, dim2=1)
        case("index_select", [x, torch.tensor([2, 0, 2])], dim=1)
        case("gather", [x, torch.tensor([[0, 2], [1, 1]])], dim=1)
        index = torch.tensor([[0, 2], [1, 0]])
        case("take_along_dim", [x, index], dim=1)
        case("scatter", [x, index, z(2, 2, kind=kind)], dim=1)
        case("scatter_add", [x, index, z(2, 2, kind=kind)], dim=1)
        case("index_add", [x, torch.tensor([1, 1]), z(2, 3, kind=kind)], dim=0)
        case("index_copy", [x, torch.tensor([1, 0]), z(2, 3, kind=kind)], dim=0)
        case("masked_fill", [x, f(2, 3, kind="bool")], value=0.5)
        case("masked_select", [x, f(2, 3, kind="bool")])
        case("nonzero", [x])
        case("all", [x])
        case("any", [x], dim=[1], keepdim=False)
        case("count_nonzero", [x])
        case("norm", [x])
        case("norm", [x], dim=[1], keepdim=False, p=1)
        case("isreal", [torch.view_as_complex(f(3, 2, kind="f32")) * f(3, 1)])
        case("equal", [x, x])
        case("lerp", [x, x + 1], weight=0.25)
        case("lerp", [x, x + 1], weight=2)
        case("addcmul", [x, x + 1, x], value=2)
        case("addcdiv", [x, x + 1, x], value=2)


def one_dimension(case, f, z):
    def take(op, *shape, kind, shift=0):
        if op in ("rfft", "ihfft"):
            return f(*shape, kind=kind, shift=shift)
        return z(*shape, kind="c64" if kind == "f32" else "c128", shift=shift)

    for op, kind in itertools.product(ONE, ("f32", "f64")):
        for n in (2, 3, 4, 5, 8, 9, 12, 16, 17, 31, 64):
            case(op, [take(op, n, kind=kind)])
        for norm in ("backward", "ortho", "forward"):
            case(op, [take(op, 3, 6, kind=kind)], norm=norm)
        for n, dim in [(4, 0), (7, 1), (1, -1), (9, -2), (6, 1), (5, 0)]:
            case(op, [take(op, 4, 6, kind=kind)], n=n, dim=dim)
            case(op, [take(op, 2, 5, 3, kind=kind)], n=n, dim=dim, norm="ortho")
        for n in (0, -1):
            case(op, [take(op, 4, kind=kind)], n=n)
        case(op, [take(op, 0, 4, kind=kind)])
        case(op, [take(op, 4, 0, kind=kind)])
        case(op, [take(op, 4, 0, kind=kind)], n=3)
        case(op, [take(op, kind=kind)])
        case(op, [take(op, 4, kind=kind)], dim=1)
        case(op, [take(op, 1, kind=kind)])
        case(op, [z(4)])
        case(op, [f(4)])
        for other in ("i64", "bool", "u8"):
            case(op, [f(4, kind=other)], grads=False)
        for half in ("f16", "bf16"):
            case(op, [f(5, kind=half)], grads=False)
    for n, d in itertools.product((1, 2, 5, 8), (1, 0.25, -2)):
        case("fftfreq", [f(1)], grads=False, n=n, d=d)
        case("rfftfreq", [f(1)], grads=False, n=n, d=d)
    for op in ("fftshift", "ifftshift"):
        for s in [(5,), (4,), (2, 3), (0,), (3, 4, 5)]:
            case(op, [f(*s)])
            case(op, [z(*s)])
            case(op, [f(*s)], dim=[0])
        case(op, [f(2, 3)], dim=[1, 0])
        case(op, [f(2, 3)], dim=[2])


def dimensions(case, f, z):
    def take(op, *shape, kind="f32", shift=0):
        if op.startswith(("rfft", "ihfft")):
            return f(*shape, kind=kind, shift=shift)
        return z(*shape, kind="c64" if kind == "f32" else "c128", shift=shift)

    for op, kind in itertools.product(TWO + MANY, ("f32", "f64")):
        for s in [(4, 6), (3, 5), (2, 3, 4), (2, 4, 2, 3), (1, 2), (0, 2, 4)]:
            case(op, [take(op, *s, kind=kind)])
            case(op, [take(op, *s, kind=kind)], norm="ortho")
        for s, dim in [([3, 4], None), ([3, 4], [0, 2]), ([-1, 5], [1, 0]),
                       (None, [2, 0]), ([2, 6], [-1, 0]), ([3], [1]),
                       ([4, 4, 4], [0, 1, 2]), (None, [0])]:
            attrs = {k: v for k, v in (("s", s), ("dim", dim)) if v is not None}
            case(op, [take(op, 2, 4, 3, kind=kind)], **attrs)
            case(op, [take(op, 2, 4, 3, kind=kind)], norm="forward", **attrs)
        case(op, [take(op, 2, 3, 2, 3, kind=kind)], dim=[3, 0, 2, 1])
        case(op, [take(op, 2, 2, 3, 2, 2, kind=kind)], dim=[0, 1, 2, 3, 4])
    for op in TWO + MANY:
        x = take(op, 3, 4)
        case(op, [x], dim=[0, 0])
        case(op, [x], dim=[0, 2])
        case(op, [x], s=[3], dim=[0, 1])
        case(op, [x], s=[3, 0])
        case(op, [x], s=[3, 3, 3])
        case(op, [take(op, 4)])
        case(op, [take(op)])
        case(op, [z(3, 4)])
        case(op, [f(3, 4)])
        case(op, [f(3, 4, kind="i64")], grads=False)
        case(op, [take(op, 0, 3)])


def short_time(case, f, z):
    hann = torch.hann_window
    for kind in ("f32", "f64"):
        double = kind == "f64"
        dtype = torch.float64 if double else torch.float32
        x, y = f(2, 40, kind=kind), z(40, kind="c128" if double else "c64")
        for n, hop, win in [(8, 2, 8), (8, None, None), (9, 3, 6), (16, 5, 11),
                            (4, 1, 3), (2, 1, 2)]:
            k = {"n_fft": n}
            if hop is not None:
                k.update(hop_length=hop, win_length=win)
            w = hann(win or n, dtype=dtype) + 0.1
            for center, normalized in itertools.product((True, False), repeat=2):
                k.update(center=center, normalized=normalized)
                case("stft", [x, w], **k)
                case("stft", [x[0]], **k)
                case("stft", [x[0], w], onesided=False, **k)
                case("stft", [y, w], onesided=False, **k)
                bins = n // 2 + 1
                s = z(2, bins, 7, kind="c128" if double else "c64")
                case("istft", [s, w], **k)
                case("istft", [s[0]], **k)
                case("istft", [s, w], length=10, **k)
                case("istft", [s, w], length=60, **k)
                t = z(n, 5, kind="c128" if double else "c64")
                case("istft", [t, w], onesided=False, **k)
                case("istft", [t, w], onesided=False, return_complex=True, **k)
        for mode in ("constant", "replicate", "reflect"):
            case("stft", [x], n_fft=8, pad_mode=mode)
        case("stft", [x.double(), hann(8)], n_fft=8)
        case("stft", [x, hann(8, dtype=torch.float64)], n_fft=8)
    x, s = f(2, 20), z(5, 7)
    for k in ({"n_fft": 0}, {"n_fft": 41}, {"n_fft": 8, "hop_length": -1},
              {"n_fft": 8, "win_length": 9}, {"n_fft": 8, "win_length": -1}):
        case("stft", [x], center=False, **k)
        case("istft", [s], **k)
    case("stft", [x, hann(7)], n_fft=8)
    case("stft", [x, hann(8).reshape(2, 4)], n_fft=8)
    case("stft", [f(2, 3, 20)], n_fft=8)
    case("stft", [f()], n_fft=8)
    case("stft", [f(3)], n_fft=16)
    case("istft", [z(6, 7)], n_fft=8)
    case("istft", [z(5, 0)], n_fft=8)
    case("istft", [z(5)], n_fft=8)
    case("istft", [f(5, 7)], n_fft=8)
    case("istft", [s], n_fft=8, hop_length=6, win_length=4)
    case("istft", [s, hann(9)], n_fft=8)


def parts(case, values):
    f, z = makers(values)
    for part in (elementwise, refused, moved, one_dimension, dimensions,
                 short_time):
        part(case, f, z)
