#!/usr/bin/env python3
"""bytecode_repeated.py FOLDER: files of bytecode that use one long entry many
times, for test_repeated and test_lists of bytecode.c. No writer of MLIR makes
them.

The layout: MLIR's BytecodeFormat.md; the codes: StableHLO's VhloBytecode.cpp.
"""
import pathlib
import sys

LONG = "f" * (1 << 20)
TIMES = 20000
BUILTIN, VHLO = range(2)
TOKEN, I64 = 22, 14  # codes of types


def number(n):
    for k in range(1, 9):
        if n < 1 << 7 * k:
            return (n << k | 1 << k - 1).to_bytes(k, "little")
    raise ValueError(n)


def numbers(*all):
    return b"".join(map(number, all))


def section(kind, data):
    return bytes([kind]) + number(len(data)) + data


class File:
    """A module whose function main repeats one operation, or some in turn."""

    def __init__(self, *operations):
        self.strings, self.attrs, self.types = [], [], []
        names = [(BUILTIN, "module"), (VHLO, "func_v1"), (VHLO, "return_v1"),
                 *((VHLO, operation) for operation in operations)]
        self.dialects = [self.string("builtin"), self.string("vhlo")]
        self.names = [(dialect, self.string(name)) for dialect, name in names]
        self.nowhere = self.attr(BUILTIN, numbers(15))
        empty = self.attr(VHLO, numbers(1, 0))
        function = self.attr(VHLO, numbers(17, self.type(VHLO, numbers(8, 0, 0))))
        self.function = numbers(empty, function, empty, self.text("main"), self.text(""))

    def string(self, text):
        self.strings.append(text.encode())
        return len(self.strings) - 1

    def entry(self, entries, dialect, data):
        """A str is an entry's text; bytes are its dialect's encoding."""
        own = isinstance(data, bytes)
        entries.append((dialect, own, data if own else data.encode() + b"\0"))
        return len(entries) - 1

    def attr(self, dialect, data):
        return self.entry(self.attrs, dialect, data)

    def type(self, dialect, data):
        return self.entry(self.types, dialect, data)

    def text(self, text):
        return self.attr(BUILTIN, numbers(2, self.string(text)))

    def dictionary(self, **attrs):
        pairs = [n for name, a in attrs.items() for n in (self.text(name), a)]
        return self.attr(BUILTIN, numbers(1, len(attrs), *pairs))

    def operation(self, name, attrs=None, properties=None, results=(), operands=(),
                  region=b""):
        has, data = 0, b""
        for bit, value in [(1, attrs), (64, properties)]:
            if value is not None:
                has, data = has | bit, data + number(value)
        for bit, values in [(2, results), (4, operands)]:
            if values:
                has, data = has | bit, data + numbers(len(values), *values)
        if region:
            has, data = has | 16, data + number(1 << 1 | 1) + section(4, region)
        return number(name) + bytes([has]) + number(self.nowhere) + data

    def write(self, path, body, n, values):
        block = number(n + 1 << 1) + body + self.operation(2)
        function = self.operation(1, properties=0, region=numbers(1, values) + block)
        module = self.operation(0, region=numbers(1, 0, 1 << 1) + function)
        entries = self.attrs + self.types
        names = numbers(len(self.dialects), *(d << 1 for d in self.dialects), len(self.names))
        for dialect, name in self.names:
            names += numbers(dialect, 1, name << 1 | 1)
        sizes = numbers(len(self.attrs), len(self.types))
        for dialect, own, data in entries:
            sizes += numbers(dialect, 1, len(data) << 1 | own)
        strings = numbers(len(self.strings), *(len(s) + 1 for s in reversed(self.strings)))
        path.write_bytes(
            b"ML\xefR" + number(6) + b"x\0"
            + section(0, strings + b"".join(s + b"\0" for s in self.strings))
            + section(1, names) + section(2, b"".join(data for _, _, data in entries))
            + section(3, sizes) + section(4, number(1 << 1) + module)
            + section(8, numbers(1, len(self.function)) + self.function))


def repeat(path, operation, attr=None, result=None, operands=0):
    """The operation with an attribute and a result: functions of the file."""
    f = File(operation)
    attrs = {"call_target_name": f.text("x")} if operation == "custom_call_v1" else {}
    if attr is not None:
        attrs["mhlo.x"] = attr(f)
    d = f.dictionary(**attrs) if attrs else None
    results = [f.type(VHLO, number(TOKEN)) if result is None else result(f)]
    if operands:
        body = f.operation(3, d, results=results)
        body += f.operation(3, d, results=results, operands=[0] * operands)
        f.write(path, body, 2, 2)
    else:
        f.write(path, f.operation(3, d, results=results) * TIMES, TIMES, TIMES)


def lists(path, operations, names):
    """Attributes that are lists of numbers, each a splat, in a dictionary, as
    older versions have them: each operation's are made of it."""
    f = File(*operations)
    type_ = f.type(VHLO, numbers(20, 1, 255 << 1, f.type(VHLO, number(I64))))
    splat = f.attr(VHLO, numbers(15, type_, 8) + bytes(7) + b"\1")
    d = f.dictionary(**{name: splat for name in names})
    token = [f.type(VHLO, number(TOKEN))]
    body = b"".join(f.operation(3 + i, d, results=token)
                    for i in range(len(operations)))
    times = TIMES // len(operations)
    f.write(path, body * times, TIMES, TIMES)


def main(folder):
    folder = pathlib.Path(folder)
    token, call = "create_token_v1", "custom_call_v1"
    ints = number(1) * (1 << 19)
    tuples = "tuple<" + ",".join(["i1"] * 100000) + ">"
    odd = f'!foo.bar<"{LONG}">'

    def text(t):
        return lambda f: f.attr(BUILTIN, t)

    def bounded(f):  # a tensor with an encoding of many numbers
        bounds = f.attr(VHLO, numbers(18, 1 << 19) + ints)
        return f.type(VHLO, numbers(21, bounds, 1, 4 << 1, f.type(VHLO, number(10))))

    repeat(folder / "list.bc", call, text(f'["{LONG}"]'))
    repeat(folder / "dictionary.bc", call, text(f'{{a = "{LONG}"}}'))
    repeat(folder / "type.bc", call,
           lambda f: f.attr(BUILTIN, numbers(6, f.type(BUILTIN, odd))))
    repeat(folder / "alias.bc", call,
           lambda f: f.attr(VHLO, numbers(10, 1 << 19) + ints + numbers(0, 0)))
    repeat(folder / "tuple.bc", token, result=lambda f: f.type(BUILTIN, tuples))
    repeat(folder / "encoding.bc", call,
           result=lambda f: f.type(BUILTIN, f'tensor<4xf32, "{LONG}">'))
    repeat(folder / "operands.bc", call, result=bounded, operands=TIMES)
    repeat(folder / "operation.bc", LONG + "_v1")
    lists(folder / "shared.bc", ["convolution_v1"],
          ["window_strides", "lhs_dilation", "rhs_dilation"])
    lists(folder / "in_turn.bc", ["gather_v2", "dynamic_gather_v2"],
          ["offset_dims", "collapsed_slice_dims", "operand_batching_dims",
           "start_indices_batching_dims", "start_index_map"])


if __name__ == "__main__":
    main(*sys.argv[1:])
