#!/usr/bin/env python3
"""bytecode_jax.py CALX ARCHIVE: StableHLO's own reader on what `calx hlo convert` writes.

Of each text in the archive (bytecode.tar.xz) jaxlib must print the same when it reads
calx's bytecode of it.
"""

import pathlib
import subprocess
import sys
import tarfile
import tempfile

from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

# What the archive has nothing of: operands of a collective, batching dimensions,
# an algorithm, an accuracy, a bound, numbers of less than 8 bits.
MORE = (
    """func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0:2 = "stablehlo.all_reduce"(%a, %b) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
          channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>,
          use_global_device_ids}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %z = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %z : tensor<f32>
      }) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
      return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
    }""",
    """func.func @main(%a: tensor<2x3xf32>, %b: tensor<3x2xf32>) -> tensor<2x2xf32> {
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0],
          algorithm = <lhs_precision_type = tf32,
          rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1,
          rhs_component_count = 1, num_primitive_operations = 1,
          allow_imprecise_accumulation = false> : (tensor<2x3xf32>, tensor<3x2xf32>)
          -> tensor<2x2xf32>
      %1 = "stablehlo.tanh"(%0) <{result_accuracy = #stablehlo.result_accuracy<atol = 0.5,
          rtol = 0.25, ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>}>
          : (tensor<2x2xf32>) -> tensor<2x2xf32>
      return %1 : tensor<2x2xf32>
    }""",
    """func.func @main(%a: tensor<?xf32, #stablehlo.bounds<4>>) -> tensor<3xi4> {
      %0 = stablehlo.constant dense<[-1, 2, -8]> : tensor<3xi4>
      return %0 : tensor<3xi4>
    }""",
    """func.func @main(%a: tensor<2x4x3xf32>, %i: tensor<2x1xi64>) -> tensor<2x3xf32> {
      %0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<
          offset_dims = [1], collapsed_slice_dims = [1], operand_batching_dims = [0],
          start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>,
          slice_sizes = array<i64: 1, 1, 3>}> : (tensor<2x4x3xf32>, tensor<2x1xi64>)
          -> tensor<2x3xf32>
      return %0 : tensor<2x3xf32>
    }""",
)


def printed(module):
    return module.operation.get_asm(print_generic_op_form=True, enable_debug_info=False)


def check(calx, name, text):
    data = subprocess.run([calx, "hlo", "convert", "-", "-", "--to", "bytecode"],
                          input=text.encode(), stdout=subprocess.PIPE, check=True).stdout
    with mlir.make_ir_context() as context:
        wanted = printed(ir.Module.parse(text))
        found = printed(stablehlo.deserialize_portable_artifact(context, data))
    assert found == wanted, f"{name}: jaxlib reads\n{found}\nnot\n{wanted}"


def main(calx, archive):
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as files:
            files.extractall(folder, filter="data")
        texts = {str(f.name): f.read_text()
                 for f in sorted(pathlib.Path(folder).glob("*/*.mlir"))}
    texts.update({f"more {i}": text for i, text in enumerate(MORE)})
    assert len(texts) >= 60, len(texts)
    for name, text in texts.items():
        check(calx, name, text)
    print(len(texts), "programs")


if __name__ == "__main__":
    main(*sys.argv[1:])
