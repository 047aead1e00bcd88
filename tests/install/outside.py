"""outside.py installed|subproject SOURCE BUILD CC: projects outside of the tree
that use calx, each way that README.md says.

installed:   BUILD is installed to a prefix that it was not configured for, and
             programs are built against that: find_package and pkg-config, with
             the shared library and the static one, and README's own lines.
subproject:  a project that has calx as a part, by add_subdirectory. All of calx
             is compiled once more, for debugging, as this is the fastest.

Each program is run where it is not built, and must load the engine's compiler
from where the way says.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

part, source, build, cc = sys.argv[1], *map(Path, sys.argv[2:4]), sys.argv[4]
here = Path(__file__).parent
work = Path(os.environ["TMPDIR"]).resolve()
prefix = work / "prefix"
failed = False
# Programs are compiled anew, and on the library's own engine.
environment = dict(os.environ, CALX_CACHE_DIR="off", CALX_PLUGIN="calx")
for name in ("CALX_JIT", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "CALX_DUMP"):
    environment.pop(name, None)


def check(what, good, said=""):
    global failed
    print(f"{'ok' if good else 'FAILED'}: {what}", flush=True)
    if not good:
        failed = True
        print(said)
    return good


def run(*words, cwd=work, shell=False, **variables):
    done = subprocess.run(
        words[0] if shell else [str(word) for word in words], cwd=cwd, shell=shell,
        env=environment | variables, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def must(*words, **options):
    code, said = run(*words, **options)
    if code != 0:
        sys.exit(f"FAILED: {words}: exit {code}\n{said}")
    return said


def check_program(what, program, libraries):
    """It runs from another folder, and its compiler is of `libraries`."""
    elsewhere = work / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    code, said = run(program, cwd=elsewhere)
    check(f"{what}: runs", code == 0 and "sum 4200.00" in said, said)
    loaded = re.search(r"^compiler (.*)$", said, re.M)
    check(f"{what}: its compiler is in {libraries}",
          loaded and Path(loaded[1]) == libraries / "libcalx_jit.so", said)


def project(name, lines, *options):
    """Builds a project of `lines` for CMake, configured with `options`."""
    folder = work / name
    folder.mkdir()
    (folder / "program.c").write_text((here / "program.c").read_text())
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\n"
        f"project({name} C)\n" + "\n".join(lines) + "\n")
    said = must("cmake", "-G", "Ninja", "-S", folder, "-B", folder / "build",
                f"-DCMAKE_C_COMPILER={cc}", *options)
    must("cmake", "--build", folder / "build")
    return folder / "build", said


# ---- installed ---------------------------------------------------------------


def install():
    must("cmake", "--install", build, "--prefix", prefix)
    code, said = run(prefix / "bin/calx", "devices", cwd=work)
    check("the program calx runs", code == 0 and "calx_cpu" in said, said)
    (work / "add.mlir").write_text(
        "func.func @main() -> tensor<1000xf32> {\n"
        "  %a = stablehlo.iota dim = 0 : tensor<1000xf32>\n"
        "  %b = stablehlo.exponential %a : tensor<1000xf32>\n"
        "  return %b : tensor<1000xf32>\n}\n")
    code, said = run("strace", "-f", "-e", "trace=openat", prefix / "bin/calx",
                     "hlo", "run", work / "add.mlir", "--output", work)
    opened = re.findall(r'"([^"]*libcalx_jit\.so)"[^\n]*= \d', said)
    check("the program calx: its compiler is in lib/",
          {Path(path).resolve() for path in opened}
          == {prefix / "lib/libcalx_jit.so"}, said)


def cmake_package():
    for component in ("", " COMPONENTS static"):
        kind = "static" if component else "calx"
        tree, _ = project(
            f"found_{kind}",
            [f"find_package(calx 0.1 REQUIRED{component})",
             "add_executable(program program.c)",
             f"target_link_libraries(program PRIVATE calx::{kind})"],
            f"-DCMAKE_PREFIX_PATH={prefix}")
        check_program(f"find_package, calx::{kind}", tree / "program",
                      prefix / "lib")
        shared = "libcalx.so" in must("readelf", "-d", tree / "program")
        check(f"calx::{kind} is what it says", shared == (kind == "calx"))


def pkg_config():
    found = str(prefix / "lib/pkgconfig")
    for name, shared in (("calx", True), ("calx-static", False)):
        must(f"{cc} -std=c11 {here}/program.c $(pkg-config --cflags --libs {name})"
             f" -o {name}", shell=True, PKG_CONFIG_PATH=found)
        check_program(f"pkg-config {name}", work / name, prefix / "lib")
        check(f"{name} is what it says", shared == (
            "libcalx.so" in must("readelf", "-d", work / name)))
    # As those who have only the archive call it.
    must(f"{cc} -std=c11 {here}/program.c $(pkg-config --cflags --static --libs "
         f"calx | sed 's/-lcalx /-l:libcalx.a /') -o private", shell=True,
         PKG_CONFIG_PATH=found)
    check_program("pkg-config --static", work / "private", prefix / "lib")


def readme():
    """The program and the lines of README.md, in a folder that is not calx's."""
    text = (source / "README.md").read_text()
    folder = work / "readme"
    folder.mkdir()
    code = re.search(r"```c\n(#include.*?)```", text, re.S)[1]
    (folder / "hello.c").write_text(code)
    lines = re.findall(r"^    (cc .*?(?:\\\n.*?)*)$", text, re.M)
    check("README.md has both lines for a compiler", len(lines) == 2, str(lines))
    for line in lines:
        (folder / "hello").unlink(missing_ok=True)
        # The clone's libraries are where this build put them.
        line = line.replace("$calx/build/release", str(build))
        must(re.sub(r"^cc ", f"{cc} ", line), shell=True, cwd=folder,
             calx=str(source), PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
        code, said = run(folder / "hello", cwd="/")
        check(f"README.md: {line.split('-o')[0][:40]}… runs elsewhere",
              code == 0 and said.count("tensor([[") == 2, said)


# ---- part of another project -------------------------------------------------


def subproject():
    tree, said = project(
        "parent",
        ["set(CMAKE_C_STANDARD 99)",
         f"add_subdirectory({source} calx EXCLUDE_FROM_ALL)",
         "foreach(kind calx static)",
         "  add_executable(program_${kind} program.c)",
         "  target_link_libraries(program_${kind} PRIVATE calx::${kind})",
         "endforeach()",
         "get_property(options DIRECTORY PROPERTY COMPILE_OPTIONS)",
         "message(STATUS \"parent: '${options}' '${CMAKE_BUILD_TYPE}' \"",
         "  \"'${CMAKE_RUNTIME_OUTPUT_DIRECTORY}' '${CMAKE_C_STANDARD}'\")",
         "enable_testing()"],
        "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O0",
        f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCALX_INSTALL=ON")
    check("the parent's settings are its own", "parent: '' 'Debug' '' '99'" in said,
          said)
    for kind in ("calx", "static"):
        check_program(f"add_subdirectory, calx::{kind}", tree / f"program_{kind}",
                      tree / "calx")
    _, tests = run("ctest", "-N", cwd=tree)
    check("calx's tests are not the parent's", "Total Tests: 0" in tests, tests)
    for name in ("examples/mnist", "bench/trace", "calx"):
        check(f"calx's {name} is not built",
              not (tree / "calx" / name).is_file(), name)
    # Installed as it was configured, a program without a hint finds its compiler.
    (prefix / "lib").mkdir(parents=True)
    os.rename(tree / "calx/libcalx_jit.so", prefix / "lib/libcalx_jit.so")
    away = work / "away"
    os.rename(tree / "program_static", away)
    check_program("a static program elsewhere", away, prefix / "lib")


if part == "installed":
    install()
    cmake_package()
    pkg_config()
    readme()
else:
    subproject()
sys.exit(1 if failed else 0)
