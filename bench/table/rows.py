"""The table's rows, and the command that each competitor runs for one."""
import os
import pathlib
import shutil
import subprocess
from collections import namedtuple

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAMS = pathlib.Path(os.environ.get("CALX_BENCH_PROGRAMS",
                                       ROOT / "build/release/bench"))
XLA = pathlib.Path(os.environ.get("CALX_BENCH_PLUGIN",
                                  ROOT / ".cache/plugins/xla-cpu-0.106/libpjrt_cpu.so"))
PEERS = ROOT / "bench/peers"

# target: of the best peer's time over ours, at 1 and 2 threads; None: only told.
Row = namedtuple("Row", "name title group target torch")
EAGER, IMAGE = ("torch",), ("torch", "torch-channels-last")
COMPILED = IMAGE + ("torch-compile", "torch-compile-channels-last")

ROWS = [
    Row("mnist_nhwc", "MNIST CNN b128", "training", (2.5, 3), IMAGE),
    Row("mnist_calx", "the same by calx itself", "calx", (3.5, 3.5), IMAGE),
    Row("resnet50", "ResNet-50 b8", "training", (1.5, 1.5), IMAGE),
    Row("efficientnet_b0", "EfficientNet-B0 b4", "training", (2.5, 2.5), IMAGE),
    Row("gpt", "GPT stack, 4 x 768, B4 T256, AdamW", "training", (1.2, 1.2), EAGER),
    Row("gpt_bf16", "the same in bf16", "training", (1.2, 1.2), EAGER),
    Row("mlp", "MLP 784-256-256-10 b64, Adam", "training", (1.8, 1.8), EAGER),
    Row("lstm", "LSTM T64 B32 H256", "training", (1.5, 1.5), EAGER),
    Row("pointwise50", "50 pointwise ops on 1M floats, with gradient", "training",
        (1.3, 1.3), EAGER),
    Row("lstm_hoisted", "LSTM, the inputs' product before the loop", "more", None, EAGER),
    Row("top_k", "top_k 10 of 64 x 50,000", "operations", (1, 1), EAGER),
    Row("sort", "sort of 1,000,000 i32", "operations", (1, 1), EAGER),
    Row("trivial", "trivial program", "operations", (1, 1), EAGER),
    Row("resnet50_b1", "ResNet-50 b1", "inference", (1, 1), COMPILED),
    Row("efficientnet_b0_b1", "EfficientNet-B0 b1", "inference", (1, 1), COMPILED),
    Row("gpt_decode", "GPT-2 decode step, KV cache, f32", "inference", (1, 1), EAGER),
    Row("gpt_decode_bf16", "the same, bf16 weights", "inference", (1, 1), EAGER),
    Row("gpt_decode_int8", "the same, int8 weights", "inference", (1, 1), EAGER),
]


def jemalloc():
    """The library that the peers are run with; they are slower without."""
    given = os.environ.get("CALX_BENCH_JEMALLOC")
    if given:
        return given
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True)
    for line in listed.stdout.splitlines():
        if "libjemalloc.so.2" in line:
            return line.split()[-1]
    return None


def python_of(peer):
    """A peer's interpreter, or None."""
    folder = os.environ.get({"jax": "CALX_BENCH_JAX"}.get(peer, "CALX_BENCH_TORCH"))
    python = pathlib.Path(folder, "bin/python") if folder else None
    return python if python and python.exists() else None


def missing():
    """What is not here, one sentence each."""
    out = []
    if not XLA.exists():
        out.append(f"XLA's plugin: no {XLA}; `./dev setup --engines` fetches it")
    for peer, variable in ("jax", "CALX_BENCH_JAX"), ("torch", "CALX_BENCH_TORCH"):
        if python_of(peer) is None:
            out.append(f"{peer}: {variable} names no virtual environment")
    if jemalloc() is None:
        out.append("jemalloc: the peers run on malloc; CALX_BENCH_JEMALLOC or the system has none")
    return out


def competitors(row):
    """Who runs a row, ours first."""
    xla = () if row.name == "mnist_calx" else ("xla", "jax")
    here = [who for who in xla + row.torch
            if (XLA.exists() if who == "xla" else python_of(who.split("-")[0]))]
    return ["ours"] + here


def command(row, who, threads, seconds, texts):
    """(arguments, environment) of one run."""
    env = dict(os.environ, CALX_CPU_THREADS=str(threads), TF_CPP_MIN_LOG_LEVEL="3",
               CALX_CACHE_DIR="off")
    cores = sorted(os.sched_getaffinity(0))[:threads]
    pin = [shutil.which("taskset") or "taskset", "-c", ",".join(map(str, cores))]
    if who in ("ours", "xla"):
        if row.name == "mnist_calx":
            return pin + [PROGRAMS / "mnist_step", "--batch=128", f"--seconds={seconds}"], env
        plugin = "calx" if who == "ours" else XLA
        return pin + [PROGRAMS / "program", texts / f"{row.name}.mlir",
                      f"--plugin={plugin}", f"--seconds={seconds}"], env
    peer, *variant = who.split("-", 1)
    if jemalloc():
        env["LD_PRELOAD"] = jemalloc()
    flags = ["--seconds", str(seconds)]
    flags += ["--channels-last"] if "channels-last" in who else []
    if row.name == "mnist_calx":
        script = [PEERS / "torch_step.py", "--batch", "128"]
    else:
        script = [PEERS / "row.py", peer, row.name, "--threads", str(threads)]
        flags += ["--compile"] if "compile" in who else []
    return pin + [python_of(peer), *script, *flags], env
