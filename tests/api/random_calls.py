"""random_calls.py LIBRARY API_JSON [COUNT [SEED]]: calls with random arguments.

Functions of docs/api.json that take and return tensors or modules are called with
arguments drawn without regard to what they mean: tensors of all types and ranks,
with extents of 0, NULL, an earlier error; numbers that are NaN, infinite or at
the ends of their types; enums out of range; options at random. None may crash or
hang, and what cannot be is an error that names the function. Children make the
calls, a few hundred each, so that a crash is reported with its call.
"""

import ctypes as c
import os
import random
import re
import resource
import signal
import sys
import traceback

from bindings import Binding

BATCH = 300
SECONDS = 60  # for a call
MEMORY = 4 << 30  # bytes of address space that the calls may take
INTS = [-1, 0, 1, 2, 3, 4, 5, 7, -2, -3, 64, 2**31 - 1, -2**31]
WIDE = INTS + [2**31, 2**40, 2**62, 2**63 - 1, -2**63]
REALS = [0.0, -0.0, 1.0, 0.5, -1.0, 2.0, 1e-8, 1e300, float("inf"),
         float("-inf"), float("nan")]
# They do not return, or end or change the process for the calls that follow.
LEFT_OUT = re.compile(r"calx_(retain|at_)")
# What returns nothing, or a count: of these the ones that work on tensors.
WITHOUT_RESULT = re.compile(
    r"calx_(assign|init_|(tensor_|[dhv])?split|broadcast_tensors|meshgrid|unbind|"
    r"unravel_index|chunk|gradient_|backward_with)")
OBJECTS = {"calx_module *": "module", "calx_optimizer *": "optimizer"}


class Calls:
    def __init__(self, binding, seed):
        self.b = binding
        self.random = random.Random(seed)
        self.dtypes = {v: k[5:].lower() for k, v in binding.enums["calx_dtype"].items()
                       if "DEFAULT" not in k}
        self.made = {}
        self.functions = [f for f in binding.api["functions"] if self.takes(f)]

    def takes(self, f):
        if LEFT_OUT.match(f["name"]) or f["variadic"]:
            return False
        if f["returns"] in ("void", "size_t"):
            if not WITHOUT_RESULT.match(f["name"]):
                return False
        elif f["returns"] != "calx_tensor *" and f["returns"] not in OBJECTS:
            return False
        return all(self.kind(p["type"]) for p in f["parameters"])

    def kind(self, text):
        bare = re.sub(r"\bconst\b", "", text).replace(" ", "")
        fixed = {"calx_tensor*": "tensor", "calx_tensor**": "tensors",
                 "calx_module*": "module", "int": "int", "int64_t": "wide",
                 "size_t": "count", "double": "real", "bool": "bool",
                 "calx_dims": "dims", "char*": "name"}
        if bare in fixed:
            return fixed[bare]
        if bare in self.b.enums:
            return "enum"
        if bare.endswith("_options*") and bare[:-1] in self.b.described:
            return "options"
        return None

    # ---- arguments -----------------------------------------------------------

    def pick(self, low, high):
        """Mostly a sensible value, else one of the hostile."""
        r = self.random
        return r.choice(low) if r.random() < 0.7 else r.choice(high)

    def dims(self):
        r = self.random
        d = self.b.struct("calx_dims")()
        d.count = r.choice([0, 1, 1, 2, 2, 3, 4, 5, 8])
        for i in range(d.count):
            d.values[i] = self.pick([1, 2, 3, 4], [-1, 0, 5, 2**31, 2**62, -2**63])
        if r.random() < 0.02:
            d.count = r.choice([9, 255, 2**31 - 1])
        return d

    def tensor(self):
        """A tensor of the scope, or NULL; what it is goes into `made`."""
        r, lib = self.random, self.b.library
        if r.random() < 0.03:
            return None
        d = self.b.struct("calx_dims")()
        d.count = r.choice([0, 1, 2, 2, 3, 4, 4, 5])
        for i in range(d.count):
            d.values[i] = r.choice([0, 1, 2, 2, 3, 3, 4])
        dtype = r.choice([*self.dtypes, *8 * [self.b.enums["calx_dtype"]["CALX_F32"]]])
        bytes_ = (c.c_char * 65536)(*(r.randrange(3) for _ in range(64)))
        t = lib.calx_to_dtype(lib.calx_tensor_from(
            bytes_, self.b.enums["calx_dtype"]["CALX_U8"], d), dtype)
        text = f"{self.dtypes[dtype]}{list(d.values[:d.count])}"
        if self.dtypes[dtype] in ("f32", "f64", "bf16", "f16") and r.random() < 0.4:
            lib.calx_requires_grad(t, True)
            text += " with grad"
        if r.random() < 0.02:
            t = lib.calx_reshape(t, self.b.struct("calx_dims")(1, (77,)))
            text = "an earlier error"
        self.made[t] = text
        return t

    def value(self, text, called):
        r = self.random
        kind = self.kind(text)
        if kind == "tensor":
            return self.tensor()
        if kind == "tensors":
            called["tensors"] = r.choice([0, 1, 2, 3])
            return (c.c_void_p * 64)(*(self.tensor()
                                      for _ in range(called["tensors"])))
        if kind == "module":
            return called.get("module")
        if kind == "count":
            return called.get("tensors", self.pick([0, 1, 2, 3], [5, 64]))
        if kind == "int":
            return self.pick([-2, -1, 0, 1, 2, 3], INTS)
        if kind == "wide":
            return self.pick([0, 1, 2, 3, 4], WIDE)
        if kind == "real":
            return self.pick([0.5, 1.0, 2.0, 0.1], REALS)
        if kind == "bool":
            return r.random() < 0.5
        if kind == "dims":
            return self.dims()
        if kind == "name":
            return r.choice([None, b"x", b"", b"a.b", b"%s%n", b"mean", b"ij,jk->ik",
                             b"...", b"\xff" * 300])
        if kind == "enum":
            known = list(self.b.enums[re.sub(r"\bconst\b", "", text).strip()]
                         .values())
            return self.pick(known, [-1, 99, 2**31 - 1])
        if r.random() < 0.3:
            return None
        return c.byref(self.filled(re.sub(r"\bconst\b|[ *]", "", text)))

    def filled(self, name):
        """An option struct, a few fields of which are set."""
        r = self.random
        made = self.b.struct(name)()
        for field in self.b.described[name]:
            if field["name"] == "size" or r.random() < 0.6:
                continue
            if self.kind(field["type"]) in (None, "tensors", "options", "module",
                                            "count"):
                continue
            setattr(made, field["name"], self.value(field["type"], {}))
        if any(f["name"] == "size" for f in self.b.described[name]):
            made.size = c.sizeof(made)
        return made

    # ---- a call --------------------------------------------------------------

    def text(self, f, arguments):
        return f["name"] + "(" + ", ".join(self.shown(p["type"], a) for p, a in
                                           zip(f["parameters"], arguments)) + ")"

    def shown(self, text, a):
        kind = self.kind(text)
        if a is None:
            return "NULL"
        if kind == "tensor":
            return self.made[a]
        if kind == "module":
            return "Linear(2, 3)"
        if kind == "tensors":
            return "{" + ", ".join(self.shown("calx_tensor *", t) for t in a if t) + "}"
        if kind == "dims":
            return f"{a.count} {list(a.values[:8])}"
        if kind == "options":
            made = a._obj
            fields = {f["name"]: f["type"] for f in self.b.described[type(made).__name__]}
            set_ = {n: getattr(made, n) for n in fields if n != "size"}
            return "{" + ", ".join(f".{n} = {self.shown(fields[n], v)}"
                                   for n, v in set_.items() if v) + "}"
        return repr(a)

    def call(self, say):
        r, lib = self.random, self.b.library
        f = r.choice(self.functions)
        self.made.clear()
        scope = lib.calx_scope_begin()
        called = {}
        if f["returns"] == "calx_optimizer *" and r.random() < 0.9:
            called["module"] = lib.calx_nn_linear_with(None, None, 2, 3, None)
        arguments = [self.value(p["type"], called) for p in f["parameters"]]
        lib.calx_status_free(lib.calx_scope_take_error())
        say(self.text(f, arguments))
        result = getattr(lib, f["name"])(*arguments)
        if f["returns"] in OBJECTS:
            kind = OBJECTS[f["returns"]]
            if result:
                self.judge(f, getattr(lib, f"calx_{kind}_error")(result))
            getattr(lib, f"calx_{kind}_free")(result)
        elif result and f["returns"] == "calx_tensor *":
            if r.random() < 0.5 and lib.calx_tensor_requires_grad(result):
                lib.calx_backward_with(lib.calx_sum_with(result, None), None)
            if r.random() < 0.1 and lib.calx_tensor_numel(result) < 100000:
                lib.calx_sync_n((c.c_void_p * 1)(result), 1)
        status = lib.calx_scope_take_error()
        self.judge(f, status)
        lib.calx_status_free(status)
        lib.calx_module_free(called.get("module"))
        lib.calx_status_free(lib.calx_scope_end(scope))

    def judge(self, f, status):
        if status:
            message = lib_text(self.b.library.calx_status_message(status))
            if not message:
                raise AssertionError(f"{f['name']}: an error without a message")


def lib_text(text):
    return text.decode("utf-8", "replace") if text else ""


def child(calls, count, out):
    """Writes each call before it is made, and "done" after the last."""
    used = int(open("/proc/self/statm").read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def say(text):
        os.write(out, (text.replace("\n", " ") + "\n").encode())
        signal.alarm(SECONDS)

    for _ in range(count):
        calls.call(say)
    os.write(out, b"done\n")


def batch(binding, count, seed):
    """None, or how the child ended and its last call."""
    ends = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ends[0])
        code = 1
        try:
            child(Calls(binding, seed), count, ends[1])
            code = 0
        except BaseException:
            traceback.print_exc()
        os._exit(code)
    os.close(ends[1])
    with os.fdopen(ends[0], encoding="utf-8", errors="replace") as f:
        lines = f.read().splitlines()
    _, status = os.waitpid(pid, 0)
    if lines and lines[-1] == "done" and status == 0:
        return None
    how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "an error"
    return f"seed {seed}: {how} in call {len(lines)}: {lines[-1] if lines else '-'}"


def main():
    binding = Binding(sys.argv[1], sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 3000
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    if os.environ.get("CALX_TEST_LONG") == "1":
        count *= 30
    bad = []
    for first in range(0, count, BATCH):
        failed = batch(binding, min(BATCH, count - first), seed * 10000 + first // BATCH)
        if failed:
            print("FAILED:", failed, flush=True)
            bad.append(failed)
    print(f"{count} calls of {len(Calls(binding, 0).functions)} functions, "
          f"{len(bad)} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
