"""The architecture as a test: imports point down, files stay small, maths stays pure, nothing runs foreign code."""

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = "regard"
ROOT = Path(__file__).parent.parent / PACKAGE
FLOORS = [  # a module may import its own folder and any lower floor, nothing else
    {"errors"},
    {"section", "files", "allocator", "native"},
    {"text", "layers", "evaluation"},
    {"data", "models"},
    {"decoding"},
    {"explaining"},
    {"tasks"},
    {"training"},
    {"recipe"},
    {"exporting", "published"},
    {"aligner", "engine", "explainer", "generator", "parser", "reader", "viewer"},
    {"ablation", "documents", "faithful"},
    {"jobs", "workers", "request"},
    {"card", "report"},
    {"run"},
    {"studies"},
    {"commands"},
    {"demo", "serving"},
    {"cli"},
    {"__main__", "__init__"},
]
FLOOR = {name: height for height, names in enumerate(FLOORS) for name in names}
NO_TORCH = {"text", "evaluation", "errors", "section", "files", "allocator"}
MODULES = sorted(ROOT.rglob("*.py"))
every_module = pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))

FORBIDDEN_MODULES = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
FORBIDDEN_BUILTINS = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_MEMBERS = {
    ("torch", "load"),  # unpickles
    ("torch", "save"),
    ("yaml", "load"),  # builds any object; safe_load does not
    ("yaml", "load_all"),
    ("yaml", "full_load"),
    ("yaml", "full_load_all"),
    ("yaml", "unsafe_load"),
    ("yaml", "unsafe_load_all"),
    ("os", "system"),
    ("os", "popen"),
}
# What asks others over a network. `regard serve` listens, and asyncio does that for it.
CALLING_MODULES = {
    "socket", "ssl", "urllib.request", "urllib3", "http.client", "ftplib", "smtplib", "poplib", "imaplib", "xmlrpc",
    "webbrowser", "requests", "httpx", "aiohttp", "websockets", "huggingface_hub",
}  # fmt: skip
CALLING_MEMBERS = {
    "open_connection", "open_unix_connection", "create_connection", "create_unix_connection", "sock_connect",
    "create_datagram_endpoint", "urlopen", "urlretrieve", "load_state_dict_from_url", "download_url_to_file",
}  # fmt: skip


def part(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").parts[0]


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {dotted(path) for path in MODULES}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> set[str]:
    """Every dotted module imported anywhere in the file, functions included."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write absolute imports"
            submodules = {f"{node.module}.{alias.name}" for alias in node.names} & NAMES
            found |= submodules or {node.module}
    return found


def dangers(code: ast.Module) -> list[str]:
    """What the code could use to run code that came with data: unpickling, evaluating, unsafe YAML, a shell."""
    found = []
    for node in ast.walk(code):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in FORBIDDEN_MODULES]
        elif isinstance(node, ast.ImportFrom):
            top = (node.module or "").split(".")[0]
            found += [node.module or ""] if top in FORBIDDEN_MODULES else []
            found += [f"{top}.{alias.name}" for alias in node.names if (top, alias.name) in FORBIDDEN_MEMBERS]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            pair = (node.value.id, node.attr)
            found += [".".join(pair)] if pair in FORBIDDEN_MEMBERS else []
        elif isinstance(node, ast.Name) and node.id in FORBIDDEN_BUILTINS:
            found.append(node.id)
        elif isinstance(node, ast.keyword) and node.arg in {"allow_pickle", "shell"}:
            found.append(f"{node.arg}=")
    return found


def calls(code: ast.Module) -> list[str]:
    """What the code could use to ask somebody else: a network module, or what opens a connection."""
    found = []
    for node in ast.walk(code):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
            found += [alias.name for alias in node.names if alias.name in CALLING_MEMBERS]
        elif isinstance(node, ast.Attribute) and node.attr in CALLING_MEMBERS:
            found.append(node.attr)
        found += [name for name in names if name in CALLING_MODULES or name.split(".")[0] in CALLING_MODULES]
    return found


@every_module
def test_every_module_has_a_floor(path):
    assert part(path) in FLOOR, f"{path.name}: give {part(path)!r} a floor in FLOORS"


@every_module
def test_imports_point_down(path):
    here = part(path)
    for name in imports(path):
        if name.split(".")[0] == PACKAGE:
            there = [*name.split("."), "__init__"][1]
            assert there == here or FLOOR[there] < FLOOR[here], f"{here} must not import {there}"


def test_no_module_imports_itself_through_others():
    graph = {dotted(path): imports(path) & NAMES - {dotted(path)} for path in MODULES}
    assert len(list(TopologicalSorter(graph).static_order())) == len(NAMES)  # raises CycleError, which shows the ring


@every_module
def test_files_stay_small(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


@every_module
def test_functions_stay_small(path):
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= 60, f"{path}:{node.lineno}: {node.name} has {lines} lines"


@every_module
def test_text_and_scores_need_no_torch(path):
    if part(path) in NO_TORCH:
        assert not any(name.split(".")[0] == "torch" for name in imports(path))


@every_module
def test_folders_open_with_an_empty_page(path):
    if path.name == "__init__.py" and path.parent != ROOT:
        assert not path.read_text(encoding="utf-8").strip()


@every_module
def test_nothing_can_run_code_that_came_with_data(path):
    assert dangers(tree(path)) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "import marshal as m",
        "torch.load(path)",
        "from torch import load",
        "torch.save(x, path)",
        "yaml.load(text, Loader)",
        "from yaml import unsafe_load",
        "eval('1')",
        "exec('1')",
        "map(eval, lines)",
        "__import__(name)",
        "np.load(path, allow_pickle=True)",
        "subprocess.run(line, shell=True)",
        "os.system(line)",
    ],
)
def test_the_search_for_dangers_finds(source):
    assert dangers(ast.parse(source))


@pytest.mark.parametrize("source", ["model.eval()", "yaml.safe_load(x)", "safetensors.torch.load(x)", "re.compile(x)"])
def test_the_search_for_dangers_leaves_alone(source):
    assert not dangers(ast.parse(source))


@every_module
def test_nothing_asks_anybody_over_a_network(path):
    assert calls(tree(path)) == []


@pytest.mark.parametrize(
    "source",
    [
        "import socket",
        "import urllib.request",
        "from urllib.request import urlopen",
        "from urllib import request",
        "import http.client as c",
        "import requests.sessions",
        "await asyncio.open_connection(host, port)",
        "loop.create_connection(make, host)",
        "torch.hub.load_state_dict_from_url(url)",
        "from huggingface_hub import snapshot_download",
    ],
)
def test_the_search_for_calls_finds(source):
    assert calls(ast.parse(source))


@pytest.mark.parametrize("source", ["from urllib.parse import quote", "asyncio.start_server(x)", "import http"])
def test_the_search_for_calls_leaves_alone(source):
    assert not calls(ast.parse(source))


def run(code: str, *options: str) -> str:
    ended = subprocess.run(
        [sys.executable, *options, "-c", code], cwd=ROOT.parent, capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_importing_the_package_leaves_torch_alone():
    assert run(f"import sys, {PACKAGE}; print('torch' in sys.modules)").strip() == "False"


@pytest.mark.skipif(not any(ROOT.glob("cli*")), reason="there is no command line yet")
def test_asking_for_help_leaves_torch_alone():
    code = f"""
import runpy, sys
sys.argv = ["regard", "--help"]
try:
    runpy.run_module({PACKAGE!r}, run_name="__main__")
except SystemExit as ended:
    assert not ended.code, ended.code
print("torch" in sys.modules)
"""
    assert run(code).splitlines()[-1] == "False"
