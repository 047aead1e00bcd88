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
