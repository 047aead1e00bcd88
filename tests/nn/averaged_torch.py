"""averaged_torch.py FILE: the rows of tests/nn/averaged.c against
torch.optim.swa_utils, in f64. The exit code is 1 if anything differs."""

import sys

import torch
from torch.optim.swa_utils import (AveragedModel, get_ema_multi_avg_fn,  # noqa: F401
                                   update_bn)

failed = 0


def compare(row, what, got, wanted):
    global failed
    if list(got) != list(wanted):
        failed += 1
        print(f"{row['code']} {what}: {list(got)}, PyTorch {list(wanted)}")
        return
    for name, t in wanted.items():
        # PyTorch averages an integer buffer in a way of its own.
        if name.endswith("num_batches_tracked") and "buffers" in row["code"]:
            continue
        if not torch.allclose(got[name].double(), t.double(), rtol=1e-5, atol=1e-6):
            failed += 1
            print(f"{row['code']} {what} {name}: {got[name]}, PyTorch {t}")


rows = torch.load(sys.argv[1], weights_only=True)
for row in rows:
    m = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).double()
    average = eval(row["code"])
    for state in row["seen"]:
        m.load_state_dict(state)
        average.update_parameters(m)
    compare(row, "after the updates", row["average"], average.state_dict())
    update_bn([x.double() for x in row["data"]], average)
    compare(row, "after update_bn", row["updated"], average.state_dict())
    average.eval()
    compare(row, "result", {"y": row["y"]}, {"y": average(row["x"].double())})
print(f"{len(rows)} averages, {failed} differences")
sys.exit(1 if failed or len(rows) != 5 else 0)
