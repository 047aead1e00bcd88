"""calx hlo print: what is read, what is printed, what is refused."""

import program

GENERIC = """\
"builtin.module"() <{sym_name = "m"}> ({
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, \
sym_name = "main"}> ({
  ^bb0(%x: tensor<4xf32>):
    %y = "stablehlo.negate"(%x) : (tensor<4xf32>) -> tensor<4xf32> \
loc("a.c":7:0)
    "func.return"(%y) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
"""


class Print(program.Case):
    def test_printing_is_stable(self):
        self.write("p.mlir", GENERIC)
        first, err = self.expect(0, "hlo", "print", "p.mlir")
        self.assertEqual(err, "")
        self.assertIn('"stablehlo.negate"', first)
        self.assertIn('loc("a.c":7:0)', first)
        second, _ = self.expect(0, "hlo", "print", "-", stdin=first)
        self.assertEqual(first, second)

    def test_no_locations(self):
        out, _ = self.expect(0, "hlo", "print", "-", "--no-locations",
                             stdin=GENERIC)
        self.assertNotIn("loc(", out)
        self.assertIn('"stablehlo.negate"', out)

    def test_syntax(self):
        text = GENERIC.replace('"(%x)', '"(%nowhere)')
        self.write("p.mlir", text)
        err = self.complains(3, "p.mlir:4:", "hlo", "print", "p.mlir")
        rows = err.splitlines()
        caret = next(i for i, row in enumerate(rows) if row.strip() == "^")
        self.assertEqual(rows[caret - 1][rows[caret].index("^"):][:8],
                         "%nowhere")
        self.complains(3, "<stdin>:", "hlo", "print", "-", stdin=text)
        self.complains(3, "<stdin>:1:1", "hlo", "print", "-", stdin="?")
        self.complains(3, "<stdin>", "hlo", "print", "-", stdin="")

    def test_meaning(self):
        text = GENERIC.replace(
            '"stablehlo.negate"(%x) : (tensor<4xf32>) -> tensor<4xf32>',
            '"stablehlo.negate"(%x) : (tensor<4xf32>) -> tensor<5xf32>'
        ).replace('(%y) : (tensor<4xf32>)', '(%y) : (tensor<5xf32>)').replace(
            "-> tensor<4xf32>, sym", "-> tensor<5xf32>, sym")
        self.complains(3, "negate", "hlo", "print", "-", stdin=text)

    def test_missing_file(self):
        self.complains(5, "cannot open 'nowhere'", "hlo", "print", "nowhere")


if __name__ == "__main__":
    program.main()
