"""calx hlo convert: text to bytecode and back, and how the form is chosen."""

import subprocess

import program
from program import ADD, CALX

MAGIC = b"ML\xefR"


class Convert(program.Case):
    def test_there_and_back(self):
        self.write("a.mlir", ADD)
        printed, _ = self.expect(0, "hlo", "print", "a.mlir")
        self.assertEqual(self.expect(0, "hlo", "convert", "a.mlir", "b.mlirbc"),
                         ("", ""))
        self.assertEqual(self.read("b.mlirbc")[:4], MAGIC)
        self.expect(0, "hlo", "convert", "b.mlirbc", "c.mlir")
        self.assertEqual(self.read("c.mlir").decode(), printed)
        self.expect(0, "hlo", "convert", "c.mlir", "d.bc")
        self.assertEqual(self.read("d.bc"), self.read("b.mlirbc"))

    def test_standard_streams(self):
        done = subprocess.run([CALX, "hlo", "convert", "-", "-", "--to=bytecode"],
                              input=ADD.encode(), capture_output=True, check=True)
        self.assertEqual(done.stdout[:4], MAGIC)
        back = subprocess.run([CALX, "hlo", "convert", "-", "-"],
                              input=done.stdout, capture_output=True, check=True)
        printed, _ = self.expect(0, "hlo", "print", "-", stdin=ADD)
        self.assertEqual(back.stdout.decode(), printed)

    def test_form(self):
        self.write("a.mlir", ADD)
        self.complains(2, "'b.txt' ends with none", "hlo", "convert", "a.mlir", "b.txt")
        self.complains(2, "not 'yaml'", "hlo", "convert", "a.mlir", "b.txt", "--to",
                       "yaml")
        self.expect(0, "hlo", "convert", "a.mlir", "b.txt", "--to", "bytecode")
        self.assertEqual(self.read("b.txt")[:4], MAGIC)
        self.expect(0, "hlo", "convert", "a.mlir", "b.bc", "--to", "text")
        self.assertIn(b"stablehlo.add", self.read("b.bc"))

    def test_refusals(self):
        self.complains(3, "<stdin>:1:1", "hlo", "convert", "-", "b.mlirbc", stdin="?")
        self.complains(5, "cannot open 'nowhere'", "hlo", "convert", "nowhere",
                       "b.mlirbc")
        text = ADD.replace("stablehlo.add %a, %b : tensor<4xf32>",
                           '"vhlo.add_v1"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) '
                           "-> tensor<4xf32>")
        self.complains(3, "bytecode: ", "hlo", "convert", "-", "b.mlirbc", stdin=text)


if __name__ == "__main__":
    program.main()
