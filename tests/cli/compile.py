"""calx hlo compile: for TPUs and GPUs that are not here."""

import os
import sys

import program
from program import ADD, WRONG

# An H200 as XLA's CUDA compiler wants it told.
H200 = os.path.abspath(sys.argv[2])


class Compile(program.Case):
    def setUp(self):
        super().setUp()
        self.write("p", ADD.replace("@main", "@add"))

    def numbers(self, out):
        rows = dict(row.split(":") for row in out.splitlines())
        return {name: int(text.split()[0]) for name, text in rows.items()
                if text.strip() != "not told"}

    def test_tpu(self):
        out, _ = self.expect(0, "hlo", "compile", "p", "--topology", "v5e:2x2",
                             "--output", "exe")
        told = self.numbers(out)
        self.assertEqual(told["serialized"], os.path.getsize("exe"))
        self.assertGreater(told["arguments"], 31)
        self.assertGreater(told["serialized"], 1000)

    def test_tpu_refuses(self):
        self.complains(4, "v9:9x9", "hlo", "compile", "p", "--topology",
                       "v9:9x9")
        self.write("bad", ADD.replace("stablehlo.add", "stablehlo.frob"))
        self.complains(4, "frob", "hlo", "compile", "bad", "--topology",
                       "v5e:2x2")

    def test_cuda(self):
        cuda = ["hlo", "compile", "p", "--plugin", "cuda", "--topology", "cuda",
                "--option", "topology=1x1x1", "--option"]
        out, _ = self.expect(0, *cuda, f"target_config=@{H200}")
        self.assertEqual(self.numbers(out)["arguments"], 32)
        self.complains(4, "", *cuda, "target_config=?")
        self.complains(5, "'nowhere'", *cuda, "target_config=@nowhere")

    def test_before_the_plugin(self):
        self.write("bad", "func.func @main(")
        self.complains(3, "bad:1:", "hlo", "compile", "bad", "--topology", "x")
        for name, (text, said) in WRONG.items():
            self.write(name, text)
            self.complains(3, name + said, "hlo", "compile", name,
                           "--topology", "v5e:2x2")
        self.complains(5, "'nowhere'", "hlo", "compile", "nowhere",
                       "--topology", "x")
        self.complains(5, "frob", "hlo", "compile", "p", "--topology", "x",
                       "--plugin", "frob")


if __name__ == "__main__":
    program.main()
