"""Whoever can reach the store's port: strangers, second starts, other jobs.

A job on two hosts, which are this machine, meets for as long as a test wants;
meanwhile others connect. The job must go on to its end, hold no memory for them
and let its second host in. With CALX_TEST_LONG ten times as many come.
"""

import os
import random
import socket
import struct
import subprocess
import sys
import time

import program
from program import CALX

RANK = os.path.abspath(sys.argv[2])
LONG = os.environ.get("CALX_TEST_LONG", "") not in ("", "0")
CONNECTIONS = 2000 if LONG else 200
GUEST_S = 5  # how long the store bears one that says nothing
MOST_KB = 24 << 10  # of growth: a message of 64 MB is more
LIMIT = 120

HELLO, PUT, GET, WATCH = 1, 2, 3, 10


def request(op, name=b"", a=0, b=0, value=b"", size=None):
    """A message as the store reads it; `size` instead of the value's."""
    body = (struct.pack("<4sBBHiiqI", b"CXQ1", op, 0, len(name), a, b, 1000,
                        len(value) if size is None else size) + name + value)
    return struct.pack("<II", len(body), 1) + body


def origin(host=-1, launch=0, job=0):
    return struct.pack("<iQQQQ", host, launch, 0, job, 0)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def memory(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(file.read().split("VmRSS:")[1].split()[0])


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Job:
    """One launcher a host, as typed by hand."""

    def __init__(self, case, port=None, hosts=(0, 1), token=None, seed=None):
        self.case, self.token = case, token
        self.port = port or free_port()
        self.stop = os.path.abspath(f"stop{self.port}")
        self.env = {**os.environ, "CALX_NNODES": "2",
                    "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self.port),
                    "CALX_JOIN_TIMEOUT_S": "60"}
        if token:
            self.env["CALX_TOKEN"] = token
        if seed:
            self.env["CALX_SEED"] = seed
        self.runs = {host: self.start(host) for host in hosts}

    def start(self, host, **env):
        run = subprocess.Popen([CALX, "run", RANK, "0", f"until:{self.stop}"],
                               env={**self.env, "CALX_NODE_RANK": str(host),
                                    **env}, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        self.case.addCleanup(run.stderr.close)
        self.case.addCleanup(run.stdout.close)
        self.case.addCleanup(run.wait)
        self.case.addCleanup(run.kill)
        return run

    def wait_until_served(self):
        until = time.monotonic() + LIMIT
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except ConnectionRefusedError:
                time.sleep(0.02)
        self.case.fail("nobody serves the store")

    def wait_for_ranks(self, hosts=(0, 1)):
        for host in hosts:
            line = self.runs[host].stdout.readline()
            self.case.assertIn(f"rank {host} of 2", line)

    def store(self):
        """The number of the process that serves the store."""
        launcher = self.runs[0].pid
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat") as file:
                    name, rest = file.read().split("(")[1].rsplit(")", 1)
            except (FileNotFoundError, ProcessLookupError):
                continue
            if name == "calx-store" and int(rest.split()[1]) == launcher:
                return int(pid)
        self.case.fail("there is no store")

    def end_well(self):
        with open(self.stop, "w"):
            pass
        self.said = {}
        for host, run in self.runs.items():
            out, self.said[host] = run.communicate(timeout=LIMIT)
            self.case.assertEqual(run.returncode, 0,
                                  f"{host}: {out}{self.said[host]}")

    def goes_on(self):
        for host, run in self.runs.items():
            self.case.assertIsNone(run.poll(), f"host {host} has ended")


class Attacks(program.Case):
    def connect(self, port):
        s = socket.create_connection(("127.0.0.1", port), timeout=LIMIT)
        s.settimeout(LIMIT)
        return s

    def attack(self, port, count, token, seed):
        """Connections of all kinds; those that were left open."""
        rng = random.Random(seed)
        hello = request(HELLO, token, rng.choice([0, 1, -1, -2, 5, -9]), 2,
                        origin(rng.randrange(-1, 3), rng.randrange(3)))
        kinds = {
            "garbage": lambda: rng.randbytes(rng.randrange(1, 3000)),
            "part": lambda: hello[:rng.randrange(1, len(hello))],
            "announced": lambda: struct.pack("<II", 64 << 20, 1) + hello[8:],
            "value": lambda: struct.pack("<II", 1000, 1) + request(
                HELLO, token, 0, 2, size=64 << 20)[8:],
            "long": lambda: request(PUT, b"k", value=bytes(100000)),
            "idle": lambda: b"",
            "unread": lambda: request(GET, b"k") * 400,
            "hello": lambda: hello,
            "wrong": lambda: request(HELLO, b"wrong", 1, 2, origin()),
            "twice": lambda: hello * 2 + request(WATCH),
        }
        held = []
        for _ in range(count):
            kind = rng.choice(list(kinds))
            s = self.connect(port)
            try:
                s.sendall(kinds[kind]())
            except OSError:
                pass  # it was shut out before it had sent all
            if kind != "unread" and rng.random() < 0.5:
                held.append(s)
            else:
                s.close()
        return held

    def attack_job(self, token):
        # The second host comes while all places are taken.
        job = Job(self, hosts=[0], token=token)
        job.wait_until_served()
        store = job.store()
        before = memory(store)
        held = self.attack(job.port, CONNECTIONS // 4, b"no", 1)
        held += [self.connect(job.port) for _ in range(CONNECTIONS // 2)]
        job.runs[1] = job.start(1)
        held += [self.connect(job.port) for _ in range(CONNECTIONS // 2)]
        job.wait_for_ranks()
        # A token that is right gives nobody another's place.
        for i, said in enumerate([b"no", b"", (token or "").encode()]):
            held += self.attack(job.port, CONNECTIONS // 4, said, 2 + i)
            job.goes_on()
        self.assertLess(memory(store) - before, MOST_KB)
        # They are shut out, and nothing is held for them.
        until = time.monotonic() + 5 * GUEST_S
        while descriptors(store) > 20 and time.monotonic() < until:
            time.sleep(0.05)
        self.assertLessEqual(descriptors(store), 20)
        for s in held:
            s.close()
        job.goes_on()
        self.assertLess(memory(store) - before, MOST_KB)
        job.end_well()

    def test_strangers_without_a_token(self):
        self.attack_job(None)

    def test_strangers_with_a_token(self):
        self.attack_job("secret")

    def test_how_long_a_guest_may_stay(self):
        job = Job(self, token="secret")
        job.wait_for_ranks()
        begin = time.monotonic()
        silent, partly = self.connect(job.port), self.connect(job.port)
        partly.sendall(request(HELLO, b"secret", 0, 2, origin())[:20])
        refused = self.connect(job.port)
        refused.sendall(request(HELLO, b"Secret", 0, 2, origin()))
        self.assertIn(b"its CALX_TOKEN is not the store's", refused.recv(4096))
        for s in silent, partly, refused:
            s.setblocking(True)
            s.settimeout(5 * GUEST_S)
            self.assertEqual(s.recv(1), b"")
            s.close()
        self.assertLess(time.monotonic() - begin, 2 * GUEST_S)
        job.end_well()

    # ---- second starts -----------------------------------------------------

    def refused(self, run, *words):
        out, err = run.communicate(timeout=LIMIT)
        self.assertNotEqual(run.returncode, 0, out + err)
        self.assertNotIn("rank ", out)
        for word in words:
            self.assertIn(word, err)

    def second_starts(self, token, seed):
        job = Job(self, token=token, seed="1")
        job.wait_for_ranks()
        more = {"CALX_SEED": seed} if seed else {}
        self.refused(job.start(1, **more),
                     "host 1 has joined already: its command was started twice")
        self.refused(job.start(0, **more), "the store cannot be served at",
                     "Address already in use")
        job.goes_on()
        job.end_well()

    def test_second_starts(self):
        for token in None, "secret":
            for seed in None, "2":
                with self.subTest(token=token, seed=seed):
                    self.second_starts(token, seed)

    def test_of_two_starts_at_once_one_goes_on(self):
        for i in range(20 if LONG else 3):
            job = Job(self, hosts=[0])
            starts = [job.start(1) for _ in range(3)]
            ended = set()
            until = time.monotonic() + LIMIT
            while len(ended) < 2 and time.monotonic() < until:
                ended = {s for s in starts if s.poll() is not None}
                time.sleep(0.02)
            for s in ended:
                self.refused(s, "host 1 has joined already")
            self.assertEqual(len(ended), 2)
            job.runs[1], = set(starts) - ended
            job.goes_on()
            job.end_well()

    def test_a_rank_typed_by_hand_is_no_member(self):
        # As a duplicate without a launcher: its number is taken, or its start
        # is another.
        job = Job(self)
        job.wait_for_ranks()
        for launch in "", "x":
            run = subprocess.run(
                [RANK, "3"], timeout=LIMIT, capture_output=True, text=True,
                env={**job.env, "CALX_RANK": "1", "CALX_WORLD": "2",
                     "CALX_NODE_RANK": "1", "CALX_LOCAL_RANK": "0",
                     "CALX_LOCAL_WORLD": "1", "CALX_LAUNCH": launch,
                     "CALX_STORE": f"tcp://127.0.0.1:{job.port}"})
            self.assertNotEqual(run.returncode, 0)
            self.assertRegex(run.stderr, "there is a process 1 already|"
                             "host 1 has joined already")
        job.end_well()

    def test_a_job_without_a_token_is_told(self):
        for token in None, "secret":
            job = Job(self, token=token)
            job.wait_for_ranks()
            job.end_well()
            words = "set CALX_TOKEN to the same secret on all its hosts"
            self.assertEqual(words in job.said[0], token is None)
            self.assertNotIn(words, job.said[1])

    # ---- two jobs ----------------------------------------------------------

    def test_two_jobs_on_one_port(self):
        job = Job(self, token="one")
        job.wait_for_ranks()
        other = Job(self, port=job.port, hosts=[], token="two")
        self.refused(other.start(1), "its CALX_TOKEN is not the store's")
        self.refused(other.start(0), "the store cannot be served at")
        job.goes_on()
        job.end_well()

    def test_jobs_by_their_names(self):
        job = Job(self, hosts=[])
        job.env["CALX_JOB"] = "one"
        job.runs[0] = job.start(0)
        job.wait_until_served()
        for name in "two", "":
            self.refused(job.start(1, CALX_JOB=name), "belongs to another job")
        job.runs[1] = job.start(1)
        job.wait_for_ranks()
        job.end_well()


if __name__ == "__main__":
    program.main()
