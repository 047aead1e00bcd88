"""calx report: a run's numbers as advice; files that are none are refused."""

import copy
import json
import random
import re
import unittest
import xml.etree.ElementTree as ElementTree

import program

PARTS = ["compile", "execute", "upload", "download", "wait", "loader", "sync"]


def step(first, seconds=0.010, n=1, **parts):
    row = dict.fromkeys(PARTS, 0.0)
    row.update({"execute": 0.008}, **parts)
    return dict(row, first=first, n=n, start=first * seconds,
                seconds=seconds * n)


def metric(samples, total, unit="s", **points):
    return dict({"unit": unit, "samples": samples, "sum": total},
                **(points or {"p50": total / samples, "max": total / samples}))


def compilation(number, seconds=0.1, why="", loaded=False):
    return {"at": number * 0.01, "seconds": seconds, "step": number,
            "nodes": 40, "loaded": loaded, "site": "train.c:31", "why": why}


def good():
    """A run of 100 steps that nothing is wrong with."""
    return {
        "calx_report": 1, "version": "0.1.0", "plugin": "calx",
        "platform": "cpu", "rank": 0, "world": 1, "seconds": 2.0,
        "setup": 0.5, "syncs": 101, "compilations": 2, "other_reads": 0,
        "steps": [step(k) for k in range(2, 102)],
        "compiles": [compilation(1), compilation(2)],
        "reads": [{"site": "train.c:40", "count": 10, "early": 0,
                   "seconds": 0.001}],
        "metrics": {"CompileTime": metric(2, 0.2),
                    "ExecuteTime": metric(101, 0.8),
                    "LoaderWait": metric(100, 0.001),
                    "TransferToDeviceTime": metric(200, 0.02),
                    "OutboundData": metric(200, 2e8, "B"),
                    "TransferFromDeviceTime": metric(10, 0.001)},
        "counters": {"MarkStep": 101, "UncachedCompile": 2,
                     "aten::_local_scalar_dense": 10},
    }


ITEMS = ["batch size", "reading values", "changing shapes",
         "link to the device", "compilation", "ops on the host",
         "waiting for input"]


class Report(program.Case):
    def put(self, data):
        return self.write(
            "run.json", data if isinstance(data, str) else json.dumps(data))

    def report(self, data, *options):
        out, err = self.expect(0, "report", self.put(data), *options)
        self.assertEqual(err, "")
        return out

    def verdicts(self, data):
        found = {}
        for line in self.report(data).splitlines():
            for item in ITEMS:
                if line[6:].startswith(item + ": "):
                    found[item] = line.split()[0]
        self.assertEqual(sorted(found), sorted(ITEMS))
        return found

    def refused(self, data, *pieces):
        _, err = self.expect(5, "report", self.put(data))
        for piece in ("while reading 'run.json'", *pieces):
            self.assertIn(piece, err)


class Verdicts(Report):
    def check(self, item, outcome, data):
        found = self.verdicts(data)
        wanted = dict.fromkeys(ITEMS, "ok")
        wanted[item] = outcome
        self.assertEqual(found, wanted)

    def test_good(self):
        self.check("batch size", "ok", good())
        out = self.report(good())
        self.assertIn("run.json, 101 steps in 2 s on calx, cpu; rank 0 of 1",
                      out)
        self.assertIn("a step, on average of 91:", out)
        self.assertRegex(out, r"in all +10\.000 ms +100 %")
        self.assertRegex(out, r"the device works +8\.000 ms +80 %")
        self.assertNotIn("->", out)

    def test_batch_size(self):
        for execute, outcome in ((0.001, "slow"), (0.0055, "look")):
            data = good()
            for row in data["steps"]:
                row["execute"] = execute
            self.check("batch size", outcome, data)
        # What idles for want of input is told there.
        for row in data["steps"]:
            row.update(execute=0.001, loader=0.008)
        self.check("waiting for input", "slow", data)

    def test_own_time(self):
        """A program that sleeps 20 ms a step is not told to enlarge its
        batch; one whose recording takes them is."""
        for record, own in ((0.0005, True), (0.018, False)):
            data = good()
            for row in data["steps"]:
                row.update(seconds=0.0225, execute=0.002, sync=0.001,
                           record=record)
            out = self.report(data)
            self.check("batch size", "slow", data)
            self.assertEqual("larger one" in out, not own)
            self.assertEqual("outside of calx" in out, own)
            part = "the program itself" if own else "calx: recording"
            self.assertRegex(out, part + r".* (21|19)\.")
            facts, advice = out.split("\nadvice:\n")
            self.assertNotIn("->", facts)
            self.assertIn("  batch size -> ", advice)

    def test_reading_values(self):
        data = good()
        data["metrics"]["TransferFromDeviceTime"] = metric(100, 0.001)
        data["reads"][0]["count"] = 100
        self.check("reading values", "look", data)
        for row in data["steps"]:
            row["download"] = 0.004
        self.check("reading values", "slow", data)
        self.assertIn("train.c:40  100 times", self.report(data))
        data = good()
        data["reads"][0]["early"] = 3
        self.check("reading values", "ok", data)
        data["reads"][0]["early"] = 30
        self.check("reading values", "slow", data)
        self.assertIn("30 of them before the sync", self.report(data))

    def test_changing_shapes(self):
        data = good()
        why = "parameter 0 is f32[7,4], it was f32[8,4]"
        data["compiles"].append(compilation(50, why=why))
        data["compilations"] = 3
        self.check("changing shapes", "look", data)
        self.assertIn("step 50, train.c:31, 100 ms: " + why, self.report(data))
        data["compilations"] = 20  # those after the list's end count
        self.check("changing shapes", "slow", data)

    def test_link(self):
        data = good()
        for row in data["steps"]:
            row["upload"] = 0.003
        self.check("link to the device", "look", data)

    def test_compilation(self):
        data = good()
        data["metrics"]["CompileTime"] = metric(2, 1.5)
        self.check("compilation", "slow", data)
        data["counters"]["PersistentCacheHit"] = 2
        self.check("compilation", "look", data)

    def test_fallbacks(self):
        data = good()
        data["counters"]["CpuInterpretedOps"] = 3
        self.check("ops on the host", "look", data)
        data["counters"]["aten::nonzero"] = 5
        self.check("ops on the host", "slow", data)
        self.assertIn("aten::nonzero  5 times", self.report(data))

    def test_input(self):
        data = good()
        for row in data["steps"]:
            row.update(loader=0.0015)
        self.check("waiting for input", "look", data)
        for row in data["steps"]:
            row.update(loader=0.004)
        self.check("waiting for input", "slow", data)


class Texts(Report):
    """Reports as text: PyTorch/XLA's too."""

    def test_old(self):
        text = ("Metric: CompileTime\n    TotalSamples: 202\n"
                "    Counter: 06m09s401ms746.001us\n"
                "    Percentiles: 1%=001ms32.778us; 99%=21s102ms853.173us\n")
        out = self.report(text)
        self.assertIn("a metrics report", out)
        self.assertIn("slow  changing shapes: 202 programs", out)
        self.assertIn("202 compilations, 369 s, the longest 21.1 s", out)
        self.assertIn("?     batch size: nothing was executed", out)

    def test_metrics_file(self):
        text = ("[MetricsData; step=9]\nMetric: ExecuteTime\n"
                "  TotalSamples: 9\n  Accumulator: 009ms000.000us\n"
                "Counter: MarkStep\n  Value: 9\n")
        out = self.report(text)
        self.assertIn("a metrics report of step 9", out)
        self.assertIn("an execution takes 1 ms", out)

    def test_none(self):
        self.refused("", "no metrics report")
        self.refused("hello\n", "no metrics report")
        self.refused("Metric: A\n  Accumulator: 1x\n", "line 2", "no value")


class Html(Report):
    def page(self, data):
        self.report(data, "--html", "out.html")
        with open("out.html", encoding="utf-8") as file:
            return file.read()

    def test_page(self):
        data = good()
        data["compiles"].append(
            compilation(50, why="<script>alert(\"1\")</script> & more"))
        page = self.page(data)
        self.assertEqual(page.count("<svg "), 3)
        self.assertEqual(page.count("<tr><td class=\"v v"), len(ITEMS))
        for stranger in ("<script", "http", "@import", "url("):
            self.assertNotIn(stranger, page)
        self.assertIn("&lt;script&gt;alert(&quot;1&quot;)", page)
        # The plots are well-formed, and inside of their frames.
        for plot in page.split("<svg ")[1:]:
            tree = ElementTree.fromstring(
                "<svg " + plot.split("</svg>")[0] + "</svg>")
            width, height = map(float, tree.get("viewBox").split()[2:])
            for rect in tree.iter("rect"):
                if rect.get("x") is None:
                    continue
                x, y = float(rect.get("x")), float(rect.get("y"))
                self.assertTrue(0 <= x <= width and 0 <= y <= height)
                self.assertLessEqual(x + float(rect.get("width")), width + 2.1)
            for line in tree.iter("path"):
                for point in re.findall(r"[ML]([\d.]+) ([\d.]+)", line.get("d")):
                    x, y = map(float, point)
                    self.assertTrue(0 <= x <= width and 0 <= y <= height)
        steps = page.split('aria-label="Time of each step"')[1]
        self.assertIn("\nstep 101: 10</title>", steps)
        self.assertEqual(re.search('linecap="round" d="([^"]+)"',
                                   steps)[1].count("L"), 99)

    def test_no_empty_columns(self):
        page = self.page(good())
        self.assertNotIn("<td></td>", page)
        self.assertNotIn("a second</th>", page)
        self.assertNotIn("<h2>Advice</h2>", page)

    def test_of_text(self):
        page = self.page("Counter: MarkStep\n  Value: 9\n")
        self.assertNotIn("<svg", page)
        self.assertIn("<td>MarkStep</td><td>9</td>", page)

    def test_unwritable(self):
        self.put(good())
        _, err = self.expect(5, "report", "run.json", "--html", "no/such/x")
        self.assertIn("while writing 'no/such/x'", err)


class Hostile(Report):
    def test_usage(self):
        self.expect(2, "report")
        self.expect(2, "report", "a", "b")
        _, err = self.expect(5, "report", "absent.json")
        self.assertIn("absent.json", err)

    def test_damaged(self):
        whole = json.dumps(good())
        self.refused(whole[:-1], "line 1")
        self.refused("{", "line 1")
        self.refused("[" * 100000, "no metrics report")
        self.refused('{"a":' * 100000, "line 1")
        self.refused('{"calx_report":1,"calx_report":1}', "uplicate")
        self.refused("{}", "calx_report is not an integer")
        self.refused(dict(good(), calx_report=2), "version 2")

    def test_wrong_types(self):
        def change(path, value):
            data = copy.deepcopy(good())
            at = data
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = value
            return data

        for path, value, says in (
                (["seconds"], "1", "seconds is not a number"),
                (["seconds"], -1, "seconds is not a number"),
                (["syncs"], 1e300, "syncs is not an integer"),
                (["syncs"], 10**18, "syncs is not an integer"),
                (["steps"], {}, "steps is not an array"),
                (["steps"], [1], "steps[0].first is not an integer"),
                (["steps", 3, "n"], 0, "steps[3].n is not a count"),
                (["steps", 3, "wait"], None, "steps[3].wait is not a number"),
                (["compiles", 1, "site"], 7, "compiles[1].site is not a text"),
                (["compiles", 1, "loaded"], 1, "is not true or false"),
                (["reads", 0, "count"], -1, "reads[0].count"),
                (["reads"], [{}] * 5000, "at most 4096"),
                (["metrics"], [], "metrics is not an object"),
                (["metrics", "A"], 1, "metrics.A.unit is not a text"),
                (["metrics", "LoaderWait", "max"], "x", "LoaderWait.max"),
                (["counters", "A"], 1.5, "counters.one is not an integer"),
                (["counters", "A"], 10**18, "counters.one is not an integer"),
                (["plugin"], None, "plugin is not a text")):
            self.refused(change(path, value), says)

    def test_terminal(self):
        data = good()
        data["plugin"] = "a\u001b[31mb\nc"
        data["counters"]["aten::\u001b[0m"] = 1
        out = self.report(data)
        self.assertNotIn("\u001b", out)
        self.assertIn("a [31mb c", out)

    def test_extremes(self):
        data = good()
        for row in data["steps"]:
            row.update(dict.fromkeys(PARTS, 1e308), seconds=1e308)
        self.report(data, "--html", "out.html")
        data["steps"] = [step(k, seconds=0, execute=0) for k in range(2, 50)]
        data["seconds"] = 0
        self.report(data, "--html", "out.html")
        data["steps"] = data["compiles"] = data["reads"] = []
        data["metrics"] = data["counters"] = {}
        out = self.report(data, "--html", "out.html")
        self.assertEqual(out.count("?   "), 7 - 1)  # no values were read

    def test_random_damage(self):
        text = bytearray(json.dumps(good()).encode())
        rng = random.Random(1)
        for _ in range(60):
            damaged = bytearray(text)
            for _ in range(rng.randrange(1, 8)):
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
            self.write("run.json", damaged)
            done = self.calx("report", "run.json")
            self.assertIn(done.returncode, (0, 5))


if __name__ == "__main__":
    program.main()
