"""lightning_profile.py: what Lightning's SimpleProfiler prints for fixed durations, as
the C of lightning_profile.h. Run with pytorch-lightning==2.6.6 (PyPI) to make that file
anew:

    python lightning_profile.py >lightning_profile.h
"""

import math
import time

from pytorch_lightning.profilers import SimpleProfiler

# name: (stage, extended, seconds of the run, {action: durations})
CASES = {
    "usual": ("fit", True, 7.0, {
        "on_before_batch_transfer": [4.7734], "on_fit_start": [5.7734],
        "[LightningModule]Net.optimizer_step": [0.25, 1 / 3, 0.125],
        "run_training_epoch": [6.5]}),
    "one": ("validate", True, 3.25, {"a": [0.5]}),
    "numbers": (None, True, 1e5, {
        "zero": [0.0], "tiny": [1.25e-7, 3e-5], "e-4": [0.00012345678], "four": [1234.5],
        "five": [12345.0], "rounds": [9999.96], "whole": [7000.0], "big": [99999.0, 1.0],
        "third": [1 / 3]}),
    "ties": ("test", True, 2.0, {"b": [0.5, 0.5], "a": [1.0], "c": [0.25] * 4}),
    "unicode": ("predict", True, 2.0, {"\u00e9t\u00e9": [0.5], "on_\u6e2c\u8a66_end": [0.25]}),
    "short": ("fit", False, 7.0, {"b": [0.5, 0.25], "on_fit_start": [0.6], "a": [3.0] * 9}),
    "empty": ("fit", True, 1.0, {}),
}


def literal(text):
    out = []
    for line in text.encode().splitlines(True):
        body = "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:03o}"
                       for b in line)
        out.append(f'  "{body}"')
    return "\n".join(out)


def name_of(text):
    return "".join(c if ord(c) < 128 else "".join(f"\\{b:03o}" for b in c.encode())
                   for c in text)


def main():
    print("// What Lightning 2.6.6's SimpleProfiler prints, by lightning_profile.py.")
    print("// clang-format off")
    print("static const profile_case cases[] = {")
    for name, (stage, extended, total, actions) in CASES.items():
        profiler = SimpleProfiler(extended=extended)
        profiler._stage = stage
        profiler.recorded_durations.update(actions)
        profiler.start_time = 0.0
        time.perf_counter = lambda: total  # the end of the run
        text = profiler.summary()
        print(f' {{ .name = "{name}",')
        print(f'  .profile = {{ .stage = {f"{chr(34)}{stage.upper()}{chr(34)}" if stage else "NULL"},'
              f" .total = {total!r}, .is_short = {'false' if extended else 'true'},"
              f" .n_rows = {len(actions)} }},")
        print("  .rows = {")
        for action, durations in actions.items() or [("", [1.0])]:  # C wants one
            print(f'   {{ .action = "{name_of(action)}", .calls = {len(durations)},'
                  f" .total = {math.fsum(durations)!r} }},")
        print("  },")
        print(f"  .text =\n{literal(text)} }},")
    print("};")


main()
