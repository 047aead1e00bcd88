"""row.py jax|torch NAME [--seconds S] [--threads N] [--channels-last] [--compile]

One program of bench/models on a peer: prints its median and best step in ms, each
step waited for as in bench/program, and the seconds to compile.
"""
import argparse
import os
import pathlib
import sys
import time

import common

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "models"))


def jax_step(args):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:args.threads])
    import jax
    import jax_programs

    function, arguments = jax_programs.make(args.name)
    arguments = list(jax.device_put(arguments, jax.devices("cpu")[0]))
    lowered = function.lower(*arguments)
    start = time.perf_counter()
    compiled = lowered.compile()
    seconds = time.perf_counter() - start
    # What a step gives for the state that it may overwrite: all of a training
    # step's first result, and a decoding step's cache.
    state = {"gpt_decode": 1}.get(args.name.rsplit("_bf16")[0].rsplit("_int8")[0])
    if args.name in jax_programs.STEPS:
        state = 0

    def step():
        out = compiled(*arguments)
        if state is not None:
            arguments[state] = out[0]
        jax.block_until_ready(out)
    return step, seconds, jax.__version__


def torch_step(args):
    import torch
    import torch_steps

    torch.set_num_threads(args.threads)
    step = torch_steps.step_of(args.name, args.channels_last, args.compile)
    start = time.perf_counter()
    step()
    return step, time.perf_counter() - start, torch.__version__


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=("jax", "torch"))
    parser.add_argument("name")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    step, compile_s, version = (jax_step if args.peer == "jax" else torch_step)(args)
    step()
    times, end = [], time.perf_counter() + args.seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1e3)
    common.say(peer=args.peer, name=args.name, ms=f"{common.median(times):.5f}",
               best=f"{min(times):.5f}", compile_s=f"{compile_s:.3f}",
               version=version)


main()
