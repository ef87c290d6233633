"""The frame of the command line: help, usage, exit codes, one line for each mistake."""

import errno
import subprocess
import sys

import pytest

from regard.cli.main import regard as group

ROOT_HELP = "regard train --source train.en"


def test_without_a_command_there_is_help(regard):
    assert ROOT_HELP in regard().out
    assert regard() == regard("--help")
    assert regard().code == 0


@pytest.mark.parametrize("command", sorted(group.commands))
def test_every_command_explains_itself(regard, command):
    ended = regard(command, "--help")
    assert ended.code == 0
    assert f"regard {command}" in ended.out
    assert group.commands[command].help


def test_the_version_is_that_of_the_package(regard):
    from regard import __version__

    assert __version__ in regard("--version").out


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("fly",), "'fly'"),
        (("train", "--colour", "red"), "--colour"),
        (("train", "--steps", "many"), "'many'"),
        (("translate",), "MODEL"),
        (("translate", "m", "--beam", "0"), "--beam"),
        (("evaluate", "m", "--source", "x"), "--target"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_two(regard, arguments, word):
    ended = regard(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("regard: ")
    assert ended.err.count("\n") == 1
    assert word in ended.err
    assert "--help" in ended.err


def failing(error):
    def command(*_arguments):
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "models/x"), "models/x: No space left on device"),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
        (OSError("strange"), "strange"),
        (PermissionError(errno.EACCES, "Permission denied", "a\nb"), "a b: Permission denied"),
    ],
)
def test_what_the_machine_refuses_is_one_line(regard, monkeypatch, error, line):
    monkeypatch.setattr("regard.commands.translate.translate_lines", failing(error))
    ended = regard("translate", "m")
    assert (ended.code, ended.err) == (1, f"regard: {line}\n")
    with pytest.raises(OSError, match=r"."):
        regard("--debug", "translate", "m")


def test_an_interrupt_is_exit_code_130(regard, monkeypatch):
    monkeypatch.setattr("regard.commands.translate.translate_lines", failing(KeyboardInterrupt()))
    ended = regard("translate", "m")
    assert (ended.code, ended.err) == (130, "regard: interrupted\n")


def test_a_mistake_of_ours_is_not_hidden(regard, monkeypatch):
    monkeypatch.setattr("regard.commands.translate.translate_lines", failing(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        regard("translate", "m")


def test_a_reader_that_goes_away_is_met_in_silence():
    """`regard … | head`: neither our traceback nor Python's complaint when it flushes at its end."""
    code = "import sys; from regard.cli.main import main; sys.argv = ['regard', '--help']; sys.exit(main())"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 1
    process.stderr.close()
