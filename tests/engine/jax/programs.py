"""JAX's programs on the engine, against JAX's own CPU client in one process.

  programs.py PACKAGE_FOLDER LIBRARY

The package is the one that tools/make-wheel packs, used from its folder. A test
calls its function on both clients, with the same NumPy arrays, and compares.
"""
import contextlib
import gc
import inspect
import io
import os
import sys
import time
import unittest

FOLDER, LIBRARY = sys.argv.pop(1), sys.argv.pop(1)
DEVICES = 4
os.environ.update(
    CALX_CPU_LIBRARY=LIBRARY, JAX_PLATFORMS="calx", JAX_ENABLE_X64="0",
    CPU_NUM_DEVICES=str(DEVICES),
    XLA_FLAGS=f"--xla_force_host_platform_device_count={DEVICES}")
sys.path.insert(0, FOLDER)

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import io_callback
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

import calx_cpu_pjrt

calx_cpu_pjrt.initialize()  # a wheel's entry point does it


def devices(platform):
    return jax.devices(platform)[:DEVICES]


def on(platform, function, *arguments, **options):
    """The results of the jitted function on the first device, as NumPy's."""
    place = devices(platform)[0]
    moved = [jax.device_put(a, place) for a in arguments]
    with jax.default_device(place):
        results = jax.jit(function, **options)(*moved)
    for leaf in jax.tree.leaves(results):
        assert leaf.devices() == {place}
    return jax.tree.map(np.asarray, results)


def normal(*shape):
    return np.random.default_rng(7).standard_normal(shape, np.float32)


class OnBoth(unittest.TestCase):
    def equal(self, got, wanted, rtol=2e-5, atol=2e-5):
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol, atol),
            got, wanted)

    def both(self, function, *arguments, rtol=2e-5, atol=2e-5):
        got = on("calx", function, *arguments)
        self.equal(got, on("cpu", function, *arguments), rtol, atol)
        return got


def loss(weights, x, y):
    (w1, b1), (w2, b2) = weights
    hidden = jax.nn.gelu(x @ w1 + b1)
    scores = jax.nn.log_softmax(hidden @ w2 + b2)
    return -jnp.mean(jnp.take_along_axis(scores, y[:, None], 1))


def net():
    weights = [(normal(12, 32) / 4, np.zeros(32, np.float32)),
               (normal(32, 5) / 6, np.zeros(5, np.float32))]
    return weights, normal(16, 12), np.arange(16) % 5


def sgd(weights, x, y):
    grads = jax.grad(loss)(weights, x, y)
    return jax.tree.map(lambda w, g: w - 0.3 * g, weights, grads)


class Training(OnBoth):
    def test_platform(self):
        for device in devices("calx"):
            self.assertIn("calx ", device.client.platform_version)
        for device in devices("cpu"):
            self.assertNotIn("calx ", device.client.platform_version)

    def test_gradients(self):
        self.both(jax.value_and_grad(loss), *net())

    def test_steps(self):
        def train(weights, x, y):
            step = lambda w, _: (sgd(w, x, y), loss(w, x, y))
            return lax.scan(step, weights, None, length=20)

        _, losses = self.both(train, *net(), rtol=1e-4)
        self.assertLess(losses[-1], 0.5 * losses[0])

    def test_convolution(self):
        def f(image, kernel):
            y = lax.conv_general_dilated(
                image, kernel, (2, 2), "SAME",
                dimension_numbers=("NHWC", "HWIO", "NHWC"))
            return jnp.sum(jnp.tanh(y))

        self.both(jax.grad(f, (0, 1)), normal(2, 9, 9, 3), normal(3, 3, 3, 4))

    def test_donation(self):
        place = devices("calx")[0]
        x = jax.device_put(normal(64), place)
        y = jax.jit(lambda v: v + 1, donate_argnums=0)(x)
        self.equal(np.asarray(y), normal(64) + 1)
        self.assertTrue(x.is_deleted())


class Numbers(OnBoth):
    def test_random_bits(self):
        def bits(seed):
            key = jax.random.key(seed)
            return jax.random.bits(key, (100,)), jax.random.permutation(key, 33)

        for i in (0, 12345):
            self.both(bits, np.uint32(i), rtol=0, atol=0)

    def test_random_numbers(self):
        def draw(seed):
            keys = jax.random.split(jax.random.key(seed), 3)
            return (jax.random.normal(keys[0], (50,)),
                    jax.random.gamma(keys[1], 2.5, (20,)),
                    jax.random.categorical(keys[2], jnp.zeros((8, 6))))

        self.both(draw, np.uint32(5))

    def test_sorting(self):
        x = normal(6, 40)
        self.both(lambda v: (jnp.sort(v), jnp.argsort(v, descending=True),
                             lax.top_k(v, 7)), x, rtol=0, atol=0)

    def test_functions(self):
        """Those of CHLO; before 0.9 they come as custom calls."""
        x = np.linspace(0.05, 0.95, 21, dtype=np.float32)
        self.both(lambda v: (
            lax.erf(v), lax.erf_inv(v), jnp.tan(v), jnp.sinh(v), jnp.cosh(v),
            jnp.arcsin(v), jnp.arccos(v), jnp.arcsinh(v), jnp.arctanh(v),
            jnp.arccosh(1 + v), jnp.arcsinh(v + 1j * v), lax.lgamma(v)), x)

    def test_fft(self):
        self.both(lambda v: (jnp.fft.fft(v), jnp.fft.rfft2(v),
                             jnp.fft.irfft(jnp.fft.rfft(v))), normal(6, 30))

    def test_loops(self):
        def newton(x):
            far = lambda s: jnp.max(jnp.abs(s * s - x)) > 1e-3
            return lax.while_loop(far, lambda s: 0.5 * (s + x / s), x)

        x = np.abs(normal(20)) + 1
        self.both(newton, x)
        self.both(lambda v: lax.cond(
            v[0] > 2, lambda: v, lambda: lax.associative_scan(jnp.add, v)), x)


class Linalg(OnBoth):
    def test_solve(self):
        a = normal(3, 8, 8) + 4 * np.eye(8, dtype=np.float32)
        self.both(jnp.linalg.solve, a, normal(3, 8, 2))
        self.both(jax.grad(lambda m: jnp.linalg.slogdet(m)[1].sum()), a)

    def test_qr(self):
        a = normal(9, 5)
        q, r = self.both(jnp.linalg.qr, a)
        self.equal(q @ r, a)

    def test_eigh(self):
        a = normal(7, 7)
        a = a + a.T
        values, vectors = on("calx", jnp.linalg.eigh, a)
        self.equal(values, on("cpu", jnp.linalg.eigvalsh, a))
        self.equal(vectors * values @ vectors.T, a)

    def test_svd(self):
        a = normal(6, 4)
        f = lambda m: jnp.linalg.svd(m, full_matrices=False)
        u, s, vh = on("calx", f, a)
        self.equal(s, on("cpu", lambda m: f(m)[1], a))
        self.equal(u * s @ vh, a)


class Callbacks(OnBoth):
    def test_debug_print(self):
        seen, printed = [], io.StringIO()

        def f(x):
            jax.debug.callback(lambda v: seen.append(float(v)), x.sum())
            jax.debug.print("x[0] is {}", x[0])
            return 2 * x

        with contextlib.redirect_stdout(printed):
            got = on("calx", f, np.ones(4, np.float32))
            jax.effects_barrier()
        self.equal(got, np.full(4, 2, np.float32))
        self.assertEqual(seen, [4.0])
        self.assertEqual(printed.getvalue(), "x[0] is 1.0\n")

    def test_pure_callback(self):
        def f(x):
            shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
            return jax.pure_callback(lambda v: np.sort(v), shape, x) + 1

        self.both(f, normal(11))

    def test_ordered_callbacks(self):
        seen = []

        def f(x):
            def step(i, s):
                new = io_callback(lambda v, n: (seen.append(int(n)), v + n)[1],
                                  jax.ShapeDtypeStruct((), jnp.float32), s, i,
                                  ordered=True)
                return new.astype(jnp.float32)

            return lax.fori_loop(0, 5, step, x)

        got = on("calx", f, np.float32(1))
        jax.effects_barrier()
        self.equal(got, np.float32(11))
        self.assertEqual(seen, list(range(5)))

    def test_exception(self):
        def fails(_):
            raise ValueError("of the callback")

        def f(x):
            return jax.pure_callback(
                fails, jax.ShapeDtypeStruct((), jnp.float32), x)

        x = jax.device_put(np.float32(0), devices("calx")[0])
        with self.assertRaisesRegex(Exception, "of the callback"):
            jax.jit(f)(x)  # nothing waits for the result

    def test_no_results(self):
        """Of nothing, of an array, and of one that a mesh divides."""
        seen = []
        note = lambda *a: seen.append([v.shape for v in a])

        def f(*arguments):
            io_callback(note, None, *arguments)

        mesh = Mesh(np.array(devices("calx")), ("i",))
        x = normal(DEVICES, 3)
        with jax.default_device(devices("calx")[0]):
            jax.jit(f)()
            jax.effects_barrier()
            jax.jit(f)(x)
            jax.effects_barrier()
        jax.jit(f)(jax.device_put(x, NamedSharding(mesh, P("i"))))
        jax.effects_barrier()
        self.assertEqual(seen, [[], [x.shape], [x.shape]])

    def test_executable_goes_while_it_runs(self):
        seen = []

        def run():
            def f(x):
                y = lax.fori_loop(0, 300, lambda i, v: jnp.tanh(v @ v), x)
                io_callback(lambda v: seen.append(v.shape), None, y)

            jax.jit(f)(jax.device_put(normal(128, 128), devices("calx")[0]))

        run()
        jax.clear_caches()
        gc.collect()
        jax.effects_barrier()
        self.assertEqual(seen, [(128, 128)])


class Inspection(OnBoth):
    """What a compiled program and its tensors answer about themselves."""

    def compiled(self, platform, function, *arguments):
        with jax.default_device(devices(platform)[0]):
            return jax.jit(function).lower(*arguments).compile()

    def test_cost(self):
        def f(x, y):
            return jnp.tanh(x @ y)

        ours, theirs = [
            self.compiled(p, f, normal(64, 32), normal(32, 48)).cost_analysis()
            for p in ("calx", "cpu")]
        for name in ("flops", "transcendentals", "bytes accessed"):
            self.assertEqual(ours[name], theirs[name], name)

    def test_text(self):
        for f in (sgd, lambda w, x, y: jnp.linalg.svd(x),
                  lambda w, x, y: jax.random.normal(jax.random.key(0), (9,))):
            text = self.compiled("calx", f, *net()).as_text()
            self.assertTrue(text.startswith("HloModule jit_"), text)

    def test_sink(self):
        """What is only used by dce_sink is computed all the same."""
        def f(x):
            lax.dce_sink(jnp.sin(x) + 1, prevent_mlir_dce=True)
            return x * 2

        if "prevent_mlir_dce" not in inspect.signature(lax.dce_sink).parameters:
            return  # this JAX never sends it
        self.both(f, normal(5))
        self.assertIn("dce_sink", self.compiled("calx", f, normal(5)).as_text())

    def test_text_over_a_mesh(self):
        mesh = Mesh(np.array(devices("calx")).reshape(2, 2), ("x", "y"))
        place = [NamedSharding(mesh, P(*axes)) for axes in
                 (("x", "y"), ("y", None), ("x", None))]
        x, y = (jax.device_put(normal(8, 8), p) for p in place[:2])
        text = jax.jit(lambda a, b: a @ b, out_shardings=place[2]).lower(
            x, y).compile().as_text()
        self.assertIn("f32[4,4]", text)
        self.assertIn("all-reduce", text)

    def test_memory_kinds(self):
        place = devices("calx")[0]
        names = [m.kind for m in place.addressable_memories()]
        self.assertEqual(names, ["device", "pinned_host", "unpinned_host"])
        x = jax.device_put(normal(8), place)
        for name in names:
            there = jax.sharding.SingleDeviceSharding(place, memory_kind=name)
            moved = jax.device_put(x, there)
            computed = jax.jit(lambda v: v + 1, out_shardings=there)(moved)
            for array in (moved, computed):
                self.assertEqual(array.sharding.memory_kind, name)
            self.equal(np.asarray(computed), normal(8) + 1)


class Meshes(OnBoth):
    def mesh(self, platform, shape, names):
        return Mesh(np.array(devices(platform)).reshape(shape), names)

    def test_data_and_model(self):
        """A step with the batch and the hidden width divided."""
        weights, x, y = net()
        specs = [(P(None, "model"), P("model")), (P("model", None), P())]

        def run(platform):
            mesh = self.mesh(platform, (2, 2), ("data", "model"))
            put = lambda a, spec: jax.device_put(a, NamedSharding(mesh, spec))
            placed = [tuple(put(a, s) for a, s in zip(layer, spec))
                      for layer, spec in zip(weights, specs)]
            out = jax.jit(sgd)(placed, put(x, P("data")), put(y, P("data")))
            self.assertEqual(len(out[0][0].devices()), DEVICES)
            return jax.tree.map(np.asarray, out)

        got = run("calx")
        self.equal(got, run("cpu"))
        self.equal(got, on("calx", sgd, weights, x, y))

    def test_shard_map(self):
        x = normal(8, 6)

        def run(platform):
            mesh = self.mesh(platform, (DEVICES,), ("i",))

            def f(v):
                total = lax.psum(v.sum(), "i")
                right = [(k, (k + 1) % DEVICES) for k in range(DEVICES)]
                moved = lax.ppermute(v, "i", right)
                whole = lax.all_gather(v, "i", tiled=True)
                return moved + total, whole.sum(0)[None] + lax.axis_index("i")

            mapped = jax.shard_map(f, mesh=mesh, in_specs=P("i"),
                                   out_specs=P("i"), check_vma=False)
            return jax.tree.map(np.asarray, jax.jit(mapped)(x))

        self.equal(run("calx"), run("cpu"))

    def test_donation(self):
        """Of memory that results of other shapes and types take."""
        mesh = self.mesh("calx", (DEVICES,), ("i",))
        over = lambda *spec: NamedSharding(mesh, P(*spec))
        x, y, z = normal(16), normal(4, 4, 4), np.arange(64).reshape(4, 16)
        wanted = y.reshape(64), z * 2.0, x + x[0]

        def f(x, y, z):
            return y.reshape(64), z * 2.0, x + x[0]

        donated = [jax.device_put(v, over("i")) for v in (x, y, z.astype(np.int32))]
        got = jax.jit(f, donate_argnums=(0, 1, 2))(*donated)
        for g, w in zip(got, wanted):
            self.equal(np.asarray(g), w.astype(np.float32))
        self.assertTrue(all(v.is_deleted() for v in donated))

    def test_ordered_callback_in_shard_map(self):
        """Its token crosses the border, and a dimension of 0 is divided."""
        seen = []
        mesh = self.mesh("calx", (DEVICES,), ("i",))

        def f(v):
            io_callback(lambda a: seen.append(a.shape), (), v, ordered=True)
            return v * 2, v[:, 3:3]

        mapped = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P(None, "i"),
                                       out_specs=P(None, "i"), check_vma=False))
        x = np.arange(8 * DEVICES, dtype=np.float32).reshape(2, -1)
        doubled, empty = mapped(x)
        self.equal(np.asarray(doubled), x * 2)
        self.assertEqual(empty.shape, (2, 0))
        jax.effects_barrier()
        self.assertEqual(seen, [(2, 4)] * DEVICES)

    def test_embedding(self):
        """Rows of a divided table, their gradient, and an update in place."""
        table, at = normal(32, 6), np.arange(-2, 10).reshape(4, 3) * 5 % 37
        target = normal(4, 3, 6)

        def f(w, i, y):
            error = lambda v: jnp.sum((v[i] - y) ** 2)
            new = w - 0.1 * jax.grad(error)(w)
            moved = lax.dynamic_update_slice(new, new[:3] * 2, (i[0, 0], 0))
            return new, error(new), moved.at[i[:, 0]].max(1)

        def run(platform, spec):
            mesh = self.mesh(platform, (2, 2), ("data", "model"))
            put = lambda a, s: jax.device_put(a, NamedSharding(mesh, s))
            out = jax.jit(f)(put(table, spec), put(at, P("data")),
                             put(target, P("data")))
            return jax.tree.map(np.asarray, out)

        whole = on("calx", f, table, at, target)
        for spec in (P("data"), P("model"), P(None, "model"),
                     P(("model", "data"))):
            self.equal(run("calx", spec), whole)
        self.equal(whole, run("cpu", P()))

    def test_unreduced(self):
        x, w = normal(8, 6), normal(6, 4)

        def run(platform):
            kinds = (jax.sharding.AxisType.Explicit,) * 2
            mesh = Mesh(np.array(devices(platform)).reshape(2, 2), ("a", "b"),
                        axis_types=kinds)
            with jax.set_mesh(mesh):
                # A program of four partitions that names no mesh.
                self.assertEqual(jnp.array([2, 3], jnp.int32).tolist(), [2, 3])
                put = lambda v, s: jax.device_put(v, NamedSharding(mesh, s))
                parts = jax.jit(lambda p, q: jnp.einsum(
                    "ij,jk->ik", p, q,
                    out_sharding=P("a", None, unreduced={"b"})))(
                        put(x, P("a", "b")), put(w, P("b", None)))
                shards = [np.asarray(s.data) for s in parts.addressable_shards]
                whole = jax.jit(lambda z: [
                    jax.sharding.reshard(z, s)
                    for s in (P("a", None), P("a", "b"), P(None, None))])(parts)
                back = jax.jit(lambda z: jax.sharding.reshard(
                    z, P(None, None, unreduced={"a", "b"})))(whole[2])
                first = [np.asarray(s.data) for s in back.addressable_shards]
            return shards, first, jax.tree.map(np.asarray, whole)

        got, wanted = run("calx"), run("cpu")
        self.equal(sum(got[1]), x @ w)
        if jax.__version_info__ < (0, 9):  # XLA has it on every device there
            got, wanted = (got[0], got[2]), (wanted[0], wanted[2])
        self.equal(got, wanted)
        for product in got[-1]:
            self.equal(product, x @ w)

    def on_mesh(self, platform, function, x):
        """Its results with x cut over the mesh, and what it recorded."""
        mesh = self.mesh(platform, (2, 2), ("a", "b"))
        seen = []
        placed = jax.device_put(x, NamedSharding(mesh, P("a", "b")))
        with jax.set_mesh(mesh):
            jitted = jax.jit(lambda v: function(v, seen))
            got = jitted(placed)
        jax.effects_barrier()
        return jax.tree.map(np.asarray, got), seen

    def test_callbacks_run_once(self):
        """A callback has the whole argument, on one device of the mesh."""
        x = normal(4, 6)

        def f(v, seen):
            def host(a):
                seen.append(float(a.sum()))
                return -a, np.array([True, False]), np.complex64(3 - 2j)

            shapes = (jax.ShapeDtypeStruct(v.shape, v.dtype),
                      jax.ShapeDtypeStruct((2,), bool),
                      jax.ShapeDtypeStruct((), np.complex64))
            y, flags, z = io_callback(host, shapes, v)
            jax.debug.callback(lambda a: seen.append(float(a.sum())), y)
            w = jax.pure_callback(lambda a: np.sort(a), shapes[0], y * 2)
            return w + flags[0], flags, z

        got, seen = self.on_mesh("calx", f, x)
        wanted, seen_there = self.on_mesh("cpu", f, x)
        self.equal(got, wanted)
        self.assertEqual(len(seen), 2)
        self.equal(sorted(seen), sorted(seen_there))

    def test_callback_on_its_device(self):
        x = np.array([[-0.0, np.nan], [1, 2]], np.float32)

        def f(v, seen):
            def host(a):
                seen.append(1)
                return a

            place = jax.sharding.SingleDeviceSharding(devices("calx")[3])
            return io_callback(host, jax.ShapeDtypeStruct(v.shape, v.dtype), v,
                               sharding=place)

        got, seen = self.on_mesh("calx", f, x)
        self.assertEqual(got.tobytes(), x.tobytes())
        self.assertEqual(seen, [1])

    def test_ordered_callbacks_on_meshes(self):
        """In order in a program, in loops, and over launches on other devices."""
        seen = []

        def see(i, v):
            if len(seen) % 3 == 0:
                time.sleep(0.02)
            seen.append((int(i), float(v.sum())))

        def f(i, v):
            io_callback(see, None, i, v, ordered=True)
            sized = jax.ShapeDtypeStruct(v.shape, v.dtype)
            w = io_callback(lambda a: a + 1, sized, v, ordered=True)
            lax.fori_loop(0, 2, lambda k, _: io_callback(
                see, None, i + 100 * (k + 1), w, ordered=True), None)

        jitted = jax.jit(f)
        for i in range(2 * DEVICES):
            pair = [devices("calx")[(i + k) % DEVICES] for k in range(2)]
            mesh = Mesh(np.array(pair), ("i",))
            x = jax.device_put(np.arange(2, dtype=np.float32) + i,
                               NamedSharding(mesh, P("i")))
            jitted(jax.device_put(np.int32(i), NamedSharding(mesh, P())), x)
        jax.effects_barrier()
        wanted = []
        for i in range(2 * DEVICES):
            total = 2.0 * i + 1
            wanted += [(i, total), (i + 100, total + 2), (i + 200, total + 2)]
        self.assertEqual(seen, wanted)


if __name__ == "__main__":
    unittest.main()
