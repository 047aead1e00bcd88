"""What several ranks do in PyTorch on a CPU: the MNIST step with DDP and Gloo,
or sums of tensors with Gloo alone.

  torch_ranks.py mnist [--ranks N] [--batch B] [--seconds S]
  torch_ranks.py all_reduce [--ranks N] [--bytes B] [--seconds S]

Ranks are processes of one thread each, as in bench/mnist_ranks.c and
bench/all_reduce.c, whose numbers these are held against.
"""
import argparse
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F

import common

GROUP = 8


def again(seconds, begin):
    """Whether rank 0 wants another round."""
    more = torch.tensor([time.perf_counter() - begin < seconds])
    dist.broadcast(more, 0)
    return bool(more)


def mnist(rank, a):
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(1, 10, 5), torch.nn.MaxPool2d(2), torch.nn.ReLU(),
        torch.nn.BatchNorm2d(10), torch.nn.Conv2d(10, 20, 5),
        torch.nn.MaxPool2d(2), torch.nn.ReLU(), torch.nn.BatchNorm2d(20),
        torch.nn.Flatten(), torch.nn.Linear(320, 50), torch.nn.ReLU(),
        torch.nn.Linear(50, 10), torch.nn.LogSoftmax(1))
    images, labels = (torch.from_numpy(v) for v in common.batch(a.batch))
    if a.channels_last:
        layers = layers.to(memory_format=torch.channels_last)
        images = images.contiguous(memory_format=torch.channels_last)
    model = (torch.nn.parallel.DistributedDataParallel(layers)
             if a.ranks > 1 else layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)

    def group():
        begin = time.perf_counter()
        for _ in range(GROUP):
            optimizer.zero_grad()
            F.nll_loss(model(images), labels).backward()
            optimizer.step()
        return a.batch * GROUP * a.ranks / (time.perf_counter() - begin)

    for _ in range(3):
        group()
    rates, begin = [], time.perf_counter()
    while again(a.seconds, begin) or len(rates) < 3:
        rates.append(group())
    if rank == 0:
        common.say(peer="torch-ddp", ranks=a.ranks, batch=a.batch,
                   images_s=f"{common.median(rates):.0f}",
                   p10=f"{common.median(rates, 0.1):.0f}",
                   p90=f"{common.median(rates, 0.9):.0f}")


def all_reduce(rank, a):
    for dtype in torch.float32, torch.bfloat16:
        for size in [a.bytes] if a.bytes else [4096, 1 << 20, 100 << 20]:
            x = torch.ones(size // dtype.itemsize, dtype=dtype)
            times, begin = [], time.perf_counter()
            while again(a.seconds, begin) or len(times) < 4:
                x.fill_(1)
                dist.barrier()
                start = time.perf_counter()
                dist.all_reduce(x)
                took = torch.tensor([time.perf_counter() - start])
                dist.all_reduce(took, dist.ReduceOp.MAX)
                times.append(took.item() * 1e6)
            if rank == 0:
                common.say(peer="gloo", ranks=a.ranks,
                           type=str(dtype).split(".")[1], bytes=size,
                           us=f"{common.median(times):.1f}",
                           min=f"{min(times):.1f}", n=len(times))


def run(rank, a):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(a.port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=a.ranks)
    {"mnist": mnist, "all_reduce": all_reduce}[a.what](rank, a)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["mnist", "all_reduce"])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--bytes", type=int)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--channels-last", action="store_true")
    a = parser.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        a.port = s.getsockname()[1]
    mp.spawn(run, (a,), a.ranks)
