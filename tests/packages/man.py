"""man.py MAKE_MAN CALX: each command has a man page, with all that --help says."""

import re
import sys
from pathlib import Path

from support import WORK, check, end, must, run

make_man, calx = sys.argv[1:]
pages = WORK / "man"
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


def words(text):
    return re.sub(r"\s+", " ", text.replace("\\&", "").replace("\\e", "\\"))


def shown(page):
    """The page as man prints it, without its lines' ends."""
    code, said = run("man", "--warnings", "--encoding=UTF-8", "--local-file", page,
                     MANWIDTH="1000", MAN_KEEP_FORMATTING="", MANROFFOPT="-c")
    check(f"{page.name}: man has no complaint", code == 0 and "warning" not in said,
          said)
    return words(re.sub(".\b", "", said))


def check_page(name, command):
    page = pages / f"{name}.1"
    if not page.is_file():
        check(f"{name}: there is a page", False)
        return
    text = shown(page)
    said = must(calx, *command, "--help")
    options = set(OPTION.findall(said))
    missing = [o for o in options if o not in text]
    check(f"{name}: has the {len(options)} options", not missing, str(missing))
    # And the sentences, but for the words that became headings.
    plain = words(re.sub(r"^(usage|Exit status):? *", "", said, flags=re.M))
    lost = [w for w in plain.split() if w not in text]
    check(f"{name}: has the text", not lost, str(lost))
    source = page.read_text()
    heads = re.findall(r"^\.TP\n\.B \\-.*", source, re.M)
    terms = re.findall(r"^  -", said, re.M)
    check(f"{name}: {len(terms)} options are headed so", len(heads) == len(terms),
          source)


must(make_man, calx, pages)
names = {"calx": []}
for command in re.findall(r"^  ([a-z]+(?: [a-z]+)?)  ", must(calx, "--help"), re.M):
    names["calx-" + command.replace(" ", "-")] = command.split()
check("commands are found", len(names) >= 10, str(names))
for name, command in names.items():
    check_page(name, command)
there = {page.stem for page in pages.iterdir()}
check("no other page", there == set(names), str(there ^ set(names)))
end()
