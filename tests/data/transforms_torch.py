"""transforms_torch.py FILE: the results of the test data_transforms_torch beside
those of torch's functions, by the definitions in torchvision's documentation.

Of u8 a value may be one away where rounding decides.
"""

import colorsys
import math
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

got = load_file(sys.argv[1])
image = got.pop("image")
names = {key.split(".", 1)[1] for key in got}
checked = 0


def interpolate(x, size, mode, antialias):
    plain = {} if mode == "nearest" else {"align_corners": False}
    return F.interpolate(x[None], size=size, mode=mode, antialias=antialias,
                         **plain)[0]


def resized(size, mode="bilinear", antialias=True):
    return lambda x: interpolate(x, size, mode, antialias)


def pad(mode, *sides):
    left, top, right, bottom = sides
    return lambda x: F.pad(x[None], (left, right, top, bottom), mode=mode)[0]


def center(height, width):
    def crop(x):
        h, w = x.shape[1:]
        more_h, more_w = max(height - h, 0), max(width - w, 0)
        x = F.pad(x, (more_w // 2, more_w - more_w // 2,
                      more_h // 2, more_h - more_h // 2))
        top = round((x.shape[1] - height) / 2)
        left = round((x.shape[2] - width) / 2)
        return x[:, top:top + height, left:left + width]
    return crop


def rotated(degrees, mode, fill):
    """By affine_grid; its coordinates run from -1 to 1 over the image's edges."""
    def rotate(x):
        h, w = x.shape[1:]
        a = math.radians(degrees)
        c, s = math.cos(a), math.sin(a)
        theta = torch.tensor([[[c, -s * h / w, 0], [s * w / h, c, 0]]])
        grid = F.affine_grid(theta.double(), (1, 1, h, w), align_corners=False)
        with_mask = torch.cat([x, torch.ones(1, h, w)])[None].double()
        out = F.grid_sample(with_mask, grid, mode=mode, align_corners=False)[0]
        return (out[:3] + (1 - out[3:]) * fill).float()
    return rotate


def luma(x):
    return (0.2989 * x[0] + 0.587 * x[1] + 0.114 * x[2])[None]


def colour(change):
    """On the scale of 0 to 1 of f32, and of 0 to 255 of u8, which is cut."""
    def apply(x, most):
        y = change(x, most).clamp(0, most)
        return y.trunc() if most == 255 else y
    return apply


def blended(other, factor):
    return colour(lambda x, most: factor * x + (1 - factor) * other(x, most))


def grey_of(x, most):
    return luma(x).trunc() if most == 255 else luma(x)


def hue(turns):
    """Pixel by pixel, with Python's own conversion."""
    def change(x, most):
        out = torch.empty_like(x)
        for i in range(x.shape[1]):
            for j in range(x.shape[2]):
                h, s, v = colorsys.rgb_to_hsv(*(x[:, i, j].double() / most).tolist())
                rgb = colorsys.hsv_to_rgb((h + turns) % 1, s, v)
                out[:, i, j] = torch.tensor(rgb) * (255.999 if most == 255 else 1)
        return out
    return colour(change)


mean = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
std = torch.tensor([0.229, 0.224, 0.225])[:, None, None]
GEOMETRY = {
    "resize 20 30": resized((20, 30)),
    "resize 90 41": resized((90, 41)),
    "resize 16": resized((16, int(16 * 53 / 37))),
    "resize 30 max": resized((int(40 * 30 / int(30 * 53 / 37)), 40)),
    "resize plain": resized((20, 80), antialias=False),
    "resize nearest": resized((20, 80), "nearest", False),
    "resize bicubic": resized((20, 80), "bicubic"),
    "center 21 20": center(21, 20),
    "center 40 60": center(40, 60),
    "pad constant": pad("constant", 1, 2, 3, 4),
    "pad edge": pad("replicate", 1, 2, 3, 4),
    "pad reflect": pad("reflect", 1, 2, 3, 4),
    "whole resized": resized((24, 24)),
    "horizontal": lambda x: x.flip(2),
    "vertical": lambda x: x.flip(1),
    "rotate 0": lambda x: x,
    "rotate nearest": rotated(33, "nearest", 1),
    "rotate bilinear": rotated(-20, "bilinear", 0),
}
COLOUR = {
    "brightness": blended(lambda x, most: 0, 1.4),
    "contrast": blended(lambda x, most: grey_of(x, most).mean(), 0.6),
    "saturation": blended(grey_of, 1.7),
    "hue": hue(0.2),
    "hue back": hue(-0.3),
}


def expected(kind, name):
    x = image.float() if kind == "u8" else image.float() / 255
    if name in GEOMETRY:
        y = GEOMETRY[name](x)
        return y.clamp(0, 255).round() if kind == "u8" else y
    if name in COLOUR:
        return COLOUR[name](x, 255 if kind == "u8" else 1)
    x = image.float() / 255
    return x if name == "to_tensor" else (x - mean) / std


assert names == {*GEOMETRY, *COLOUR, "to_tensor", "normalize"}, names
for key, result in got.items():
    kind, name = key.split(".", 1)
    want = expected(kind, name)
    assert result.shape == want.shape, (key, result.shape, want.shape)
    is_byte = kind == "u8" and name not in ("to_tensor", "normalize")
    assert result.dtype == (torch.uint8 if is_byte else torch.float32), key
    apart = (result.double() - want.double()).abs()
    if is_byte:
        share = (apart > 0).double().mean()
        assert apart.max() <= 1 and share < 0.01, (key, apart.max(), share)
    elif name == "rotate nearest":
        share = (apart > 1e-6).double().mean()
        assert share < 0.001, (key, share)
    else:
        assert apart.max() < 3e-6, (key, apart.max())
    checked += 1
print(f"{checked} results are torch's")
