"""The engine's table under pypjrt.conform, which checks the PJRT ABI.

  conform.py LIBRARY

Fails when a check fails, or when fewer pass than XLA's CPU plugin passes.
"""
import json
import os
import subprocess
import sys
import tempfile

LEAST = 51


def main():
    wheel = os.environ["CALX_TEST_PLUGIN_PYPJRT"]
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        run = subprocess.run(
            [sys.executable, "-B", "-m", "pypjrt.conform", sys.argv[1],
             "--json", report],
            env={**os.environ, "PYTHONPATH": wheel}, check=False)
        with open(report, encoding="utf-8") as file:
            text = json.dumps(json.load(file))
    passed = text.count('"pass"')
    print(f"conform: {passed} checks pass, at least {LEAST} must")
    return 1 if run.returncode != 0 or passed < LEAST else 0


sys.exit(main())
