#!/usr/bin/env python3
"""bytecode_record.py OUT FOLDER...: records programs as StableHLO's own writer has them.

Of the programs in the folders (*.mlir) it takes few that have all operations, element
types and attributes of all, and writes each to the folder OUT as bytecode (NN.bc, by
serialize_portable_artifact of jaxlib) and as the text that jaxlib reads from it
(NN.mlir), and large.bc, a function of 400,000 constants. name.bc, literal.bc and
line.bc use a name, a literal and a file's name of 1 MiB 20,000 times; those of
bytecode_repeated.py are like them. sN.bc are programs with operations and attributes of
Shardy and of CHLO, which becomes composites. tests/hlo/bytecode.tar.xz is such a folder,
made with jaxlib 0.10.2.
"""

import pathlib
import re
import sys

import bytecode_repeated
from jax._src.interpreters import mlir
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

FEATURES = (r'"?((?:stablehlo|func)\.\w+)', r'x((?:ui|i|f|bf)\d+\w*|complex<f\d+>)>',
            r'\b([a-z_]+) = ', r'#stablehlo<(\w+ \w+)>')
LONGEST = 9000  # of a text


MESH = 'sdy.mesh @m = <["a"=2, "b"=4]>\n'
OTHERS = (
    MESH + """func.func @main(
        %x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m, [{"b":(1)2, ?}, {"a"}p1]>})
        -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {?}], replicated={"a"}>}) {
      %y = sdy.sharding_constraint %x <@m, [{"a", "b"}, {}]> : tensor<8x16xf32>
      %z = stablehlo.sine %y : tensor<8x16xf32>
      return %z : tensor<8x16xf32>
    }""",
    MESH + """func.func @main(%x: tensor<8x16xf32>) -> tensor<4x16xf32> {
      %y = sdy.manual_computation(%x) in_shardings=[<@m, [{"a"}, {"b"}]>]
          out_shardings=[<@m, [{}, {"b"}]>] manual_axes={"a", "b"} (%v: tensor<4x4xf32>) {
        %w = stablehlo.negate %v : tensor<4x4xf32>
        sdy.return %w : tensor<4x4xf32>
      } : (tensor<8x16xf32>) -> tensor<4x16xf32>
      return %y : tensor<4x16xf32>
    }""",
    """func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
      %y = stablehlo.custom_call @f(%x) {sdy.sharding_rule =
          #sdy.op_sharding_rule<([i, jk])->([i, jk]) {i=8, j=4, k=4} need_replication={j} permutation={i}, custom>}
          : (tensor<8x16xf32>) -> tensor<8x16xf32>
      return %y : tensor<8x16xf32>
    }""",
    """func.func @main(%x: tensor<3x8xf32>) -> (tensor<3x2xf32>, tensor<3x2xi32>, tensor<3x8xf32>) {
      %v, %i = chlo.top_k(%x, k = 2) : tensor<3x8xf32> -> (tensor<3x2xf32>, tensor<3x2xi32>)
      %e = chlo.erf %x : tensor<3x8xf32> -> tensor<3x8xf32>
      return %v, %i, %e : tensor<3x2xf32>, tensor<3x2xi32>, tensor<3x8xf32>
    }""",
)


def features(text):
    return {found for pattern in FEATURES for found in re.findall(pattern, text)}


def record_large(out):
    constants = "".join(f"%{i} = stablehlo.constant dense<1.0> : tensor<2x2xf32> loc(unknown)\n"
                        for i in range(400000))
    text = ("func.func @main() -> tensor<2x2xf32> {\n" + constants +
            "return %0 : tensor<2x2xf32>\n}")
    with mlir.make_ir_context():
        (pathlib.Path(out) / "large.bc").write_bytes(
            stablehlo.serialize_portable_artifact(ir.Module.parse(text), "1.13.0"))


NAME = "f" * (1 << 20)
REPEATED = {
    "name": """func.func @@() { return }
      func.func @main() { func.call @@() : () -> () return }""".replace("@@", "@" + NAME),
    "literal": """func.func @main() {
      %x = stablehlo.constant dense<"0x~"> : tensor<262144xf32> return }""".replace(
          "~", "01" + "00" * ((1 << 20) - 1)),
    "line": """func.func @main() {
      %x = stablehlo.constant dense<1.0> : tensor<f32> loc("~":1:1) return }""".replace(
          "~", NAME),
}


def record_repeated(out):
    for name, text in REPEATED.items():
        with mlir.make_ir_context(), ir.Location.unknown():
            module = ir.Module.parse(text)
            op = list(module.body.operations)[-1].regions[0].blocks[0].operations[0]
            with ir.InsertionPoint(op):
                for _ in range(20000):
                    op.operation.clone()
            (pathlib.Path(out) / f"{name}.bc").write_bytes(
                stablehlo.serialize_portable_artifact(module, "1.13.0"))


def record(path, context, data):
    back = stablehlo.deserialize_portable_artifact(context, data)
    path.with_suffix(".bc").write_bytes(data)
    path.with_suffix(".mlir").write_text(back.operation.get_asm(
        print_generic_op_form=True, enable_debug_info=False))


def record_others(out):
    for n, text in enumerate(OTHERS):
        with mlir.make_ir_context() as context:
            data = _jax.mlir.serialize_portable_artifact(
                ir.Module.parse(text), "1.13.0", use_mixed_serialization=True)
            record(pathlib.Path(out) / f"s{n}", context, data)


def main(out, *folders):
    record_large(out)
    record_repeated(out)
    bytecode_repeated.main(out)
    record_others(out)
    texts = [f.read_text() for folder in folders
             for f in sorted(pathlib.Path(folder).glob("*.mlir"))
             if f.stat().st_size < LONGEST]
    pool = [(text, features(text)) for text in texts]
    left = set().union(*(f for _, f in pool))
    n = 0
    with mlir.make_ir_context() as context:
        while pool:
            best = max(pool, key=lambda p: len(p[1] & left) / (800 + len(p[0])))
            pool.remove(best)
            if not best[1] & left:
                break
            try:
                data = stablehlo.serialize_portable_artifact(
                    ir.Module.parse(best[0]), "1.13.0")
            except ValueError:
                continue  # with CHLO or a target's attributes
            record(pathlib.Path(out) / f"{n:02}", context, data)
            left -= best[1]
            n += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
