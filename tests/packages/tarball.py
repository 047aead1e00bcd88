"""tarball.py SOURCE BUILD CC: the tarball of tools/make-tarball, unpacked in a
folder of its own and then moved: the program runs, and programs are built against
it by pkg-config and by find_package.

BUILD is the portable build, which is kept.
"""

import re
import sys
import tarfile
from pathlib import Path

from support import (PROGRAM, WORK, check, check_glibc, check_program, end, must,
                     run)

source, build = map(Path, sys.argv[1:3])
cc = sys.argv[3]
# Of the system alone: nothing else may be found along its path.
SYSTEM = re.compile(r"^(linux-vdso|/lib64/ld-linux|lib(c|m|gcc_s|stdc\+\+)\.so)")


def unpack():
    said = must("python3", "-B", source / "tools/make-tarball", "--build", build,
                "--out", WORK)
    first = WORK / "first"
    with tarfile.open(said.split()[0]) as tar:
        tar.extractall(first)
    name = next(first.iterdir())
    moved = WORK / "some where" / "calx"
    moved.parent.mkdir()
    name.rename(moved)
    return moved


def check_loader(prefix):
    """Each of calx's files finds what it needs in the tarball."""
    for path in [prefix / "bin/calx", *sorted(prefix.glob("lib/libcalx*.so*"))]:
        if path.is_symlink() or "mpi" in path.name:
            continue
        strange = []
        for line in must("ldd", path).splitlines():
            name, _, where = line.strip().partition(" => ")
            if not SYSTEM.match(name) and not where.startswith(str(prefix)):
                strange.append(line)
        check(f"{path.name} needs nothing that is not in the tarball",
              not strange, "\n".join(strange))


def check_calx(prefix):
    code, said = run(prefix / "bin/calx", "devices")
    check("calx devices", code == 0 and "calx_cpu" in said, said)
    (WORK / "dot.mlir").write_text(
        "func.func @main(%a: tensor<512x512xf32>) -> tensor<512x512xf32> {\n"
        "  %b = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : "
        "(tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>\n"
        "  %c = stablehlo.exponential %b : tensor<512x512xf32>\n"
        "  return %c : tensor<512x512xf32>\n}\n")
    (WORK / "a.bin").write_bytes(bytes(512 * 512 * 4))
    code, said = run(prefix / "bin/calx", "hlo", "run", WORK / "dot.mlir",
                     "--input", WORK / "a.bin", "--output", WORK,
                     LD_DEBUG="files")
    results = (WORK / "0.bin").read_bytes() if code == 0 else b""
    check("calx hlo run", results == b"\0\0\x80\x3f" * 512 * 512, said[-2000:])
    for name in ["libcalx_jit.so", "libdnnl.so.2", "libgomp.so.1"]:
        paths = set(re.findall(rf"calling init: (\S.*/{re.escape(name)})", said))
        check(f"{name} is the tarball's",
              len(paths) == 1 and str(prefix) in str(Path(*paths).resolve()),
              str(paths))


def check_pkg_config(prefix):
    found = str(prefix / "lib/pkgconfig")
    # A system that has no file of pkg-config but these.
    flags = must("pkg-config", "--cflags", "--libs", "calx",
                 PKG_CONFIG_LIBDIR=found).strip()
    must(f"{cc} -std=c11 {PROGRAM} {flags} -o by_pkg_config", shell=True)
    check_program("pkg-config", WORK / "by_pkg_config",
                  prefix / "lib/libcalx_jit.so")


def configure(prefix, component):
    folder = WORK / f"project{component}"
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(p C)\n"
        f"find_package(calx 0.1 REQUIRED {component})\n"
        f"add_executable(program {PROGRAM})\n"
        "target_link_libraries(program PRIVATE calx::calx)\n")
    return folder, run("cmake", "-G", "Ninja", "-S", folder, "-B", folder / "build",
                       f"-DCMAKE_C_COMPILER={cc}", f"-DCMAKE_PREFIX_PATH={prefix}")


def check_cmake(prefix):
    folder, (code, said) = configure(prefix, "")
    check("find_package", code == 0, said)
    must("cmake", "--build", folder / "build")
    check_program("find_package", folder / "build/program",
                  prefix / "lib/libcalx_jit.so")
    _, (code, said) = configure(prefix, "COMPONENTS static")
    check("the static library is refused by name",
          code != 0 and "libcalx.a" in said, said)


def check_pages(prefix):
    for name in ["calx", "calx-hlo-run"]:
        page = prefix / f"share/man/man1/{name}.1"
        check(f"{name}(1) is there", page.is_file())
    names = {p.name for p in (prefix / "share/doc/calx/licenses").iterdir()}
    check("the licences of what is packed are there",
          {"calx", "libdnnl2", "libzip4", "llvm-19-dev"} <= names, str(names))


prefix = unpack()
check_glibc(prefix)
check_loader(prefix)
check_calx(prefix)
check_pkg_config(prefix)
check_cmake(prefix)
check_pages(prefix)
end()
