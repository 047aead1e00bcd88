"""calx hlo run --replicas: devices that work together."""

import os
import struct

import program


def all_reduce(n):
    return f"""\
func.func @main(%a: tensor<2xf32>, %b: tensor<f32>)
    -> (tensor<2xf32>, tensor<f32>) {{
  %0 = "stablehlo.all_reduce"(%a) <{{replica_groups =
      dense<[{list(range(n))}]> : tensor<1x{n}xi64>}}> ({{
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %1 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }}) : (tensor<2xf32>) -> tensor<2xf32>
  return %0, %b : tensor<2xf32>, tensor<f32>
}}
"""


class Replicas(program.Case):
    def setUp(self):
        super().setUp()
        self.write("same", struct.pack("<f", 8))
        for r in range(4):
            self.write(f"in{r}", struct.pack("<2f", r + 1, 10 * r))

    def check(self, folder, n):
        self.assertEqual(sorted(os.listdir(folder)),
                         [f"r{r}" for r in range(n)])
        total = (sum(range(1, n + 1)), 10 * sum(range(n)))
        for r in range(n):
            self.assertEqual(
                struct.unpack("<2f", self.read(f"{folder}/r{r}/0.bin")), total)
            self.assertEqual(self.read(f"{folder}/r{r}/1.bin"),
                             self.read("same"))

    def test_all_reduce(self):
        for n in 2, 4:
            self.write("p", all_reduce(n))
            self.expect(0, "hlo", "run", "p", "--replicas", str(n), "--input",
                        "in{r}", "--input", "same", "--output", f"out{n}")
            self.check(f"out{n}", n)

    def test_printed(self):
        self.write("p", all_reduce(2))
        out, _ = self.expect(0, "hlo", "run", "p", "--replicas", "2", "--input",
                             "in{r}", "--input", "same")
        self.assertEqual(out, "r0/0: f32[2] 3.0, 10.0\nr0/1: f32[] 8.0\n"
                              "r1/0: f32[2] 3.0, 10.0\nr1/1: f32[] 8.0\n")

    def test_batch(self):
        self.write("p", all_reduce(2))
        for options in [], ["--isolate"]:
            out, _ = self.expect(0, "hlo", "run", "--batch", "--replicas", "2",
                                 *options, stdin="p o in{r} same\n" * 2)
            self.assertEqual(out, "ok p\n" * 2)
            self.check("o", 2)

    def test_one_input_is_missing_or_wrong(self):
        self.write("p", all_reduce(2))
        run = ["hlo", "run", "p", "--replicas", "2", "--input", "in{r}",
               "--input", "same"]
        self.write("in1", bytes(9))
        self.complains(5, "argument 0 is f32[2] and wants 8 bytes, 'in1' has 9",
                       *run)
        os.remove("in1")
        self.complains(5, "'in1'", *run)

    def test_groups_of_another_size(self):
        self.write("p", all_reduce(4))
        self.complains(4, "replica", "hlo", "run", "p", "--replicas", "2",
                       "--input", "in{r}", "--input", "same")


if __name__ == "__main__":
    program.main()
