"""transforms_torch.py FILE: the results of the test data_transforms_torch beside
those of torchvision.

Of u8 a value may be one away where rounding decides. torchvision resizes u8 with integer
weights and rounds after each dimension; calx rounds once, so its results are those of
torchvision's f32 images, rounded.
"""

import os
import sys

import torch
from safetensors.torch import load_file

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import with_torchvision  # noqa: E402, F401
from torchvision.transforms import InterpolationMode as Mode  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402

got = load_file(sys.argv[1])
image = got.pop("image")
names = {key.split(".", 1)[1] for key in got}
checked = 0


def resize(*size, mode=Mode.BILINEAR, **options):
    return lambda x: F.resize(x, list(size), mode, **options)


def pad(mode):
    return lambda x: F.pad(x, [1, 2, 3, 4], padding_mode=mode)


def rotate(degrees, mode, fill):
    return lambda x: F.rotate(x, degrees, mode, fill=fill)


TRANSFORMS = {
    "resize 20 30": resize(20, 30),
    "resize 90 41": resize(90, 41),
    "resize 16": resize(16),
    "resize 30 max": resize(30, max_size=40),
    "resize plain": resize(20, 80, antialias=False),
    "resize nearest": resize(20, 80, mode=Mode.NEAREST),
    "resize bicubic": resize(20, 80, mode=Mode.BICUBIC),
    "center 21 20": lambda x: F.center_crop(x, [21, 20]),
    "center 40 60": lambda x: F.center_crop(x, [40, 60]),
    "pad constant": pad("constant"),
    "pad edge": pad("edge"),
    "pad reflect": pad("reflect"),
    "whole resized": resize(24, 24),
    "horizontal": F.horizontal_flip,
    "vertical": F.vertical_flip,
    "rotate 0": lambda x: x,
    "rotate nearest": rotate(33, Mode.NEAREST, 1),
    "rotate bilinear": rotate(-20, Mode.BILINEAR, 0),
    "brightness": lambda x: F.adjust_brightness(x, 1.4),
    "contrast": lambda x: F.adjust_contrast(x, 0.6),
    "saturation": lambda x: F.adjust_saturation(x, 1.7),
    "hue": lambda x: F.adjust_hue(x, 0.2),
    "hue back": lambda x: F.adjust_hue(x, -0.3),
    "to_tensor": lambda x: F.to_dtype(x, torch.float32, scale=True),
    "normalize": lambda x: F.normalize(F.to_dtype(x, torch.float32, scale=True),
                                       [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
}

assert names == set(TRANSFORMS), names
for key, result in got.items():
    kind, name = key.split(".", 1)
    want = TRANSFORMS[name](image if kind == "u8" else image.float() / 255)
    assert result.shape == want.shape, (key, result.shape, want.shape)
    assert result.dtype == want.dtype, (key, result.dtype, want.dtype)
    apart = (result.double() - want.double()).abs()
    if result.dtype == torch.uint8 and "resize" in name:
        assert apart.max() <= 2, (key, apart.max())
        once = TRANSFORMS[name](image.float()).clamp(0, 255).round()
        apart = (result.double() - once.double()).abs()
    if result.dtype == torch.uint8:
        share = (apart > 0).double().mean()
        assert apart.max() <= 1 and share < 0.01, (key, apart.max(), share)
    elif name == "rotate nearest":
        share = (apart > 1e-6).double().mean()
        assert share < 0.001, (key, share)
    else:
        assert apart.max() < 5e-6, (key, apart.max())
    checked += 1
print(f"{checked} results are torchvision's")
