"""bench/feed on a program that overwrites its state, and the ranges of bench/text.

    feed.py PROGRAMS   # the folder of bench's programs
"""
import pathlib
import struct
import subprocess
import sys
import tempfile

programs = pathlib.Path(sys.argv.pop())
TEXT = """// arguments: 2:2 3:4
module @m {
  func.func public @main(%a: tensor<2xf32> {tf.aliasing_output = 0 : i32},
      %b: tensor<i32>) -> (tensor<2xf32>, tensor<f32>) {
    %0 = stablehlo.convert %b : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %2 = stablehlo.add %a, %1 : tensor<2xf32>
    %3 = stablehlo.multiply %0, %0 : tensor<f32>
    return %2, %3 : tensor<2xf32>, tensor<f32>
  }
}
"""

with tempfile.TemporaryDirectory() as name:
    text, values, results = (pathlib.Path(name, n) for n in ("text", "values", "results"))
    text.write_text(TEXT)
    values.write_bytes(struct.pack("ffi", 1, 2, 5))
    printed = subprocess.run([programs / "feed", text, values, results, "--steps=3"],
                             check=True, capture_output=True, text=True).stdout
    assert printed.split() == ["25"] * 3, printed
    assert struct.unpack("fff", results.read_bytes()) == (16, 17, 25), results.read_bytes()
    values.write_bytes(b"\0" * 11)
    short = subprocess.run([programs / "feed", text, values, results], capture_output=True)
    assert short.returncode == 1 and b"ends in argument 1" in short.stderr, short
    # 2 + 3 in both elements, then 3 * 3.
    printed = subprocess.run([programs / "program", text, "--plugin=calx", "--seconds=0.001"],
                             check=True, capture_output=True, text=True).stdout
    assert "magnitudes  10 9" in printed, printed
