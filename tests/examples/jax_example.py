"""jax_example.py PACKAGE_FOLDER LIBRARY EXAMPLE WORD BOUND [OPTION...]: an example of
examples/jax on the engine and on XLA's CPU client.

Both run with the same OPTIONs, each in a process of its own. Their first losses
are compared. Later ones drift apart: where rounding puts an input of relu on the
other side of zero, a gradient changes by some percent. From the same parameters,
40 steps of resnet.py had gradients that differ from float64's by at most 4e-6 on
both clients, but for 3 such steps here and 2 on XLA's. The last number that the engine's
run prints after WORD must reach BOUND: a loss below it, an accuracy above.
"""

import os
import re
import subprocess
import sys

folder, library, example, word, bound = sys.argv[1:6]
options = sys.argv[6:]
FIRST = 3

RUN = """
import runpy, sys
folder, sys.argv = sys.argv[1], sys.argv[2:]
if folder:
    sys.path.insert(0, folder)
    import calx_cpu_pjrt
    calx_cpu_pjrt.initialize()  # a wheel's entry point does it
runpy.run_path(sys.argv[0], run_name="__main__")
import jax
print("client", jax.devices()[0].client.platform_version)
"""


def run(platform):
    environment = dict(os.environ, JAX_PLATFORMS=platform,
                       CALX_CPU_LIBRARY=library, JAX_ENABLE_X64="0")
    done = subprocess.run(
        [sys.executable, "-B", "-c", RUN, folder if platform == "calx" else "",
         example, *options], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"FAILED on {platform}: exit {done.returncode}\n{done.stdout}")
    client = done.stdout.rsplit("client", 1)[1]
    if ("calx " in client) != (platform == "calx"):
        sys.exit(f"FAILED: {platform} ran on{client}")
    return done.stdout


def numbers(said, name):
    return [float(v) for v in re.findall(rf"{name} ([0-9.]+)", said)]


ours, theirs = run("calx"), run("cpu")
print(ours)
pairs = list(zip(numbers(ours, "loss"), numbers(theirs, "loss")))[:FIRST]
if len(pairs) < FIRST:
    sys.exit(f"FAILED: fewer than {FIRST} losses")
if abs(pairs[0][0] - pairs[0][1]) > 2e-4 * pairs[0][1]:
    sys.exit(f"FAILED: the first losses differ: {pairs[0]}")
for a, b in pairs:
    if abs(a - b) > 0.02 * b:
        sys.exit(f"FAILED: losses differ by more than 2 %: {pairs}")
last = numbers(ours, word)[-1]
good = last < float(bound) if word == "loss" else last > float(bound)
if not good:
    sys.exit(f"FAILED: the last {word} is {last}, to reach: {bound}")
