"""Every element type goes through a program and comes back as it was."""

import os

import program

# Bytes of an element, and what its byte may hold where it has less than 8 bits.
WIDE = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "ui8": 1, "ui16": 2, "ui32": 4,
        "ui64": 8, "bf16": 2, "f16": 2, "f32": 4, "f64": 8, "complex<f32>": 8,
        "complex<f64>": 16, "f8E5M2": 1, "f8E4M3FN": 1, "f8E4M3B11FNUZ": 1,
        "f8E5M2FNUZ": 1, "f8E4M3FNUZ": 1, "f8E4M3": 1, "f8E3M4": 1,
        "f8E8M0FNU": 1}
NARROW = {"i1": range(2), "i2": range(-2, 2), "i4": range(-8, 8),
          "ui2": range(4), "ui4": range(16), "f4E2M1FN": range(16)}
# XLA knows none of them yet.
REFUSED = ["f6E2M3FN", "f6E3M2FN"]


class Types(program.Case):
    def identity(self, element, size, data):
        shape = f"tensor<{size}x{element}>"
        self.write("p", f"func.func @main(%a: {shape}) -> {shape} "
                        f"{{ return %a : {shape} }}")
        self.write("in", data)
        self.expect(0, "hlo", "run", "p", "--input", "in", "--output", "out")
        return self.read("out/0.bin")

    def test_whole_bytes(self):
        for element, width in WIDE.items():
            data = bytes((7 * i + 1) % 256 for i in range(48 * width))
            with self.subTest(element):
                self.assertEqual(self.identity(element, 48, data), data)

    def test_parts_of_bytes(self):
        for element, values in NARROW.items():
            data = bytes(v & 255 for v in list(values) * 3)
            with self.subTest(element):
                self.assertEqual(self.identity(element, len(data), data), data)

    def test_open_bits(self):
        """Upper bits may be anything in inputs; results have them extended."""
        for element, values in NARROW.items():
            if element == "i1":
                data, wanted = bytes([0, 2, 255]), bytes([0, 1, 1])
            else:
                n = len(values)
                data = bytes((v & (n - 1)) | (-n & 255 if v % 3 else 0)
                             for v in values)
                wanted = bytes(v & 255 for v in values)
            with self.subTest(element):
                self.assertEqual(self.identity(element, len(data), data),
                                 wanted)

    def test_no_elements_and_no_dimensions(self):
        self.assertEqual(self.identity("0xf32", 3, b""), b"")
        self.write("p", "func.func @main(%a: tensor<f64>) -> tensor<f64> "
                        "{ return %a : tensor<f64> }")
        self.write("in", b"8 bytes.")
        self.expect(0, "hlo", "run", "p", "--input", "in", "--output", "out")
        self.assertEqual(self.read("out/0.bin"), b"8 bytes.")
        self.write("p", "func.func @main() { return }")
        self.expect(0, "hlo", "run", "p", "--output", "out")

    def test_refused(self):
        self.write("in", bytes(2))
        for element in REFUSED:
            shape = f"tensor<2x{element}>"
            self.write("p", f"func.func @main(%a: {shape}) -> {shape} "
                            f"{{ return %a : {shape} }}")
            # Our engine's PJRT is older than these types.
            code = 5 if os.environ["CALX_PLUGIN"] == "calx" else 4
            self.complains(code, "", "hlo", "run", "p", "--input", "in")


if __name__ == "__main__":
    program.main()
