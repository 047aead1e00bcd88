"""http_server.py FOLDER plain|ranges: serves the folder on a free port of this host.

Prints the port. `plain` is Python's own server, which gives whole files only.
`ranges` gives what a Range header asks for, breaks off in the middle of files
whose name has "breaks" the first time, and answers 500 for "broken" and 403 for
"secret". Each request's line and range are appended to FOLDER/requests.
"""

import http.server
import os
import re
import sys

folder, kind = sys.argv[1:3]
broken_off = set()


def note(handler):
    with open(os.path.join(folder, "requests"), "a") as out:
        out.write(f"{handler.path} {handler.headers.get('Range', '-')}\n")


class Plain(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *args):
        super().__init__(*args, directory=folder)

    def do_GET(self):
        note(self)
        super().do_GET()

    def log_message(self, *args):
        pass


class Ranges(Plain):
    def do_GET(self):
        note(self)
        for part, code in (("broken", 500), ("secret", 403)):
            if part in self.path:
                return self.send_error(code)
        if "moved" in self.path:
            self.send_response(302)
            self.send_header("Location", self.path.replace("moved", "here"))
            return self.end_headers()
        try:
            data = open(folder + self.path, "rb").read()
        except OSError:
            return self.send_error(404)
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        begin = int(asked[1]) if asked else 0
        if asked and begin >= len(data):
            return self.send_error(416)
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range",
                             f"bytes {begin}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - begin))
        self.end_headers()
        end = len(data)
        if "breaks" in self.path and self.path not in broken_off:
            broken_off.add(self.path)
            end = len(data) // 2
        self.wfile.write(data[begin:end])


server = http.server.ThreadingHTTPServer(
    ("127.0.0.1", 0), Plain if kind == "plain" else Ranges)
print(server.server_port, flush=True)
server.serve_forever()
