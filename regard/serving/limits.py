"""What one client may take from a service, each limit with a default: none is without an end."""

from dataclasses import dataclass

MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class HttpLimits:
    """Of a connection. A client that is slower, or sends more, is answered with the status beside it and cut off."""

    header_seconds: float = 5.0  # 408, from the first byte to the last of the headers
    body_seconds: float = 10.0  # 408
    write_seconds: float = 30.0  # cut off: nobody reads the answer
    idle_seconds: float = 30.0  # closed, between two requests
    header_bytes: int = 16 * 1024  # 431
    header_count: int = 64  # 431
    body_bytes: int = MEBIBYTE  # 413
    connections: int = 1024  # 503


@dataclass(frozen=True)
class TextLimits:
    """Of a request that was read."""

    texts: int = 64  # of one request
    characters: int = 5000  # of all its texts together
    alternatives: int = 7  # beside the best: no client can ask for a beam wider than 8
    glossary: int = 100  # terms
    file_bytes: int = MEBIBYTE
    file_characters: int = 200_000
    seconds: float = 30.0  # from the arrival of a request to its answer: 504
    file_seconds: float = 600.0
    waiting: int = 256  # texts that may wait for their turn: beyond them 429
