"""How a job ends when a rank, a host or a launcher comes to harm: it is named
in time, and nothing is left behind.

The ranks meet on the board again and again, so that the others wait there.
Times are printed; the limits asserted are those of a machine that is busy with
other things. Two hosts are two launchers with a store of their own, or, where
this user may make them, two network namespaces with a cable between.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import unittest

import program
from program import CALX

RANKS = os.path.abspath(sys.argv[2])
FOREVER = "1000000000"

SOON = 20  # seconds; a dead rank ends a job within one where a core is free
HEARTBEAT = 2

HARMS = [("kill", 137, "rank {} ended by signal 9 (Killed)"),
         ("segv", 139, "rank {} ended by signal 11 (Segmentation fault)"),
         ("exit", 7, "rank {} exited with 7"),
         ("raise", 1, "rank {}: batch 7 has no target")]
STOPPED = "rank {} has gone (no sign of it for 2 s"


def processes_of(mark):
    """Numbers of all that run with this in their environment; no zombies."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                mine = mark.encode() in file.read()
            with open(f"/proc/{pid}/stat") as file:
                state = file.read().rsplit(")", 1)[1].split()[0]
        except (OSError, IndexError):
            continue
        if mine and state not in "ZX":
            found.append(int(pid))
    return found


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

    def check_nothing_left(self, text, wait=0):
        until = time.monotonic() + wait
        while processes_of(self.mark) and time.monotonic() < until:
            time.sleep(0.01)
        self.case.assertEqual(processes_of(self.mark), [])
        names = re.findall(r"abstract://(\S+)", text)
        with open("/proc/net/unix") as file:
            sockets = file.read()
        for name in names:
            self.case.assertNotIn(name, sockets)


class Failures(program.Case):
    def setUp(self):
        super().setUp()
        self.shared = self.shared_memory()

    def tearDown(self):
        self.assertEqual(self.shared_memory() - self.shared, set())

    def shared_memory(self):
        return {n for n in os.listdir("/dev/shm") if "calx" in n}

    def say(self, what, begin):
        print(f"{self.id().split('.')[-1]}: {what} after "
              f"{time.monotonic() - begin:.2f} s", file=sys.stderr)

    # ---- one host ----

    def test_one_host(self):
        for how, code, words in HARMS:
            begin = time.monotonic()
            job = Job(self, 4, "100", how, "2")
            status, text = job.end(SOON)
            self.say(how, begin)
            self.assertEqual(status, code, text)
            # By its launcher, and by those that waited for it.
            # (Those that waited may tell of a rank's own failure first.)
            self.assertRegex(text, "(?m)^calx run: (rank 2 failed: )?" +
                             re.escape(words.format(2)))
            # (Half a second may be too short for all of them to say it.)
            self.assertRegex(text, r"(?m)^\[[013]\] error: .*rank 2")
            job.check_nothing_left(text)

    def test_one_host_stopped(self):
        begin = time.monotonic()
        job = Job(self, 3, "100", "stop", "1")
        status, text = job.end(SOON + HEARTBEAT)
        self.say("stop", begin)
        self.assertEqual(status, 137, text)
        self.assertIn(f"calx run: {STOPPED.format(1)}", text)
        job.check_nothing_left(text)

    def test_one_host_launcher_killed(self):
        job = Job(self, 3, FOREVER)
        job.wait_until_met()
        begin = time.monotonic()
        self.assertEqual(len(processes_of(job.mark)), 5)
        job.process.kill()
        _, text = job.end(SOON)
        job.check_nothing_left(text, SOON)
        self.say("launcher", begin)

    def test_one_host_store_killed(self):
        job = Job(self, 3, FOREVER)
        job.wait_until_met()
        comms = {}
        for pid in processes_of(job.mark):
            with open(f"/proc/{pid}/comm") as file:
                comms[file.read()] = pid
        os.kill(comms["calx-store\n"], signal.SIGKILL)
        status, text = job.end(SOON)
        self.assertNotEqual(status, 0)
        self.assertRegex(text, "calx run: .*the store")
        job.check_nothing_left(text)

    def test_one_rank_leaves_early(self):
        job = Job(self, 3, "100", "leave", "0")
        status, text = job.end(SOON)
        self.assertEqual(status, 1, text)
        self.assertIn("rank 0 ended after 50 launches", text)
        job.check_nothing_left(text)

    # ---- two hosts ----

    def two_hosts(self, *arguments, before=((), ()), address="127.0.0.1"):
        port = str(free_port())
        return [Job(self, 2, *arguments, before=before[i], CALX_NNODES="2",
                    CALX_NODE_RANK=str(i), MASTER_ADDR=address,
                    MASTER_PORT=port, CALX_TOKEN="told")
                for i in range(2)]

    def check_two(self, jobs, words, codes=None, limit=SOON):
        for i, job in enumerate(jobs):
            status, text = job.end(limit)
            self.assertIn(words, text)
            self.assertNotEqual(status, 0)
            if codes is not None:
                self.assertEqual(status, codes[i], text)
            job.check_nothing_left(text)

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
                self.check_two(jobs, words.format(rank), codes)
                self.say(f"{how} of rank {rank}", begin)

    def test_two_hosts_stopped(self):
        for rank in 0, 3:
            begin = time.monotonic()
            jobs = self.two_hosts("100", "stop", str(rank))
            self.check_two(jobs, STOPPED.format(rank), limit=SOON + HEARTBEAT)
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
                    self.assertRegex(text, "calx run: .* has gone")
                job.check_nothing_left(text, SOON)
            self.say(f"launcher of host {killed}", begin)

    # ---- two hosts with a cable ----

    def name_space(self):
        """A process in a network of its own; the words that enter it."""
        holder = subprocess.Popen(["unshare", "-n", "sleep", "600"],
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(holder.wait)
        self.addCleanup(holder.kill)
        own = os.readlink("/proc/self/ns/net")
        for _ in range(1000):
            if holder.poll() is not None:
                raise unittest.SkipTest("no network namespaces here")
            if os.readlink(f"/proc/{holder.pid}/ns/net") != own:
                return holder.pid, ["nsenter", "-t", str(holder.pid), "-n"]
            time.sleep(0.01)
        raise unittest.SkipTest("no network namespaces here")

    def two_networks(self):
        for tool in "unshare", "nsenter", "ip":
            if subprocess.call(["which", tool], stdout=subprocess.DEVNULL):
                raise unittest.SkipTest(f"there is no {tool} here")
        (_, enter0), (pid1, enter1) = self.name_space(), self.name_space()
        steps = [[*enter0, "ip", "link", "add", "cable0", "type", "veth",
                  "peer", "name", "cable1", "netns", str(pid1)]]
        for i, enter in enumerate([enter0, enter1]):
            steps += [[*enter, "ip", "addr", "add", f"10.77.0.{i + 1}/24",
                       "dev", f"cable{i}"],
                      [*enter, "ip", "link", "set", f"cable{i}", "up"],
                      [*enter, "ip", "link", "set", "lo", "up"]]
        for step in steps:
            done = subprocess.run(step, capture_output=True, check=False)
            if done.returncode != 0:
                raise unittest.SkipTest(f"{step[3:]}: {done.stderr.decode()}")
        return enter0, enter1

    def test_cable_out(self):
        enter = self.two_networks()
        jobs = self.two_hosts(FOREVER, before=enter, address="10.77.0.1")
        for job in jobs:
            job.wait_until_met()
        begin = time.monotonic()
        subprocess.run([*enter[1], "ip", "link", "set", "cable1", "down"],
                       check=True)
        self.check_two(jobs, " has gone (", limit=SOON + HEARTBEAT)
        self.say("cable", begin)


if __name__ == "__main__":
    program.main()
