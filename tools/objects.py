"""objects: the objects of a build, for check-layers and check-names.

What the build compiles is in its compile_commands.json; what an object defines
and needs, nm reads. An object that a former build left behind is not looked at.
"""

import json
import re
import shlex
import subprocess
from pathlib import Path

LINE = re.compile(r"(.*): (\S+) ([A-Za-z])\b")


class Object:
    """Of one source: the external symbols that it defines and that it needs."""

    def __init__(self, source):
        self.source = source  # a Path, relative to the root or the build
        self.defined, self.needed = set(), set()


def output_of(entry):
    """The object that an entry of compile_commands.json makes."""
    words = shlex.split(entry["command"])
    return Path(entry["directory"]) / words[words.index("-o") + 1]


def relative(file, root, build):
    """A source's path in the tree; a generated one's in the build is the same."""
    for base in (build, root):
        if file.is_relative_to(base):
            return file.relative_to(base)
    return None


def read(build, root, places):
    """(objects of the sources in `places`, sources without one).

    A source that several targets compile is one object, if any has built it.
    """
    commands = json.loads((build / "compile_commands.json").read_text())
    files, wanted = {}, set()
    for entry in commands:
        source = relative(Path(entry["file"]).resolve(), root, build)
        if source is None or source.parts[0] not in places:
            continue
        wanted.add(source.as_posix())
        output = output_of(entry)
        if output.is_file():
            files[output.as_posix()] = source
    objects = {}
    if files:
        listed = subprocess.run(["nm", "-A", "--format=posix", *sorted(files)],
                                capture_output=True, text=True, check=True).stdout
        for row in listed.splitlines():
            match = LINE.match(row)
            if not match:
                continue
            file, symbol, kind = match.groups()
            source = files[file]
            one = objects.setdefault(source, Object(source))
            if kind in "Uwv":
                one.needed.add(symbol)
            elif kind.isupper():
                one.defined.add(symbol)
    missing = wanted - {source.as_posix() for source in files.values()}
    return sorted(objects.values(), key=lambda o: o.source), sorted(missing)
