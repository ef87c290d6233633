"""`regard serve` in a process of its own, and what those who ask it, watch over it and attack it need."""

import contextlib
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

EN_DE = {"source": "en", "target": "de"}
FORM = "application/x-www-form-urlencoded"

# Python runs this first, in the service and in each of its workers: whom they speak to is written down.
AUDIT = """
import os, sys
def hear(event, arguments, notes=os.environ["NETWORK_NOTES"]):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.sendmsg"):
        with open(notes, "a") as file:
            file.write(f"{event} {arguments[1:] if event == 'socket.connect' else arguments}\\n")
sys.addaudithook(hear)
with open(os.environ["NETWORK_NOTES"], "a") as file:
    file.write("listening\\n")
"""


@dataclass(frozen=True)
class Running:
    """`network`: whom its processes spoke to, a line each; one also for every process, at its beginning."""

    process: subprocess.Popen[str]
    address: str
    log: Path
    network: Path

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def workers(self) -> list[int]:
        """The processes that it started."""
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def entries(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def figure(self, name: str) -> float:
        """One of those that Prometheus reads."""
        with urllib.request.urlopen(self.address + "/metrics", timeout=60) as answer:
            (found,) = re.findall(rf"^regard_{name} (\S+)$", answer.read().decode(), re.MULTILINE)
        return float(found)

    def until(self, true, seconds=120):
        """Waits for something that comes soon, on a busy machine later."""
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end, self.log.read_text()[-2000:]
            assert self.process.poll() is None, self.log.read_text()[-2000:]
            time.sleep(0.01)


@contextlib.contextmanager
def serving(folder, *words):
    """The command, once it listens; `folder` takes its log."""
    command = [sys.executable, "-m", "regard", "serve", *map(str, words), "--port", "0", "--workers", "1"]
    log, network = folder / "log", folder / "network"
    (folder / "audit").mkdir(exist_ok=True)
    (folder / "audit" / "sitecustomize.py").write_text(AUDIT)
    paths = [str(folder / "audit"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "NETWORK_NOTES": str(network)}
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
    try:
        line = process.stdout.readline()
        assert line.startswith("serving at http://127.0.0.1:"), log.read_text()
        yield Running(process, line.split()[-1], log, network)
    finally:
        process.kill()
        process.communicate()


def post(address, path, body, kind="application/json"):
    data = json.dumps(body).encode() if kind == "application/json" else body
    request = urllib.request.Request(address + path, data, {"Content-Type": kind})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def outcome(address, body, path="/translate"):
    """Status, when to come back, and what was said."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=120)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    found = response.status, response.headers["Retry-After"], json.load(response)
    connection.close()
    return found


def connect(address):
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=60)


def heard(connection):
    """What comes until the service closes."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


def talk(address, data):
    """What comes back for these bytes until the service closes."""
    with connect(address) as connection:
        connection.sendall(data)
        return heard(connection)


def statuses(answer):
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]
