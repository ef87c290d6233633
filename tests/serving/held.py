"""What running processes hold, as Linux tells it: memory, open files, threads, connections."""

import contextlib
import time
from pathlib import Path


def memory(pid, name="VmRSS"):
    """Bytes; VmHWM is the most that there were since `from_now_on`."""
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def from_now_on(pid):
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def taken(running):
    """Open files and threads of the service and of its workers, once it holds no socket but the one that listens.

    The fewest of several looks: what is opened and closed again in passing is not held.
    """
    running.until(lambda: len(sockets(running.process.pid) - local_sockets(running.process.pid)) == 1)
    held = {(pid, kind): [] for pid in (running.process.pid, *running.workers) for kind in ("fd", "task")}
    for _ in range(10):
        for (pid, kind), counts in held.items():
            counts.append(sum(1 for _ in Path(f"/proc/{pid}/{kind}").iterdir()))
        time.sleep(0.02)
    return {place: min(counts) for place, counts in held.items()}


def spoken_to(pid):
    """The own ports of all its connections: of one that it opened itself, the port would be another."""
    held = sockets(pid)
    for table in ("tcp", "tcp6", "udp", "udp6"):
        path = Path(f"/proc/{pid}/net/{table}")
        for line in path.read_text().splitlines()[1:] if path.exists() else []:
            fields = line.split()
            if fields[9] in held:
                yield int(fields[1].rpartition(":")[2], 16)


def sockets(pid):
    """The inodes of its open sockets. One that was reset is in no table of connections, and still open for a while."""
    links = []
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            links.append(str(file.readlink()))
    return {link.removeprefix("socket:[").removesuffix("]") for link in links if link.startswith("socket:")}


def local_sockets(pid):
    """Inodes of sockets that never leave the machine: pipes between threads and processes."""
    return {line.split()[6] for line in Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]}
