"""Sizes of the models, for JAX's and PyTorch's alike."""
from collections import namedtuple

RESNET50 = ((64, 3), (128, 4), (256, 6), (512, 3))  # width, blocks
# expand, kernel, stride, channels, blocks
EFFICIENTNET_B0 = ((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2),
                   (6, 3, 2, 80, 3), (6, 5, 1, 112, 3), (6, 5, 2, 192, 4),
                   (6, 3, 1, 320, 1))
GPT = namedtuple("GPT", "blocks heads width places batch")(4, 12, 768, 256, 4)
LSTM = namedtuple("LSTM", "steps batch width")(64, 32, 256)
POINTWISE = 1 << 20
# The decoding step: GPT-2 small's sizes (Radford et al. 2019).
DECODE = namedtuple("DECODE", "blocks heads width places words")(
    12, 12, 768, 1024, 50257)
