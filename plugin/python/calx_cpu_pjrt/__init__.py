"""JAX's plugin for the CPU engine of calx: JAX_PLATFORMS=calx.

JAX finds initialize() by the entry point "calx" of the group jax_plugins and
calls it once, before it makes its first client.
"""

import ctypes
import os
import pathlib

_FOLDER = pathlib.Path(__file__).resolve().parent


def library_path():
    """The engine, a PJRT plugin; CALX_CPU_LIBRARY names another build of it."""
    return os.environ.get("CALX_CPU_LIBRARY", str(_FOLDER / "libcalx_cpu.so"))


def _load_libraries():
    """Loads oneDNN and what it needs from the wheel.

    The engine opens oneDNN by its name, which finds what is loaded already.
    """
    for name in ["libgomp.so.1", "libOpenCL.so.1", "libdnnl.so.2"]:
        path = _FOLDER / name
        if path.exists():
            ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL)


def initialize():
    """Registers the platform "calx", and what custom calls need."""
    from jax._src import xla_bridge

    from calx_cpu_pjrt import platforms

    def options():  # asked for when the client is made
        _load_libraries()
        # As "cpu" the engine gets the rules that JAX has for XLA's client.
        chosen = {"platform_name": "cpu"}
        count = xla_bridge.num_cpu_devices.value
        if count > 0:  # jax.config; else the engine reads CPU_NUM_DEVICES
            chosen["cpu_device_count"] = count
        return chosen

    path = library_path()
    # Else JAX warns of a platform that it does not know.
    getattr(xla_bridge, "_nonexperimental_plugins", set()).add("calx")
    # The priority is below that of XLA's client: the engine runs where it is
    # asked for.
    xla_bridge.register_plugin(
        "calx", priority=-100, library_path=path, options=options)
    platforms.initialize(path)
