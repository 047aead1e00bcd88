"""bindings.py LIBRARY API_JSON: a binding made of docs/api.json alone.

Every function of the file gets its types, and programs of a user of Python
follow: an op with options, a gradient, an error, a callback, a struct by value.
"""

import ctypes as c
import json
import re
import sys
import unittest

NUMBERS = {
    "void": None, "bool": c.c_bool, "char": c.c_char, "int": c.c_int,
    "unsigned int": c.c_uint, "float": c.c_float, "double": c.c_double,
    "size_t": c.c_size_t, "int8_t": c.c_int8, "uint8_t": c.c_uint8,
    "int32_t": c.c_int32, "uint32_t": c.c_uint32, "int64_t": c.c_int64,
    "uint64_t": c.c_uint64,
}


class Binding:
    """What a maker of bindings generates from the file."""

    def __init__(self, library, path):
        with open(path, encoding="utf-8") as f:
            self.api = json.load(f)
        self.library = c.CDLL(library)
        self.enums = {e["name"]: {k["name"]: k["value"] for k in e["constants"]}
                      for e in self.api["enums"]}
        self.opaque = {e["name"] for e in self.api["opaque"]}
        self.callbacks = {e["name"]: e["type"] for e in self.api["callbacks"]}
        self.described = {e["name"]: e["fields"] for e in self.api["structs"]}
        self.structs = {}
        for function in self.api["functions"]:
            made = getattr(self.library, function["name"])
            made.restype = self.type_of(function["returns"])
            made.argtypes = [self.type_of(p["type"]) for p in function["parameters"]]

    def struct(self, name):
        if name not in self.structs:
            made = type(name, (c.Structure,), {})
            self.structs[name] = made
            made._fields_ = [(f["name"], self.type_of(f["type"]))
                             for f in self.described[name]]
        return self.structs[name]

    def type_of(self, text):
        text = re.sub(r"\bconst\b", "", text).strip()
        array = re.fullmatch(r"(.*?)\s*\[(\d+)\]", text)
        if array:
            return self.type_of(array[1]) * int(array[2])
        if text.endswith("*"):
            return c.c_char_p if text == "char *" else c.c_void_p
        if "(" in text or text in self.callbacks:
            return c.c_void_p
        if text in self.enums:
            return c.c_int
        if text in self.described:
            return self.struct(text)
        return NUMBERS[text]

    def options(self, name, **values):
        made = self.struct(f"calx_{name}_options")(**values)
        made.size = c.sizeof(made)
        return c.byref(made)


def tensor(values):
    data = (c.c_float * len(values))(*values)
    dims = binding.struct("calx_dims")(count=1)
    dims.values[0] = len(values)
    return lib.calx_tensor_from(data, binding.enums["calx_dtype"]["CALX_F32"], dims)


def read(t):
    n = lib.calx_tensor_numel(t)
    out = (c.c_float * n)()
    lib.calx_tensor_read(t, out, c.sizeof(out))
    return list(out)


class Test(unittest.TestCase):
    def setUp(self):
        self.scope = lib.calx_scope_begin()

    def tearDown(self):
        lib.calx_scope_end(self.scope)

    def test_everything_has_a_type(self):
        self.assertGreater(len(binding.api["functions"]), 500)
        for entry in binding.api["structs"]:
            self.assertGreater(c.sizeof(binding.struct(entry["name"])), 0)

    def test_options(self):
        x, y = tensor([1, 2]), tensor([10, 20])
        self.assertEqual(read(lib.calx_add_with(x, y, None)), [11, 22])
        halves = binding.options("add", alpha=0.5)
        self.assertEqual(read(lib.calx_add_with(x, y, halves)), [6, 12])

    def test_gradient(self):
        x = tensor([1, 2, 3])
        lib.calx_requires_grad(x, True)
        lib.calx_backward_n((c.c_void_p * 1)(
            lib.calx_sum_with(lib.calx_mul(x, x), None)), 1, None)
        self.assertEqual(read(lib.calx_grad(x)), [2, 4, 6])

    def test_error(self):
        lib.calx_add_with(tensor([1, 2]), tensor([1, 2, 3]), None)
        status = lib.calx_scope_take_error()
        self.assertEqual(lib.calx_status_code(status),
                         binding.enums["calx_code"]["CALX_INVALID_ARGUMENT"])
        self.assertIn(b"add", lib.calx_status_message(status))
        lib.calx_status_free(status)

    def test_callback(self):
        kind = binding.callbacks["calx_dataset_get_fn"]
        self.assertEqual(kind, "calx_status *(void *, int64_t, void *const *)")

        @c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_int64, c.POINTER(c.c_void_p))
        def get(user, index, fields):
            c.cast(fields[0], c.POINTER(c.c_float))[0] = index * 2.0

        field = binding.struct("calx_field")(
            dtype=binding.enums["calx_dtype"]["CALX_F32"])
        dataset = lib.calx_dataset_new(5, c.byref(field), 1,
                                       c.cast(get, c.c_void_p), None, None)
        value = c.c_float()
        self.assertIsNone(lib.calx_dataset_get(
            dataset, 3, (c.c_void_p * 1)(c.addressof(value))))
        self.assertEqual(value.value, 6)
        lib.calx_dataset_free(dataset)


if __name__ == "__main__":
    binding = Binding(sys.argv.pop(1), sys.argv.pop(1))
    lib = binding.library
    unittest.main()
