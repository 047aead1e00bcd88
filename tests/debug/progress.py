"""progress.py PROGRAM: the line of a loop on a terminal (a pty of 60 columns)."""
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import unittest

PROGRAM = sys.argv.pop(1)


def on_terminal(columns):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ,
                struct.pack("HHHH", 24, columns, 0, 0))
    child = subprocess.Popen([PROGRAM, "watched"], stdout=slave, stderr=slave,
                             env=dict(os.environ, CALX_CACHE_DIR="off"))
    os.close(slave)
    text = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
    os.close(master)
    return child.wait(timeout=60), text.decode()


class Progress(unittest.TestCase):
    def test_terminal(self):
        code, text = on_terminal(200)
        self.assertEqual(code, 0, text)
        lines = text.replace("\r\n", "\n").split("\n")
        # One line, drawn again and again, and erased to its end each time.
        last = lines[-2]
        drawn = last.split("\r")
        self.assertRegex(drawn[-1], r"^Epoch 1 step 40/40 loss 2\.0000 "
                                    r"[0-9.e+]+ images/s in 0:0\d\x1b\[K$")
        self.assertTrue(all(d == "" or d.endswith("\x1b[K") for d in drawn), text)
        # At most about ten a second: 40 steps of 10 ms.
        self.assertLess(text.count("\x1b[K"), 40, text)
        self.assertIn(" compiling…\x1b[K", text)
        # It goes when the program is there, not with the step that waits for it.
        self.assertRegex(text, r"step (\d+)/40[^\r]* compiling…\x1b\[K"
                               r"\rEpoch 1 step \1/40[^\r…]*\x1b\[K")
        self.assertIn(" images/s ETA 0:0", text)

    def test_a_line_of_the_log_has_a_line_of_its_own(self):
        _, text = on_terminal(200)
        at = text.index("calx: ", text.index("step"))
        self.assertTrue(text[:at].endswith("\r\x1b[K"), text)

    def test_width(self):
        _, text = on_terminal(30)
        for line in text.replace("\r\n", "\n").split("\n"):
            for drawn in line.split("\r"):
                shown = drawn.replace("\x1b[K", "")
                if shown.startswith("Epoch 1 step"):
                    self.assertLessEqual(len(shown), 30, text)

    def test_pipe(self):
        run = subprocess.run([PROGRAM, "watched"], capture_output=True, text=True,
                             timeout=60, check=True)
        self.assertNotIn("\x1b", run.stdout)
        self.assertNotIn("compiling", run.stdout)
        lines = run.stdout.splitlines()
        self.assertEqual(len(lines), 10, run.stdout)
        self.assertRegex(lines[0], r"^Epoch 1 step 4/40 ")
        self.assertRegex(lines[-1], r"^Epoch 1 step 40/40 loss 2\.0000 ")


if __name__ == "__main__":
    unittest.main()
