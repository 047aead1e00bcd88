"""docs/startup-script.sh, in a folder instead of /, with stand-ins for the programs
that it calls; each says what it was asked for."""

import os
import shutil
import subprocess
import sys
import unittest

import program

SCRIPT = os.path.abspath(sys.argv[2])

# What each stand-in does besides noting its call.
STANDS = {
    "apt-get": "",
    # The metadata of a pod, and a web server.
    "curl": """\
for last; do :; done
case $last in
  http://metadata.google.internal/*/attributes/calx-code) printf %s "$CODE" ;;
  http://metadata.google.internal/*/attributes/calx-data) printf %s "$DATA" ;;
  https://host/train.tar.gz) cp "$ARCHIVE" "$3" ;;
  *) exit 22 ;;
esac
""",
    "gcloud": """\
case $1,$2,$3 in
  storage,cp,gs://bucket/*.tar.gz) cp "$ARCHIVE" "$4" ;;
  storage,rsync,--recursive) echo 1 > "$5/file" ;;
  *) exit 1 ;;
esac
""",
    "python3": """\
[ "$1 $2 $3" = "-m pip install" ] && mkdir -p "$7/libtpu" &&
  echo ELF > "$7/libtpu/libtpu.so"
""",
}


class Startup(program.Case):
    def setUp(self):
        super().setUp()
        os.makedirs("bin")
        for name, text in STANDS.items():
            self.write(f"bin/{name}", f'#!/bin/sh\necho "{name} $*" >> '
                       f'{os.getcwd()}/calls\n{text}')
            os.chmod(f"bin/{name}", 0o755)
        os.makedirs("program")
        self.write("program/train", "#!/bin/sh\necho trained\n")
        os.chmod("program/train", 0o755)
        subprocess.run(["tar", "-czf", "train.tar.gz", "-C", "program", "train"],
                       check=True)
        self.write("calls", "")

    def start(self, code=0, **env):
        self.write("calls", "")
        done = subprocess.run(
            ["bash", SCRIPT], text=True, capture_output=True, timeout=60,
            env={"PATH": os.path.abspath("bin") + ":" + os.environ["PATH"],
                 "ARCHIVE": os.path.abspath("train.tar.gz"),
                 "CALX_ROOT": os.path.abspath("root"),
                 "CODE": "gs://bucket/train.tar.gz", "DATA": "gs://bucket/data",
                 **env})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.calls = self.read("calls").decode()
        return done.stdout

    def test_a_worker_becomes_ready(self):
        self.assertIn("this worker is ready", self.start())
        self.assertEqual(self.read("root/opt/calx/data/file"), b"1\n")
        self.assertEqual(self.read("root/usr/lib/libtpu.so"), b"ELF\n")
        self.assertEqual(subprocess.check_output("root/opt/calx/code/train"),
                         b"trained\n")
        self.assertIn("apt-get -qq -o DPkg::Lock::Timeout=600 install -y ",
                      self.calls)
        self.assertTrue(os.path.exists("root/opt/calx/ready"))
        # After a restart nothing is fetched again.
        self.assertIn("nothing to do", self.start())
        self.assertEqual(self.calls, "")

    def test_by_https_without_data(self):
        self.start(CODE="https://host/train.tar.gz", DATA="")
        self.assertNotIn("gcloud", self.calls)
        self.assertTrue(os.path.exists("root/opt/calx/code/train"))

    def test_an_image_that_has_libtpu(self):
        os.makedirs("root/usr/lib")
        self.write("root/usr/lib/libtpu.so", "its own")
        self.start()
        self.assertNotIn("-m pip", self.calls)
        self.assertEqual(self.read("root/usr/lib/libtpu.so"), b"its own")

    def test_failures_leave_it_not_ready(self):
        self.assertIn("the metadata has no calx-code", self.start(1, CODE=""))
        self.assertIn("neither gs://", self.start(1, CODE="ftp://x"))
        for name in "apt-get", "gcloud", "python3":
            text = self.read(f"bin/{name}")
            shutil.rmtree("root")
            self.write(f"bin/{name}", "#!/bin/sh\nexit 1\n")
            self.start(1)
            self.assertFalse(os.path.exists("root/opt/calx/ready"), name)
            self.assertFalse(os.path.exists("root/opt/calx/code"), name)
            self.write(f"bin/{name}", text)
        good = self.read("train.tar.gz")
        self.write("train.tar.gz", "no archive")
        self.start(2)
        self.assertFalse(os.path.exists("root/opt/calx/code"))
        # What broke off is done again.
        self.write("train.tar.gz", good)
        self.start()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
