"""calx hlo run on a real plugin: inputs, results, names, and batches."""

import os
import struct

import program
from program import ADD, WRONG

TWO_RESULTS = """\
// @pair is the only function; "@pair" here is not its name
module @pair {
  func.func public @pair(%a: tensor<2x2xf32> {x.y = "@pair"}, %b: tensor<i32>)
      -> (tensor<2x2xi1>, tensor<i32>) {
    %0 = stablehlo.compare GT, %a, %a : (tensor<2x2xf32>, tensor<2x2xf32>)
      -> tensor<2x2xi1>
    %1 = stablehlo.not %0 : tensor<2x2xi1>
    %2 = stablehlo.negate %b : tensor<i32>
    return %1, %2 : tensor<2x2xi1>, tensor<i32>
  }
}
"""

GENERIC = """\
"builtin.module"() <{sym_name = "m"}> ({
  "func.func"() <{function_type = () -> tensor<3xi64>, sym_name = "f"}> ({
    %0 = "stablehlo.constant"() <{value = dense<[-1, 0, 7]> : tensor<3xi64>}>
      : () -> tensor<3xi64>
    "func.return"(%0) : (tensor<3xi64>) -> ()
  }) : () -> ()
}) : () -> ()
"""


class Run(program.Case):
    def setUp(self):
        super().setUp()
        self.write("add", ADD)
        self.write("a", struct.pack("<4f", 1, 2, 3, 4))
        self.write("b", struct.pack("<4f", 0.5, 0, -3, 1e9))

    def test_results_in_files(self):
        out, _ = self.expect(0, "hlo", "run", "add", "--input", "a", "--input",
                             "b", "--output", "new/folder")
        self.assertEqual(out, "")
        self.assertEqual(os.listdir("new/folder"), ["0.bin"])
        self.assertEqual(struct.unpack("<4f", self.read("new/folder/0.bin")),
                         (1.5, 2, 0, 1e9))

    def test_results_printed(self):
        out, _ = self.expect(0, "hlo", "run", "add", "--input", "a", "--input",
                             "b")
        self.assertRegex(out, r"\A0: f32\[4\] 1\.5, 2\.0, 0\.0, \S+\n\Z")
        self.assertEqual(float(out.split()[-1]), 1e9)

    def test_program_from_standard_input(self):
        out, _ = self.expect(0, "hlo", "run", "-", stdin=GENERIC)
        self.assertEqual(out, "0: i64[3] -1, 0, 7\n")

    def test_the_entry_may_have_any_name(self):
        self.write("p", TWO_RESULTS)
        self.write("i", struct.pack("<i", 5))
        for text in [TWO_RESULTS, TWO_RESULTS.replace("@pair(", '@"pair"('),
                     TWO_RESULTS.replace("pair", "main")]:
            self.write("p", text)
            self.expect(0, "hlo", "run", "p", "--input", "a", "--input", "i",
                        "--output", "out")
            self.assertEqual(self.read("out/0.bin"), b"\1\1\1\1")
            self.assertEqual(self.read("out/1.bin"), struct.pack("<i", -5))

    def test_more_than_is_printed(self):
        text = GENERIC.replace("dense<[-1, 0, 7]>", "dense<5>").replace("3x",
                                                                      "17x")
        out, _ = self.expect(0, "hlo", "run", "-", stdin=text)
        self.assertEqual(out, "0: i64[17] " + "5, " * 16 + "...\n")

    def test_refused_by_the_plugin(self):
        self.write("p", ADD.replace("stablehlo.add", "stablehlo.frob"))
        for word in "a", "b":
            self.write(word, bytes(16))
        self.complains(4, "frob", "hlo", "run", "p", "--input", "a", "--input",
                       "b")

    def test_invalid(self):
        inputs = ["--input", "a", "--input", "b"]
        for name, (text, said) in WRONG.items():
            self.write(name, text)
            for given in inputs, []:
                err = self.complains(3, name + said, "hlo", "run", name, *given)
                self.assertNotIn("-:", err)
            self.complains(3, "<stdin>" + said, "hlo", "run", "-", *inputs,
                           stdin=text)
        lines = "".join(f"{name} o a b\n" for name in WRONG)
        for options in [], ["--isolate"]:
            out, _ = self.expect(0, "hlo", "run", "--batch", *options,
                                 stdin=lines)
            for row, (name, (_, said)) in zip(out.splitlines(), WRONG.items(),
                                              strict=True):
                self.assertTrue(row.startswith(f"invalid {name}: "), row)
                self.assertIn(name + said, row.partition(": ")[2])

    def test_results_that_cannot_be_written(self):
        self.complains(5, "add", "hlo", "run", "add", "--input", "a", "--input",
                       "b", "--output", "add/x")

    def test_input_from_a_pipe(self):
        data = self.read("a")
        for code, sent in (0, data), (5, data[:-1]), (5, data + b"x"):
            _, err = self.expect(code, "hlo", "run", "add", "--input",
                                 "/dev/stdin", "--input", "b", "--output", "o",
                                 stdin=sent)
            if code != 0:
                self.assertIn("16 bytes", err)

    def test_batch(self):
        lines = ("add o0 a b\n"
                 "add o1 b b\n"
                 "nowhere o2\n"
                 "add o3 a add\n"
                 "add o4 a a\n")
        for options in [], ["--isolate"], ["--isolate", "--timeout", "600"]:
            out, _ = self.expect(0, "hlo", "run", "--batch", *options,
                                 stdin=lines)
            self.assertEqual([row.split(":")[0] for row in out.splitlines()],
                             ["ok add", "ok add", "failed nowhere",
                              "failed add", "ok add"])
            self.assertIn(f"wants 16 bytes, 'add' has {len(ADD)}", out)
            self.assertEqual(struct.unpack("<4f", self.read("o4/0.bin")),
                             (2, 4, 6, 8))
            os.remove("o4/0.bin")


if os.environ["CALX_PLUGIN"] == "calx":  # others do not interpret
    class Interpreted(program.Case):
        def test_what_is_interpreted_is_told(self):
            text = """\
func.func @main() -> tensor<%dx%dxf32> {
  %%0 = stablehlo.iota dim = 1 : tensor<%dx%dxcomplex<f32>>
  %%1 = stablehlo.cholesky %%0, lower = true : tensor<%dx%dxcomplex<f32>>
  %%2 = stablehlo.real %%1 : (tensor<%dx%dxcomplex<f32>>) -> tensor<%dx%dxf32>
  return %%2 : tensor<%dx%dxf32>
}
"""
            told = {}
            for n in 8, 9:
                _, told[n] = self.expect(0, "hlo", "run", "-",
                                         stdin=text % ((n,) * 12),
                                         env={"CALX_CACHE_DIR": "off"})
            self.assertNotIn("interprets", told[8])
            self.assertIn("the CPU engine interprets cholesky of "
                          "complex<f32>[9,9]: slow", told[9])


class Devices(program.Case):
    def test_devices(self):
        out, _ = self.expect(0, "devices")
        self.assertIn(os.environ["CALX_PLUGIN"], out)
        for piece in ["stablehlo_current_version", "xla:0",
                      "kind:         cpu"]:
            self.assertIn(piece, out)
        self.assertRegex(out, "platform:         (calx_)?cpu\n")
        out, _ = self.expect(0, "devices", env={"CPU_NUM_DEVICES": "3"})
        self.assertIn("xla:2", out)
        self.assertNotIn("xla:3", out)

    def test_no_topology(self):
        self.write("add", ADD)
        self.complains(4, "opology", "hlo", "compile", "add", "--topology",
                       "v5e:2x2", "--plugin", os.environ["CALX_PLUGIN"])


if __name__ == "__main__":
    program.main()
