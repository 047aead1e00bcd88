"""The program for pypjrt of docs/engine.md, on the engine.

  snippet.py PAGE LIBRARY
"""
import os
import re
import subprocess
import sys
from pathlib import Path

page, library = sys.argv[1:]
programs = re.findall(r"^```python\n(.*?)^```", Path(page).read_text(), re.S | re.M)
(program,) = [p for p in programs if "import pypjrt" in p]
run = subprocess.run(
    [sys.executable, "-B", "-c", program], text=True, capture_output=True,
    env={**os.environ, "LIBCALX_CPU": library,
         "PYTHONPATH": os.environ["CALX_TEST_PLUGIN_PYPJRT"]}, check=False)
if run.returncode != 0 or run.stdout != "[2.0, 4.0, 6.0, 8.0]\n":
    sys.exit(f"FAILED: exit {run.returncode}\n{run.stdout}{run.stderr}")
