"""headers: the symbols of the public headers and their comments, for check-docs
and api.
"""

import re

PIECE = re.compile(
    r"(?P<blank>\n[ \t]*(?=\n))|(?P<comment>/\*.*?\*/|//[^\n]*)"
    r"|(?P<directive>(?<=\n)#(?:\\\n|[^\n])*)|(?P<space>\s+)|(?P<code>.)", re.S)
EXTERN = re.compile(r'(#ifdef __cplusplus\n)(extern "C" \{|\})')
# A function's name: the identifier before the first parenthesis.
FUNCTION = re.compile(r"\b(calx_\w+)\s*\(")
FUNCTION_TYPE = re.compile(r"\(\*(calx_\w+)\)\s*\(|\b(calx_\w+)\s*\([^()]*\)\s*$")


class Symbol:
    """A declaration, and the comments that may speak for it."""

    def __init__(self, line, text, own, block, banner):
        self.line, self.text = line, text
        self.own, self.block, self.banner = own, block, banner
        self.macro = text.startswith("#")
        self.type = text.startswith("typedef")
        self.function = False
        self.name = self.find_name()

    def find_name(self):
        if self.macro:
            match = re.match(r"#\s*define\s+(\w+)", self.text)
            return match.group(1) if match else None
        flat = re.sub(r"\{.*\}", "", self.text, flags=re.S)
        flat = re.sub(r"CALX_PRINTF\([^)]*\)|CALX_MUST_USE", "", flat).strip("; \n")
        if self.type:
            match = FUNCTION_TYPE.search(flat)
            if match:
                return match.group(1) or match.group(2)
            return flat.split()[-1].lstrip("*")
        match = FUNCTION.search(flat)
        if match:
            self.function = True
            return match.group(1)
        match = re.search(r"\b(\w+)\s*(\[[^]]*\])?$", flat.split("=")[0].strip())
        return match.group(1) if match else None


def symbols(text):
    """The file's comment, and its symbols in order."""
    text = EXTERN.sub(r"\1", text)
    found, head, own, block, banner = [], None, None, None, None
    banner_open = False
    code, start, depth, line = "", 1, 0, 1

    def close():
        nonlocal code, own, block
        if code.strip():
            found.append(Symbol(start, code.strip(), own, block, banner))
            block = own or block
        code, own = "", None

    for match in PIECE.finditer(text):
        kind, piece = match.lastgroup, match.group()
        if code.strip():
            if kind == "comment" or kind == "directive":
                kind = "space"  # inside a declaration
            if kind in ("space", "blank"):
                code += " "
            else:
                code += piece
                depth += (piece == "{") - (piece == "}")
                body = piece == "}" and re.search(r"\)\s*\{", code)
                if depth == 0 and (piece == ";" or body):
                    close()
        elif kind == "comment":
            if head is None:
                head = piece
            elif piece.startswith("// ----"):
                banner, banner_open, own, block = piece, True, None, None
            elif piece.startswith("//") and banner_open:
                banner += "\n" + piece
            elif piece.startswith("/**"):
                own = piece
        elif kind == "directive":
            if re.match(r"#\s*define", piece):
                code, start = piece, line
                close()
        elif kind == "blank":
            banner_open, own, block = False, None, None
        elif kind == "code":
            code, start, banner_open = piece, line, False
        line += piece.count("\n")
    return head or "", found
