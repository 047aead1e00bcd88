"""`calx run` on several hosts, through stand-ins for ssh and gcloud.

The stand-ins run on this machine what they are given; as sshd does, they end a
connection's program with its input. Hosts that share a machine have ports of
their own, chosen by the launch.
"""

import json
import os
import signal
import subprocess
import sys
import time

import program
from program import CALX

RANKS = os.path.abspath(sys.argv[2])

# Like ssh, it takes a host and words for a shell; it begins in another folder.
SSH = """\
#!/bin/sh
echo "$1" >> "$FOLDER/hosts"
[ "$1" != bad ] || { echo "ssh: no route to host" >&2; exit 255; }
cd / && exec sh -c "$2"
"""

# Tells what it was given and runs the command as each of two workers would.
GCLOUD = """\
#!/usr/bin/env python3
import json, os, subprocess, sys
with open(os.environ["FOLDER"] + "/given", "w") as file:
    json.dump(sys.argv[1:], file)
command = [a for a in sys.argv if a.startswith("--command=")][0]
workers = [subprocess.Popen(["sh", "-c", command[len("--command="):]], cwd="/",
                            stdout=subprocess.PIPE,
                            env={**os.environ, "WORKER": worker})
           for worker in "01"]
for worker in workers:
    sys.stdout.buffer.write(worker.communicate()[0])
sys.exit(max(worker.returncode for worker in workers))
"""

# The metadata server of a worker, and its network: of a pod, or unreachable.
CURL = """\
#!/bin/sh
for last; do :; done
case $POD,$last in
  no,*) exit 6 ;;
  *,http://metadata.google.internal/*/attributes/agent-worker-number)
    printf %s "$WORKER" ;;
  two,*/attributes/worker-network-endpoints)
    printf %s unknown:unknown:127.0.0.1,unknown:unknown:127.0.0.2:x ;;
  one,*/attributes/worker-network-endpoints)
    printf %s unknown:unknown:127.0.0.1 ;;
  *) exit 22 ;;
esac
"""


class Hosts(program.Case):
    def setUp(self):
        super().setUp()
        for name, text in ("ssh", SSH), ("gcloud", GCLOUD), ("curl", CURL):
            self.write(name, text)
            os.chmod(name, 0o755)
        self.env = {"FOLDER": os.getcwd(), "MASTER_ADDR": "127.0.0.1",
                    "POD": "one",
                    "PATH": os.getcwd() + ":" + os.environ["PATH"]}

    def run_on(self, code, hosts, *arguments, **env):
        return self.expect(code, "run", "--hosts", hosts, *arguments,
                           env={**self.env, **env})

    def test_all_hosts_are_one_world(self):
        out, err = self.run_on(0, "a,me@b", "-n", "2", RANKS, "20")
        self.assertEqual(sorted(out.splitlines()), [
            "[a:0] rank 0 of 4 on host 0 of 2",
            "[a:1] rank 1 of 4 on host 0 of 2",
            "[b:2] rank 2 of 4 on host 1 of 2",
            "[b:3] rank 3 of 4 on host 1 of 2"])
        self.assertEqual(err, "")
        self.assertEqual(sorted(self.read("hosts").split()), [b"a", b"me@b"])

    def test_a_rank_of_another_host_fails(self):
        for how, code, words in [
                ("kill", 137, "rank 3 ended by signal 9 (Killed)"),
                ("exit", 7, "rank 3 exited with 7"),
                ("raise", 1, "batch 7 has no target")]:
            _, err = self.run_on(code, "a,b", "-n", "2", RANKS, "100", how)
            self.assertGreaterEqual(err.count(words), 3, err)
            if code > 1:  # else both hosts' launchers may say so
                self.assertIn(f"calx run: host b exited with {code}\n", err)

    def test_arguments_folder_and_environment(self):
        words = ["a b", "'", "\"$HOME\"", "`x`", "\\", "!", "é\n-", "", "--tag"]
        show = ("import json, os, sys; print(json.dumps([sys.argv[1:], "
                "os.getcwd(), os.environ.get('CALX_X'), "
                "os.environ.get('GIVEN'), os.environ.get('KEPT')]))")
        out, _ = self.run_on(0, "a", "--env", "GIVEN=it's", "--env", "KEPT",
                             "--ssh", "env -u CALX_X -u KEPT ssh",
                             sys.executable, "-c", show, *words,
                             CALX_X="x 'y'", KEPT="k\n$k")
        self.assertTrue(out.startswith("[a:0] "), out)
        self.assertEqual(json.loads(out[len("[a:0] "):]),
                         [words, os.getcwd(), "x 'y'", "it's", "k\n$k"])

    def test_options_for_output_reach_the_hosts(self):
        out, _ = self.run_on(0, "a,b", "--tag", "--log-dir", "logs", "echo",
                             "x")
        for line, place in zip(sorted(out.splitlines()), ["a:0", "b:1"]):
            self.assertRegex(line, rf"^\[{place} [\d:.]* out\] x$")
        self.assertEqual(self.read("logs/rank_1.out"), b"x\n")

    def test_secrets_are_on_no_command_line(self):
        out, _ = self.run_on(
            0, "a", "sh", "-c",
            'grep -c "$CALX_TOKEN" /proc/$PPID/cmdline; echo ${#CALX_TOKEN}')
        self.assertEqual(out, "[a:0] 0\n[a:0] 32\n")

    def test_the_command_to_connect(self):
        # By the environment, with words of its own.
        os.rename("ssh", "other")
        self.write("none", "")
        out, _ = self.run_on(0, "a", "echo", "x", CALX_SSH="env X=1 other")
        self.assertEqual(out, "[a:0] x\n")
        self.assertEqual(self.read("hosts"), b"a\n")

    def test_hosts_that_are_none(self):
        for hosts in "", "a,", ",a", "-oProxyCommand=x", "a b", "a,b\n":
            self.complains(5, "is no name of a host; names with commas between "
                           "are wanted", "run", "--hosts", hosts, "true")
        self.complains(5, "is no name of a TPU", "run", "--tpu", "--help=x",
                       "true",
                       env=self.env)
        self.complains(5, "names no variable", "run", "--hosts", "a", "--env",
                       "=x", "true")
        self.complains(5, "NOT_SET is to be forwarded", "run", "--hosts", "a",
                       "--env", "NOT_SET", "true")

    def test_a_host_that_cannot_be_reached(self):
        begin = time.monotonic()
        _, err = self.run_on(255, "a,bad", "-n", "1", RANKS, "20")
        self.assertIn("no route to host", err)
        self.assertIn("calx run: host bad exited with 255", err)
        self.assertLess(time.monotonic() - begin, 60)

    def test_restarts(self):
        again = ["sh", "-c", "echo x >> tries; [ $(wc -l < tries) -ge 2 ]"]
        _, err = self.run_on(0, "a", "--max-restarts", "3", *again)
        self.assertIn("restart 1 of 3", err)

    def test_restarts_know_their_number(self):
        self.run_on(0, "a,b", "--max-restarts", "3", "--log-dir", "logs", "sh",
                    "-c", "echo $CALX_RESTART; [ $CALX_RESTART = 1 ]")
        self.assertEqual(self.read("logs/rank_1.out").split()[-1], b"1")
        self.assertIn(b"0", self.read("logs/rank_0.out") +
                      self.read("logs/rank_1.out"))

    def ranks_of(self, run):
        """Numbers of the processes that two hosts' ranks say they are."""
        pids = []
        while len(pids) < 2:
            line = run.stdout.readline()
            self.assertIn("pid", line)
            pids.append(int(line.split()[-1]))
        return pids

    def wait_for_end(self, pids):
        for _ in range(6000):
            if not any(alive(pid) for pid in pids):
                return
            time.sleep(0.01)
        self.fail(f"still there: {pids}")

    def start_two(self, trap=""):
        run = subprocess.Popen(
            [CALX, "run", "--hosts", "a,b", "sh", "-c",
             f"{trap} echo pid $$; while :; do sleep 0.05; done"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **self.env})
        self.addCleanup(run.kill)
        self.addCleanup(run.stdout.close)
        self.addCleanup(run.stderr.close)
        return run, self.ranks_of(run)

    def test_signals_end_all_hosts(self):
        run, pids = self.start_two("trap 'echo bye; exit 0' TERM;")
        run.send_signal(signal.SIGTERM)
        out, _ = run.communicate(timeout=120)
        self.assertEqual(run.returncode, 128 + signal.SIGTERM)
        self.assertEqual(sorted(out.splitlines()), ["[a:0] bye", "[b:1] bye"])
        self.wait_for_end(pids)

    def test_ranks_end_with_the_launcher(self):
        run, pids = self.start_two()
        run.kill()
        run.wait(timeout=120)
        self.wait_for_end(pids)

    def test_tpu(self):
        out, _ = self.expect(
            0, "run", "--tpu", "my-tpu", "--zone", "z-1", "--project=p",
            "--env", "A=it's", "sh", "-c",
            'echo "$PJRT_DEVICE $CPU_NUM_DEVICES $A $WORKER $1"', "sh",
            "two words", env={**self.env, "PJRT_DEVICE": "CPU",
                              "CPU_NUM_DEVICES": "2"})
        self.assertEqual(out, "TPU 2 it's 0 two words\nTPU 2 it's 1 two words\n")
        given = json.loads(self.read("given"))
        self.assertEqual(given[:8], ["compute", "tpus", "tpu-vm", "ssh",
                                     "my-tpu", "--zone=z-1", "--project=p",
                                     "--worker=all"])
        self.assertEqual(len(given), 9)
        self.assertTrue(given[8].startswith("--command="))
        out, _ = self.expect(0, "run", "--tpu", "t", "--dir", "/usr", "-n",
                             "3", "sh", "-c", "pwd; echo $CALX_PROCESSES",
                             env=self.env)
        self.assertEqual(out, "/usr\n3\n/usr\n3\n")
        self.assertNotIn("--zone", self.read("given").decode())
        # What is asked for wins.
        out, _ = self.expect(0, "run", "--tpu", "t", "--env", "PJRT_DEVICE=CPU",
                             "sh", "-c", "echo $PJRT_DEVICE", env=self.env)
        self.assertEqual(out, "CPU\nCPU\n")
        self.complains(9, "TPU t exited with 9", "run", "--tpu", "t", "sh",
                       "-c", "exit 9", env=self.env)
        self.complains(127, "TPU t exited with 127: the command that connects "
                       "to it, or one there, was not found", "run", "--tpu",
                       "t", "sh", "-c", "exit 127", env=self.env)

    def test_a_pods_workers_are_one_job(self):
        show = ["sh", "-c", "echo $CALX_NNODES $CALX_NODE_RANK $MASTER_ADDR"]
        out, err = self.expect(0, "run", "--tpu=pod", "--", *show,
                               env={**self.env, "POD": "two",
                                    "MASTER_ADDR": ""})
        self.assertEqual(out, "2 0 127.0.0.1\n2 1 127.0.0.1\n")
        self.assertEqual(err, "")
        # By variables, as Kubernetes sets them.
        out, _ = self.expect(
            0, "run", "--tpu", "pod", *show,
            env={**self.env, "POD": "no", "MASTER_ADDR": "",
                 "TPU_WORKER_ID": "3", "TPU_WORKER_HOSTNAMES": "a,b,c,d"})
        self.assertEqual(out, "4 3 a\n4 3 a\n")
        # One worker needs no others; one that knows nothing says so.
        out, err = self.expect(0, "run", "--tpu", "pod", *show,
                               env={**self.env, "MASTER_ADDR": ""})
        self.assertEqual((out, err), ("\n\n", ""))
        _, err = self.expect(0, "run", "--tpu", "pod", "--dir", "/usr", *show,
                             env={**self.env, "POD": "no"})
        self.assertEqual(err.count("this worker trains alone"), 2)
        # A folder that is not there ends it, as before.
        self.complains(2, "", "run", "--tpu", "pod", "--dir", "/nowhere", *show,
                       env=self.env)
        # They meet.
        port = str(20000 + os.getpid() % 12000)
        out, _ = self.expect(0, "run", "--tpu=pod", "--", CALX, "run", "-n", "2",
                             RANKS, "20", env={**self.env, "POD": "two",
                                               "CALX_PORT": "", "MASTER_PORT":
                                               port})
        self.assertEqual(sorted(line.split("] ")[1] for line in
                                out.splitlines()),
                         [f"rank {r} of 4 on host {r // 2} of 2"
                          for r in range(4)])

    def test_options_of_xla_dist(self):
        for options, answer in [
                (["--conda-env=torch-xla-nightly"],
                 "leave it out; for one that does: calx run --tpu NAME -- conda "
                 "run --no-capture-output -n torch-xla-nightly PROGRAM"),
                (["--docker-image", "gcr.io/x"], "sudo docker run --rm "
                 "--privileged --network=host gcr.io/x PROGRAM"),
                (["--docker-run-flag=-v", "--docker-run-flag=/a:/a"],
                 "sudo docker run"),
                (["--restart-tpuvm-pod-server"], "leave them out; calx doctor "
                 "--kill"),
                (["--vm", "a"], "--hosts a"),
                (["--tpu="], "is the variable set?")]:
            self.complains(2, answer, "run", "--tpu=pod", *options, "--",
                           "./train", "--max_epochs=5", env=self.env)
        # As Lightning's page writes it: what follows is the program's.
        out, _ = self.expect(0, "run", "--tpu", "pod", "--env",
                             "XLA_USE_BF16=1", "--", "sh", "-c",
                             'echo "$XLA_USE_BF16 $@"', "train",
                             "--max_epochs=5", "--batch_size=32", env=self.env)
        self.assertEqual(out, "1 --max_epochs=5 --batch_size=32\n" * 2)

    def test_long_program(self):
        # Quoted twice it would be longer than one argument may be.
        out, _ = self.expect(
            0, "run", "--hosts", "a,b", "--", "sh", "-c", "echo $#", "sh",
            *["12345"] * 12000, env=self.env)
        self.assertEqual(sorted(out.split()),
                         ["12000", "12000", "[a:0]", "[b:1]"])


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


if __name__ == "__main__":
    program.main()
