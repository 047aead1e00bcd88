"""html_read.py PAGE: the page of the test html.c is well-formed, needs nothing but
itself, and has every curve, text and value that was logged, and no element that came
from a name."""

import re
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

SCRIPT = "<script>alert(\"1\")</script> & 'x'"
UNICODE = "\u00e9  [31m?\n\u202e"
ELEMENTS = """html head meta title style body header h1 span p section h2 div svg g path
    text ellipse table thead tbody tr th td pre details summary ul li b br rect""".split()


class Reader(HTMLParser):
    VOID = {"meta", "br"}

    def __init__(self, page):
        super().__init__()
        self.open = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        assert tag in ELEMENTS, tag
        assert not any(name.startswith("on") for name, _ in attrs), attrs
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in ELEMENTS, tag

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


def drawn(svg, label):
    """The subpaths of each curve, whose points must be inside of the plot."""
    width, height = map(float, svg.get("viewBox").split()[2:])
    curves = []
    for path in svg.iter("path"):
        if path.get("stroke-linecap") != "round":
            continue
        parts = [re.findall(r"[ML]?([\d.]+) ([\d.]+)", part)
                 for part in path.get("d").split("M")[1:]]
        for x, y in (point for part in parts for point in part):
            assert 0 <= float(x) <= width and 0 <= float(y) <= height, (label, x, y)
        curves.append([len(part) for part in parts])
    return curves


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        page = file.read()
    assert Reader(page).open == []
    for stranger in ("<script", "http", "@import", "url(", "<img", "src="):
        assert stranger not in page.replace("&lt;img src=", ""), stranger
    root = ElementTree.fromstring(page)
    title = "<script>alert(0)</script>"
    assert root.find("head/title").text == title
    assert root.find("body/header/h1").text == title
    plots = {svg.get("aria-label").replace("\n", " "): svg for svg in root.iter("svg")}
    assert list(plots) == ["loss", "acc", SCRIPT, "gaps", UNICODE.replace("\n", " ")]
    assert drawn(plots["loss"], "loss") == [[40], [4]]
    assert drawn(plots["acc"], "acc") == [[4]]
    assert drawn(plots[SCRIPT], "script") == [[50]]
    gaps = [n for n in range(50) if n % 10 != 5 and n % 17 != 4]
    runs = sum(n - 1 not in gaps for n in gaps)
    assert [len(drawn(plots["gaps"], "gaps")[0]), sum(drawn(plots["gaps"], "")[0])] == [
        runs, len(gaps)]
    hover = [t.text for t in plots["gaps"].iter("title")]
    assert hover == [f"gaps\nstep {n}: {n}" for n in gaps], hover
    cells = [td.text for td in root.iter("td")]
    for text in (SCRIPT, UNICODE, "</td><b>'?", "Model summary"):
        assert text in cells + [h.text for h in root.iter("h2")], text
    assert "\"<img src=x onerror=y>\"" in [th.text for th in root.iter("th")]
    pre = [p.text for p in root.iter("pre")]
    assert "</pre><script> ]]>???</script>" in pre, pre


main()
