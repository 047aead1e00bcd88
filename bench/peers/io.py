"""io.py [MB [TENSORS [ROUNDS [FOLDER]]]]: MB/s of torch.save, torch.load and of
safetensors, as bench/io.c measures calx's. Saves end with an fsync, as calx's
do; loads, when every byte was read."""

import os
import statistics
import sys
import time

import torch

try:
    from safetensors.torch import load_file, save_file
except ImportError:
    load_file = save_file = None

mb = float(sys.argv[1]) if len(sys.argv) > 1 else 256
tensors = int(sys.argv[2]) if len(sys.argv) > 2 else 16
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
folder = sys.argv[4] if len(sys.argv) > 4 else "/tmp"
n = int(mb * 1e6 / tensors / 4)
value = {f"layer{i}.weight": torch.arange(n, dtype=torch.float32) for i in range(tensors)}


def measure(name, save, load, path):
    saves, loads, synced = [], [], []
    for _ in range(rounds):
        begin = time.perf_counter()
        save(value, path)
        saved = time.perf_counter()
        fd = os.open(path, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
        on_disk = time.perf_counter()
        total = sum(t.view(torch.int32).sum().item() for t in load(path).values())
        loaded = time.perf_counter()
        assert total != 0
        saves.append(mb / (saved - begin))
        synced.append(mb / (on_disk - begin))
        loads.append(mb / (loaded - on_disk))
    print(f"{name:28} save {statistics.median(synced):6.0f} MB/s "
          f"(without fsync {statistics.median(saves):.0f})   "
          f"load {statistics.median(loads):6.0f} MB/s")
    os.remove(path)


measure("torch.save", torch.save, torch.load, f"{folder}/peer_bench.pt")
if save_file is not None:
    measure("safetensors", save_file, load_file, f"{folder}/peer_bench.safetensors")
