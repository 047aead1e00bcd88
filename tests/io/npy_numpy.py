"""npy_numpy.py PROGRAM: what numpy saves is loaded as numpy means it, and what is saved
again is what numpy loads. All dtypes, byte orders, orders of elements, versions of
the header, ranks, and archives. PROGRAM is test_io_npy."""

import os
import subprocess
import sys

import numpy as np

CODES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8",
         "c16"]
SHAPES = [(), (1,), (7,), (0,), (3, 0), (2, 3), (1, 5), (2, 3, 4), (2, 1, 2, 3, 1, 2, 1, 2)]


def arrays():
    rng = np.random.default_rng(1)
    for code in CODES:
        for shape in SHAPES:
            n = int(np.prod(shape, dtype=int))
            size = np.dtype(code).itemsize
            a = np.frombuffer(rng.bytes(n * size), code) if code != "?" else (
                rng.integers(0, 2, n).astype(bool))
            if code[0] in "fc":  # a NaN's bits are kept too, but do not compare
                a = np.nan_to_num(a)
            for order in "<>":
                b = a.astype(np.dtype(code).newbyteorder(order)).reshape(shape)
                yield b
                if len(shape) > 1:
                    yield np.asfortranarray(b)


def same(a, b):
    return (a.dtype.newbyteorder("=") == b.dtype and a.shape == b.shape
            and np.array_equal(a, b))


def main():
    program, folder = sys.argv[1], os.environ["TMPDIR"]
    every, paths = list(arrays()), []
    for i, a in enumerate(every):
        paths += [os.path.join(folder, f"{i}.npy"), os.path.join(folder, f"{i}.out.npy")]
        with open(paths[-2], "wb") as f:
            np.lib.format.write_array(f, a, version=[(1, 0), (2, 0), (3, 0)][i % 3])
    some = {f"Key {i}/{a.dtype}": a for i, a in enumerate(every)}
    some["key"], some["KEY"] = np.arange(3), np.zeros((4, 4), order="F")
    archives = [os.path.join(folder, name) for name in ("a.npz", "a.out.npz", "b.npz", "b.out.npz")]
    np.savez(archives[0], **some)
    np.savez_compressed(archives[2], **some)
    subprocess.run([program, *paths, *archives], check=True)
    for a, path in zip(every, paths[1::2]):
        assert same(a, np.load(path)), (a, path)
    for path in archives[1::2]:
        with np.load(path) as found:
            assert list(found) == list(some), path
            assert all(same(some[key], found[key]) for key in some), path
    print(f"{len(every)} arrays, alone and in 2 archives")


main()
