"""What Lightning's page on TPUs lists, on purpose: its troubles and its reasons for
slow training; and that docs/troubleshooting.md has what is printed then."""

import os
import re
import subprocess
import sys
import unittest

import program
from program import CALX

TROUBLES, REASONS, PAGE = (os.path.abspath(path) for path in sys.argv[2:5])

with open(PAGE) as page:
    TEXT = page.read()


class Case(program.Case):
    def run_program(self, path, *arguments, code=0, **env):
        done = subprocess.run([path, *arguments], capture_output=True, text=True,
                              timeout=600,
                              env={**os.environ, "CALX_QUIET": "1",
                                   "CALX_CACHE_DIR": "off", **env})
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def printed(self, text, *pieces):
        """All of it is printed, and the page has it."""
        for piece in pieces:
            self.assertIn(piece, text)
            self.assertIn(piece, TEXT)


class Troubles(Case):
    def test_no_device(self):
        os.makedirs("empty")
        env = {"CALX_PLUGIN": "", "CALX_PLUGIN_DIR": os.path.abspath("empty"),
               "TPU_LIBRARY_PATH": "/nowhere/libtpu.so"}
        # Without a configuration it works.
        self.run_program(TROUBLES, "device", **env)
        if os.path.exists("/usr/lib/libtpu.so"):
            return
        for name, value in {"PJRT_DEVICE": "TPU", "XRT_TPU_CONFIG":
                            "localservice;0;localhost:51011"}.items():
            err = self.run_program(TROUBLES, "device", code=1, **env,
                                   **{name: value})
            self.printed(err, "plugin 'tpu' was not found; looked for ",
                         "; `./dev setup --engines` fetches it, or set "
                         "CALX_PLUGIN to its path; as ")
            self.assertIn(f"; as {name} says (NOT_FOUND)", err)

    def test_used_before_the_launch(self):
        for env in {"CPU_NUM_DEVICES": "8"}, {"CALX_PROCESSES": "8"}:
            err = self.run_program(TROUBLES, "launch", code=1, **env)
            self.printed(err, "Runtime is already initialized. Do not use the XLA "
                         "device before calling calx_launch")

    def test_no_tensor(self):
        err = self.run_program(TROUBLES, "field", code=1)
        self.printed(err, "dataset: field 0, 'meta', has no such dtype as 99 "
                     "(INVALID_ARGUMENT)")

    def test_metrics_report(self):
        err = self.run_program(REASONS, "batch", CALX_METRICS_FILE="STDERR")
        self.printed(err, "Metric: CompileTime\n  TotalSamples: 2\n",
                     "Counter: UncachedCompile\n  Value: 2\n")

    # The doctor and the pods have tests of their own; here is what they print.
    def test_the_page_has_the_others(self):
        for piece in [" holds /lib/libtpu.so, /dev/accel0: ",
                      "; a TPU is for one process -> calx doctor --kill",
                      "/tmp/libtpu_lockfile' is there although no process has "
                      "the TPU: one that was killed left it -> rm ",
                      "calx run: this worker trains alone: neither TPU_WORKER_ID "
                      "and TPU_WORKER_HOSTNAMES nor the metadata server tell it "
                      "the others", "No TPU devices were found."]:
            self.assertIn(piece, TEXT)


class Chip(Case):
    def test_no_chip(self):
        if os.path.exists("/dev/accel0"):
            return
        err = self.run_program(TROUBLES, "device", code=1, CALX_QUIET="0",
                               CALX_PLUGIN="", TPU_LIBRARY_PATH=
                               os.environ["CALX_TEST_PLUGIN_TPU"],
                               TPU_LOG_DIR="disabled", XRT_TPU_CONFIG=
                               "localservice;0;localhost:51011")
        self.printed(err, "calx: device: XRT_TPU_CONFIG is of XRT, PyTorch/XLA's "
                     "former runtime, and is taken as PJRT_DEVICE=TPU: set that "
                     "instead\n", "PJRT_Client_Create on plugin 'tpu': TPU "
                     "initialization failed: No jellyfish device found.; `calx "
                     "doctor` looks for the cause (NOT_FOUND)")


class Reasons(Case):
    def train(self, reason):
        """What it printed, and the verdicts of the report by item."""
        err = self.run_program(REASONS, reason, CALX_REPORT="run.json",
                               CALX_QUIET="0")
        out, _ = self.expect(0, "report", "run.json")
        rows = re.findall(r"^(ok|look|slow|\?) +([a-z ]+): (.*)$", out, re.M)
        self.assertEqual(len(rows), 7, out)
        for _, item, _ in rows:
            self.assertIn(f"  {item}: ", TEXT)
        return err, {item: (verdict, fact) for verdict, item, fact in rows}, out

    def test_nothing_is_wrong(self):
        err, rows, _ = self.train("none")
        self.assertNotIn("recompile", err)
        self.assertEqual(rows["reading values"][0], "ok")
        self.assertEqual(rows["changing shapes"][0], "ok")
        self.assertEqual(rows["link to the device"][0], "ok")
        self.assertEqual(rows["ops on the host"][0], "ok")

    def test_small_batch(self):
        _, rows, out = self.train("batch")
        self.assertIn(rows["batch size"][0], ("look", "slow"))
        self.assertIn("while the program does its own part",
                      rows["batch size"][1])
        self.assertIn("a larger one keeps the device busy", out)

    def test_item(self):
        err, rows, out = self.train("item")
        self.printed(err, "TransferFromDeviceTime too frequent: 10 counts during "
                     "10 steps")
        self.assertIn(rows["reading values"][0], ("look", "slow"))
        self.printed(rows["reading values"][1],
                     "60 values read in 60 steps (60 by calx_item)")
        self.assertRegex(out, r"reasons\.c:\d+  60 times, ")

    def test_shapes(self):
        err, rows, out = self.train("shapes")
        self.printed(err, "was f32[255,512], is f32[254,512]")
        self.assertRegex(err, r"recompile at .*reasons\.c:\d+, program 3: randn at")
        self.assertEqual(rows["changing shapes"][0], "slow")
        self.printed(rows["changing shapes"][1],
                     "60 programs in 60 steps, 50 of them after step 10")
        self.assertRegex(out, r"step 3, .*reasons\.c:\d+, .*: randn at .*: was "
                         r"f32\[255,512\], is f32\[254,512\]")

    def test_link(self):
        _, rows, out = self.train("link")
        self.assertIn(rows["link to the device"][0], ("look", "slow"))
        self.printed(rows["link to the device"][1],
                     "120 transfers to the device, 3.75GB in ")
        self.assertIn("upload less", out)

    def test_first_steps_compile(self):
        _, rows, out = self.train("compile")
        self.assertIn(rows["compilation"][0], ("look", "slow"))
        self.printed(rows["compilation"][1], "3 compilations, ", " % of the run)")
        self.assertIn("the disk cache keeps programs for the next run", out)

    def test_interpreted(self):
        err, rows, out = self.train("interpreted")
        self.printed(err, "the CPU engine interprets remainder of f64[1000]: slow")
        self.assertEqual(rows["ops on the host"][0], "look")
        self.printed(rows["ops on the host"][1], "0 ops ran on the host, ",
                     " of the compiled ones are interpreted")
        self.assertIn("write them with other ops", out)

    def test_input(self):
        _, rows, out = self.train("input")
        self.assertEqual(rows["waiting for input"][0], "slow")
        self.printed(rows["waiting for input"][1], "60 batches were waited for, ")
        self.assertIn("(.num_workers)", out)


if __name__ == "__main__":
    # Only the classes that are named.
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]], verbosity=2)
