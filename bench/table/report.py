"""bench/RESULTS.md and its plot, from the log of bench/run."""
import json
import math
import platform
import statistics
import time
from collections import Counter, defaultdict

from rows import ROWS

THREADS = 1, 2


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def medians(log, field="ms"):
    """(row, threads) -> who -> the median over the rounds."""
    found = defaultdict(lambda: defaultdict(list))
    for line in log:
        if field in line and "who" in line:
            found[line["row"], line["threads"]][line["who"]].append(line[field])
    return {key: {who: statistics.median(v) for who, v in whos.items()}
            for key, whos in found.items()}


def rounds_of(log):
    """How many runs the medians are of, in words."""
    counts = Counter((x["row"], x["threads"], x["who"]) for x in log if "who" in x)
    least, most = min(counts.values(), default=0), max(counts.values(), default=0)
    return f"{least} to {most} rounds" if least < most else f"{most} round{'s' * (most != 1)}"


def ratio_of(times):
    """The best peer's name, its time over ours; None where one is missing."""
    peers = {who: ms for who, ms in times.items() if who != "ours"}
    if "ours" not in times or not peers:
        return None
    best = min(peers, key=peers.get)
    return best, peers[best] / times["ours"]


def ms(value):
    return f"{value * 1e3:.2f} us" if value < 0.1 else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def joined(values):
    return " / ".join(values) if any(v != "-" for v in values) else "-"


def best_rates(log):
    """threads -> GFLOP/s and GB/s of the undisturbed machine."""
    return {threads: [max((x[field] for x in log if field in x and x["threads"] == threads),
                          default=None) for field in ("gflops", "gbytes")]
            for threads in THREADS}


def limit_of(row, threads, log, rates):
    """ms in which the machine could compute a step and read what it is given."""
    works = [x for x in log if x["row"] == row.name and x.get("who") == "ours" and "gflop" in x]
    if not works or None in rates[threads]:
        return None
    gflops, gbytes = rates[threads]
    # The rate is that of f32; narrower numbers may be multiplied faster.
    compute = 0 if row.name.endswith(("_bf16", "_int8")) else works[-1]["gflop"] / gflops * 1e3
    return max(compute, works[-1]["mb"] / gbytes)


def line_of(row, times, log, rates):
    best, ours, ratios, limits = [], [], [], []
    for threads in THREADS:
        at = times.get((row.name, threads), {})
        found = ratio_of(at)
        ours.append(ms(at["ours"]) if "ours" in at else "-")
        best.append(f"{found[0]} {ms(at[found[0]])}" if found else "-")
        ratios.append(f"{found[1]:.2f}" if found else "-")
        limit = limit_of(row, threads, log, rates)
        limits.append(ms(limit) if limit else "-")
    target = joined([f"{t:g}" for t in row.target]) if row.target else "-"
    return (f"| {row.title} | {joined(best)} | {joined(ours)} | {joined(ratios)} | {target} "
            f"| {joined(limits)} |")


def means(times):
    out = []
    for threads in THREADS:
        found = [ratio_of(times.get((r.name, threads), {})) for r in ROWS
                 if r.group == "training"]
        logs = [math.log(f[1]) for f in found if f]
        out.append(f"{math.exp(sum(logs) / len(logs)):.2f} of {len(logs)}" if logs else "-")
    return joined(out)


def everybody(times):
    whos = []
    for at in times.values():
        whos += [w for w in at if w not in whos]
    lines = ["| program | threads | " + " | ".join(whos) + " |", "|---" * (len(whos) + 2) + "|"]
    for row in ROWS:
        for threads in THREADS:
            at = times.get((row.name, threads))
            if at:
                cells = [ms(at[w]) if w in at else "" for w in whos]
                lines.append(f"| {row.name} | {threads} | " + " | ".join(cells) + " |")
    return lines


def compile_times(log):
    lines = ["| program | ours | JAX | XLA's plugin | JAX / ours |", "|---|---|---|---|---|"]
    at = medians(log, "compile_s")
    for row in ROWS:
        both = at.get((row.name, 2)) or at.get((row.name, 1)) or {}
        if "ours" not in both or not {"jax", "xla"} & set(both):
            continue
        cells = [f"{both[w]:.3f}" if w in both else "-" for w in ("ours", "jax", "xla")]
        peer = both.get("jax", both.get("xla"))
        lines.append(f"| {row.name} | {' | '.join(cells)} | {peer / both['ours']:.1f} |")
    return lines


def calibrations(log):
    """Of the undisturbed machine, and how far the rows' own were below."""
    lines = ["| threads | multiply-adds, GFLOP/s | triad, GB/s |", "|---|---|---|"]
    for threads in THREADS:
        cells = []
        for field in "gflops", "gbytes":
            all_ = sorted(x[field] for x in log if field in x and x["threads"] == threads)
            cells.append(f"{all_[-1]:g}, lowest {all_[0]:g}" if all_ else "-")
        lines.append(f"| {threads} | {' | '.join(cells)} |")
    return lines


def processor():
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def write(log_path, out, missing, cliffs=None):
    log = read(log_path)
    times, rates = medians(log), best_rates(log)
    versions = sorted({f"{x['who'].split('-')[0]} {x['version']}" for x in log if x.get("version")})
    head = ["| program | best peer, ms, 1 / 2 threads | ours, ms | best peer / ours | target | limit, ms |",
            "|---|---|---|---|---|---|"]
    lines = ["# Results", "",
             "Written by `bench/run`; [README.md](README.md) says how the numbers are taken.", "",
             f"{time.strftime('%Y-%m-%d')}, {processor()}, Linux {platform.release()}; "
             f"{', '.join(versions) or 'no peers'}. Medians over {rounds_of(log)}, alternating; over 1: "
             "ours is faster than the best of the peers. Limit: what the machine needs at its best "
             "rates (below) for the step's multiplications and additions, or to read its arguments and "
             "write its results, whichever is more; of bf16 and int8 only the latter. Winograd's "
             "algorithm multiplies less, and AMX multiplies f32 in parts of bf16 faster than these "
             "rates.", ""]
    lines += ["Missing: " + m + "." for m in missing] + [""] * bool(missing)
    for group, title in (("training", "Training step"), ("operations", "Operations"),
                         ("inference", "Inference"), ("more", "More")):
        chosen = [r for r in ROWS if r.group in ((group, "calx") if group == "training" else (group,))]
        lines += [f"## {title}", "", *head, *(line_of(r, times, log, rates) for r in chosen)]
        if group == "training":
            lines.append("| geometric mean of the rows with JAX's text | | | "
                         f"{means(times)} | 1.6 / 1.65 | |")
        lines.append("")
    lines += ["![ratios](results.svg)", "", "## Everybody", "", "ms of a step.", "",
              *everybody(times), "", "## Compile times", "", "Seconds.", "",
              *compile_times(log), "", "## The machine", "",
              "Taken before and after each row, on as many threads: the best, and the "
              "lowest that a row had beside it.", "", *calibrations(log), ""]
    if cliffs:
        lines += ["## Cliffs", "", "```", cliffs.rstrip(), "```", ""]
    out.write_text("\n".join(lines))
    plot(times, out.with_name("results.svg"))


# ---- the plot: a bar for each row and number of threads, on a log scale ----

LEFT, WIDE, HIGH, BAR = 330, 420, 34, 11
LEAST, MOST = 0.25, 16


def across(ratio):
    share = math.log(min(max(ratio, LEAST), MOST) / LEAST) / math.log(MOST / LEAST)
    return LEFT + WIDE * share


def plot(times, path):
    shown = [(r, [ratio_of(times.get((r.name, t), {})) for t in THREADS]) for r in ROWS]
    shown = [(r, found) for r, found in shown if any(found)]
    height = 40 + HIGH * len(shown)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDE + 70}" '
           f'height="{height}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{LEFT}" y="16">best peer / ours (dark: 1 thread, light: 2; '
           "red: target)</text>"]
    for tick in 0.25, 0.5, 1, 2, 4, 8, 16:
        x = across(tick)
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="24" y2="{height - 14}" '
                   f'stroke="{"black" if tick == 1 else "#ddd"}"/>'
                   f'<text x="{x:.1f}" y="{height - 2}" text-anchor="middle">{tick:g}</text>')
    for i, (row, found) in enumerate(shown):
        y = 28 + HIGH * i
        out.append(f'<text x="{LEFT - 8}" y="{y + 16}" text-anchor="end">{row.title}</text>')
        for k, ratio in enumerate(f[1] if f else None for f in found):
            if ratio is None:
                continue
            top = y + k * (BAR + 1)
            a, b = sorted((across(1), across(ratio)))
            out.append(f'<rect x="{a:.1f}" y="{top}" width="{b - a:.1f}" height="{BAR}" '
                       f'fill="{("#1f5f8b", "#7fb2d6")[k]}"/>'
                       f'<text x="{max(b, across(1)) + 4:.1f}" y="{top + 10}">{ratio:.2f}</text>')
            if row.target:
                x = across(row.target[k])
                out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{top + BAR}" '
                           'stroke="red" stroke-width="2"/>')
    path.write_text("\n".join(out + ["</svg>", ""]))
