"""Makes torchvision importable beside a PyTorch that its wheel was not built for: the
operators of its library, which the tests do not use, get their declarations only.
Imported before pytorch_lightning too, whose torchmetrics imports torchvision.
"""

import torch

LIBRARY = torch.library.Library("torchvision", "DEF")
for op in ("nms", "qnms"):
    LIBRARY.define(f"{op}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
