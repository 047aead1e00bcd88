"""How a job ends when a rank, a host or a launcher comes to harm: it is named
in time, and nothing is left behind.

The ranks agree again and again, so that the others wait in an agreement.
Every rank that waited has to name the one that died. Times are printed, and at
most five times what is promised where a core is free. Two hosts are two launchers with a store of their own; with the
word `cable` behind the programs, two network namespaces with a cable between.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time

import program
from program import CALX

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                             "..", "dist"))
import alone  # noqa: E402

RANKS = os.path.abspath(sys.argv[2])
CABLE = sys.argv[3:] == ["cable"]
HOSTS = alone.enter() if CABLE else None
FOREVER = "1000000000"

SOON = 5  # seconds; a dead rank ends a job within one
HEARTBEAT = 2
SILENT = 5 * (HEARTBEAT + 1)  # one that is stopped is found by its silence

HARMS = [("kill", 137, "rank {} ended by signal 9 (Killed)"),
         ("segv", 139, "rank {} ended by signal 11 (Segmentation fault)"),
         ("exit", 7, "rank {} exited with 7"),
         ("raise", 1, "rank {}: batch 7 has no target")]
STOPPED = "rank {} was lost (silent for 2 s"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Job:
    """A launcher, its output and its ranks."""

    def __init__(self, case, n, *arguments, before=(), **env):
        self.case = case
        self.mark = f"MARK={os.urandom(8).hex()}"
        name, value = self.mark.split("=")
        self.process = subprocess.Popen(
            [*before, CALX, "run", "-n", str(n), "sh", "-c",
             'echo "$CALX_STORE"; exec "$0" "$@"', RANKS, *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "CALX_HEARTBEAT_S": str(HEARTBEAT), name: value,
                 **env})
        self.n = n
        self.seen = []
        case.addCleanup(self.process.stdout.close)
        case.addCleanup(self.process.kill)

    def wait_until_met(self):
        while sum(" on host " in line for line in self.seen) < self.n:
            line = self.process.stdout.readline()
            self.case.assertNotEqual(line, "", self.seen)
            self.seen.append(line)

    def end(self, limit):
        """Its exit status, and all it wrote."""
        out, _ = self.process.communicate(timeout=limit)
        return self.process.returncode, "".join(self.seen) + out

    def processes(self):
        return alone.processes(self.mark)

    def check_nothing_left(self, text, wait=0):
        until = time.monotonic() + wait
        while self.processes() and time.monotonic() < until:
            time.sleep(0.01)
        self.case.assertEqual(self.processes(), {})
        sockets = " ".join(alone.sockets())
        for name in re.findall(r"abstract://(\S+)", text):
            self.case.assertNotIn(name, sockets)


class Case(program.Case):
    def say(self, what, begin):
        print(f"{self.id().split('.')[-1]}: {what} after "
              f"{time.monotonic() - begin:.2f} s", file=sys.stderr)

    def check_named(self, text, waiting, words):
        """Each of these ranks has told it: a line is [3] or [host:3] and so
        on."""
        for rank in waiting:
            self.assertRegex(text, rf"(?m)^\[{rank}\] error: .*{words}")

    def two_hosts(self, *arguments, before=((), ()), address="127.0.0.1"):
        port = str(free_port())
        return [Job(self, 2, *arguments, before=before[i], CALX_NNODES="2",
                    CALX_NODE_RANK=str(i), MASTER_ADDR=address,
                    MASTER_PORT=port, CALX_TOKEN="told")
                for i in range(2)]

    def check_two(self, jobs, words, named, dead=None, codes=None, limit=SOON):
        for i, job in enumerate(jobs):
            status, text = job.end(limit)
            self.assertIn(words, text)
            waiting = {2 * i, 2 * i + 1} - {dead}
            self.check_named(text, waiting, named)
            self.assertNotEqual(status, 0)
            if codes is not None:
                self.assertEqual(status, codes[i], text)
            job.check_nothing_left(text)


class Failures(Case):
    # ---- one host ----

    def test_one_host(self):
        for how, code, words in HARMS:
            begin = time.monotonic()
            job = Job(self, 4, "100", how, "2")
            status, text = job.end(SOON)
            self.say(how, begin)
            self.assertEqual(status, code, text)
            # By its launcher, and by all that waited for it.
            # (Those that waited may tell of a rank's own failure first.)
            self.assertRegex(text, "(?m)^calx run: (rank 2 failed: )?" +
                             re.escape(words.format(2)))
            self.check_named(text, [0, 1, 3], r"rank 2\b")
            job.check_nothing_left(text)

    def test_one_host_stopped(self):
        begin = time.monotonic()
        job = Job(self, 3, "100", "stop", "1")
        status, text = job.end(SILENT)
        self.say("stop", begin)
        self.check_named(text, [0, 2], r"rank 1 was lost \(silent")
        self.assertEqual(status, 137, text)
        self.assertIn(f"calx run: {STOPPED.format(1)}", text)
        job.check_nothing_left(text)

    def test_one_host_launcher_killed(self):
        job = Job(self, 3, FOREVER)
        job.wait_until_met()
        begin = time.monotonic()
        self.assertEqual(len(job.processes()), 5)
        job.process.kill()
        _, text = job.end(SOON)
        job.check_nothing_left(text, SOON)
        self.say("launcher", begin)

    def test_one_host_store_killed(self):
        job = Job(self, 3, FOREVER)
        job.wait_until_met()
        comms = {}
        for pid in job.processes().values():
            with open(f"/proc/{pid}/comm") as file:
                comms[file.read()] = pid
        os.kill(comms["calx-store\n"], signal.SIGKILL)
        status, text = job.end(SOON)
        self.assertNotEqual(status, 0)
        self.assertRegex(text, "calx run: .*the store")
        self.check_named(text, range(3), "the store")
        job.check_nothing_left(text)

    def test_one_rank_leaves_early(self):
        job = Job(self, 3, "100", "leave", "0")
        status, text = job.end(SOON)
        self.assertEqual(status, 1, text)
        ended = "rank 0 has ended its function without an error after 50 "
        self.assertIn(ended, text)
        self.check_named(text, [1, 2], ended)
        job.check_nothing_left(text)

    # ---- two hosts ----

    def test_two_hosts_end_well(self):
        for job in self.two_hosts("50"):
            status, text = job.end(SOON)
            self.assertEqual(status, 0, text)
            job.check_nothing_left(text)

    def test_two_hosts(self):
        for rank in 0, 3:  # on the host that serves the store, and the other
            for how, code, words in HARMS:
                begin = time.monotonic()
                jobs = self.two_hosts("100", how, str(rank))
                codes = [code, 5] if rank == 0 else [5, code]
                self.check_two(jobs, words.format(rank), rf"rank {rank}\b",
                               rank, codes)
                self.say(f"{how} of rank {rank}", begin)

    def test_two_hosts_stopped(self):
        for rank in 0, 3:
            begin = time.monotonic()
            jobs = self.two_hosts("100", "stop", str(rank))
            self.check_two(jobs, STOPPED.format(rank), f"rank {rank} was lost",
                           rank, limit=SILENT)
            self.say(f"stop of rank {rank}", begin)

    def test_two_hosts_launcher_killed(self):
        for killed in 0, 1:
            jobs = self.two_hosts(FOREVER)
            for job in jobs:
                job.wait_until_met()
            begin = time.monotonic()
            jobs[killed].process.kill()
            for i, job in enumerate(jobs):
                status, text = job.end(SOON)
                if i != killed:
                    self.assertNotEqual(status, 0)
                    self.assertRegex(text, "calx run: .* was lost")
                    # Its ranks end with it: any of the connections may be the
                    # first to close.
                    lost = f"(launcher|rank [{2 * killed}{2 * killed + 1}])"
                    self.check_named(text, [2 * i, 2 * i + 1],
                                     f".*{lost}.* was lost")
                job.check_nothing_left(text, SOON)
            self.say(f"launcher of host {killed}", begin)


class Cable(Case):
    def test_cable_out(self):
        jobs = self.two_hosts(FOREVER, before=((), HOSTS.on("beta", ())),
                              address=alone.ADDRESSES["alpha"])
        for job in jobs:
            job.wait_until_met()
        begin = time.monotonic()
        HOSTS.pull_cable()
        self.check_two(jobs, " was lost (", r"was lost \(", limit=SILENT)
        self.say("cable", begin)


def load_tests(loader, tests, pattern):
    return loader.loadTestsFromTestCase(Cable if CABLE else Failures)


if __name__ == "__main__":
    if CABLE and HOSTS is None:
        sys.exit(77)
    program.main()
