"""jax.distributed on the engine: programs of two processes, against one process.

  processes.py PACKAGE_FOLDER LIBRARY

Started without a role it starts itself: once for each process of a world, and
compares what they print. The processes have two devices each; the one that they
are compared with has all four.
"""
import json
import os
import socket
import subprocess
import sys
import unittest

FOLDER, LIBRARY, *ROLE = sys.argv[1:]
PROCESSES, DEVICES = 2, 2
LIMIT_S = 240


# ---- what a process does ----


def connect(port, process, processes):
    os.environ.update(
        CALX_CPU_LIBRARY=LIBRARY, JAX_PLATFORMS="calx", JAX_ENABLE_X64="0")
    sys.path.insert(0, FOLDER)
    import jax

    import calx_cpu_pjrt

    calx_cpu_pjrt.initialize()  # a wheel's entry point does it
    if processes > 1:
        jax.distributed.initialize(f"127.0.0.1:{port}", processes, process)
    return jax


def report(jax, **results):
    """One line: the results as numbers."""
    import numpy as np

    plain = {k: np.asarray(v).tolist() for k, v in results.items()}
    print(json.dumps(plain), flush=True)


def mesh_of(jax):
    import numpy as np

    return jax.sharding.Mesh(
        np.array(jax.devices()).reshape(2, 2), ("data", "model"))


def programs(jax, process, processes):
    """Results that are equal in all worlds of four devices."""
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import multihost_utils
    from jax.sharding import NamedSharding, PartitionSpec as P

    mesh = mesh_of(jax)
    numbers = np.random.default_rng(3)
    x = numbers.standard_normal((8, 6), np.float32)
    w = numbers.standard_normal((6, 10), np.float32)
    rows = 8 // processes
    # Each process has its rows of the batch only.
    batch = jax.make_array_from_process_local_data(
        NamedSharding(mesh, P("data", None)),
        x[process * rows:(process + 1) * rows])
    weights = jax.device_put(w, NamedSharding(mesh, P(None, "model")))

    def loss(w, x):
        return jnp.mean(jnp.tanh(x @ w) ** 2)

    value, grad = jax.jit(jax.value_and_grad(loss))(weights, batch)
    sums = jax.jit(jax.shard_map(
        lambda part: jax.lax.psum(part, ("data", "model")), mesh=mesh,
        in_specs=P(("data", "model")), out_specs=P()))
    index = jnp.arange(4, dtype=jnp.float32)
    total = sums(jax.device_put(
        index, NamedSharding(mesh, P(("data", "model")))))
    own = jnp.full((2,), 10.0 + process) if processes > 1 else None
    gathered = (multihost_utils.process_allgather(own) if processes > 1 else
                np.array([[10.0, 10.0], [11.0, 11.0]]))
    multihost_utils.sync_global_devices("end of programs")
    report(
        jax, devices=[d.id for d in jax.devices()],
        owners=[d.process_index for d in jax.devices()]
        if processes > 1 else [0, 0, 1, 1],
        batch=multihost_utils.process_allgather(batch, tiled=True),
        value=value,
        grad=multihost_utils.process_allgather(grad, tiled=True),
        total=total, gathered=gathered)


def differ(jax, process, processes):
    """The processes run different programs: both get an error."""
    import jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec as P

    mesh = mesh_of(jax)
    n = 8 + 8 * process
    x = jax.jit(lambda: jnp.ones(n), out_shardings=NamedSharding(
        mesh, P(("data", "model"))))()
    try:
        float(jax.jit(jnp.sum)(x))
        print("no error", flush=True)
    except jax.errors.JaxRuntimeError as error:
        print(str(error).replace("\n", " "), flush=True)
    leave()


def lose(jax, process, processes):
    """Process 1 is killed between two collectives: the other gets an error."""
    import signal

    import jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec as P

    x = jax.jit(lambda: jnp.ones(8), out_shardings=NamedSharding(
        mesh_of(jax), P(("data", "model"))))()
    sums = jax.jit(jnp.sum)
    assert float(sums(x)) == 8
    if process == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        float(sums(x))
        print("no error", flush=True)
    except jax.errors.JaxRuntimeError as error:
        print(str(error).replace("\n", " "), flush=True)
    leave()


def leave():
    # JAX's own shutdown would wait for all processes.
    os._exit(0)


def configured(jax, process, processes):
    jax.config.update("jax_num_cpu_devices", 3)
    print(len(jax.devices()), len(jax.devices("cpu")))


# ---- the tests ----


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def world(what, processes, devices=DEVICES):
    """What the processes print and return, one after another."""
    port = free_port()
    started = []
    for process in range(processes):
        count = devices if isinstance(devices, int) else devices[process]
        environment = {**os.environ, "CPU_NUM_DEVICES": str(count)}
        started.append(subprocess.Popen(
            [sys.executable, "-B", __file__, FOLDER, LIBRARY, what,
             str(port), str(process), str(processes)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment))
    ended = []
    try:
        for p in started:
            out, err = p.communicate(timeout=LIMIT_S)
            ended.append((p.returncode, out, err))
    finally:
        for p in started:
            if p.poll() is None:
                p.kill()
                p.communicate()
    return ended


class Processes(unittest.TestCase):
    def results(self, processes, devices):
        every = []
        for code, out, err in world("programs", processes, devices):
            self.assertEqual(code, 0, err[-3000:])
            every.append(json.loads(out.splitlines()[-1]))
        return every

    def test_programs(self):
        import numpy as np

        (wanted,) = self.results(1, 4)
        self.assertEqual(wanted["total"], [6.0])
        for found in self.results(PROCESSES, DEVICES):
            self.assertEqual(found.keys(), wanted.keys())
            for name, value in wanted.items():
                np.testing.assert_allclose(
                    found[name], value, 1e-6, 1e-6, err_msg=name)

    def test_configured(self):
        ((code, out, err),) = world("configured", 1)
        self.assertEqual((code, out), (0, "3 3\n"), err[-3000:])

    def test_different_programs(self):
        for code, out, err in world("differ", PROCESSES):
            self.assertEqual(code, 0, err[-3000:])
            self.assertIn("all_reduce", out)
            self.assertIn("another program", out)

    def test_lost_process(self):
        (code, out, err), (lost, _, _) = world("lose", PROCESSES)
        self.assertEqual(code, 0, err[-3000:])
        self.assertEqual(lost, -9)
        self.assertRegex(out, r"process 1 \(pid \d+\).* has ended")

    def test_different_counts(self):
        for code, _, err in world("programs", PROCESSES, devices=(2, 1)):
            self.assertNotEqual(code, 0)
            self.assertRegex(err, "process . has . devices, process . has .;")


if __name__ == "__main__":
    if ROLE:
        what, port, process, processes = (
            ROLE[0], int(ROLE[1]), int(ROLE[2]), int(ROLE[3]))
        jax = connect(port, process, processes)
        globals()[what](jax, process, processes)
    else:
        unittest.main(argv=sys.argv[:1], verbosity=2)
