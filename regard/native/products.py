"""Products of two matrices: torch's own, or on some processors those of product.c.

MKL, which torch multiplies with, takes AVX-512 on processors of Intel alone. On others that have it, one thread is
twice as fast with ours; a product that several threads share is torch's.
"""

import ctypes
from functools import cache
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from regard.native.library import POINTER, library

PAYS = library is not None and bool(library.sgemm_pays())
OURS = ctypes.cast(library.sgemm, POINTER).value if library else None

if library:
    library.sgemm.argtypes = [ctypes.c_char_p] * 2 + [POINTER] * 11
    library.sgemm.restype = None


@cache
def of_torch() -> int | None:
    """Where torch's own matrix product begins, if its library shows it: C then calls the same code as torch.mm."""
    path = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    function = getattr(ctypes.CDLL(str(path)), "sgemm_", None) if path.exists() else None
    return ctypes.cast(function, POINTER).value if function else None


def ours_pays() -> bool:
    return PAYS and torch.get_num_threads() == 1


def sgemm() -> int | None:
    """Where the product begins that is faster for this thread, for C to call."""
    return OURS if ours_pays() else of_torch()


def mm(
    a: Float[Tensor, "rows inner"], b: Float[Tensor, "inner columns"], out: Tensor | None = None, more: bool = False
) -> Float[Tensor, "rows columns"]:
    """a b, or with `more` out + a b; without gradients."""
    (rows, inner), columns = a.shape, b.shape[1]
    alike = len(b) == inner and (out is None or (out.shape == (rows, columns) and fits(out) and out.stride(1) == 1))
    if not (library and ours_pays() and fits(a) and fits(b) and alike):
        return torch.mm(a, b) if out is None else out.addmm_(a, b, beta=int(more))  # 0: what was there does not count
    out = a.new_empty(rows, columns) if out is None else out
    # BLAS goes by columns: it makes bᵀ aᵀ, whose columns are the rows of a b.
    sizes = (ctypes.c_int64 * 6)(columns, rows, inner, apart(b), apart(a), out.stride(0))
    m, n, k, b_row, a_row, row = (ctypes.addressof(sizes) + 8 * place for place in range(6))
    factors = (ctypes.c_float * 2)(1, more)
    alpha, beta = ctypes.addressof(factors), ctypes.addressof(factors) + 4
    places = (alpha, b.data_ptr(), b_row, a.data_ptr(), a_row, beta, out.data_ptr(), row)
    library.sgemm(turned(b), turned(a), m, n, k, *places)
    return out


def fits(x: Tensor) -> bool:
    return x.dtype == torch.float32 and x.device.type == "cpu" and 1 in x.stride()


def turned(x: Float[Tensor, "rows columns"]) -> bytes:
    return b"N" if x.stride(1) == 1 else b"T"


def apart(x: Float[Tensor, "rows columns"]) -> int:
    """From a row to the next, or where it is turned from a column to the next."""
    return x.stride(0) if x.stride(1) == 1 else x.stride(1)
