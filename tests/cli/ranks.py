"""`calx run`: what ranks write, how it ends, signals, other programs."""

import os
import re
import signal
import subprocess
import time

import program
from program import CALX

RANKS = os.path.abspath(program.sys.argv[2])


class Ranks(program.Case):
    def rank(self, *arguments):
        """A rank that joins the world."""
        return [RANKS, *map(str, arguments)]

    def start(self, *arguments, **options):
        process = subprocess.Popen([CALX, "run", *arguments],
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, **options)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    def test_ranks_meet(self):
        out, err = self.expect(0, "run", "-n", "4", *self.rank(20))
        self.assertEqual(sorted(out.splitlines()),
                         [f"[{i}] rank {i} of 4 on host 0 of 1"
                          for i in range(4)])
        self.assertEqual(err, "")

    def test_processes_by_the_environment(self):
        out, _ = self.expect(0, "run", *self.rank(3), env={"CALX_PROCESSES": "2"})
        self.assertEqual(len(out.splitlines()), 2)
        out, _ = self.expect(0, "run", *self.rank(3))
        self.assertEqual(out, "[0] rank 0 of 1 on host 0 of 1\n")
        self.complains(5, "CALX_PROCESSES is 'x'", "run", *self.rank(3),
                       env={"CALX_PROCESSES": "x"})

    def test_environment_and_folder_are_kept(self):
        out, _ = self.expect(0, "run", "-n", "2", "sh", "-c",
                             'echo "$CPU_NUM_DEVICES $PWD"',
                             env={"CPU_NUM_DEVICES": "3"})
        self.assertEqual(sorted(out.splitlines()),
                         [f"[{i}] 3 {os.getcwd()}" for i in range(2)])

    def test_arguments_are_the_programs(self):
        words = ["-n", "7", "--tag", "--", "a b", "--help", "", "'\"$x\\\n"]
        out, _ = self.expect(0, "run", "-n", "1", "printf", "%s|", *words)
        self.assertEqual(out, "".join(
            f"[0] {line}\n" for line in ("|".join(words) + "|").split("\n")))
        out, _ = self.expect(0, "run", "--", "echo", "x")
        self.assertEqual(out, "[0] x\n")

    def test_first_rank_reads(self):
        out, _ = self.expect(0, "run", "-n", "3", "cat", stdin="1\n2\n")
        self.assertEqual(out, "[0] 1\n[0] 2\n")

    def test_who_never_joins_is_told(self):
        _, err = self.expect(0, "run", "-n", "3", "true")
        self.assertIn("'true' ran 3 times, each by itself", err)
        _, err = self.expect(0, "run", "-n", "1", "true")
        self.assertEqual(err, "")

    def test_closed_descriptors(self):
        # No memory, pipe or socket of ours may become what a rank prints to.
        for closed in range(1, 8):
            numbers = [fd for fd in range(3) if closed >> fd & 1]
            words = " ".join(f"{fd}>&-" for fd in numbers)
            for code, how in (0, "none"), (7, "exit"):
                done = subprocess.run(
                    ["sh", "-c", f'exec "$@" {words}', "sh", CALX, "run", "-n",
                     "2", "--log-dir", "logs", *self.rank(50, how)],
                    stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
                self.assertEqual(done.returncode, code, (numbers, done))
                self.assertEqual(self.read("logs/rank_0.out"),
                                 b"rank 0 of 2 on host 0 of 1\n")

    def test_output_that_cannot_be_written_is_told(self):
        lost = "8 bytes that ranks wrote are lost: "
        with open("/dev/full", "w") as full:
            for ranks in "2", "1":
                for out in "stdout", "stderr":
                    more = {"stdout": subprocess.PIPE,
                            "stderr": subprocess.PIPE, out: full}
                    done = subprocess.run(
                        [CALX, "run", "-n", ranks, "sh", "-c",
                         "echo one; echo two >&2"], text=True, timeout=60,
                        stdin=subprocess.DEVNULL, **more)
                    self.assertEqual(done.returncode, 5, done)
                    if out == "stdout" and ranks == "1":
                        self.assertIn(lost + "standard output: No space left",
                                      done.stderr)
        # A rank's own failure is the first one's exit status.
        with open("/dev/full", "w") as full:
            done = subprocess.run([CALX, "run", "-n", "2", "sh", "-c",
                                   "echo x; exit 3"], stdout=full, timeout=60,
                                  stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"the ranks' output is lost: standard output", done.stderr)

    def test_logs_on_a_full_disk_are_told(self):
        os.mkdir("logs")
        small = ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=8k x "
                 'logs && exec "$@"', "sh"]
        if subprocess.run([*small, "true"], capture_output=True).returncode:
            self.skipTest("no file system can be mounted here")
        done = subprocess.run(
            [*small, CALX, "run", "-n", "2", "--log-dir", "logs", "sh", "-c",
             "head -c 50000 /dev/zero"], capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 5, done)
        self.assertRegex(done.stderr, rb"\d{5,6} bytes that ranks wrote are "
                         rb"lost: the log folder's rank_\d.out: No space left")

    def test_what_ranks_started_ends_with_a_failed_job(self):
        # Also what has a session of its own, and what ignores SIGTERM.
        started = ("for how in '' setsid; do for trap in '' 'trap \"\" TERM;'; "
                   "do $how sh -c \"$trap echo \\$\\$; "
                   "while :; do sleep 0.05; done\" & done; done; ")
        fail = ("sleep 1; [ $CALX_RANK = 1 ] && kill -9 $$; trap '' TERM; "
                "while :; do sleep 0.05; done")
        out, _ = self.expect(137, "run", "-n", "2", "sh", "-c", started + fail)
        pids = [int(line.split()[1]) for line in out.splitlines()]
        self.assertEqual(len(pids), 8, out)
        left = [pid for pid in pids if os.path.exists(f"/proc/{pid}")]
        self.assertEqual(left, [])
        # Of a job that ended well nothing is ended.
        out, _ = self.expect(0, "run", "-n", "1", "sh", "-c",
                             "sleep 600 > /dev/null 2>&1 & echo $!")
        pid = int(out.split()[1])
        os.kill(pid, signal.SIGKILL)

    def test_exit_status_is_the_first_failed_ranks(self):
        only = 'if [ $CALX_RANK = 1 ]; then {}; fi; exec sleep 600'
        for what, code, words in [("exit 3", 3, "rank 1 exited with 3"),
                                  ("kill -9 $$", 137,
                                   r"rank 1 ended by signal 9 \(Killed\)"),
                                  ("exit 255", 255, "rank 1 exited with 255")]:
            _, err = self.expect(code, "run", "-n", "3", "sh", "-c",
                                 only.format(what))
            self.assertRegex(err, f"(?m)^calx run: {words}$")

    def test_no_program(self):
        self.complains(127, "cannot run './nowhere': No such file", "run",
                       "-n", "2", "./nowhere")
        self.write("plain", "x")
        self.complains(126, "cannot run './plain'", "run", "./plain")
        self.complains(2, "PROGRAM is missing", "run", "-n", "2")

    def test_usage(self):
        for words, *options in [
                ("found '0'", "-n", "0"),
                ("found 'x'", "--max-restarts", "x"),
                ("two ways", "--hosts", "a", "--tpu", "t"),
                ("need --tpu", "--zone", "z"),
                ("needs --hosts", "--ssh", "s"),
                ("--env needs", "--env", "A"),
                ("do not go with --tpu", "--tpu", "t", "--tag")]:
            self.complains(2, words, "run", *options, "true")

    def test_log_files(self):
        out, _ = self.expect(0, "run", "-n", "2", "--log-dir", "logs/a", "sh",
                             "-c", "echo out; printf err >&2")
        self.assertEqual(sorted(out.splitlines()), ["[0] out", "[1] out"])
        self.assertEqual(sorted(os.listdir("logs/a")),
                         ["rank_0.err", "rank_0.out", "rank_1.err",
                          "rank_1.out"])
        for i in range(2):
            self.assertEqual(self.read(f"logs/a/rank_{i}.out"), b"out\n")
            self.assertEqual(self.read(f"logs/a/rank_{i}.err"), b"err")
        self.write("file", "")
        self.complains(5, "file", "run", "--log-dir", "file/x", "true")

    def test_streams_and_tags(self):
        out, err = self.expect(0, "run", "--tag", "sh", "-c",
                               "echo a; echo b >&2")
        self.assertRegex(out, r"\A\[0 \d\d:\d\d:\d\d\.\d{3} out\] a\n\Z")
        self.assertRegex(err, r"\A\[0 \d\d:\d\d:\d\d\.\d{3} err\] b\n\Z")

    def test_restarts(self):
        # The second attempt is the first that ends well.
        again = ["sh", "-c", '[ "$CALX_RESTART" = 1 ] || exit 9; echo done']
        out, err = self.expect(0, "run", "-n", "2", "--max-restarts", "2",
                               *again)
        self.assertEqual(sorted(out.splitlines()), ["[0] done", "[1] done"])
        self.assertRegex(err, r"rank \d exited with 9; all are started again, "
                              r"restart 1 of 2")
        _, err = self.expect(4, "run", "--max-restarts", "2", "sh", "-c",
                             "exit 4")
        self.assertIn("restart 2 of 2", err)
        self.complains(5, "1 restarts are asked for", "run", "--max-restarts",
                       "1", "true", env={"CALX_NNODES": "2",
                                         "CALX_NODE_RANK": "0",
                                         "MASTER_ADDR": "localhost"})

    def test_signals_are_passed_on(self):
        script = ("trap 'echo got it; exit 0' {}; echo ready; "
                  "while :; do sleep 0.05; done")
        for name in "INT", "TERM", "HUP":
            run = self.start("-n", "2", "sh", "-c", script.format(name))
            self.assertEqual(sorted(run.stdout.readline() for _ in range(2)),
                             ["[0] ready\n", "[1] ready\n"])
            run.send_signal(getattr(signal, "SIG" + name))
            out, err = run.communicate(timeout=120)
            self.assertEqual(sorted(out.splitlines()),
                             ["[0] got it", "[1] got it"])
            self.assertEqual(run.returncode, 0, err)

    def test_a_signal_ends_and_a_second_one_kills(self):
        run = self.start("-n", "2", "sh", "-c", "echo ready; exec sleep 600")
        run.stdout.readline()
        run.stdout.readline()
        run.send_signal(signal.SIGTERM)
        _, err = run.communicate(timeout=120)
        self.assertEqual(run.returncode, 128 + signal.SIGTERM)
        self.assertRegex(err, r"rank \d ended by signal 15")
        run = self.start("-n", "2", "sh", "-c",
                         "trap 'echo no' TERM; echo ready; "
                         "while :; do sleep 0.05; done")
        run.stdout.readline()
        run.stdout.readline()
        run.send_signal(signal.SIGTERM)
        self.assertIn(run.stdout.readline(), ["[0] no\n", "[1] no\n"])
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=120)
        self.assertEqual(run.returncode, 128 + signal.SIGTERM)

    def test_output_is_passed_on_at_once(self):
        run = self.start("sh", "-c", "echo first; read line; echo $line",
                         stdin=subprocess.PIPE)
        self.addCleanup(run.stdin.close)
        self.assertEqual(run.stdout.readline(), "[0] first\n")
        run.stdin.write("second\n")
        run.stdin.flush()
        self.assertEqual(run.stdout.readline(), "[0] second\n")
        self.assertEqual(run.wait(timeout=120), 0)


if __name__ == "__main__":
    program.main()
