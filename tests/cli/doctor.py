"""calx doctor: what it finds, on machines that are folders, and on this one.

A folder with proc, dev, sys and etc stands for a machine (--root). Processes that
are ended are real ones: they hold a file that is called libtpu.so.
"""

import mmap
import os
import pty
import re
import resource
import signal
import subprocess
import sys
import time
import unittest

import program
from program import CALX, ROGUE

SOURCES = os.path.abspath(sys.argv[3])
TICKS = os.sysconf("SC_CLK_TCK")

# Holds the file that it is given, says so, and does not end by SIGTERM where
# that is asked for.
HOLDER = """\
import mmap, os, signal, sys, time
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
held = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 0)
print("held", flush=True)
time.sleep(600)
"""


class Doctor(program.Case):
    def setUp(self):
        super().setUp()
        for folder in ("m/proc", "m/dev/shm", "m/etc", "m/sys", "m/tmp", "home",
                       "plugins"):
            os.makedirs(folder)
        self.write("m/proc/uptime", "100000.00 1.00\n")
        self.write("m/proc/meminfo", "MemTotal: 16000000 kB\n"
                   "MemAvailable: 9000000 kB\n")
        self.write("m/etc/os-release", 'PRETTY_NAME="A System 7"\nID=x\n')
        self.write("m/proc/cpuinfo",
                   "model name\t: A Processor\nflags\t\t: fpu avx2 fma ht\n")
        self.env = {"CALX_PLUGIN_DIR": os.path.abspath("plugins"),
                    "HOME": os.path.abspath("home"), "XDG_CACHE_HOME": ""}

    def doctor(self, code, *options, root="m", env=None, **more):
        out, _ = self.expect(code, "doctor", "--root", root, *options,
                             env={**self.env, **(env or {})}, **more)
        found, _, self.report = out.partition("---- report, for an issue ----\n")
        self.found = found.splitlines()
        return found

    def check(self, verdict, *pieces):
        """A line of this verdict has all these pieces."""
        for line in self.found:
            if line.startswith(verdict + " ") and all(p in line for p in pieces):
                return
        self.fail(f"no line '{verdict}' with {pieces}:\n"
                  + "\n".join(self.found))

    def process(self, pid, command, *, maps="", fds=(), start=50000.0, parent=1,
                cgroup="0::/user.slice/x.scope\n"):
        folder = f"m/proc/{pid}"
        os.makedirs(folder + "/fd")
        times = " ".join(["0"] * 17)
        self.write(folder + "/stat",
                   f"{pid} (a) b) S {parent} {times} {int(start * TICKS)} 0 0\n")
        self.write(folder + "/cmdline", "\0".join(command) + "\0")
        self.write(folder + "/maps", maps)
        self.write(folder + "/cgroup", cgroup)
        for number, path in enumerate(fds):
            os.symlink(path, f"{folder}/fd/{number}")


class Well(Doctor):
    def test_nothing_is_wrong(self):
        self.process(7, ["bash"], fds=["/dev/pts/0", "/dev/vfio/vfio"],
                     maps="55-56 r-xp 0 fe:00 1   /usr/lib/libc.so.6\n")
        self.doctor(0)
        self.check("ok", "processes: none holds a device")
        self.check("ok", "plugins: calx: 1 device of kind 'cpu'")
        self.check("ok", "variables: ")
        self.check("ok", "cache: ", "will be made")
        self.check("ok", "memory: 15.26GB, available 8.58GB")
        self.assertFalse(os.path.exists("home/.cache"))

    def test_report(self):
        env = {"CALX_TOKEN": "hush", "TPU_API_KEY": "hush",
               "CALX_MNIST_MIRROR": "https://me:hush@host/x,http://h/y@z",
               "CALX_QUIET": "1", "UNRELATED": "no", "CALX_JOB": "a\x1b[31mb"}
        self.doctor(0, env=env)
        for piece in ("calx: ", "kernel: Linux ", "distribution: A System 7\n",
                      "processor: A Processor, ", "; avx2 fma\n",
                      "chosen: calx (by what the machine has)\n", "  PJRT 0.",
                      "libcalx_jit.so", "memory: 15.26GB", "ulimit -n: ",
                      "  CALX_QUIET=1\n", "  CALX_TOKEN is set\n",
                      "  TPU_API_KEY is set\n", "  CALX_JOB=a [31mb\n",
                      "  CALX_MNIST_MIRROR=https://…@host/x,http://h/y@z\n",
                      "findings: 0 wrong\n---- end of the report ----\n"):
            self.assertIn(piece, self.report)
        for piece in "hush", "UNRELATED", "\x1b":
            self.assertNotIn(piece, self.report)

    def test_usage(self):
        self.complains(2, "need --kill", "doctor", "--yes")
        self.complains(2, "need --kill", "doctor", "--pid", "1")
        self.complains(2, "not for those of --root", "doctor", "--kill",
                       "--yes", "--root", "m")
        self.complains(2, "standard input is no terminal", "doctor", "--kill")
        out, _ = self.expect(0, "doctor", "--help")
        self.assertIn("Exit status: 0 nothing is wrong, 1", out)
        # A machine without anything is no reason to fail.
        self.doctor(0, root="nowhere")


class Processes(Doctor):
    def test_holders(self):
        self.process(20, ["python3", "train.py", "--lr", "0.1"], start=99400.0,
                     maps="7f-80 r-xp 0 fe:00 1   /lib/libtpu.so (deleted)\n"
                          "7f-80 r--p 0 fe:00 1   /lib/libtpu.so (deleted)\n",
                     fds=["/dev/accel0", "/dev/accel0", "/dev/accel1"])
        self.process(21, ["./train"], parent=20, fds=["/dev/vfio/3"])
        self.process(22, ["nv"], fds=["/dev/nvidia0", "/dev/nvidiactl"],
                     cgroup="0::/system.slice/nv.service\n")
        self.doctor(1)
        self.check("wrong", "20 holds /lib/libtpu.so (deleted), /dev/accel",
                   "/dev/accel0", "/dev/accel1", ": 'python3 train.py --lr 0.1'"
                   ", of user ", ", for 10 min (what started it has ended)",
                   "calx doctor --kill")
        self.check("wrong", "21 holds /dev/vfio/3: './train'", "for 13 h")
        self.check("note", "22 holds /dev/nvidia", "/dev/nvidiactl", ": 'nv'",
                   "systemctl stop nv.service")
        self.assertIn("findings: 2 wrong", self.report)

    def test_strange_proc(self):
        """What is cut, missing, huge or fit for a terminal only after work."""
        self.process(30, ["\x1b[2Jx", "é" * 400], fds=["/dev/accel0"])
        os.makedirs("m/proc/31")
        self.write("m/proc/31/stat", "31 (x")
        os.makedirs("m/proc/32/fd")
        self.write("m/proc/32/stat", "")
        self.process(33, ["x"], maps="/" * (3 << 20))
        self.process(0, ["x"], fds=["/dev/accel0"])
        out = self.doctor(1)
        self.check("wrong", "30 holds /dev/accel0: ' [2Jx é")
        self.assertNotIn("\x1b", out)
        self.assertEqual(out.count(" holds "), 1)

    def test_processes_of_others(self):
        self.process(40, ["theirs"])
        os.chmod("m/proc/40/fd", 0)
        self.doctor_as_nobody(0)
        self.check("note", "1 of other users are not shown to this one")

    def doctor_as_nobody(self, code):
        """As a user who is not root, who may read all."""
        os.chmod(".", 0o755)
        who = {"user": 65534, "group": 65534} if os.geteuid() == 0 else {}
        done = subprocess.run([CALX, "doctor", "--root", "m"],
                              capture_output=True, text=True, timeout=300,
                              env={**os.environ, "CALX_CACHE_DIR": "off",
                                   "CALX_PLUGIN_DIR": "/usr"}, **who)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.found = done.stdout.splitlines()

    def test_rights(self):
        self.write("m/dev/accel0", "")
        os.chmod("m/dev/accel0", 0)
        self.doctor_as_nobody(1)
        self.check("wrong", "devices: /dev/accel0 may not be opened by this "
                   "user: Permission denied, group ", "mode 0000", "usermod")


class Kill(Doctor):
    def hold(self, *options):
        self.write("libtpu.so", b"x" * 4096)
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, "libtpu.so", *options],
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "held\n")
        return process

    # Only what the test has started: other processes of the machine are not
    # ours.
    def kill(self, pid, *options):
        done = subprocess.run([CALX, "doctor", "--kill", "--pid", str(pid),
                               *options], text=True, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=300,
                              env={**os.environ, **self.env})
        self.found = done.stdout.splitlines()
        return done

    def test_it_is_found_and_ended(self):
        process = self.hold()
        begin = time.monotonic()
        self.kill(process.pid, "--yes")
        # In a moment: the holder does not wait for the SIGKILL.
        self.assertLess(time.monotonic() - begin, 30)
        self.check("wrong", f"{process.pid} holds ", "libtpu.so: '",
                   "calx doctor --kill")
        self.check("ok", f"{process.pid} has ended")
        self.assertEqual(process.wait(timeout=10), -signal.SIGTERM)

    def test_one_that_ignores_the_signal(self):
        process = self.hold("stubborn")
        self.kill(process.pid, "--yes")
        self.check("ok", f"{process.pid} has ended")
        self.assertEqual(process.wait(timeout=10), -signal.SIGKILL)

    def test_without_a_terminal_nothing_happens(self):
        process = self.hold()
        done = self.kill(process.pid)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--yes ends them without asking", done.stderr)
        self.assertIsNone(process.poll())

    def ask(self, pid, answer):
        """The doctor on a terminal, and what is answered there."""
        main, other = pty.openpty()
        self.addCleanup(os.close, main)
        with open("out", "w") as out, open("err", "w") as err:
            run = subprocess.Popen([CALX, "doctor", "--kill", "--pid", str(pid)],
                                   stdin=other, stdout=out, stderr=err,
                                   env={**os.environ, **self.env})
            os.close(other)
            for _ in range(6000):
                if "[y/N]" in self.read("err").decode():
                    break
                time.sleep(0.01)
            os.write(main, answer)
            run.wait(timeout=120)
        self.found = self.read("out").decode().splitlines()
        return self.read("err").decode()

    def test_asking(self):
        process = self.hold()
        for answer in b"\n", b"n\n", b"yep\n", b"\x04":
            err = self.ask(process.pid, answer)
            self.assertIn(f"end {process.pid}? [y/N] ", err)
            self.check("note", "none was ended")
            self.assertIsNone(process.poll())
        self.ask(process.pid, b"y\n")
        self.check("ok", f"{process.pid} has ended")
        self.assertEqual(process.wait(timeout=10), -signal.SIGTERM)

    def test_what_started_it_is_left_alone(self):
        """The parent holds the device, as a notebook does."""
        self.write("libtpu.so", b"x" * 4096)
        with open("libtpu.so", "r+b") as file:
            held = mmap.mmap(file.fileno(), 0)
            self.kill(os.getpid(), "--yes")
            self.check("wrong", f"{os.getpid()} holds ",
                       "(this command was started from it)")
            self.check("note", "there is none to end")
            held.close()

    def test_one_that_holds_nothing(self):
        """Only what is listed is ended."""
        other = subprocess.Popen(["sleep", "600"])
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        self.kill(other.pid, "--yes")
        self.check("note", "there is none to end")
        self.assertIsNone(other.poll())


class Plugins(Doctor):
    def test_one_that_crashes_hangs_or_refuses(self):
        env = {"CALX_PLUGIN": ROGUE}
        for how, pieces in {
                "crash-at-start": ["ended its process when asked 'devices' "
                                   "(signal 11)"],
                "hang-at-start": ["did not answer 'devices' within 2 s"],
                "no-client": ["rogue: no devices; at all"],
                "": ["rogue: refused"]}.items():
            self.doctor(1, "--timeout", "2" if "hang" in how else "60",
                        env={**env, "ROGUE": how})
            self.check("wrong", f"plugins: {ROGUE}: ", *pieces)
            if "hang" not in how:  # two seconds may be few for a compilation
                self.check("ok", "plugins: calx: 1 device")
            self.assertIn(f"chosen: {ROGUE} (by the environment)", self.report)
            self.assertIn("  PJRT 0.106\n", self.report)

    def test_plugins_that_are_not_there(self):
        self.doctor(1, env={"PJRT_DEVICE": "TPU"})
        self.check("wrong", "plugins: chosen: plugin 'tpu' was not found; "
                   "looked for ", "as PJRT_DEVICE says")
        self.assertIn("plugin cuda: not found\n", self.report)
        self.doctor(1, env={"CALX_PLUGIN": "abacus"})
        self.check("wrong", "no plugin is called 'abacus'")
        # The machine has a card, and its plugin is missing.
        self.write("m/dev/nvidia0", "")
        self.doctor(1)
        self.check("wrong", "an NVIDIA card", "is not used: its plugin 'cuda' "
                   "was not found")
        self.doctor(1, env={"PJRT_NAMES_AND_LIBRARY_PATHS":
                            f"my:{ROGUE},bad:/nowhere.so",
                            "CALX_PLUGIN": "calx"})
        self.check("wrong", "plugins: my: ", "rogue: refused")
        self.check("wrong", "plugins: bad: ", "No such file")

    def test_libraries(self):
        self.doctor(1, env={"CALX_JIT": "/nowhere/libcalx_jit.so"})
        self.check("wrong", "plugins: calx: ", "(libcalx_jit.so) does not load: "
                   "/nowhere/libcalx_jit.so: cannot open", "beside libcalx.so")
        self.check("wrong", "CALX_JIT: there is no '/nowhere/libcalx_jit.so'")
        os.makedirs("lib")
        for name in "libLLVM.so.19.1", "libLLVM-19.so.1":
            self.write("lib/" + name, "no library")
        env = {"LD_LIBRARY_PATH": os.path.abspath("lib")}
        self.doctor(1, env=env)
        self.check("wrong", "plugins: calx: ", "libLLVM",
                   "-> apt-get install libllvm19")
        os.unlink("lib/libLLVM.so.19.1")
        os.unlink("lib/libLLVM-19.so.1")
        self.write("lib/libdnnl.so.2", "no library")
        self.doctor(0, env=env)
        self.check("note", "libdnnl.so.2 does not load",
                   "-> apt-get install libdnnl2")


class Variables(Doctor):
    def test_misspelt(self):
        self.doctor(1, env={"CALX_PLUGN": "1", "CALX_RECOMPLIE": "1",
                            "CALX_WHATEVER_ELSE": "1", "PJRT_DEVICES": "TPU",
                            "CPU_NUM_DEVICE": "4", "PJRT_OTHER_THING": "1"})
        for name, meant in {"CALX_PLUGN": "CALX_PLUGIN",
                            "CALX_RECOMPLIE": "CALX_RECOMPILE",
                            "PJRT_DEVICES": "PJRT_DEVICE",
                            "CPU_NUM_DEVICE": "CPU_NUM_DEVICES"}.items():
            self.check("wrong", f"{name} is none that calx reads -> is {meant} "
                       "meant?")
        self.check("wrong", "CALX_WHATEVER_ELSE is none that calx reads -> "
                   "unset it")
        self.assertNotIn("PJRT_OTHER_THING", "".join(self.found))

    def test_all_that_the_sources_read_are_known(self):
        names, public = set(), ""
        for folder, _, files in os.walk(SOURCES):
            place = os.path.relpath(folder, SOURCES).split(os.sep)[0]
            if place not in ("src", "plugin", "cli", "include"):
                continue
            for name in files:
                with open(os.path.join(folder, name)) as file:
                    text = file.read()
                if place == "include":
                    public += text
                elif name.startswith("doctor_"):
                    continue
                else:
                    names.update(re.findall(r'"(CALX_[A-Z0-9_]+)"', text))
        # What is a macro, an enumerator, or the engine's symbols' version.
        names.discard("CALX_CPU_0")
        names -= set(re.findall(r"(?:#define |\n  )(CALX_[A-Z0-9_]+)", public))
        self.assertGreater(len(names), 40)
        out = self.doctor(1, env=dict.fromkeys(names, "1"))
        self.assertNotIn("is none that calx reads", out)

    def test_values(self):
        wrong = {"CPU_NUM_DEVICES": ("two", "a number from 1 to 4096"),
                 "CALX_PORT": ("70000", "a number from 0 to 65535"),
                 "CALX_PROCESSES": ("0", "a number from 1 to 4096"),
                 "CALX_PENDING_LIMIT": ("-1", "a number from 0 on"),
                 "CALX_HEARTBEAT_S": ("5s", "a number of seconds"),
                 "CALX_CACHE_SIZE": ("2 GB", "bytes, as 500M or 2G"),
                 "CALX_RECOMPILE": ("eror", "one of error"),
                 "CALX_MPI": ("lam", "one of mpich,openmpi"),
                 "CALX_DEBUG": ("nan,nam", "one of handles,indices,")}
        self.doctor(1, env={name: value for name, (value, _) in wrong.items()})
        for name, (value, wanted) in wrong.items():
            self.check("wrong", f"variables: {name} is '{value}' -> {wanted}")
        self.doctor(1, env={"CALX_PLUGIN_DIR": "/nowhere"})
        self.check("wrong", "CALX_PLUGIN_DIR: there is no '/nowhere'")
        self.doctor(0, env={"CPU_NUM_DEVICES": "2", "CALX_HEARTBEAT_S": "0",
                            "CALX_CACHE_SIZE": "500M", "CALX_PENDING_LIMIT": "9",
                            "CALX_DEBUG": "nan,1", "CALX_RECOMPILE": "error"})
        self.check("ok", "plugins: calx: 2 devices")

    def test_devices(self):
        self.doctor(0, env={"CALX_PLUGIN": "calx", "PJRT_DEVICE": "TPU"})
        self.check("note", "CALX_PLUGIN=calx wins over PJRT_DEVICE=TPU")
        out = self.doctor(0, env={"CALX_PLUGIN": "calx", "PJRT_DEVICE": "CPU"})
        self.assertNotIn("wins over", out)
        self.write("m/dev/nvidia0", "")
        self.doctor(0, env={"CUDA_VISIBLE_DEVICES": "", "CALX_PLUGIN": "calx"})
        self.check("note", "CUDA_VISIBLE_DEVICES='' hides all cards")

    def test_xrt(self):
        tpu = {"XRT_TPU_CONFIG": "localservice;0;localhost:51011"}
        self.doctor(1, env=tpu)
        self.check("note", "XRT_TPU_CONFIG is of XRT", "PJRT_DEVICE=TPU: set "
                   "that instead")
        self.check("wrong", "plugins: chosen: ", "as XRT_TPU_CONFIG says")
        self.doctor(1, env={**tpu, "PJRT_DEVICE": "CPU"})
        self.check("wrong", "XRT_TPU_CONFIG asks for TPU, PJRT_DEVICE for CPU, "
                   "and the latter wins -> unset XRT_TPU_CONFIG")
        self.doctor(0, env={"XLA_USE_BF16": "1", "PJRT_DEVICE": "CPU",
                            "XRT_SHARD_ORDINAL": "1"})
        self.check("note", "XLA_USE_BF16", "has no effect -> today: "
                   "calx_autocast_begin")
        self.check("note", "XRT_SHARD_ORDINAL", "calx run number the ranks")

    def test_several_processes(self):
        self.doctor(1, env={"CALX_NNODES": "2", "CALX_NODE_RANK": "1"})
        self.check("wrong", "CALX_NNODES is 2, but MASTER_ADDR is not set")
        self.check("note", "CALX_TOKEN")
        self.doctor(1, env={"CALX_NNODES": "2", "CALX_NODE_RANK": "2",
                            "MASTER_ADDR": "h"})
        self.check("wrong", "CALX_NODE_RANK is 2, but CALX_NNODES is 2")
        self.check("note", "MASTER_ADDR is set without MASTER_PORT")
        self.doctor(1, env={"MASTER_ADDR": "10.0.0.1:77"})
        self.check("wrong", "MASTER_ADDR=10.0.0.1 and MASTER_PORT=77")
        self.doctor(1, env={"RANK": "3", "WORLD_SIZE": "2"})
        self.check("wrong", "RANK is 3, but WORLD_SIZE is 2")
        out = self.doctor(0, env={"MASTER_ADDR": "fe80::1", "MASTER_PORT": "7"})
        self.assertNotIn("MASTER", out)
        self.doctor(0, env={"MASTER_PORT": "7"})
        self.check("note", "MASTER_PORT has no effect without MASTER_ADDR")

    def test_tpu(self):
        rows = [
            ({"TPU_PROCESS_BOUNDS": "2x2"}, "TPU_PROCESS_BOUNDS is '2x2' -> "
             "three numbers"),
            ({"TPU_VISIBLE_DEVICES": "0", "TPU_VISIBLE_CHIPS": "1"},
             "TPU_VISIBLE_DEVICES is '0' and TPU_VISIBLE_CHIPS, its name of "
             "today, is '1'"),
            ({"TPU_VISIBLE_CHIPS": "0,1",
              "TPU_CHIPS_PER_PROCESS_BOUNDS": "1,1,1"},
             "TPU_VISIBLE_CHIPS='0,1' names 2, but TPU_CHIPS_PER_PROCESS_BOUNDS"
             "='1,1,1' is for 1"),
            ({"TPU_PROCESS_ADDRESSES": "a:1,b:2", "TPU_PROCESS_BOUNDS": "2,2,1"},
             "TPU_PROCESS_ADDRESSES='a:1,b:2' names 2, but TPU_PROCESS_BOUNDS="
             "'2,2,1' is for 4"),
            ({"CLOUD_TPU_TASK_ID": "4", "TPU_PROCESS_BOUNDS": "2,2,1"},
             "CLOUD_TPU_TASK_ID is 4, but"),
            ({"TPU_WORKER_ID": "2", "TPU_WORKER_HOSTNAMES": "a,b"},
             "TPU_WORKER_ID is 2, but TPU_WORKER_HOSTNAMES='a,b' is for 2"),
            ({"TPU_PROCESS_ADDRESSES": "a:81,b:82", "TPU_PROCESS_PORT": "82",
              "CLOUD_TPU_TASK_ID": "0"},
             "TPU_PROCESS_PORT is 82, but TPU_PROCESS_ADDRESSES has a:81"),
            ({"TPU_LIBRARY_PATH": "/no.so"}, "TPU_LIBRARY_PATH: there is no"),
        ]
        for env, piece in rows:
            self.doctor(1, env=env)
            self.check("wrong", "variables: ", piece)
        self.doctor(0, env={
            "TPU_PROCESS_ADDRESSES": "a:81,b:82", "TPU_PROCESS_PORT": "82",
            "CLOUD_TPU_TASK_ID": "1", "TPU_PROCESS_BOUNDS": "1,2,1",
            "TPU_CHIPS_PER_PROCESS_BOUNDS": "1,1,1", "TPU_VISIBLE_CHIPS": "1",
            "TPU_WORKER_ID": "0", "TPU_WORKER_HOSTNAMES": "a,b"})


class Machine(Doctor):
    def test_lock_file(self):
        self.write("m/tmp/libtpu_lockfile", "")
        self.doctor(1)
        self.check("wrong", "tpu: 'm/tmp/libtpu_lockfile' is there although no "
                   "process has the TPU")
        self.process(20, ["x"], fds=["/dev/accel0"])
        out = self.doctor(1)
        self.assertNotIn("lockfile", out)

    def limited(self, which, value, code):
        def limit():
            hard = resource.getrlimit(which)[1]
            resource.setrlimit(which, (value, hard))
        done = subprocess.run([CALX, "doctor", "--root", "m"], text=True,
                              capture_output=True, timeout=300,
                              preexec_fn=limit,
                              env={**os.environ, **self.env})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.found = done.stdout.splitlines()

    def test_limits(self):
        os.makedirs("m/dev/vfio")
        self.write("m/dev/vfio/0", "")
        self.limited(resource.RLIMIT_MEMLOCK, 4096, 1)
        self.check("wrong", "may pin 4096 bytes of memory", "ulimit -l unlimited")
        self.limited(resource.RLIMIT_NOFILE, 256, 1)
        self.check("note", "may open 256 files")
        # Sanitizers want terabytes.
        self.limited(resource.RLIMIT_AS, 1 << 60, 1)
        self.check("note", f"{1 << 60} bytes of addresses (ulimit -v)")

    def test_memory(self):
        os.makedirs("m/sys/fs/cgroup")
        self.write("m/sys/fs/cgroup/memory.max", "max\n")
        self.doctor(0)
        self.write("m/sys/fs/cgroup/memory.max", "268435456\n")
        self.doctor(1)
        self.check("wrong", "memory: 15.26GB, available 8.58GB, this group's "
                   "limit 256.00MB: too little")
        os.rmdir("m/dev/shm")
        self.doctor(1)
        self.check("note", "there is no /dev/shm")

    def test_cache(self):
        self.doctor(0, env={"CALX_CACHE_DIR": "off"})
        self.check("note", "cache: there is none")
        os.makedirs("mine", 0o700)
        self.write("mine/" + "0" * 32 + ".calxprog", "x" * 2048)
        self.doctor(0, env={"CALX_CACHE_DIR": "mine"})
        self.check("ok", "cache: 'mine' has 1 file, 2.00KB of at most 2.00GB")
        os.chmod("mine", 0o777)
        self.doctor(1, env={"CALX_CACHE_DIR": "mine"})
        self.check("wrong", "cache: ", "others may write", "-> CALX_CACHE_DIR")
        self.write("file", "")
        self.doctor(1, env={"CALX_CACHE_DIR": "file/x"})
        self.check("wrong", "cache: 'file' cannot be written")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
