"""launchers: one program under every way to start its ranks.

    launchers.py CALX HELLO PART

PART: own (threads, CALX_PROCESSES, calx run), mpich, openmpi, torchrun, slurm;
with _hosts on two hosts, which are namespaces. Of each: who the ranks think they
are, the weights they train, the exit status and whose failure is told, and,
where namespaces are allowed, what is left behind.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import alone

CALX, HELLO = map(os.path.abspath, sys.argv[1:3])
PART = sys.argv[3]
HOSTS = alone.enter()  # None: not alone
TORCHRUN = os.path.join(  # beside the Python that has PyTorch
    os.path.dirname(os.environ.get("CALX_TEST_PLUGIN_TORCH", "")), "torchrun")
LIMIT = 60  # seconds; everything ends long before
SOON = 5  # seconds; from a kill to the end of its output
# Five times what is promised: a second for our own launchers; under others two
# more, in which those that were told wait, and the launcher's own time.
ENDS = 5
THEIR_ENDS = 15

OTHERS = re.compile(r"(RANK|WORLD_SIZE|LOCAL_.*|GROUP_.*|MASTER_.*|PMI.*|MPI.*|"
                    r"OMPI_.*|HYD.*|SLURM_.*|TORCHELASTIC_.*|CALX_(?!PLUGIN).*)$")
LINE = re.compile(r"rank (\d+)/(\d+) local (\d+)/(\d+) process (\d+)/(\d+) "
                  r"host (\d+)/(\d+) on xla:(\d+) sum (\d+) met (.*)$", re.M)
TRAINED = re.compile(r"rank (\d+) trained to (\S+), weights ([0-9a-f]{16})$",
                     re.M)


def environment(**more):
    return {**{name: value for name, value in os.environ.items()
               if not OTHERS.match(name)}, **more}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.before = alone.things() if HOSTS else None

    def start(self, *words, **variables):
        return subprocess.Popen(words, env=environment(**variables), text=True,
                                stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT,
                                start_new_session=True)

    def finish(self, process):
        """Its exit status, and all it wrote."""
        try:
            text, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            self.fail(f"does not end:\n{self.kill(process)}")
        return process.returncode, text

    def kill(self, process):
        """With its ranks, which hold the other end of the pipe; what they
        wrote. A rank with a session of its own is not waited for."""
        os.killpg(process.pid, signal.SIGKILL)
        try:
            return process.communicate(timeout=SOON)[0]
        except subprocess.TimeoutExpired as late:
            process.stdout.close()
            return (late.output or b"").decode(errors="replace")

    def nothing_left(self, text=""):
        if HOSTS:
            # torchrun imports a compiler of PyTorch's that makes a folder.
            left = [x for x in alone.left_since(self.before)
                    if "/torchinductor_" not in x]
            self.assertEqual(left, [], text)

    def go(self, *words, **variables):
        code, text = self.finish(self.start(*words, **variables))
        self.nothing_left(text)
        return code, text

    def well(self, *words, **variables):
        code, text = self.go(*words, **variables)
        self.assertEqual(code, 0, text)
        return text

    def check(self, text, processes, devices=1, hosts=1):
        """Each rank is there once, and knows its place and all others."""
        world = processes * devices
        met = " ".join(f"{i}.{i * hosts // world}" for i in range(world))
        wanted = set()
        for i in range(world):
            each = world // hosts
            wanted.add((i, world, i % each, each, i // devices, processes,
                        i // each, hosts, i % devices,
                        world * (world - 1) // 2, met))
        found = [tuple(map(int, row[:-1])) + row[-1:]
                 for row in LINE.findall(text)]
        self.assertEqual(len(found), world, text)
        self.assertEqual(set(found), wanted, text)
        self.assertNotIn("error", text.lower())

    def check_weights(self, text, world):
        """All have the same weights."""
        rows = TRAINED.findall(text)
        self.assertEqual(sorted(int(row[0]) for row in rows),
                         list(range(world)), text)
        self.assertEqual(len({row[1:] for row in rows}), 1, text)
        return rows

    def check_training(self, text, world):
        """All have the same weights, those of the same ranks as threads."""
        rows = self.check_weights(text, world)
        threads = TRAINED.findall(self.well(HELLO, "--train",
                                            CPU_NUM_DEVICES=str(world)))
        self.assertEqual({row[1:] for row in rows + threads},
                         {rows[0][1:]}, text)

    def check_failures(self, *launcher, world, codes, told=None,
                       say=("raise", "exit", "kill"), within=ENDS, **variables):
        """The last rank comes to harm: the status, who is named, and how soon
        the whole program ends. `codes` of raise, exit with 7, kill; `say`: of
        which each rank that waited tells, since nobody ends it before."""
        last = world - 1
        # What a rank says of itself at its start is "rank 3/4 …".
        named = rf"rank {last}\b(?!/)"
        told = told or [rf"rank {last}: batch 7 has no target", named, named]
        for how, code, words in zip(("raise", "exit", "kill"), codes, told):
            with self.subTest(how):
                begin = time.monotonic()
                found, text = self.go(*launcher, HELLO, "--fail", how,
                                      **variables)
                self.assertLess(time.monotonic() - begin, within, text)
                self.assertEqual(found, code, text)
                self.assertRegex(text, words)
                for rank in range(last if how in say else 0):
                    self.assertRegex(text, rf"error: .*rank {rank}: .*{named}")


class TwoHosts(Case):
    MPI = "mpich"  # what the engine talks by

    def setUp(self):
        shim = os.path.join(os.path.dirname(CALX), f"libcalx_mpi_{self.MPI}.so")
        self.assertTrue(os.path.exists(shim), f"not built: {shim}")
        super().setUp()

    def on_both(self, words, **variables):
        """The same command on both, with {host} in a variable its number."""
        runs = []
        for i, host in enumerate(("alpha", "beta")):
            mine = {name: value.format(host=i)
                    for name, value in variables.items()}
            runs.append(self.start(*HOSTS.on(
                host, [word.format(host=i) for word in words]), **mine))
        ends = [self.finish(run) for run in runs]
        text = "".join(end[1] for end in ends)
        self.nothing_left(text)
        return [end[0] for end in ends], text


# ---- our own ----------------------------------------------------------------


class Own(Case):
    def test_threads(self):
        self.check(self.well(HELLO, CPU_NUM_DEVICES="4"), 1, 4)

    def test_processes(self):
        for n in 2, 4:
            self.check(self.well(HELLO, CALX_PROCESSES=str(n)), n)

    def test_processes_of_threads(self):
        self.check(self.well(HELLO, CPU_NUM_DEVICES="2", CALX_PROCESSES="2"),
                   2, 2)

    def test_calx_run(self):
        self.check(self.well(CALX, "run", "-n", "4", HELLO), 4)
        self.check(self.well(CALX, "run", "-n", "2", HELLO,
                             CPU_NUM_DEVICES="2"), 2, 2)

    def test_failures(self):
        self.check_failures(world=4, codes=[1, 1, 1], say=(),
                            CALX_PROCESSES="4")
        self.check_failures(CALX, "run", "-n", "4", world=4, codes=[1, 7, 137])

    def test_closed_descriptors(self):
        # What a program prints goes nowhere, and into nothing of ours.
        for closed in ">&-", ">&- 2>&-", "<&- >&- 2>&-":
            for variables in (dict(CALX_PROCESSES="2"),
                              dict(CPU_NUM_DEVICES="2")):
                code, text = self.go("sh", "-c", f'exec "$0" --train {closed}',
                                     HELLO, **variables)
                self.assertEqual(code, 0, text)

    def test_failed_thread(self):
        code, text = self.go(HELLO, "--fail", "raise", "2",
                             CPU_NUM_DEVICES="4")
        self.assertEqual(code, 1, text)
        self.assertIn("rank 2: batch 7 has no target", text)

    def test_training(self):
        self.check_training(self.well(HELLO, "--train", CPU_NUM_DEVICES="4"), 4)
        self.check_training(self.well(HELLO, "--train", CALX_PROCESSES="4"), 4)
        self.check_training(self.well(HELLO, "--train", CALX_PROCESSES="2",
                                      CPU_NUM_DEVICES="2"), 4)
        self.check_training(self.well(CALX, "run", "-n", "2", HELLO,
                                      "--train"), 2)


class OwnOnHosts(TwoHosts):
    def test_on_loopback_nothing_else_listens(self):
        variables = dict(CALX_NNODES="2", MASTER_ADDR="127.0.0.1",
                         MASTER_PORT="29517")
        # UCX listens on networks that lead somewhere.
        route = ["default", "via", alone.ADDRESSES["beta"]]
        subprocess.run(["ip", "route", "add", *route], check=True)
        self.addCleanup(subprocess.run, ["ip", "route", "del", *route])
        log = os.path.join(self.folder, "calls")
        # It finds networks in /sys.
        sys_of_own = "mount -t sysfs none /sys; exec \"$@\""
        runs = [self.start("unshare", "-m", "sh", "-c", sys_of_own, "sh",
                           "strace", "-f", "-qq", "-e", "trace=bind", "-o",
                           f"{log}{host}", CALX, "run", HELLO, "--train",
                           CALX_NODE_RANK=str(host), **variables)
                for host in range(2)]
        ends = [self.finish(run) for run in runs]
        self.assertEqual([end[0] for end in ends], [0, 0], ends)
        for host in range(2):
            with open(f"{log}{host}") as file:
                bound = re.findall(r"AF_INET6?\W.*", file.read())
            self.assertGreater(len(bound), 0)
            for address in bound:
                self.assertRegex(address, r'"(127\.0\.0\.1|::1)"')

    def test_hangup(self):
        # UCX takes SIGHUP for itself unless it is told not to.
        variables = dict(CALX_NNODES="2", MASTER_ADDR="127.0.0.1",
                         MASTER_PORT="29518", CALX_HEARTBEAT_S="30")
        runs = [self.start(CALX, "run", "--log-dir", self.folder, HELLO,
                           "--train", "--fail", "stop",
                           CALX_NODE_RANK=str(host), **variables)
                for host in range(2)]
        log = os.path.join(self.folder, "rank_0.out")
        until = time.monotonic() + LIMIT
        while time.monotonic() < until:
            if os.path.exists(log):
                with open(log) as file:
                    if "trained" in file.read():
                        break
            time.sleep(0.05)
        begin = time.monotonic()
        runs[0].send_signal(signal.SIGHUP)
        ends = [self.finish(run) for run in runs]
        self.assertLess(time.monotonic() - begin, THEIR_ENDS, ends)
        self.assertEqual(ends[0][0], 128 + signal.SIGHUP, ends)
        for _, text in ends:
            self.assertIn("rank 0 ended by signal 1 (Hangup)", text)
        self.nothing_left()

    def test_calx_run(self):
        text = self.well(CALX, "run", "--hosts", "alpha,beta", "--ssh",
                         HOSTS.agent, "-n", "2", HELLO, "--train")
        self.check(text, 4, hosts=2)
        self.check_weights(text, 4)
        self.assertRegex(text, r"(?m)^\[beta:3\] rank 3/4 ")

    def test_calx_run_failures(self):
        self.check_failures(CALX, "run", "--hosts", "alpha,beta", "--ssh",
                            HOSTS.agent, "-n", "2", world=4,
                            codes=[1, 7, 137])

    def test_typed_twice(self):
        variables = dict(CALX_NNODES="2", CALX_NODE_RANK="{host}",
                         MASTER_ADDR="alpha")
        codes, text = self.on_both([HELLO, "--train"], **variables)
        self.assertEqual(codes, [0, 0], text)
        self.check(text, 2, hosts=2)
        self.check_weights(text, 2)
        codes, text = self.on_both([CALX, "run", "-n", "2", HELLO, "--train"],
                                   **variables)
        self.assertEqual(codes, [0, 0], text)
        self.check(text, 4, hosts=2)
        self.check_weights(text, 4)
        codes, text = self.on_both([HELLO, "--fail", "kill"], **variables)
        self.assertEqual(codes, [1, 1], text)
        self.assertIn("rank 1 ended by signal 9", text)


# ---- MPI's launchers --------------------------------------------------------


class Mpich(Case):
    MPIRUN = ["mpirun.mpich", "-n", "4"]

    def test_ranks(self):
        self.check(self.well(*self.MPIRUN, HELLO), 4)
        self.check(self.well("mpirun.mpich", "-n", "2", HELLO,
                             CPU_NUM_DEVICES="2"), 2, 2)

    # Ranks that never spoke to the launcher may end when they like.
    def test_exit_order(self):
        text = self.well(*self.MPIRUN, "sh", "-c",
                         '"$0" && sleep 0.$((3 - PMI_RANK))', HELLO)
        self.check(text, 4)

    # Of a killed rank this launcher tells the process's number, and ends the
    # others before they can say more.
    def test_failures(self):
        for more in [], ["-disable-auto-cleanup"]:
            self.check_failures(*self.MPIRUN, *more, world=4, codes=[1, 7, 9],
                                say=("raise", "exit"), within=THEIR_ENDS,
                                told=["rank 3: batch 7 has no target",
                                      r"rank 3\b(?!/)", "KILLED|Killed"])

    def test_training(self):
        self.check_training(self.well(*self.MPIRUN, HELLO, "--train"), 4)


class MpichOnHosts(TwoHosts):
    def test_ranks(self):
        mpirun = ["mpirun.mpich", "-launcher", "rsh", "-launcher-exec",
                  HOSTS.agent, "-hosts", "alpha:2,beta:2", "-n", "4"]
        # These speak to the launcher, for MPI, and yet end when they like.
        text = self.well(*mpirun, "sh", "-c", '"$0" --train && '
                         "sleep 0.$((3 - PMI_RANK))", HELLO,
                         MASTER_ADDR="alpha")
        self.check(text, 4, hosts=2)
        self.check_weights(text, 4)
        code, text = self.go(*mpirun, HELLO)
        self.assertNotEqual(code, 0)
        self.assertIn("MASTER_ADDR is not set", text)


class OpenMpi(Case):
    MPIRUN = ["mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "-n"]

    def test_ranks(self):
        self.check(self.well(*self.MPIRUN, "4", HELLO), 4)
        self.check(self.well(*self.MPIRUN, "2", HELLO, CPU_NUM_DEVICES="2"),
                   2, 2)

    def test_failures(self):
        self.check_failures(*self.MPIRUN, "4", world=4, codes=[1, 7, 137],
                            say=(), within=THEIR_ENDS,
                            told=["rank 3: batch 7 has no target",
                                  r"Process name: .*,3\]\s+Exit code: +7",
                                  "process rank 3 .* signal 9"])

    def test_training(self):
        self.check_training(self.well(*self.MPIRUN, "4", HELLO, "--train"), 4)


class OpenMpiOnHosts(TwoHosts):
    MPI = "openmpi"

    def test_ranks(self):
        mpirun = [*OpenMpi.MPIRUN, "4", "--bind-to", "none", "--mca",
                  "plm_rsh_agent", HOSTS.agent, "-H", "alpha:2,beta:2"]
        text = self.well(*mpirun, "-x", "MASTER_ADDR", HELLO, "--train",
                         MASTER_ADDR="alpha")
        self.check(text, 4, hosts=2)
        self.check_weights(text, 4)
        code, text = self.go(*mpirun, HELLO)
        self.assertNotEqual(code, 0)
        self.assertIn("Open MPI's mpirun runs 4 processes on 2 hosts, but "
                      "MASTER_ADDR is not set", text)


# ---- torchrun ---------------------------------------------------------------


class Torchrun(Case):
    def torchrun(self, *words):
        """It leaves the folder of its logs behind."""
        return [TORCHRUN, "--nproc_per_node=2", "--log-dir", self.folder,
                "--no-python", *words]

    # The agent looks for the end of its workers now and then: the one that
    # failed is the root cause, not those that were told of it.
    def test_failure(self):
        code, text = self.go(*self.torchrun(HELLO, "--fail", "kill"))
        self.assertEqual(code, 1, text)
        self.assertRegex(text, "rank 1 was lost")
        self.assertRegex(text.partition("Root Cause")[2],
                         r"rank +: 1 [^\0]*exitcode +: -9")

    def test_training(self):
        text = self.well(*self.torchrun(HELLO, "--train"))
        self.check(text, 2)
        self.check_training(text, 2)


class TorchrunOnHosts(TwoHosts):
    def test_ranks(self):
        codes, text = self.on_both(
            [TORCHRUN, "--nnodes=2", "--node_rank={host}",
             "--nproc_per_node=1", "--master_addr=alpha", "--master_port=29511",
             "--log-dir", self.folder, "--no-python", HELLO, "--train"])
        self.assertEqual(codes, [0, 0], text)
        self.check(text, 2, hosts=2)
        self.check_weights(text, 2)


class TorchrunVariables(TwoHosts):
    """Without torchrun itself: what it and others like it set."""

    def test_ranks(self):
        variables = dict(RANK="{host}", WORLD_SIZE="2", LOCAL_RANK="0",
                         LOCAL_WORLD_SIZE="1", MASTER_ADDR="10.77.0.1",
                         MASTER_PORT="29512")
        codes, text = self.on_both([HELLO, "--train"], **variables)
        self.assertEqual(codes, [0, 0], text)
        self.check(text, 2, hosts=2)
        self.check_weights(text, 2)
        codes, text = self.on_both([HELLO, "--fail", "exit"], **variables)
        self.assertEqual(codes, [1, 7], text)
        self.assertIn("rank 1 was lost", text)


# ---- Slurm ------------------------------------------------------------------

SLURM = """\
ClusterName=one
SlurmctldHost=alpha
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
InactiveLimit=0
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
NodeName=alpha NodeAddr={addresses[alpha]} CPUs=4 State=UNKNOWN
NodeName=beta NodeAddr={addresses[beta]} CPUs=4 State=UNKNOWN
PartitionName=all Nodes={nodes} Default=YES State=UP OverSubscribe=FORCE:8
"""


class OnSlurm:
    """Under srun, with Slurm's daemons on these hosts."""

    NODES = ["alpha"]

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        text = SLURM.format(folder=folder.name, nodes=",".join(cls.NODES),
                            addresses=alone.ADDRESSES)
        os.mkdir(os.path.join(folder.name, "state"))
        daemons = []
        for node in cls.NODES:
            os.mkdir(os.path.join(folder.name, node))
            conf = os.path.join(folder.name, node, "slurm.conf")
            with open(conf, "w") as file:
                file.write(text)
            # Hosts do not share the folder for the sockets of a job's ranks.
            with open(os.path.join(folder.name, node, "mpi.conf"), "w") as file:
                file.write(f"PMIxCliTmpDirBase={folder.name}/{node}\n")
            daemons.append(HOSTS.on(node, ["slurmd", "-D", "-f", conf, "-N",
                                           node]))
        cls.conf = os.path.join(folder.name, cls.NODES[0], "slurm.conf")
        daemons.append(["slurmctld", "-D", "-f", cls.conf])
        for words in daemons:
            daemon = subprocess.Popen(
                words, env=environment(SLURM_CONF=cls.conf),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL)
            cls.addClassCleanup(daemon.wait)
            cls.addClassCleanup(daemon.kill)
        for _ in range(50):  # until the daemons have met
            tried = subprocess.run(["srun", "-N", str(len(cls.NODES)), "true"],
                                   env=environment(SLURM_CONF=cls.conf),
                                   timeout=LIMIT, capture_output=True)
            if tried.returncode == 0:
                return
            time.sleep(0.2)
        raise RuntimeError(f"Slurm does not start: {tried.stderr}")

    def go(self, *words, **variables):
        return super().go(*words, SLURM_CONF=self.conf, **variables)

    def srun(self, *words, mpi="none"):
        return ["srun", "-N", str(len(self.NODES)), "-n", "4", "--overcommit",
                "--mpi=" + mpi, *words]

    def test_training(self):
        hosts = len(self.NODES)
        for mpi in "none", "pmi2", "pmix":
            with self.subTest(mpi):
                text = self.well(*self.srun(HELLO, "--train", mpi=mpi))
                self.check(text, 4, hosts=hosts)
                if hosts == 1:
                    self.check_training(text, 4)
                else:
                    self.check_weights(text, 4)

    def test_failures(self):
        self.check_failures(*self.srun(), world=4, codes=[1, 7, 137],
                            within=THEIR_ENDS)


class Slurm(OnSlurm, Case):
    pass


class SlurmOnHosts(OnSlurm, TwoHosts):
    NODES = ["alpha", "beta"]


PARTS = {"own": [Own], "own_hosts": [OwnOnHosts, TorchrunVariables],
         "mpich": [Mpich], "mpich_hosts": [MpichOnHosts],
         "openmpi": [OpenMpi], "openmpi_hosts": [OpenMpiOnHosts],
         "torchrun": [Torchrun], "torchrun_hosts": [TorchrunOnHosts],
         "slurm": [Slurm], "slurm_hosts": [SlurmOnHosts]}
NEEDS_HOSTS = [part for part in PARTS if part.endswith("_hosts")] + ["slurm"]


def load_tests(loader, tests, pattern):
    return unittest.TestSuite(map(loader.loadTestsFromTestCase, PARTS[PART]))


if __name__ == "__main__":
    if PART in NEEDS_HOSTS and HOSTS is None:
        sys.exit(77)
    if HOSTS:
        os.environ["OMPI_ALLOW_RUN_AS_ROOT"] = "1"
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
