"""A served model: its throughput beside the same model on a file, its delays, and what it does when flooded or stopped.

python -m benchmarks.serving --model models/en-de                       → results/serve.json and results/serve.md
Needs REGARD_DATA (for multi30k's test set), or --source FILE with --languages. LibreTranslate serves our Argos export
of the same model from an environment of its own, made in .bench at the first run; --without-peer leaves it out.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.clients import REFUSED, Client, Load, flood, percentile, round_robin
from benchmarks.peers.environments import interpreter
from benchmarks.results import RESULTS, ROOT, Result, write
from benchmarks.stage import say
from regard.allocator import tunables
from regard.data.readers import read_lines
from regard.serving.batcher import TEXTS
from regard.serving.limits import TextLimits
from regard.workers import Workers, cores

CLIENTS, IN_FLIGHT = 64, 32
OVERLOAD = 4  # times what it can answer
RETRY_AFTER = 1.0  # seconds, which a refused client is told and these ones keep to
TEST = "multi30k/test_2016_flickr.en.gz"
NOTES = (
    "{clients} clients keep a connection each and send one sentence after another for {seconds:g} s, of which the "
    "first {warmup:g} do not count; medians of {rounds} rounds, in turn with the same lines given to as many worker "
    "processes by what `regard translate` uses (begun before; only its work is timed). Overload: so many clients, who "
    "begin one after another and come back after the second that a refusal tells them, that {overload} times as much "
    "is asked as can be answered. drained_of_32: answered of the requests in flight when SIGTERM came. LibreTranslate "
    "serves our Argos export (float32) with its defaults; both are up while one of them is measured. Clients and "
    "services share the machine."
)


@dataclass(frozen=True)
class Trial:
    """What is served, in which languages, what is asked, and for how long."""

    model: Path
    source: str
    target: str
    lines: Sequence[str]
    seconds: float
    rounds: int

    @property
    def warmup(self) -> float:
        return self.seconds / 5

    def load(self, clients: int, pause: float = 0.0) -> Load:
        return Load(clients, self.seconds, self.warmup, pause)

    def asked(self, q: str) -> dict[str, str]:
        return {"q": q, "source": self.source, "target": self.target}


def regard(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "regard", *map(str, words)]


# ---------------------------------------------------------------- ours
@contextlib.contextmanager
def served(trial: Trial) -> Iterator[tuple[int, "subprocess.Popen[str]"]]:
    """`regard serve` on a free port, with its defaults; ended with the block."""
    process = subprocess.Popen(
        regard("serve", f"{trial.source}:{trial.target}={trial.model}", "--port", "0"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline()
        if not address:
            raise SystemExit(f"regard serve {trial.model}: ended before it served; run it by hand to see why")
        yield int(address.rsplit(":", 1)[1]), process
    finally:
        process.kill()
        process.wait()


def under_load(trial: Trial, port: int) -> dict[str, float]:
    load = trial.load(CLIENTS)
    replies, _ = asyncio.run(flood(port, load, round_robin(trial.lines, trial.source, trial.target)))
    times = load.milliseconds(replies, 200)
    if not times:
        raise SystemExit(f"port {port}: no sentence was answered in {trial.seconds:g} s; try more --seconds")
    return {"rate": load.rate(replies), **{f"p{n}": percentile(times, n / 100) for n in (50, 95, 99)}}


def overloaded(trial: Trial, port: int, capacity: float) -> dict[str, float]:
    """What is answered, and how quickly the rest is refused, when much more is asked than can be answered."""
    held = TextLimits().waiting + cores() * TEXTS  # who waits, or whose text a worker has, asks nothing meanwhile
    load = trial.load(held + round((OVERLOAD - 1) * capacity * RETRY_AFTER), RETRY_AFTER)
    replies, watched = asyncio.run(flood(port, load, round_robin(trial.lines, trial.source, trial.target)))
    refused = load.milliseconds(replies, *REFUSED)
    if not refused:
        raise SystemExit(f"{load.clients} clients were all served: this is no overload")
    return {
        "overload_refusal_p99_ms": percentile(refused, 0.99),
        "overload_goodput_share": load.rate(replies) / capacity,
        "overload_answer_p99_ms": percentile(load.milliseconds(replies, 200), 0.99),
        "overload_health_p99_ms": percentile(load.milliseconds(watched, 200), 0.99),
        "overload_clients": load.clients,
        "overload_asked_share": len([one for one in replies if one.at >= load.warmup])
        / (load.seconds - load.warmup)
        / capacity,
        "overload_failures": sum(reply.status not in (200, *REFUSED) for reply in replies),
    }


def drained(trial: Trial) -> dict[str, float]:
    """Of requests that were in flight when SIGTERM came, those that were answered; and how the service ended."""

    async def stop(port: int, process: "subprocess.Popen[str]") -> int:
        clients = [Client(port) for _ in range(IN_FLIGHT)]
        await asyncio.gather(*(client.ask("/translate", trial.asked("x")) for client in clients))
        texts = ["\n".join(trial.lines[place::IN_FLIGHT][:4]) for place in range(IN_FLIGHT)]
        asked = [
            asyncio.ensure_future(client.ask("/translate", trial.asked(text)))
            for client, text in zip(clients, texts, strict=True)
        ]
        await asyncio.sleep(0.02)  # all are sent; a batch of them takes longer
        process.send_signal(signal.SIGTERM)
        found = await asyncio.gather(*asked, return_exceptions=True)
        return sum(not isinstance(one, BaseException) and one[0] == 200 for one in found)

    with served(trial) as (port, process):
        answered = asyncio.run(stop(port, process))
        return {"drained_of_32": answered, "drained_exit_code": process.wait(timeout=60)}


def measure(trial: Trial) -> dict[str, float]:
    files, loads = [], []
    with served(trial) as (port, _), Workers(trial.model, cores()) as workers:
        for _ in range(trial.rounds):
            began = time.perf_counter()
            count = sum(1 for _ in workers.write(trial.lines))
            files.append(count / (time.perf_counter() - began))
            loads.append(under_load(trial, port))
            say(f"{files[-1]:.0f} sentences a second from a file, {loads[-1]['rate']:.0f} served")
        capacity = statistics.median(load["rate"] for load in loads)
        flooded = overloaded(trial, port, capacity)
    return {
        "throughput_vs_offline": statistics.median(
            load["rate"] / file for load, file in zip(loads, files, strict=True)
        ),
        **{f"p{n}_ms": statistics.median(load[f"p{n}"] for load in loads) for n in (50, 95, 99)},
        **flooded,
        **drained(trial),
        "sentences_per_second": capacity,
        "sentences_per_second_offline": statistics.median(files),
    }


# ---------------------------------------------------------------- LibreTranslate
@contextlib.contextmanager
def libretranslate(trial: Trial, work: Path) -> Iterator[int]:
    """The real one, serving our export; everything it keeps is in a folder of its own."""
    python, port = interpreter("libretranslate", work), free_port()
    with tempfile.TemporaryDirectory() as folder:
        names = ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
        home = {**os.environ, **dict.fromkeys(names, folder), "LT_LOAD_ONLY": f"{trial.source},{trial.target}"}
        # Of fewer than two packages it would fetch others over the network.
        for source, target in ((trial.source, trial.target), (trial.target, trial.source)):
            package = Path(folder) / f"{source}-{target}.argosmodel"
            codes = ("--from-code", source, "--to-code", target)
            subprocess.run(
                regard("export", trial.model, "--to", "argos", "--out", package, *codes), check=True, cwd=ROOT
            )
            install = "import sys; from argostranslate import package; package.install_from_path(sys.argv[1])"
            subprocess.run([python, "-c", install, package], check=True, env=home)
        command = [python.parent / "libretranslate", "--host", "127.0.0.1", "--port", str(port), "--disable-web-ui"]
        log = Path(folder) / "log"
        with log.open("w") as errors:
            process = subprocess.Popen(command, env=home, stdout=errors, stderr=errors)
        try:
            wait_for(port, process, log)
            yield port
        finally:
            process.terminate()
            process.wait()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        found: int = one.getsockname()[1]
        return found


def wait_for(port: int, process: "subprocess.Popen[bytes]", log: Path, seconds: float = 180) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        address = f"http://127.0.0.1:{port}/languages"
        with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=5) as answer:
            if json.load(answer):
                return
        time.sleep(0.5)
    raise SystemExit(f"LibreTranslate does not answer at port {port}:\n{log.read_text()[-2000:]}")


def beside_libretranslate(trial: Trial, work: Path) -> dict[str, float]:
    ratios, theirs = [], []
    with served(trial) as (port, _), libretranslate(trial, work) as other:
        for _ in range(trial.rounds):
            ours = under_load(trial, port)["rate"]
            theirs.append(under_load(trial, other))
            ratios.append(ours / theirs[-1]["rate"])
            say(f"{ours:.0f} sentences a second, LibreTranslate {theirs[-1]['rate']:.0f}")
    return {
        "throughput_vs_libretranslate": statistics.median(ratios),
        "libretranslate_sentences_per_second": statistics.median(one["rate"] for one in theirs),
        "libretranslate_p99_ms": statistics.median(one["p99"] for one in theirs),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.serving", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--source", type=Path, help="sentences, one a line; default: multi30k's test set")
    parser.add_argument("--languages", default="en:de")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without-peer", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the result files")
    parser.add_argument("--work", type=Path, default=ROOT / ".bench", help="folder of the peers")
    chosen: Any = parser.parse_args(arguments)
    file = chosen.source or Path(os.environ.get("REGARD_DATA", "")) / TEST
    if not file.is_file():
        parser.error(f"{file}: no such file; set REGARD_DATA to the folder that holds multi30k/, or give --source")
    source, _, target = chosen.languages.partition(":")
    trial = Trial(chosen.model.resolve(), source, target, list(read_lines(file)), chosen.seconds, chosen.rounds)
    os.environ |= tunables(os.environ)  # as `regard translate` has it
    began = time.perf_counter()
    figures = measure(trial)
    if not chosen.without_peer:
        figures |= beside_libretranslate(trial, chosen.work.absolute())
    notes = NOTES.format(
        clients=CLIENTS, seconds=trial.seconds, warmup=trial.warmup, rounds=trial.rounds, overload=OVERLOAD
    )
    command = f"python -m benchmarks.serving --model {chosen.model.name} --seconds {chosen.seconds:g}"
    command += f" --rounds {chosen.rounds}"
    write("serve", Result(command, (time.perf_counter() - began) / 60, figures, notes), chosen.out)
    for key, value in figures.items():
        say(f"{value:10.3f}  {key}")


if __name__ == "__main__":
    main()
