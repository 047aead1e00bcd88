"""calx cache: what is kept is shown and removed, and nothing else."""

import fcntl
import os
import subprocess
import time
import unittest

import program
from program import ROGUE as ENTRIES  # the second argument

DAY = 86400


def key(n):
    return f"{n:032x}"[::-1]


class Cache(program.Case):
    def setUp(self):
        super().setUp()
        os.mkdir("cache", 0o700)

    def path(self, n):
        return f"cache/{key(n)}.calxprog"

    def entry(self, n, age=0, plugin="tpu", platform="v5", place="a.c:7",
              size=100):
        subprocess.run([ENTRIES, "cache", os.path.basename(self.path(n)),
                        plugin, platform, place, str(size)], check=True)
        return self.aged(self.path(n), age)

    def aged(self, path, age):
        then = time.time() - age
        os.utime(path, (then, then))
        return path

    def list(self, *options, **kwargs):
        out, err = self.expect(0, "cache", "list", *options, **kwargs)
        self.assertEqual(err, "")
        return out.splitlines()

    def clear(self, *options, **kwargs):
        out, err = self.expect(0, "cache", "clear", *options, **kwargs)
        self.assertEqual(err, "")
        return out

    def size(self, *paths):
        return sum(os.path.getsize(p) for p in paths)


class List(Cache):
    def test_lines(self):
        paths = [self.entry(1, 100, "xla_cpu", "cpu", "train.c:31"),
                 self.entry(2, 3 * DAY + 60, size=5000),
                 self.entry(3, 2 * 3600 + 60), self.entry(4, 1e9)]
        *lines, total = self.list("--dir", "cache")
        ages = [["1", "min"], ["2", "h"], ["3", "d"], ["11574", "d"]]
        order = [1, 3, 2, 4]  # the last used first
        for line, n, age in zip(lines, order, ages, strict=True):
            words = line.split()
            self.assertEqual(words[0], key(n)[:12])
            self.assertEqual(words[1], str(self.size(self.path(n))))
            self.assertEqual(words[2:4], age)
        self.assertEqual(lines[0].split()[4:], ["xla_cpu/cpu", "train.c:31"])
        self.assertEqual(lines[1].split()[4:], ["tpu/v5", "a.c:7"])
        self.assertEqual(total, f"4 files, {self.size(*paths)} bytes in cache; "
                         f"CALX_CACHE_SIZE is {2 << 30}")

    def test_empty(self):
        self.assertEqual(len(self.list("--dir", "cache")), 1)
        self.assertIn("0 files, 0 bytes", self.list("--dir", "cache")[0])

    def test_where(self):
        self.entry(1)
        here = os.getcwd()
        for env in {"CALX_CACHE_DIR": "cache"}, {
                "CALX_CACHE_DIR": "", "XDG_CACHE_HOME": f"{here}/x"}, {
                "CALX_CACHE_DIR": "", "XDG_CACHE_HOME": "", "HOME": f"{here}/h"}:
            for folder in "x/calx", "h/.cache/calx":
                os.makedirs(folder, exist_ok=True)
                if not os.path.lexists(f"{folder}/programs"):
                    os.symlink(f"{here}/cache", f"{folder}/programs")
            lines = self.list(env=env)
            self.assertEqual(len(lines), 2, env)
        self.complains(5, "there is no cache", "cache", "list",
                       env={"CALX_CACHE_DIR": "off"})
        self.complains(5, "there is no cache", "cache", "list",
                       env={"CALX_CACHE_DIR": "", "XDG_CACHE_HOME": "",
                            "HOME": ""})

    def test_damaged(self):
        self.entry(1, 50)
        whole = self.read(self.path(1))
        flipped = bytearray(whole)
        flipped[-1] ^= 1
        sizes = bytearray(whole)
        sizes[12:16] = b"\xff" * 4
        huge = bytearray(whole)
        huge[32:56] = b"\xff" * 24
        for i, data in enumerate([b"", b"x", whole[:55], whole[:56], whole[:-1],
                                  whole + b"x", flipped, sizes, huge,
                                  b"X" + whole[1:], bytes(1000)]):
            self.write(self.path(2), bytes(data))
            lines = self.list("--dir", "cache")
            self.assertEqual(len(lines), 3, i)
            self.assertEqual(lines[0].split()[-1], "damaged", i)
            self.assertIn("a.c:7", lines[1])
        other = bytearray(whole)
        other[8] = 1
        self.write(self.path(2), bytes(other))
        self.assertIn("of another format", self.list("--dir", "cache")[0])
        self.assertIn("removed 2 files", self.clear("--dir", "cache"))

    def test_larger_than_any(self):
        with open(self.path(1), "wb") as file:
            file.truncate(3 << 30)
        lines = self.list("--dir", "cache")
        self.assertIn("damaged: ", lines[0])
        self.assertIn(str(3 << 30), lines[0])

    def test_labels_that_play_tricks(self):
        self.entry(1, place="\x1b[2J\nnext\tline")
        self.entry(2, place="p" * 1000, plugin="", platform="")
        lines = self.list("--dir", "cache")
        self.assertEqual(len(lines), 3)
        self.assertNotIn("\x1b", "".join(lines))
        self.assertTrue(any(" /  " + "p" * 255 in line for line in lines))
        self.assertNotIn("p" * 256, "".join(lines))

    def test_not_finished(self):
        self.write(self.path(1) + ".123-4", "x")
        lines = self.list("--dir", "cache")
        self.assertIn("not finished", lines[0])
        self.assertIn("1 file, 1 bytes", lines[1])

    def test_claims(self):
        claim = self.write(self.path(1) + ".claim", "4711\n")
        lines = self.list("--dir", "cache")
        self.assertIn("left by a process that died", lines[0])
        with open(claim, "r+") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            lines = self.list("--dir", "cache")
            self.assertIn("being compiled by process 4711", lines[0])
            self.assertIn("removed 0 files", self.clear("--dir", "cache"))
            file.truncate(0)
            lines = self.list("--dir", "cache")
            self.assertTrue(lines[0].endswith("being compiled"))
        self.assertIn("removed 1 file", self.clear("--dir", "cache",
                                                   "--older-than", "3"))
        self.assertEqual(os.listdir("cache"), [])


class Clear(Cache):
    # Whose names are not ours, or that are no files.
    OTHERS = ["README", f"{key(1)}", f"{key(1)}.calxprog.", f"{key(1)}.calxprogs",
              f"{key(1)}.calxprog.1-", f"{key(1)}.calxprog.-1",
              f"{key(1)}.calxprog.1-2x", f"{key(1)}.calxprog.1-2-3",
              f"{'A' * 32}.calxprog", f"{key(1)[1:]}.calxprog",
              f"{key(1)}0.calxprog", f"x{key(1)}.calxprog",
              f"{key(1)}.calxprog." + "1" * 90 + "-1", ".calxprog"]

    def test_all(self):
        paths = [self.entry(n, n * DAY) for n in range(1, 4)]
        paths.append(self.write(self.path(9), "damaged"))
        bytes_ = self.size(*paths)
        self.assertEqual(self.clear("--dir", "cache"),
                         f"removed 4 files, {bytes_} bytes from cache\n")
        self.assertEqual(os.listdir("cache"), [])
        self.assertEqual(self.clear("--dir", "cache"),
                         "removed 0 files, 0 bytes from cache\n")

    def test_older_than(self):
        kept = [self.entry(1), self.entry(2, 2.9 * DAY)]
        gone = [self.entry(3, 3.1 * DAY), self.entry(4, 300 * DAY)]
        bytes_ = self.size(*gone)
        env = {"CALX_CACHE_DIR": "cache"}
        self.assertEqual(self.clear("--older-than", "3", env=env),
                         f"removed 2 files, {bytes_} bytes from cache\n")
        self.assertEqual([os.path.exists(p) for p in kept + gone],
                         [True, True, False, False])

    def test_others_stay(self):
        for name in self.OTHERS:
            self.aged(self.write(f"cache/{name}", "x"), 10 * DAY)
        os.mkdir(self.path(5))
        os.symlink("README", self.path(6))
        os.mkfifo(self.path(7))
        self.entry(8)
        self.assertEqual(len(self.list("--dir", "cache")), 2)
        self.assertIn("removed 1 file,", self.clear("--dir", "cache"))
        self.assertEqual(sorted(os.listdir("cache")),
                         sorted([*self.OTHERS] + [os.path.basename(self.path(n))
                                                  for n in (5, 6, 7)]))

    def test_not_finished(self):
        fresh = self.write(self.path(1) + ".123-4", "x")
        old = self.aged(self.write(self.path(1) + ".123-5", "x"), 3700)
        self.assertIn("removed 1 file, 1 bytes", self.clear("--dir", "cache"))
        self.assertEqual(os.path.exists(fresh), True)
        self.assertEqual(os.path.exists(old), False)

    def test_folders_that_are_refused(self):
        self.entry(1)
        self.write("file", "x")
        for command in "list", "clear":
            self.complains(5, "'nowhere'", "cache", command, "--dir", "nowhere")
            self.complains(5, "'file'", "cache", command, "--dir", "file")
            self.complains(5, "there is no folder ''", "cache", command,
                           "--dir", "")
            for mode in 0o770, 0o702:
                os.chmod("cache", mode)
                self.complains(5, "others may write", "cache", command, "--dir",
                               "cache")
            os.chmod("cache", 0o700)
            if os.geteuid() == 0:  # only root can give a folder away
                os.chown("cache", 12345, 12345)
                self.complains(5, "not this user's own", "cache", command,
                               "--dir", "cache")
                os.chown("cache", 0, 0)
        self.assertTrue(os.path.exists(self.path(1)))

    def test_cannot_remove(self):
        self.entry(1)
        os.chmod("cache", 0o500)
        self.addCleanup(os.chmod, "cache", 0o700)
        words = [program.CALX, "cache", "clear", "--dir", "cache"]
        if os.geteuid() == 0:  # whom no mode stops, but without this right
            words = ["setpriv", "--bounding-set=-dac_override", *words]
        done = subprocess.run(words, capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("cannot remove", done.stderr)


if __name__ == "__main__":
    program.main()
