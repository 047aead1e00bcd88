"""program: what the tests of the program `calx` share.

A test file is called with the program's path (and the rogue plugin's); its
cases run in a folder of their own, with no more of CALX_… in the environment
than the caller gave.
"""

import os
import subprocess
import sys
import tempfile
import unittest

CALX = os.path.abspath(sys.argv[1])
ROGUE = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None

ADD = """\
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""

# What is wrong in a body, and how the message begins after the file's name.
WRONG = {
    "undefined": (ADD.replace("%a, %b :", "%a, %c :"), ":2:26: '%c'"),
    "syntax": (ADD.replace("%a, %b :", "%a %b :"), ":2:25: expected"),
    "type": (ADD.replace("add %a, %b : tensor<4xf32>",
                         "add %a, %b : tensor<5xf32>"), ":2:22: the value is"),
    "returned": (ADD.replace("return %0 : tensor<4xf32>",
                             "return %0 : tensor<4xf64>"), ":3:10: the value"),
    "rule": (ADD.replace("stablehlo.add %a, %b : tensor<4xf32>",
                         "stablehlo.not %a : tensor<4xf32>"), ""),
}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def write(self, name, data):
        if isinstance(data, str):
            data = data.encode()
        with open(name, "wb") as file:
            file.write(data)
        return name

    def read(self, name):
        with open(name, "rb") as file:
            return file.read()

    def calx(self, *arguments, stdin="", env=None):
        """The finished process; its streams are text."""
        if isinstance(stdin, str):
            stdin = stdin.encode()
        done = subprocess.run([CALX, *arguments], input=stdin, timeout=300,
                              capture_output=True,
                              env={**os.environ, **(env or {})})
        done.stdout = done.stdout.decode()
        done.stderr = done.stderr.decode()
        return done

    def expect(self, code, *arguments, **options):
        """Runs, wants this exit status, returns standard output and error."""
        done = self.calx(*arguments, **options)
        self.assertEqual(done.returncode, code,
                         f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done.stdout, done.stderr

    def complains(self, code, piece, *arguments, **options):
        """Fails with this status, says this, and prints no result."""
        out, err = self.expect(code, *arguments, **options)
        self.assertIn(piece, err)
        self.assertEqual(out, "")
        return err


def main():
    unittest.main(argv=sys.argv[:1], verbosity=2)
