"""A sentence splitter as an ONNX file, in the form that MiniSBD reads, which Argos Translate splits its input with.

Without one in the package, Argos downloads a splitter before its first translation. This one is a rule, written as
the weights of one convolution over the characters: a sentence ends at . ! ? … before a space and a capital, at the
full stops of scripts without capitals before a space, and at those of scripts without spaces always.

ONNX is Protocol Buffers; the few messages that are needed are written here by hand, field numbers as in onnx.proto.
"""

import json
import struct
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

ENDS = {".": 0, "!": 0, "?": 0, "…": 0, "।": 1, "؟": 1, "۔": 1, "።": 1, "。": 2, "！": 2, "？": 2}
SPACE = 3  # the kind of a space; an ending's kind is the row above, any other character has none
KINDS, FEATURES, WINDOW = 4, 1, 3
INT64, FLOAT = 7, 1  # onnx.TensorProto.DataType


def splitter() -> bytes:
    """The model file: (units, features) → scores of going on, of ending a token (never), of ending a sentence."""
    graph = b"".join(
        [
            node("Gather", ["kinds", "units"], ["kind"]),
            node("Concat", ["kind", "features"], ["seen"], {"axis": 2}),
            node("Transpose", ["seen"], ["channels"], {"perm": [0, 2, 1]}),
            node("Conv", ["channels", "weights", "bias"], ["classes"], {"kernel_shape": [WINDOW], "pads": [0, 2]}),
            node("Transpose", ["classes"], ["scores"], {"perm": [0, 2, 1]}),
            field(2, b"splitter"),
            *(field(5, tensor(name, values)) for name, values in parameters().items()),
            field(11, declared("units", INT64, ["n", "t"])),
            field(11, declared("features", FLOAT, ["n", "t", FEATURES])),
            field(12, declared("scores", FLOAT, ["n", "t", 3])),
        ]
    )
    model = [field(1, 8), field(2, b"regard"), field(7, graph), field(8, field(1, b"") + field(2, 13))]
    model += [field(14, field(1, key.encode()) + field(2, value.encode())) for key, value in settings().items()]
    return b"".join(model)


def settings() -> dict[str, str]:
    """What MiniSBD reads beside the graph: how characters become units, and which features come with them."""
    units = ["<PAD>", "<UNK>", " ", *ENDS]
    vocabulary = {"lang": "", "_id2unit": units, "_unit2id": {unit: id for id, unit in enumerate(units)}}
    config = {"feat_funcs": ["capitalized"], "batch_size": 1}
    return {"lang_code": "mul", "config": json.dumps(config), "vocab": json.dumps(vocabulary)}


def parameters() -> dict[str, NDArray[np.float32]]:
    """Score of an ending at t: what its kind brings, 2 for a space at t+1, 1 for a capital at t+2."""
    kinds = np.zeros((3 + len(ENDS), KINDS), np.float32)
    kinds[2, SPACE] = 1
    for row, kind in enumerate(ENDS.values(), start=3):
        kinds[row, kind] = 1
    weights = np.zeros((3, KINDS + FEATURES, WINDOW), np.float32)
    weights[2, :3, 0] = [2, 3, 5]  # an end where the sum is 5 or more
    weights[2, SPACE, 1] = 2
    weights[2, KINDS, 2] = 1
    return {"kinds": kinds, "weights": weights, "bias": np.array([0, -9, -4.5], np.float32)}


def tensor(name: str, values: NDArray[np.float32]) -> bytes:
    return (
        b"".join(field(1, size) for size in values.shape)
        + field(2, FLOAT)
        + field(8, name.encode())
        + field(9, values.astype("<f4").tobytes())
    )


def declared(name: str, kind: int, shape: Sequence[str | int]) -> bytes:
    """An input or output: its name, type and shape."""
    sizes = b"".join(field(1, field(1, s) if isinstance(s, int) else field(2, s.encode())) for s in shape)
    return field(1, name.encode()) + field(2, field(1, field(1, kind) + field(2, sizes)))


def node(
    kind: str, inputs: Sequence[str], outputs: Sequence[str], attributes: Mapping[str, int | list[int]] | None = None
) -> bytes:
    parts = [field(1, name.encode()) for name in inputs] + [field(2, name.encode()) for name in outputs]
    parts.append(field(4, kind.encode()))
    for name, value in (attributes or {}).items():
        many = isinstance(value, list)
        numbers = b"".join(field(8, number) for number in value) if isinstance(value, list) else field(3, value)
        parts.append(field(5, field(1, name.encode()) + numbers + field(20, 7 if many else 2)))
    return field(1, b"".join(parts))


def field(number: int, value: int | bytes) -> bytes:
    """One field of a message: a whole number, or bytes (text and messages too) behind their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first, the eighth bit set where more follow."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(found) + struct.pack("B", number)
