"""deb.py SOURCE BUILD CC: the packages of tools/make-deb: what is in them, what
they need, and a program that is built against them in a scratch root.

BUILD is the build for /usr, which is kept.
"""

import re
import shutil
import sys
from pathlib import Path

from support import PROGRAM, WORK, check, check_program, end, must, run

source, build = map(Path, sys.argv[1:3])
cc = sys.argv[3]
multiarch = must("dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip()
lib = f"usr/lib/{multiarch}"
root = WORK / "root"

# What each must have, and what only one may have.
CONTENTS = {
    "libcalx0": [f"{lib}/libcalx.so.0", f"{lib}/libcalx_jit.so",
                 f"{lib}/libcalx_cpu.so"],
    "libcalx-dev": [f"{lib}/libcalx.so", f"{lib}/libcalx.a",
                    f"{lib}/pkgconfig/calx.pc", f"{lib}/pkgconfig/calx-static.pc",
                    f"{lib}/cmake/calx/calx-config.cmake",
                    "usr/include/calx/calx.h"],
    "calx": ["usr/bin/calx", "usr/share/man/man1/calx.1.gz",
             "usr/share/man/man1/calx-hlo-run.1.gz"],
}
DEPENDS = {
    "libcalx0": ["libc6", "zlib1g", "libjansson4", "libllvm19"],
    "libcalx-dev": ["libcalx0", "zlib1g-dev", "libjansson-dev", "libzip-dev"],
    "calx": ["libcalx0", "libc6"],
}


def field(deb, name):
    return must("dpkg-deb", "-f", deb, name).strip()


def packages_of(depends):
    return {re.match(r"\s*([a-z0-9.+-]+)", d)[1] for d in depends.split(",")}


def check_package(name, deb):
    listed = [line.split(None, 5) for line in
              must("dpkg-deb", "-c", deb).splitlines()]
    files = {entry[5].split(" -> ")[0].removeprefix("./") for entry in listed
             if not entry[0].startswith("d")}
    missing = [f for f in CONTENTS[name] if f not in files]
    check(f"{name}: has its files", not missing, f"{missing}\n{sorted(files)}")
    check(f"{name}: belongs to root", {e[1] for e in listed} == {"root/root"})
    check(f"{name}: nothing is writable by others",
          not [e for e in listed if e[0][8] == "w" and e[0][0] != "l"])
    for known in [f"usr/share/doc/{name}/copyright",
                  f"usr/share/doc/{name}/changelog.gz"]:
        check(f"{name}: has {known}", known in files)
    depends = packages_of(field(deb, "Depends"))
    missing = [p for p in DEPENDS[name] if p not in depends]
    check(f"{name}: depends on what it needs", not missing,
          f"{missing} not in {sorted(depends)}")
    check(f"{name}: depends on no MPI", not [p for p in depends if "mpi" in p])
    return files


def check_installed(debs):
    """dpkg's own database in a scratch root, and programs of what is there."""
    database = root / "var/lib/dpkg"
    for folder in ("info", "updates", "triggers"):
        (database / folder).mkdir(parents=True)
    (database / "status").touch()
    # The scratch root has none of what these depend on, nor ldconfig.
    code, said = run("dpkg", f"--root={root}", "--log=/dev/null", "--force-depends",
                     "--force-not-root", "--no-triggers", "--force-bad-path",
                     "--unpack", *debs)
    check("dpkg unpacks them", code == 0, said)
    said = must("dpkg-query", f"--admindir={database}", "-W",
                "-f=${Package} ${db:Status-Status}\n")
    check("dpkg knows them", sorted(said.split()[::2]) == sorted(CONTENTS), said)


def check_programs():
    where = str(root / lib)
    code, said = run(root / "usr/bin/calx", "devices")
    check("the program runs", code == 0 and "calx_cpu" in said, said)
    flags = must("pkg-config", "--cflags", "--libs", "calx",
                 PKG_CONFIG_PATH=f"{where}/pkgconfig").strip()
    check("pkg-config needs no rpath in /usr", "rpath" not in flags, flags)
    must(f"{cc} -std=c11 {PROGRAM} {flags} -o by_pkg_config", shell=True)
    check_program("pkg-config", WORK / "by_pkg_config",
                  root / lib / "libcalx_jit.so", LD_LIBRARY_PATH=where)
    folder = WORK / "project"
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(p C)\n"
        "find_package(calx 0.1 REQUIRED COMPONENTS static)\n"
        f"add_executable(program {PROGRAM})\n"
        "target_link_libraries(program PRIVATE calx::static)\n")
    must("cmake", "-G", "Ninja", "-S", folder, "-B", folder / "build",
         f"-DCMAKE_C_COMPILER={cc}", f"-DCMAKE_PREFIX_PATH={root}/usr")
    must("cmake", "--build", folder / "build")
    check_program("find_package", folder / "build/program",
                  root / lib / "libcalx_jit.so")


must(source / "tools/make-deb", "--build", build, "--out", WORK)
debs = {name: next(WORK.glob(f"{name}_*.deb")) for name in CONTENTS}
files = {name: check_package(name, deb) for name, deb in debs.items()}
every = [f for part in files.values() for f in part]
check("no file is in two packages", len(every) == len(set(every)))
check("libcalx0 has nothing for development",
      not [f for f in files["libcalx0"] if f.endswith((".h", ".a", ".pc"))])
if shutil.which("lintian"):
    code, said = run("lintian", "--fail-on", "error", "--allow-root", *debs.values())
    check("lintian finds no error", code == 0, said)
check_installed(debs.values())
check_programs()
end()
