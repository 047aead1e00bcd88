"""terminal.py: runs a program on a terminal, and what the terminal then shows."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios


def run(command, columns, **environment):
    """(exit code, bytes of the terminal, text of standard error)"""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    child = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=subprocess.PIPE,
                             env=dict(os.environ, TERM="xterm-256color", **environment))
    os.close(slave)
    shown = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(master)
    with child.stderr:
        error = child.stderr.read().decode()
    return child.wait(timeout=120), shown, error


class Screen:
    """A terminal that is as high as need be, with the codes that progress bars use."""

    CODES = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b\]0;([^\a]*)\a|(.)", re.S)

    def __init__(self, columns):
        self.columns = columns
        self.rows = [[]]
        self.x = self.y = 0

    def put(self, character):
        if self.x >= self.columns:
            self.x = 0
            self.down()
        row = self.rows[self.y]
        row.extend(" " * (self.x + 1 - len(row)))
        row[self.x] = character
        self.x += 1

    def down(self):
        self.y += 1
        if self.y == len(self.rows):
            self.rows.append([])

    def control(self, argument, code):
        if code == "A":
            self.y = max(0, self.y - int(argument or 1))
        elif code == "K" and argument == "2":
            self.rows[self.y] = []
        elif code == "K":
            del self.rows[self.y][min(self.x, self.columns - 1):]
        else:
            assert code in "mhl", code

    def feed(self, text):
        """Yields (title, lines) at each title that is set, and at the end."""
        for argument, code, title, character in self.CODES.findall(text):
            if title:
                yield title, self.lines()
            elif code:
                self.control(argument, code)
            elif character == "\r":
                self.x = 0
            elif character == "\n":
                self.down()
            else:
                self.put(character)
        yield "end", self.lines()

    def lines(self):
        lines = ["".join(row).rstrip() for row in self.rows]
        return [line for line in lines if line]
