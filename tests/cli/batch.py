"""calx hlo run --batch: answers, and what rogue programs do to them."""

import os
import signal
import subprocess
import time

import program
from program import ADD, CALX, ROGUE

REFUSED = ("PJRT_Client_Compile on plugin 'libcli_rogue.so': rogue: refused; "
           "for no reason")


class Lines(program.Case):
    def setUp(self):
        super().setUp()
        self.write("in", bytes(16))
        for what in "crash", "exit", "hang", "noise", "plant", "other":
            self.write(what, f"// rogue: {what}\n{ADD}")

    def batch(self, lines, *options, code=0, env=None):
        out, self.stderr = self.expect(code, "hlo", "run", "--batch",
                                       "--plugin", ROGUE, *options, stdin=lines,
                                       env=env)
        return out.splitlines()


class Batch(Lines):
    def both(self, lines):
        """The same answers with and without a child process."""
        answers = self.batch(lines)
        self.assertEqual(answers, self.batch(lines, "--isolate"))
        return answers

    def test_every_line_is_answered(self):
        answers = self.both("other out in in\n"
                            "\tnowhere  out \r\n"
                            "other\n"
                            "\n"
                            "other out in")
        self.assertEqual(answers[0], f"refused other: {REFUSED}")
        self.assertRegex(answers[1], "^failed nowhere: cannot open 'nowhere'")
        self.assertRegex(answers[2], "^failed other: line 3 has no OUTDIR")
        self.assertRegex(answers[3], "^failed -: line 4 is empty")
        self.assertRegex(answers[4], "^failed other: .* 1 inputs are given")
        self.assertEqual(len(answers), 5)

    def test_no_lines(self):
        self.assertEqual(self.both(""), [])

    def test_hostile_lines(self):
        answers = self.both(b"other \0 in in\nx" + b"y" * (1 << 20) +
                            b" o\nother o in in\n")
        self.assertRegex(answers[0], "^failed other: line 1 has a zero byte")
        self.assertRegex(answers[1], "^failed -: line 2 has more than 1 MiB")
        self.assertRegex(answers[2], "^refused other")
        self.assertEqual(len(answers), 3)

    def test_invalid(self):
        self.write("bad", "func.func @main(\n")
        (answer,) = self.both("bad out\n")
        self.assertRegex(answer, r"^invalid bad: bad:\d+:\d+: ")

    def test_answers_come_one_by_one(self):
        for options in [], ["--isolate"]:
            with subprocess.Popen(
                    [CALX, "hlo", "run", "--batch", "--plugin", ROGUE, *options],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE) as calx:
                for _ in range(3):
                    calx.stdin.write(b"other out in in\n")
                    calx.stdin.flush()
                    self.assertRegex(calx.stdout.readline(), b"^refused other")
                calx.stdin.close()
                self.assertEqual(calx.wait(), 0)

    def test_no_plugin(self):
        for options in [], ["--isolate"]:
            self.complains(5, "nowhere.so", "hlo", "run", "--batch",
                           "--plugin", "./nowhere.so", *options, stdin="x o\n")
            self.assertEqual(self.batch("x o\n", *options, code=5,
                                        env={"ROGUE": "no-client"}), [])
            self.assertIn("rogue: no devices; at all" if options else
                          "rogue: no devices\nat all", self.stderr)


class Isolate(Lines):
    """A program's end is not the others'."""

    def test_crashes(self):
        answers = self.batch(
            "".join(f"{what} out in in\n" for what in
                    ["crash", "other", "crash", "exit", "crash", "other"]),
            "--isolate")
        self.assertEqual(answers, [
            "crashed crash: signal 11", f"refused other: {REFUSED}",
            "crashed crash: signal 11", "crashed exit: exit status 3",
            "crashed crash: signal 11", f"refused other: {REFUSED}"])

    def test_crash_without_isolation(self):
        done = self.calx("hlo", "run", "--batch", "--plugin", ROGUE,
                         stdin="other o in in\ncrash o in in\n")
        self.assertEqual(done.returncode, -signal.SIGSEGV)
        self.assertRegex(done.stdout, "^refused other")

    def test_crash_before_any_program(self):
        answers = self.batch("other o in in\nplant o in in\n", "--isolate",
                             env={"ROGUE": "crash-at-start"})
        self.assertEqual(answers, ["crashed other: signal 11",
                                   "crashed plant: signal 11"])

    def test_a_crash_is_not_put_down_to_the_next(self):
        answers = self.batch("plant o in in\nother o in in\nother o in in\n",
                             "--isolate")
        self.assertEqual(answers, [f"refused plant: {REFUSED}"] +
                         [f"refused other: {REFUSED}"] * 2)

    def test_timeout(self):
        answers = self.batch("hang o in in\nother o in in\n", "--isolate",
                             "--timeout", "3")
        self.assertEqual(answers, ["timeout hang", f"refused other: {REFUSED}"])

    def test_standard_output_is_the_answers_alone(self):
        answers = self.batch("noise o in in\n", "--isolate")
        self.assertEqual(answers, [f"refused noise: {REFUSED}"])
        self.assertIn("ok forged", self.stderr)

    def test_the_child_ends_with_its_parent(self):
        with subprocess.Popen(
                [CALX, "hlo", "run", "--batch", "--isolate", "--plugin", ROGUE],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE) as calx:
            calx.stdin.write(b"other o in in\n")
            calx.stdin.flush()
            calx.stdout.readline()
            calx.stdin.write(b"hang o in in\n")
            calx.stdin.flush()
            with open(f"/proc/{calx.pid}/task/{calx.pid}/children") as file:
                (child,) = map(int, file.read().split())
            calx.kill()
            calx.wait()
        for _ in range(600):
            if not os.path.exists(f"/proc/{child}"):
                return
            with open(f"/proc/{child}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return  # it ended, and nobody has asked yet
            time.sleep(0.1)
        os.kill(child, signal.SIGKILL)
        self.fail("the child outlives its parent")


if __name__ == "__main__":
    program.main()
