"""The parts of torch_grid.py's grid about losses and layers' functions."""

import itertools

import torch
import torch.nn.functional as F

REDUCTIONS = ("mean", "sum", "none")


def multi_margin(x, target, weight=None, **attrs):
    return F.multi_margin_loss(x, target, weight=weight, **attrs)


def ctc(log_probs, targets, steps, labels, **attrs):
    return F.ctc_loss(log_probs, targets, steps, labels, **attrs)


def bag(index, weight, offsets=None, by=None, **attrs):
    return F.embedding_bag(index, weight, offsets, per_sample_weights=by, **attrs)


SPECIAL = {
    "affine_grid": lambda t, sizes, **a: F.affine_grid(t, sizes, **a),
    "fold": lambda x, **a: F.fold(x, **a),
    **{f"max_unpool{n}d": lambda x, i, n=n, **a:
       getattr(F, f"max_unpool{n}d")(x, i, **a) for n in (1, 2, 3)},
    "max_pool3d": lambda x, kernel_size, **a:
        F.max_pool3d(x, kernel_size, return_indices=True, **a),
    **{f"lp_pool{n}d": lambda x, norm_type, kernel_size, n=n, **a:
       getattr(F, f"lp_pool{n}d")(x, norm_type, kernel_size, **a)
       for n in (1, 2, 3)},
    "adaptive_max_indices": lambda x, output_size:
        getattr(F, f"adaptive_max_pool{len(output_size)}d")(
            x, [None if n == -1 else n for n in output_size]
            if len(output_size) > 1 else output_size, return_indices=True),
    "embedding_bag": bag,
    "rrelu": lambda x, lower, upper: F.rrelu(x, lower, upper),
    "grid_sample": lambda x, g, **a: F.grid_sample(x, g, **a),
    "bilinear": lambda x, y, w, b=None: F.bilinear(x, y, w, b),
    "channel_shuffle": lambda x, groups: torch.channel_shuffle(x, groups),
    **{op: getattr(F, op) for op in (
        "margin_ranking_loss", "hinge_embedding_loss", "poisson_nll_loss",
        "cosine_embedding_loss", "triplet_margin_loss")},
    "multi_margin_loss": multi_margin,
    "ctc_loss": ctc,
    "cross_entropy_weighted": lambda x, t, w=None, **a:
        F.cross_entropy(x, t, weight=w, **a),
    "nll_loss_weighted": lambda x, t, w=None, **a:
        F.nll_loss(x, t, weight=w, **a),
    "triplet_l1": lambda a, p, n, **attrs:
        F.triplet_margin_with_distance_loss(
            a, p, n, distance_function=lambda x, y: (x - y).abs().sum(-1),
            **attrs),
    "triplet_default": lambda a, p, n, **attrs:
        F.triplet_margin_with_distance_loss(a, p, n, **attrs),
}


def losses(case, f):
    signs = torch.tensor([1, -1, 1, -1])
    for r in REDUCTIONS:
        for s, t in [((4,), signs), ((4, 1), signs.reshape(4, 1)), ((), signs[0]),
                     ((0,), signs[:0]), ((4, 1), signs), ((2,), signs)]:
            case("margin_ranking_loss", [f(*s), f(*s, shift=3), t], reduction=r)
            if t.dim() == len(s):  # calx broadcasts here too
                case("soft_margin_loss", [f(*s), t.to(torch.float32)],
                     grads=False, reduction=r)
            case("hinge_embedding_loss", [f(*s), t], reduction=r, margin=0.5)
            case("poisson_nll_loss", [f(*s), t.abs().to(torch.float32)],
                 reduction=r, log_input=True, full=True)
        case("margin_ranking_loss", [f(4), f(4, shift=2), signs], reduction=r,
             margin=-0.5)
        for s, t in [((4, 3), signs), ((3,), signs[1]), ((4, 1), signs),
                     ((4, 3), signs[0]), ((4, 3), signs[:3]), ((0, 3), signs[:0])]:
            case("cosine_embedding_loss", [f(*s), f(*s, shift=4), t],
                 reduction=r, margin=0.2)
        for s in [(4, 3), (3,), (0, 3), (2, 1)]:
            for p, swap in [(2, False), (1, True), (3, True)]:
                case("triplet_margin_loss",
                     [f(*s), f(*s, shift=2), f(*s, shift=9)], reduction=r, p=p,
                     swap=swap, margin=1.5)
            case("triplet_l1", [f(*s), f(*s, shift=2), f(*s, shift=9)],
                 reduction=r, swap=True, margin=2)
            case("triplet_default", [f(*s), f(*s, shift=2), f(*s, shift=9)],
                 reduction=r, swap=False)
    case("triplet_margin_loss", [f(2, 3), f(3), f(2, 3)], margin=1)
    case("triplet_margin_loss", [f(2, 3), f(2, 3), f(2, 3)], margin=-1)
    case("margin_ranking_loss", [f(2, 3), f(3), f(2, 3)])
    for kind in ("f64", "bf16", "f16"):
        x, y = f(4, 3, kind=kind), f(4, 3, kind=kind, shift=5)
        case("cosine_embedding_loss", [x, y, signs], grads=False, margin=0.1)
        case("margin_ranking_loss", [x, y, signs.reshape(4, 1)], grads=False)
        case("multilabel_soft_margin_loss", [x, (y > 0).to(x.dtype)],
             grads=False)
        case("multi_margin_loss", [x, torch.tensor([0, 2, 1, 1])], grads=False)


def class_losses(case, f):
    t = torch.tensor([2, 0, 1, 2])
    lists = torch.tensor([[2, 0, -1], [1, -1, 0], [-1, 1, 2], [0, 1, 2]])
    for r in REDUCTIONS:
        for p, w, margin in itertools.product((1, 2), (False, True), (1, 0.3)):
            weight = [f(3).abs() + 0.5] if w else []
            for x, y in [(f(4, 3), t), (f(3), t[0]), (f(4, 3), t[:3]),
                         (f(2, 3, 1), t[:2])]:
                case("multi_margin_loss", [x, y, *weight], grads=not w,
                     reduction=r, p=p, margin=margin)
        case("multi_margin_loss", [f(4, 3), t], reduction=r, p=3)
        case("multi_margin_loss", [f(4, 3), t, f(2)], reduction=r)
        for x, y in [(f(4, 3), lists), (f(3), lists[0]), (f(3), lists[3]),
                     (f(4, 3), t), (f(4, 2), lists)]:
            case("multilabel_margin_loss", [x, y], reduction=r)
        y = (f(4, 3, shift=6) > 0).to(torch.float32)
        for weight in ([], [f(3).abs()], [f(4, 3).abs()]):
            case("multilabel_soft_margin_loss", [f(4, 3), y, *weight],
                 reduction=r)
        case("multilabel_soft_margin_loss", [f(3), y[0]], reduction=r)
        case("multilabel_soft_margin_loss", [f(0, 3), y[:0]], reduction=r)
        for full, v in itertools.product((False, True), [
                (4, 3), (4, 1), (4,), (3,), (2, 3), ()]):
            case("gaussian_nll_loss",
                 [f(4, 3), f(4, 3, shift=4), f(*v, shift=1).abs()],
                 reduction=r, full=full, eps=0.3)
        for weight, smooth, ignore in itertools.product(
                (False, True), (0.0, 0.2, 1.0), (-100, 0, 2)):
            w = [f(3).abs() + 0.5] if weight else []
            for x, y in [(f(4, 3), t), (f(3), t[0]),
                         (f(2, 3, 2), t.reshape(2, 2)),
                         (f(1, 3, 2, 2), t.reshape(1, 2, 2)),
                         (f(1, 3, 2, 1, 2), t.reshape(1, 2, 1, 2))]:
                case("cross_entropy_weighted", [x, y, *w], grads=not weight,
                     reduction=r, label_smoothing=smooth, ignore_index=ignore)
                if smooth == 0:
                    case("nll_loss_weighted", [x, y, *w], grads=not weight,
                         reduction=r, ignore_index=ignore)
            for s in [(4, 3), (3,), (2, 3, 2), (0, 3)]:
                q = f(*s, shift=8).softmax(min(1, len(s) - 1))
                case("cross_entropy_weighted", [f(*s), q, *w], grads=not weight,
                     reduction=r, label_smoothing=smooth)
        case("cross_entropy_weighted", [f(4, 3), t], label_smoothing=1.5)
        case("cross_entropy_weighted", [f(4, 3), t, f(4)])


def ctc_losses(case, f):
    def lengths(*n):
        return torch.tensor(n)

    def probs(*s, kind="f32"):
        return (f(*s, kind=kind) * 0.7).log_softmax(-1)
    rows = torch.tensor([[1, 2, 2, 3], [3, 3, 1, 1], [2, 1, 4, 4]])
    for r, blank, inf in itertools.product(REDUCTIONS, (0, 4), (False, True)):
        a = {"reduction": r, "blank": blank, "zero_infinity": inf}
        y = rows if blank == 0 else rows - 1
        case("ctc_loss", [probs(7, 3, 5), y, lengths(7, 7, 7), lengths(4, 4, 4)],
             **a)
        case("ctc_loss", [probs(7, 3, 5), y, lengths(7, 5, 1), lengths(3, 2, 0)],
             **a)
        case("ctc_loss", [probs(7, 3, 5), y, lengths(6, 2, 1), lengths(4, 4, 1)],
             **a)
        case("ctc_loss", [probs(3, 3, 5), y[:, :0], lengths(3, 2, 3),
                          lengths(0, 0, 0)], **a)
        flat = torch.cat([y[0, :2], y[1, :4], y[2, :1]])
        case("ctc_loss", [probs(9, 3, 5), flat, lengths(9, 8, 3),
                          lengths(2, 4, 1)], **a)
        case("ctc_loss", [probs(7, 5), y[0], lengths(7), lengths(4)], **a)
        case("ctc_loss", [probs(7, 5), y[0], torch.tensor(6), torch.tensor(4)],
             **a)
        case("ctc_loss", [probs(4, 3, 5, kind="f64"), y, lengths(0, 4, 4),
                          lengths(0, 1, 2)], **a)
    y = rows
    case("ctc_loss", [probs(7, 3, 5), y, lengths(7, 7), lengths(4, 4, 4)])
    case("ctc_loss", [probs(7, 3, 5), y[:2], lengths(7, 7, 7), lengths(4, 4, 4)])
    case("ctc_loss", [probs(7, 3, 5), y, lengths(7, 7, 7), lengths(4, 4, 4)],
         blank=5)
    case("ctc_loss", [probs(0, 3, 5), y, lengths(0, 0, 0), lengths(4, 4, 4)])


def patches(case, f):
    for size, kernel, a in [
            ((4, 5), (2, 3), {}), ((4, 5), (2, 2), {"stride": (2, 3)}),
            ((5, 5), (2, 2), {"padding": 1, "dilation": (2, 1)}),
            ((3, 3), (4, 4), {}), ((2, 2), (2, 2), {"stride": 3, "padding": 2})]:
        count = 1
        for i in range(2):
            def one(key, usual, a=a, i=i):
                v = a.get(key, usual)
                return v[i] if isinstance(v, tuple) else v
            count *= max(0, (size[i] + 2 * one("padding", 0) - one("dilation", 1)
                             * (kernel[i] - 1) - 1) // one("stride", 1) + 1)
        attrs = {k: list(v) if isinstance(v, tuple) else v for k, v in a.items()}
        attrs.update(output_size=list(size), kernel_size=list(kernel))
        area = kernel[0] * kernel[1]
        case("fold", [f(2, 3 * area, count)], **attrs)
        case("fold", [f(area, count)], **attrs)
        case("fold", [f(2, 3 * area, count + 1)], **attrs)
    for shape, r in [((2, 3, 4, 6), 2), ((1, 6, 9), 3), ((2, 1, 2, 2), 1),
                     ((2, 3, 4, 5), 2), ((4, 4), 2)]:
        case("pixel_unshuffle", [f(*shape)], downscale_factor=r)
        case("channel_shuffle", [f(*shape)], groups=r)
        case("local_response_norm", [f(*shape)], size=r, alpha=0.5, beta=0.6, k=2)
        case("rrelu", [f(*shape)], lower=0.1, upper=0.5)
    for n, sizes in [(1, (8,)), (2, (6, 8)), (3, (4, 6, 8))]:
        pool = getattr(F, f"max_pool{n}d")
        x = f(2, 2, *sizes) + torch.arange(2 * 2 * f(*sizes).numel()).reshape(
            2, 2, *sizes) * 1e-3
        for kernel, stride, padding in [(2, 2, 0), (3, 2, 1)]:
            y, i = pool(x, kernel, stride, padding, return_indices=True)
            a = {"kernel_size": [kernel] * n, "stride": [stride] * n,
                 "padding": [padding] * n}
            unique = kernel <= stride
            for single in (False, True):
                z = [y[0], i[0]] if single else [y, i]
                z = [t.contiguous() for t in z]
                # With overlapping windows one position comes several times.
                case(f"max_unpool{n}d", z, grads=unique, **a,
                     output_size=list(sizes))
                if unique:
                    case(f"max_unpool{n}d", z, **a)
            case(f"max_unpool{n}d", [y, i], **a,
                 output_size=[s + 9 for s in sizes])
            case(f"max_unpool{n}d", [y, i[:1].contiguous()], **a)
    for s in [(4,), (2, 3), (0,)]:
        case("bilinear", [f(*s, 3), f(*s, 4), f(5, 3, 4)])
        case("bilinear", [f(*s, 3), f(*s, 4), f(5, 3, 4), f(5)])
        case("bilinear", [f(*s, 3), f(*s, 3), f(5, 3, 4)])


def pools(case, f):
    for s in [(2, 3, 5, 6, 7), (3, 5, 6, 7), (1, 1, 4, 4, 4), (1, 2, 1, 3, 3),
              (2, 6, 7)]:
        x = f(*s)
        x = x + torch.arange(x.numel()).reshape(s) % 7
        for kernel, more in [([2] * 3, {}), ([3, 2, 3], {"stride": [2, 1, 2]}),
                             ([3] * 3, {"padding": [1, 0, 1]}),
                             ([2] * 3, {"ceil_mode": True}),
                             ([2] * 3, {"dilation": [1, 2, 1]})]:
            case("max_pool3d", [x], grads=False, kernel_size=kernel, **more)
    case("max_pool3d", [torch.ones(1, 1, 4, 4, 4)], grads=False,
         kernel_size=[3] * 3, stride=[1] * 3)
    x = f(1, 1, 3, 3, 3)  # of several NaN PyTorch takes the last, calx the first
    x[0, 0, 1, 0, 1] = float("nan")
    case("max_pool3d", [x], grads=False, kernel_size=[2] * 3)
    for n, s in [(1, (2, 3, 7)), (2, (2, 3, 5, 7)), (3, (1, 2, 4, 5, 6)), (1, (3, 7)),
                 (2, (3, 5, 7))]:
        x = f(*s).abs() + 0.1
        for p in (1, 2, 3.5):
            k = 2 if n == 1 else [2, 3, 2][:n]
            case(f"lp_pool{n}d", [x], norm_type=p, kernel_size=k)
            case(f"lp_pool{n}d", [x], norm_type=p, kernel_size=k, stride=1
                 if n == 1 else [1] * n)
            case(f"lp_pool{n}d", [x], norm_type=p, kernel_size=k, ceil_mode=True)
    for s, sizes in [((2, 3, 7), [3]), ((3, 7), [7]), ((2, 3, 5, 7), [2, 3]),
                     ((2, 3, 5, 7), [-1, 4]), ((1, 2, 4, 5, 6), [3, 2, 4]),
                     ((2, 4, 5, 6), [1, 1, 1]), ((2, 3, 7), [2, 2, 2])]:
        case("adaptive_max_indices", [f(*s)], grads=False, output_size=sizes)
        case("adaptive_max_indices", [torch.zeros(s)], grads=False, output_size=sizes)


def bags(case, f):
    w = f(7, 3)
    rows = torch.tensor([[0, 2, 5], [6, 2, 2], [1, 1, 4], [3, 3, 3]])
    flat = rows.flatten()
    starts = torch.tensor([0, 2, 2, 7])
    for mode in ("mean", "sum", "max"):
        for pad in ({}, {"padding_idx": 2}, {"padding_idx": -4}):
            case("embedding_bag", [rows, w], mode=mode, **pad)
            case("embedding_bag", [flat, w, starts], mode=mode, **pad)
            case("embedding_bag", [flat.int(), w, starts.int()], mode=mode, **pad)
        case("embedding_bag", [flat, w, torch.tensor([0, 2, 7, 12])], mode=mode,
             include_last_offset=True)
        case("embedding_bag", [flat, w], mode=mode)
        case("embedding_bag", [rows, w, starts], mode=mode)
        case("embedding_bag", [rows, w[0]], mode=mode)
        case("embedding_bag", [rows, w, None, f(4, 3)], mode=mode)
        case("embedding_bag", [flat, w, starts, f(12)], mode=mode)
    case("embedding_bag", [rows, w, None, f(4, 2)], mode="sum")


def grids(case, f):
    for align in (False, True):
        for n, size in [(2, [2, 3, 4, 5]), (2, [2, 1, 1, 3]), (2, [1, 3, 4, 5]),
                        (3, [2, 3, 4, 2, 3])]:
            case("affine_grid", [f(2, n, n + 1)], sizes=size,
                 align_corners=align)
        for mode in ("bilinear", "nearest", "bicubic"):
            for padding in ("zeros", "border", "reflection"):
                a = {"mode": mode, "padding_mode": padding,
                     "align_corners": align}
                for x, g in [((2, 3, 4, 5), (2, 3, 2, 2)), ((1, 1, 1, 1), (1, 2, 2, 2)),
                             ((1, 2, 3, 4), (2, 1, 1, 2)),
                             ((2, 2, 3, 2, 4), (2, 2, 1, 3, 3)),
                             ((2, 2, 3, 4), (2, 2, 2, 3))]:
                    grid = f(*g) * 0.43 + 0.013
                    case("grid_sample", [f(*x), grid], **a,
                         grads=min(x[2:]) > 1 and mode != "nearest")


PARTS = (losses, class_losses, ctc_losses, patches, pools, bags, grids)


def parts(case, values, only):
    def f(*shape, kind="f32", shift=0):
        return values(kind, shape, shift=sum(shape) + shift)
    for part in PARTS:
        if only is None or part.__name__ == only:
            part(case, f)
