"""What people leave with a service: a line each, at the end of a file that does not grow for ever."""

from pathlib import Path

from regard.errors import ServingError
from regard.serving.problems import Problem

MOST_BYTES = 256 << 20


def opened(path: Path) -> Path:
    """The path, once it is sure that it can be written to."""
    try:
        path.open("ab").close()
    except OSError as error:
        raise ServingError(f"{path}: cannot be written ({error.strerror}); choose another file") from None
    return path


def append(path: Path, line: str) -> None:
    """The line is whole or not there: it is written at once."""
    with path.open("ab", buffering=0) as file:
        if file.tell() > MOST_BYTES:
            raise Problem(503, "No room: the file for this is full")
        file.write(f"{line}\n".encode())
