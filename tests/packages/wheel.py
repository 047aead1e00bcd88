"""wheel.py SOURCE BUILD: the wheel of tools/make-wheel, installed in a virtual
environment that has JAX and nothing else, trains a network by JAX_PLATFORMS=calx.

BUILD is the portable build, which is kept. JAX is that of CALX_TEST_PLUGIN_JAX.
"""

import os
import sys
from pathlib import Path

from support import ENVIRONMENT, WORK, check, check_glibc, end, must, run

source, build = map(Path, sys.argv[1:3])
jax = Path(os.environ["CALX_TEST_PLUGIN_JAX"])
venv = WORK / "venv"
LIMIT = 60_000_000

TRAIN = """
import jax, jax.numpy as jnp

def loss(w, x, y):
    return jnp.mean((jnp.tanh(x @ w["a"]) @ w["b"] - y) ** 2)

@jax.jit
def step(w, x, y):
    value, grads = jax.value_and_grad(loss)(w, x, y)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, w, grads)

a, b, c = jax.random.split(jax.random.key(0), 3)
x = jax.random.normal(a, (256, 256))
y = jnp.sin(x[:, :1])
w = {"a": jax.random.normal(b, (256, 256)) / 16,
     "b": jax.random.normal(c, (256, 1)) / 16}
for i in range(20):
    value, w = step(w, x, y)
    print("loss", float(value))
print("version", repr(jax.devices()[0].client.platform_version))
for line in open("/proc/self/maps"):
    if ".so" in line:
        print("mapped", line.split()[-1])
"""


def lines(said, word):
    return [line.split(" ", 1)[1] for line in said.splitlines()
            if line.startswith(word + " ")]


def install():
    """The wheel in a new environment, by pip, which reaches no index."""
    said = must("python3", "-B", source / "tools/make-wheel", "--build", build,
                "--out", WORK)
    wheel = Path(said.split()[0])
    size = wheel.stat().st_size
    check(f"the wheel has {size} bytes, at most {LIMIT}", size <= LIMIT)
    must(jax, "-m", "venv", "--without-pip", venv)
    python = venv / "bin/python"
    packages = Path(must(
        python, "-c", "import site; print(site.getsitepackages()[0])").strip())
    others = must(
        jax, "-c", "import site; print(site.getsitepackages()[0])").strip()
    (packages / "jax.pth").write_text(others + "\n")
    must("python3", "-m", "pip", "--python", python, "install", "--quiet",
         "--disable-pip-version-check", "--no-index", wheel)
    return python, packages / "calx_cpu_pjrt", packages


def check_training(python, folder):
    code, said = run(python, "-B", "-c", TRAIN, JAX_PLATFORMS="calx")
    losses = [float(v) for v in lines(said, "loss")]
    check("20 steps run", code == 0 and len(losses) == 20, said)
    check("the loss falls by half", losses and losses[-1] < losses[0] / 2, said)
    check("the platform is calx", "calx " in "".join(lines(said, "version")), said)
    ours = {path for path in folder.iterdir() if ".so" in path.name}
    mapped = {Path(p) for p in lines(said, "mapped")}
    mapped = {p for p in mapped if p.name in {path.name for path in ours}}
    check("all libraries of the wheel are loaded, from there", mapped == ours,
          f"{sorted(mapped)} instead of {sorted(ours)}")


def check_licences(packages):
    folder = next(packages.glob("calx_cpu_pjrt-*.dist-info")) / "licenses"
    names = {path.name for path in folder.iterdir()}
    check("the licences of what is packed are there",
          {"calx", "libdnnl2", "libgomp1", "llvm-19-dev"} <= names, str(names))


ENVIRONMENT.pop("PYTHONPATH", None)
python, folder, packages = install()
check_glibc(folder)
check_licences(packages)
check_training(python, folder)
end()
