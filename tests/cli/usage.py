"""Commands, options, help, and the plugin that is not there."""

import subprocess

import program
from program import ADD, CALX, ROGUE

COMMANDS = [[], ["devices"], ["hlo"], ["hlo", "print"],
            ["hlo", "convert"], ["hlo", "compile"], ["hlo", "run"], ["cache"], ["cache", "list"], ["cache", "clear"],
            ["run"]]
GROUPS = [[], ["hlo"], ["cache"]]  # that want one more word


class Usage(program.Case):
    def test_help(self):
        for command in COMMANDS:
            for option in "--help", "-h":
                out, err = self.expect(0, *command, option)
                self.assertTrue(
                    out.startswith(" ".join(["usage: calx", *command])), out)
                self.assertEqual(err, "")
                self.assertLessEqual(max(map(len, out.splitlines())), 80)

    def test_help_tells_all_options(self):
        out, _ = self.expect(0, "hlo", "run", "--help")
        for word in ["--input", "--output", "--plugin", "--replicas", "--batch",
                     "--isolate", "--timeout", "{r}", "crashed", "PROGRAM"]:
            self.assertIn(word, out)
        out, _ = self.expect(0, "hlo", "compile", "--help")
        for word in ["--topology", "--plugin", "--option", "--output",
                     "--replicas", "target_config"]:
            self.assertIn(word, out)

    def test_version(self):
        out, _ = self.expect(0, "--version")
        self.assertRegex(out, r"\Acalx \d+\.\d+\.\d+\n\Z")
        self.complains(2, "'more'", "--version", "more")

    def test_nothing_given(self):
        for command in GROUPS:
            _, err = self.expect(2, *command)
            self.assertIn("usage: calx", err)

    def test_unknown_words(self):
        self.complains(2, "there is no command 'frob'", "frob")
        self.complains(2, "there is no option '--frob'", "--frob")
        self.complains(2, "there is no command 'frob'", "hlo", "frob")
        for command in [c for c in COMMANDS if c not in GROUPS]:
            self.complains(2, "there is no option '--frob'", *command,
                           "--frob=1")

    def test_values_of_options(self):
        run = ["hlo", "run", "x.mlir"]
        for n in "0", "-1", "x", "1x", "", "65537", "99999999999999999999":
            self.complains(2, f"found '{n}'", *run, f"--replicas={n}")
        for n in "0", "-1", "1.5":
            self.complains(2, f"found '{n}'", "cache", "clear",
                           f"--older-than={n}")
        batch = ["hlo", "run", "--batch", "--isolate"]
        for n in "0", "-1", "nan", "x", "1x", "", "inf":
            self.complains(2, f"found '{n}'", *batch, "--timeout", n)
        self.complains(2, "--input wants a value", *run, "--input")
        self.complains(2, "--batch takes no value", *run, "--batch=yes")

    def test_words_of_commands(self):
        self.complains(2, "'x'", "devices", "x")
        for command in "list", "clear":
            self.complains(2, "'x'", "cache", command, "x")
        for command in "print", "compile", "run":
            self.complains(2, "'b' is one argument too many", "hlo", command,
                           "a", "b")
        self.complains(2, "FILE is missing", "hlo", "print")
        self.complains(2, "FILE is missing", "hlo", "run")

    def test_options_that_do_not_go_together(self):
        self.complains(2, "--timeout needs --isolate", "hlo", "run", "--batch",
                       "--timeout", "1")
        self.complains(2, "need --batch", "hlo", "run", "x", "--isolate")
        self.complains(2, "--batch", "hlo", "run", "x", "--batch")
        self.complains(2, "--batch", "hlo", "run", "--batch", "--output", "x")
        self.complains(2, "--topology is missing", "hlo", "compile", "x")
        for word in "x", "=x":
            self.complains(2, f"found '{word}'", "hlo", "compile", "x",
                           "--topology", "y", "--option", word)

    def test_double_dash(self):
        self.complains(5, "cannot open '--help'", "hlo", "print", "--",
                       "--help")

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([CALX, "--help"], stdout=full,
                                  stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 5)
        self.assertIn(b"cannot write", done.stderr)


class Devices(program.Case):
    def test_all_is_told(self):
        out, err = self.expect(0, "devices", "--plugin", ROGUE)
        self.assertEqual(err, "")
        for piece in [ROGUE, "0.106", "platform:         rogue",
                      "devices:          1", "xla:0", "not told"]:
            self.assertIn(piece, out)
        self.assertEqual(out.count("not told"), 2)  # memories and statistics

    def test_chosen_by_the_environment(self):
        out, _ = self.expect(0, "devices", env={"CALX_PLUGIN": ROGUE})
        self.assertIn(ROGUE, out)

    def test_no_plugin(self):
        self.complains(5, "nowhere.so", "devices", "--plugin", "./nowhere.so")
        self.complains(5, "frob", "devices", "--plugin", "frob")
        self.write("text.so", "no plugin")
        self.complains(5, "not a plugin", "devices", "--plugin", "./text.so")
        self.complains(5, "no devices", "devices", "--plugin", ROGUE,
                       env={"ROGUE": "no-client"})


class ExitStatus(program.Case):
    """Of hlo run, as far as no program has to run for it."""

    def run_with(self, code, piece, text, *options):
        self.write("p.mlir", text)
        return self.complains(code, piece, "hlo", "run", "p.mlir", "--plugin",
                              ROGUE, *options)

    def test_refused(self):
        self.write("x", bytes(16))
        err = self.run_with(4, "rogue: refused\n", ADD, "--input", "x",
                            "--input", "x")
        self.assertIn("for no reason", err)

    def test_invalid(self):
        self.run_with(3, "p.mlir:1:", "func.func @main(%a: tensor<4xf32")
        self.run_with(3, "p.mlir", "")
        self.run_with(3, "p.mlir", "func.func @a() { return }\n"
                      "func.func @b() { return }\n")

    def test_what_no_file_can_hold(self):
        for what in "tensor<?xf32>", "!stablehlo.token", "tensor<4xindex>":
            text = f"func.func @main(%a: {what}) {{ return }}\n"
            self.run_with(4, " 0 ", text)
        nine = "x".join(["1"] * 9)
        self.run_with(4, "9 dimensions",
                      f"func.func @main(%a: tensor<{nine}xf32>) {{ return }}\n")
        large = "x".join(["4294967296"] * 3)
        self.run_with(3, "has too many elements; in p.mlir",
                      f"func.func @main(%a: tensor<{large}xf32>) {{ return }}\n")

    def test_inputs(self):
        self.write("16", bytes(16))
        self.write("15", bytes(15))
        two = ["--input", "16", "--input"]
        self.run_with(5, "takes 2 arguments, 1 inputs are given", ADD,
                      "--input", "16")
        self.run_with(5, "argument 1 is f32[4] and wants 16 bytes, '15' has 15",
                      ADD, *two, "15")
        self.write("r1.bin", bytes(17))
        # Only the second replica's is wrong; one device is there for one.
        self.run_with(5, "devices", ADD, *two, "r{r}.bin", "--replicas", "2")

    def test_standard_input_and_missing_files(self):
        self.complains(3, "<stdin>:1:", "hlo", "run", "-", "--plugin", ROGUE,
                       stdin="func.func @main(")
        self.complains(5, "cannot open 'nowhere'", "hlo", "run", "nowhere",
                       "--plugin", ROGUE)
        self.complains(5, "nowhere.so", "hlo", "run", "x", "--plugin",
                       "./nowhere.so")


if __name__ == "__main__":
    program.main()
