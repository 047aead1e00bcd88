"""jax.distributed on two hosts, which are namespaces: the engine connects them
through MPI.

  hosts.py PACKAGE_FOLDER LIBRARY LAUNCHER

LAUNCHER: mpich, openmpi. Its mpirun starts this file once on each host; the
engine is found as a wheel's is, by an entry point on PYTHONPATH.
"""
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "dist"))
import alone

PORT = 29533
LIMIT_S = 100
RANKS = "PMI_RANK", "OMPI_COMM_WORLD_RANK"  # of MPICH, of Open MPI


# ---- what a process does ----


def program():
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec as P

    rank = int(next(os.environ[name] for name in RANKS if name in os.environ))
    jax.distributed.initialize(f"{alone.ADDRESSES['alpha']}:{PORT}", 2, rank)
    mesh = jax.make_mesh((2,), ("x",))
    split = NamedSharding(mesh, P("x"))
    x = jax.make_array_from_process_local_data(
        split, jnp.arange(3.0) + 10 * rank)
    total = jax.jit(jax.shard_map(
        lambda part: jax.lax.psum(part, "x"), mesh=mesh, in_specs=P("x"),
        out_specs=P()))(x)
    mean = jax.jit(jnp.mean)(x)
    print(f"process {rank} of {jax.process_count()} on {os.uname().nodename}: "
          f"{[d.process_index for d in jax.devices()]} "
          f"{total.tolist()} {float(mean)}", flush=True)


# ---- the test ----


class Hosts(unittest.TestCase):
    def site(self, folder):
        """A folder for PYTHONPATH that looks as if the wheel were installed."""
        folder = os.path.join(folder, "site")
        info = os.path.join(folder, "calx_cpu_pjrt-0.dist-info")
        os.makedirs(info)
        os.symlink(os.path.join(FOLDER, "calx_cpu_pjrt"),
                   os.path.join(folder, "calx_cpu_pjrt"))
        with open(os.path.join(info, "METADATA"), "w") as file:
            file.write("Metadata-Version: 2.1\nName: calx-cpu-pjrt\nVersion: 0\n")
        with open(os.path.join(info, "entry_points.txt"), "w") as file:
            file.write("[jax_plugins]\ncalx = calx_cpu_pjrt\n")
        return folder

    def mpirun(self):
        if LAUNCHER == "mpich":
            return ["mpirun.mpich", "-launcher", "rsh", "-launcher-exec",
                    HOSTS.agent, "-hosts", "alpha:1,beta:1", "-n", "2"]
        passed = [word for name in VARIABLES for word in ("-x", name)]
        return ["mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none",
                "--mca", "plm_rsh_agent", HOSTS.agent, "-H", "alpha:1,beta:1",
                "-n", "2", *passed]

    def test_programs(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        environment = {**os.environ, "CALX_CPU_LIBRARY": LIBRARY,
                       "CPU_NUM_DEVICES": "1", "JAX_PLATFORMS": "calx",
                       "PYTHONPATH": self.site(folder.name)}
        try:
            run = subprocess.run(
                [*self.mpirun(), sys.executable, "-B", __file__],
                env=environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                timeout=LIMIT_S)
        except subprocess.TimeoutExpired as late:
            self.fail(f"does not end: {late.output}")
        self.assertEqual(run.returncode, 0, run.stdout)
        for rank, host in enumerate(("alpha", "beta")):
            self.assertIn(
                f"process {rank} of 2 on {host}: [0, 1] [10.0, 12.0, 14.0] 6.0",
                run.stdout)


VARIABLES = ("CALX_CPU_LIBRARY", "CPU_NUM_DEVICES", "JAX_PLATFORMS",
             "PYTHONPATH")
if __name__ == "__main__":
    if len(sys.argv) == 1:
        program()
    else:
        FOLDER, LIBRARY, LAUNCHER = sys.argv[1:]
        HOSTS = alone.enter()
        if HOSTS is None:
            sys.exit(77)
        unittest.main(argv=sys.argv[:1], verbosity=2)
