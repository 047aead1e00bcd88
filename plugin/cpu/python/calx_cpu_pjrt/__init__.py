"""JAX's plugin for the CPU engine of calx: JAX_PLATFORMS=calx.

JAX finds initialize() by the entry point "calx" of the group jax_plugins and
calls it once, before it makes its first client.
"""

import pathlib

_LIBRARY = pathlib.Path(__file__).resolve().parent / "libcalx_cpu.so"


def library_path():
    """The engine, a PJRT plugin; CALX_CPU_LIBRARY names another build of it."""
    import os

    return os.environ.get("CALX_CPU_LIBRARY", str(_LIBRARY))


def initialize():
    """Registers the platform "calx", and what custom calls need."""
    from jax._src import xla_bridge

    from calx_cpu_pjrt import platforms

    path = library_path()
    # Else JAX warns of a platform that it does not know.
    getattr(xla_bridge, "_nonexperimental_plugins", set()).add("calx")
    # As "cpu" the engine gets the lowering rules that JAX has for XLA's client.
    # Its priority is below that client's, so that it runs where it is asked for.
    xla_bridge.register_plugin(
        "calx", priority=-100, library_path=path,
        options={"platform_name": "cpu"})
    platforms.initialize(path)
