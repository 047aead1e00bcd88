"""What JAX has to know of the platform "calx" beyond a PJRT plugin."""

from jax._src import config
from jax._src.lib import xla_client

from calx_cpu_pjrt import callbacks, ffi


def _add_cpu():
    """Makes XLA's CPU client available beside the engine.

    JAX places the arguments of callbacks there, as it does for GPUs.
    """
    asked = config.jax_platforms.value
    names = asked.split(",") if asked else []
    if "calx" in names and "cpu" not in names:
        config.update("jax_platforms", asked + ",cpu")


def _register_targets(library):
    """Gives the engine the functions that are registered for "cpu".

    They go to XLA's CPU client too, which else would be the only one to get
    them. The handler takes those that are registered already as well.
    """
    from jaxlib import _jax

    def register(name, function, platform, api_version=1, traits=0):
        _jax.register_custom_call_target(
            name, function, platform, api_version, traits)
        if api_version == 1:
            library.register(name, function)

    xla_client.register_custom_call_handler("cpu", register)


def initialize(path):
    _add_cpu()
    library = ffi.Library(path)
    _register_targets(library)
    callbacks.initialize(library)
