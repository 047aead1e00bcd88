"""portable: the build that make-wheel and make-tarball pack, for x86-64 Linux with
glibc 2.34, libgcc_s and libstdc++ of GCC 11 or later: Ubuntu 22.04, Debian 12.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "portable"
VERSION = re.search(r"project\(calx VERSION ([0-9.]+)",
                    (ROOT / "CMakeLists.txt").read_text())[1]
NEWEST = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13),
          "GCC": (12,), "GOMP": (5,)}
# oneDNN, which the engine loads while it runs, and what that is linked with.
ONEDNN = ["libdnnl.so.2", "libgomp.so.1", "libOpenCL.so.1"]
SYSTEM = re.compile(r"(ld-linux-x86-64|libc|libm|libdl|libpthread|libgcc_s|"
                    r"libstdc\+\+)\.so\.\d+$")


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], text=True,
                          stdout=subprocess.PIPE, **options)
    if done.returncode != 0:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {command[0]} failed:\n"
                 f"{done.stdout}")
    return done.stdout


def compile_portable(build, *targets):
    """Configures the build and compiles the targets; none: all."""
    build = build.resolve()
    # A plugin is never looked for where this was built.
    run("cmake", "--preset", "release", "-S", ROOT, "-B", build,
        "-DCALX_PORTABLE=ON", "-DCALX_TESTS=OFF", "-DCALX_EXAMPLES=OFF",
        "-DCALX_BENCH=OFF", "-DCALX_PLUGIN_DIR_DEFAULT=/usr/lib/calx/plugins",
        cwd=ROOT)
    run("cmake", "--build", build, *(["--target", *targets] if targets else []))


def system_library(name):
    """Where the loader finds a library on this system."""
    for line in run("/sbin/ldconfig", "-p").splitlines():
        found = re.match(rf"\s*{re.escape(name)} \(.*x86-64.*=> (\S+)", line)
        if found:
            return pathlib.Path(found[1])
    sys.exit(f"{pathlib.Path(sys.argv[0]).name}: this system has no {name}")


def needed(path):
    """The names of the libraries that a file is linked with, but the system's."""
    names = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", path))
    return [name for name in names if not SYSTEM.match(name)]


def check_symbols(path):
    """Refuses a file that wants a newer system than is said above."""
    wanted = re.findall(r"\((GLIBC|GLIBCXX|CXXABI|GCC|GOMP)_([0-9.]+)\)",
                        run("objdump", "-T", path))
    for library, version in wanted:
        if tuple(map(int, version.split("."))) > NEWEST[library]:
            sys.exit(f"{path.name} needs {library} {version}, and is to run with "
                     f"{'.'.join(map(str, NEWEST[library]))}")


def package_of(path):
    """The Debian package that a file is of."""
    real = str(path.resolve())
    # Where /lib is a link to /usr/lib, dpkg may know the shorter name alone.
    for name in [real, real.removeprefix("/usr"), str(path)]:
        said = subprocess.run(["dpkg", "-S", name], text=True,
                              capture_output=True).stdout
        if said:
            return said.split(":")[0]
    sys.exit(f"no package of this system has {path}, whose licence is packed too")


def licences(libraries):
    """The texts for what is packed, by package: calx, libraries, archives."""
    llvm = pathlib.Path(run("llvm-config-19", "--libdir").strip())
    inside = [llvm / "libLLVMX86CodeGen.a"]
    for name in ["libz.a", "libxxhash.a", "libprotobuf-c.a", "libstdc++.a"]:
        inside.append(pathlib.Path(run("cc", f"-print-file-name={name}").strip()))
    texts = {"calx": (ROOT / "LICENSE").read_bytes()}
    for package in sorted({package_of(p) for p in [*libraries, *inside]}):
        texts[package] = pathlib.Path(
            f"/usr/share/doc/{package}/copyright").read_bytes()
    return texts
