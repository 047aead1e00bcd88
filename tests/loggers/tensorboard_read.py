"""tensorboard_read.py FOLDER _: TensorBoard reads what the test tensorboard.c has logged
in FOLDER, and finds what torch.utils.tensorboard makes of the same calls."""

import glob
import io
import os
import sys
import tempfile

from PIL import Image
import numpy as np
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto import event_pb2
from tensorboard.plugins.hparams import plugin_data_pb2
from torch.utils.tensorboard import SummaryWriter
from torch.utils.tensorboard.summary import hparams

ALL = {name: 0 for name in ("scalars", "histograms", "images", "tensors")}
HISTOGRAMS = {
    "h/wide": [(i * 37 % 101 - 50) / 8 * 10.0 ** (i % 30 - 12) for i in range(1000)],
    "h/zero": [0.0],
    "h/edges": [1e-12, -1e-12, 1.1e-12, 1e25, -1e25, 3.0],
    "h/negative": [-2.0, -2.5, -2.0],
}
PARAMS = {"lr": 0.01, "layers": 3, "opt": "adam \u00e9", "nesterov": True, "none": "None"}
# The metrics' tags have the prefix, which Lightning leaves out.
METRICS = {"run-acc": 0.75, "run-hp_metric": -1}
TEXT = "**bold** \u00e9\nline"


def pixels(channels):
    i = np.arange(5 * 7 * channels, dtype=np.int64)
    return (i * 41 % 256).astype(np.uint8).reshape(5, 7, channels)


def write_with_torch(folder):
    w = SummaryWriter(folder)
    for step in range(3):
        w.add_scalar("loss", 1 / (step + 1), step)
    w.add_scalar("run-acc", 0.75, 4)
    w.add_scalar("run-hp_metric", -1, 4)
    w.add_scalar("one", 1e-3, 2**40)
    w.add_scalar("not", float("nan"), 0)
    w.add_scalar("not", float("inf"), 1)
    for tag, values in HISTOGRAMS.items():
        w.add_histogram(tag, np.array(values, dtype=np.float64), 7)
    w.add_text("note", TEXT, 5)
    w.add_text("question", "a?b", 5)  # calx was given a byte that is not UTF-8
    w.add_text("summary", "      | Name\n    \n    0 | *fc1*\n", 5)
    for channels in (2, 3, 4):
        w.add_image(f"i{channels}", pixels(channels), 1, dataformats="HWC")
    w.close()


def load(folder):
    acc = EventAccumulator(folder, ALL)
    acc.Reload()
    return acc


def image(encoded):
    return np.array(Image.open(io.BytesIO(encoded)))


def compare(got, want):
    tags, wanted = got.Tags(), want.Tags()
    assert set(tags["scalars"]) == set(wanted["scalars"]), tags
    for tag in wanted["scalars"]:
        pairs = [[(e.step, repr(e.value)) for e in a.Scalars(tag)] for a in (got, want)]
        assert pairs[0] == pairs[1], (tag, pairs)
    assert set(tags["histograms"]) == set(HISTOGRAMS), tags
    for tag in HISTOGRAMS:
        (g,), (w,) = got.Histograms(tag), want.Histograms(tag)
        assert g.step == w.step
        g, w = g.histogram_value, w.histogram_value
        assert list(g.bucket_limit) == list(w.bucket_limit), tag
        assert list(g.bucket) == list(w.bucket), tag
        assert (g.min, g.max, g.num) == (w.min, w.max, w.num), tag
        np.testing.assert_allclose([g.sum, g.sum_squares], [w.sum, w.sum_squares], 1e-12)
    assert set(tags["tensors"]) == set(wanted["tensors"]), tags
    for tag in wanted["tensors"]:
        (g,), (w,) = got.Tensors(tag), want.Tensors(tag)
        assert g.step == w.step and g.tensor_proto == w.tensor_proto, tag
        assert got.SummaryMetadata(tag) == want.SummaryMetadata(tag), tag
    assert set(tags["images"]) == set(wanted["images"]) | {"i1"}, tags
    for tag in tags["images"]:
        (g,) = got.Images(tag)
        assert (g.step, g.height, g.width) == (1, 5, 7), tag
        wanted_pixels = pixels(int(tag[1]))
        assert np.array_equal(image(g.encoded_image_string).reshape(wanted_pixels.shape),
                              wanted_pixels), tag


def check_hparams(got):
    contents = got.PluginTagToContent("hparams")
    want = {v.tag: v.metadata.plugin_data.content
            for summary in hparams(PARAMS, METRICS) for v in summary.value}
    assert set(contents) == set(want), contents
    for tag in want:
        a, b = (plugin_data_pb2.HParamsPluginData.FromString(x) for x in (contents[tag], want[tag]))
        assert a == b, (tag, a, b)


def main():
    folder = sys.argv[1]
    (path,) = glob.glob(os.path.join(folder, "events.out.tfevents.*"))
    first = event_pb2.Event.FromString(next(iter(RawEventFileLoader(path).Load())))
    assert first.file_version == "brain.Event:2" and first.wall_time > 1.6e9, first
    got = load(folder)
    with tempfile.TemporaryDirectory() as other:
        write_with_torch(other)
        compare(got, load(other))
    check_hparams(got)


main()
