"""record.py OUT: values of torchmetrics and scikit-learn for tests/metrics/values.c.

OUT (cases.pt) has `data`: batches of (preds, target) by name; and `cases`: a metric
and its options, the name of its data, each batch's value (`forward`), the value of
all (`compute`), and scikit-learn's where it has the metric (`sklearn`). It was
written with torchmetrics 1.9.0, scikit-learn 1.9.1 and PyTorch 2.13.0.
"""

import itertools
import sys
import warnings

import numpy as np
import sklearn.metrics as sk
import torch
import torchmetrics as tm

warnings.simplefilter("ignore")
torch.manual_seed(7)
CLASSES, LABELS = 4, 3
SIZES = (7, 3, 7)  # of the batches


def batches(one):
    return [one(n) for n in SIZES]


def steps(*shape):  # probabilities with ties
    return torch.randint(1, 8, shape) / 8


def whole(high, *shape):
    return torch.randint(0, high, shape)


def spoiled(data, value):  # some targets are not to count
    for _, target in data:
        target.view(-1)[::4] = value
    return data


def sure(n):  # each class's score, of which class 3 is never the greatest
    scores = torch.rand(n, CLASSES)
    scores[:, 3] = 0
    return scores / scores.sum(1, keepdim=True)


DATA = {
    "binary": batches(lambda n: (steps(n), whole(2, n))),
    "binary_logits": batches(lambda n: (torch.randn(n) * 3, whole(2, n))),
    "binary_labels": batches(lambda n: (whole(2, n), whole(2, n))),
    "binary_floats": batches(lambda n: (steps(n), whole(2, n).float())),
    "binary_dims": batches(lambda n: (steps(n, 2, 3), whole(2, n, 2, 3))),
    "binary_none": batches(lambda n: (steps(n), torch.zeros(n).long())),
    "binary_all": batches(lambda n: (steps(n), torch.ones(n).long())),
    "binary_spoiled": spoiled(
        batches(lambda n: (torch.randn(n), whole(2, n))), -1),
    "classes": batches(lambda n: (sure(n), whole(3, n))),
    "classes_logits": batches(lambda n: (torch.randn(n, CLASSES), whole(CLASSES, n))),
    "classes_ties": batches(lambda n: (steps(n, CLASSES), whole(CLASSES, n))),
    "classes_labels": batches(lambda n: (whole(CLASSES, n), whole(CLASSES, n))),
    "classes_dims": batches(lambda n: (torch.randn(n, CLASSES, 3), whole(CLASSES, n, 3))),
    "classes_zero": batches(lambda n: (sure(n), torch.zeros(n).long())),
    "classes_spoiled": spoiled(
        batches(lambda n: (torch.randn(n, CLASSES), whole(CLASSES, n))), -100),
    "labels": batches(lambda n: (steps(n, LABELS), whole(2, n, LABELS))),
    "labels_logits": batches(lambda n: (torch.randn(n, LABELS), whole(2, n, LABELS))),
    "labels_labels": batches(lambda n: (whole(2, n, LABELS), whole(2, n, LABELS))),
    "labels_dims": batches(lambda n: (steps(n, LABELS, 2), whole(2, n, LABELS, 2))),
    "labels_none": batches(
        lambda n: (steps(n, LABELS), whole(2, n, LABELS) * torch.tensor([1, 0, 1]))),
    "labels_spoiled": spoiled(
        batches(lambda n: (torch.randn(n, LABELS), whole(2, n, LABELS))), -1),
    "numbers": batches(lambda n: (torch.randn(n), torch.randn(n))),
    "columns": batches(lambda n: (torch.randn(n, 3), torch.randn(n, 3) + 2)),
    "constant": batches(lambda n: (torch.randn(n), torch.ones(n))),
    "equal": batches(lambda n: (torch.arange(n) / 2.0,) * 2),
    "words": batches(lambda n: (torch.randn(n, 6, 5), whole(5, n, 6))),
    "words_spoiled": spoiled(
        batches(lambda n: (torch.randn(n, 6, 5), whole(5, n, 6))), -100),
    "values": batches(lambda n: (torch.randn(n, 2), None)),
    "integers": batches(lambda n: (whole(9, n), None)),
    "weighted": batches(lambda n: (torch.randn(n, 2), torch.rand(2))),
    "holes": batches(lambda n: (torch.tensor([1.0, torch.nan] * n)[:n + 1], None)),
}
EVERY = ("micro", "macro", "weighted", "none")
CURVE = EVERY[1:]
BINARY = {"task": "binary"}
MULTICLASS = {"task": "multiclass", "num_classes": CLASSES}
MULTILABEL = {"task": "multilabel", "num_labels": LABELS}


def task(data):
    return {"b": BINARY, "c": MULTICLASS, "l": MULTILABEL}[data[0]]


IGNORED = {"binary_spoiled": -1, "classes_spoiled": -100, "labels_spoiled": -1}
IN_FULL = ("classes", "classes_spoiled", "labels_none")  # with each average


def some(data, choices, turn=itertools.count()):
    """All of the choices, or one in turn."""
    return choices if data in IN_FULL else [choices[next(turn) % len(choices)]]


def wanted():
    """(metric, data, options)"""
    for data in (d for d in DATA if d.startswith(("binary", "classes", "labels"))):
        base = dict(task(data))
        if data in IGNORED:
            base["ignore_index"] = IGNORED[data]
        for name in ("accuracy", "precision", "recall", "f1_score"):
            for average in some(data, EVERY):
                yield name, data, {**base, "average": average}
        for normalize in some(data, ("none", "true", "pred", "all")):
            yield "confusion_matrix", data, {**base, "normalize": normalize}
        if DATA[data][0][0].is_floating_point() and "floats" not in data:
            for name in ("auroc", "average_precision"):
                for average in some(data, EVERY if data[0] == "l" else CURVE):
                    for thresholds in ({}, {"thresholds": 6}):
                        yield name, data, {**base, "average": average, **thresholds}
    for name in ("accuracy", "precision", "f1_score"):
        for average in EVERY if name == "accuracy" else ("macro",):
            yield name, "classes_logits", {**MULTICLASS, "average": average, "top_k": 2}
        yield name, "classes_dims", {**MULTICLASS, "average": "macro", "ignore_index": 1}
    yield "recall", "classes_dims", {**MULTICLASS, "average": "none", "top_k": 3}
    yield "accuracy", "classes_spoiled", {**MULTICLASS, "top_k": 2, "ignore_index": -100}
    yield "accuracy", "binary", {**BINARY, "threshold": 0.25}
    yield "accuracy", "binary", {**BINARY, "ignore_index": 0}
    for name in ("accuracy", "precision", "auroc", "average_precision"):  # defaults
        yield name, "classes_logits", dict(MULTICLASS)
        yield name, "labels_logits", dict(MULTILABEL)
    for data in ("numbers", "columns", "equal"):
        yield "mean_squared_error", data, {}
        yield "mean_squared_error", data, {"not_squared": True}
        yield "mean_absolute_error", data, {}
    for data in ("numbers", "columns", "constant", "equal"):
        yield "r2_score", data, {}
    for multioutput in ("raw_values", "variance_weighted"):
        yield "r2_score", "columns", {"multioutput": multioutput}
    yield "r2_score", "numbers", {"adjusted": 1}
    yield "r2_score", "numbers", {"adjusted": 9}
    yield "perplexity", "words", {}
    yield "perplexity", "words_spoiled", {"ignore_index": -100}
    for name in ("mean", "sum", "min", "max"):
        for data in ("values", "integers", "holes"):
            yield name, data, {}
    yield "mean", "weighted", {}


# Where a class has no target, or no other has one: conventions differ.
ONE_SIDED = ("binary_none", "binary_all", "classes", "classes_zero", "labels_none")
CLASS = {"accuracy": tm.Accuracy, "precision": tm.Precision, "recall": tm.Recall,
         "f1_score": tm.F1Score, "confusion_matrix": tm.ConfusionMatrix,
         "auroc": tm.AUROC, "average_precision": tm.AveragePrecision,
         "mean_squared_error": tm.MeanSquaredError,
         "mean_absolute_error": tm.MeanAbsoluteError, "r2_score": tm.R2Score,
         "perplexity": tm.text.Perplexity, "mean": tm.MeanMetric, "sum": tm.SumMetric,
         "min": tm.MinMetric, "max": tm.MaxMetric}


def by_sklearn(name, data, o):
    """Of what scikit-learn has as it is; None: it has not."""
    p = torch.cat([b[0] for b in DATA[data]])
    if data in ("values", "integers", "holes", "weighted") or "top_k" in o:
        return None
    t = torch.cat([b[1] for b in DATA[data]])
    if "mean_" in name or name == "r2_score":
        if "adjusted" in o or data == "constant":
            return None
        if name == "r2_score":
            return sk.r2_score(t, p, multioutput=o.get("multioutput", "uniform_average"))
        score = sk.mean_absolute_error if "absolute" in name else sk.mean_squared_error
        score = score(t.double().flatten(), p.double().flatten())
        return score ** 0.5 if "not_squared" in o else score
    if "ignore_index" in o or p.dim() == 3 and name != "perplexity":
        return None
    if name == "perplexity":
        return np.exp(sk.log_loss(t.flatten(), p.flatten(0, 1).double().softmax(1),
                                  labels=range(p.shape[2])))
    if p.is_floating_point() and (p.min() < 0 or p.max() > 1):
        p = p.softmax(1) if data[0] == "c" else p.sigmoid()
    if name in ("auroc", "average_precision"):
        if "thresholds" in o or data in ONE_SIDED:
            return None
        score = sk.roc_auc_score if name == "auroc" else sk.average_precision_score
        if data[0] == "c":
            t = torch.nn.functional.one_hot(t, CLASSES)
        average = o.get("average", "macro")
        return score(t, p, average=None if average == "none" else average)
    if p.is_floating_point():
        p = p.argmax(1) if data[0] == "c" else (p > o.get("threshold", 0.5)).long()
    if name == "confusion_matrix":
        if data[0] == "l":
            return sk.multilabel_confusion_matrix(t, p) if o["normalize"] == "none" else None
        normalize = None if o["normalize"] == "none" else o["normalize"]
        labels = range(CLASSES if data[0] == "c" else 2)
        return sk.confusion_matrix(t, p, labels=labels, normalize=normalize)
    average = o.get("average", "micro")
    if name == "accuracy":
        # Of several labels, each counts; of one class, it is the recall.
        if data[0] == "l" or average != "micro":
            return None
        return sk.accuracy_score(t, p)
    score = {"precision": sk.precision_score, "recall": sk.recall_score,
             "f1_score": sk.f1_score}[name]
    if data[0] == "b":
        return score(t, p, zero_division=0)
    labels = range(CLASSES) if average == "none" and data[0] == "c" else None
    return score(t, p, average=None if average == "none" else average, labels=labels,
                 zero_division=0)


def plain(value):
    return torch.as_tensor(value).double().flatten().tolist()


def wide(t):  # the variance loses digits in f32
    return t.double() if t.is_floating_point() else t


def record(name, data, options):
    o = dict(options)
    if o.pop("not_squared", False):
        o["squared"] = False
    metric = CLASS[name](**o).set_dtype(torch.double)
    forward = [plain(metric(*(wide(t) for t in batch if t is not None)))
               for batch in DATA[data]]
    case = {"metric": name, "data": data, "options": options, "forward": forward,
            "compute": plain(metric.compute()), "name": type(metric).__name__}
    ours = by_sklearn(name, data, options)
    if ours is not None:
        case["sklearn"] = plain(ours)
        assert np.allclose(case["compute"], case["sklearn"], atol=2e-6, equal_nan=True), case
    return case


if __name__ == "__main__":
    cases = [record(*case) for case in wanted()]
    print(len(cases), "cases,", sum("sklearn" in c for c in cases), "of scikit-learn")
    torch.save({"data": DATA, "cases": cases}, sys.argv[1])
