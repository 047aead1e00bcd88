"""alone: a network, a table of processes and a /dev/shm of one's own.

A test that asks what a job left behind must not see those of others. enter()
starts the calling script again in namespaces of its own, where they are
allowed; a second host is one more network, with another name, on the other end
of a cable. This file as a program says whether they are: 0, or 77.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time

ADDRESSES = {"alpha": "10.77.0.1", "beta": "10.77.0.2"}
KINDS = ["--mount", "--net", "--uts", "--ipc", "--pid", "--fork",
         "--mount-proc", "--kill-child"]
MARK = "CX_ALONE"


def _run(*words):
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL,
                   capture_output=True)


def _may_be():
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        return None
    for user in ([], ["--user", "--map-root-user"]):
        tried = subprocess.run(
            ["unshare", *user, *KINDS, "sh", "-ec",
             "ip link set lo up; mount -t tmpfs tmpfs /dev/shm; hostname alpha; "
             "ip link add a0 type veth peer name b0; "
             "mount --bind /etc/hosts /etc/hosts"], capture_output=True)
        if tried.returncode == 0:
            return user
    return None


def enter():
    """The two hosts, once this script is started again as alone on the first;
    None where that is not allowed."""
    if MARK in os.environ:
        _run("ip", "link", "set", "lo", "up")
        _run("mount", "-t", "tmpfs", "tmpfs", "/dev/shm")
        _run("hostname", "alpha")
        return Hosts()
    user = _may_be()
    if user is None:
        print("not allowed here: namespaces; nobody looks at what is left "
              "behind, and there is one host", flush=True)
        return None
    sys.exit(subprocess.run(
        ["unshare", *user, *KINDS, sys.executable, "-B", *sys.argv],
        env={**os.environ, MARK: "1"}).returncode)


# ---- what there is ----------------------------------------------------------


def processes(mark=""):
    """All that run, but zombies, by what they are: with this in their
    environment, of those that one may look at."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                state = file.read().rpartition(")")[2].split()[0]
            with open(f"/proc/{pid}/cmdline") as file:
                words = file.read().replace("\0", " ").strip()
            if mark:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if mark.encode() not in file.read().split(b"\0"):
                        continue
        except OSError:
            continue
        if state not in "ZX":
            found[f"process {pid}: {words}"] = int(pid)
    return found


def sockets():
    """Those that listen, and those with names."""
    found = set()
    for name in "tcp", "tcp6":
        with open(f"/proc/net/{name}") as file:
            rows = [line.split() for line in file.readlines()[1:]]
        found |= {f"{name} {row[1]}" for row in rows if row[3] == "0A"}
    with open("/proc/net/unix") as file:
        rows = [line.split() for line in file.readlines()[1:]]
    return found | {f"socket {row[7]}" for row in rows if len(row) > 7}


def things():
    """Processes, sockets, shared memory and temporary files."""
    files = {os.path.join(folder, name)
             for folder in ("/dev/shm", tempfile.gettempdir())
             for name in os.listdir(folder)}
    return set(processes()) | sockets() | files


def left_since(before, seconds=5):
    """What is new and stays; nothing is expected to be."""
    until = time.monotonic() + seconds
    while True:
        left = things() - before
        if not left or time.monotonic() > until:
            return sorted(left)
        time.sleep(0.02)


# ---- a second host ----------------------------------------------------------


class Hosts:
    """alpha, which is here, and beta, which ends with us. `agent` runs words on
    one of them as ssh does: HOST WORD..., joined for a shell."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.beta = subprocess.Popen(
            ["unshare", "--net", "--uts", "sh", "-c",
             "hostname beta && echo && exec sleep 100000 >/dev/null"],
            stdout=subprocess.PIPE)
        with self.beta.stdout:
            self.beta.stdout.readline()
        self._lay_cable()
        names = os.path.join(self.folder.name, "hosts")
        with open(names, "w") as file:
            file.write("127.0.0.1 localhost\n")
            for name, address in ADDRESSES.items():
                file.write(f"{address} {name}\n")
        _run("mount", "--bind", names, "/etc/hosts")
        self.agent = os.path.join(self.folder.name, "agent")
        with open(self.agent, "w") as file:
            file.write('#!/bin/sh\nhost=$1; shift\ncase $host in\n'
                       f'beta|{ADDRESSES["beta"]}) exec '
                       + " ".join(self.on("beta", ["sh", "-c", '"$*"']))
                       + ' ;;\n*) exec sh -c "$*" ;;\nesac\n')
        os.chmod(self.agent, 0o755)

    def _lay_cable(self):
        ends = {"alpha": "a0", "beta": "b0"}
        _run("ip", "link", "add", "a0", "type", "veth", "peer", "name", "b0",
             "netns", str(self.beta.pid))
        for host, end in ends.items():
            _run(*self.on(host, ["ip", "addr", "add", ADDRESSES[host] + "/24",
                                 "dev", end]))
            for device in end, "lo":
                _run(*self.on(host, ["ip", "link", "set", device, "up"]))

    def on(self, host, words):
        """The words as an argument list that runs them there."""
        if host == "alpha":
            return list(words)
        return ["nsenter", "-t", str(self.beta.pid), "--net", "--uts", "--",
                *words]

    def pull_cable(self):
        _run(*self.on("beta", ["ip", "link", "set", "b0", "down"]))


if __name__ == "__main__":
    sys.exit(77 if _may_be() is None else 0)
