"""A vocabulary cut down to what a batch of sources can turn into, so that the output layer computes little else.

Jean et al. 2015, §3.2. What the lexicon learned at training says which target ids belong to which source id.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.examples import Example
from regard.data.lexicon import best_targets, estimate, link, most_frequent, telling
from regard.models.interface import OutputLayer
from regard.text.special import EOS
from regard.text.tokeniser import Tokeniser

SMALLEST = 1000  # target ids; the list of a batch would hardly be shorter
FREQUENT = 200  # target ids that are always listed
LIKELY = 50  # target ids of each source id, at most
LEAST = 0.001  # p(t | s) of the least likely of them


class Shortlist:
    """`table` has the likely target ids of every source id, `always` those that any output may need.

    A row of the table with less to say repeats an id of `always`. The end token is always listed.
    """

    def __init__(self, table: Int[Tensor, "source k"], always: Int[Tensor, " a"], vocab: int) -> None:
        self.table, self.always = table.long(), always.long()
        self._marks = torch.zeros(vocab, dtype=torch.bool)
        self._marks[self.always] = True
        self._marks[EOS] = True

    def ids(self, sources: Iterable[Sequence[int]], also: Iterable[Sequence[int]] = ()) -> Int[Tensor, " listed"]:
        """The target ids for these sources together, sorted, each once; those of `also` (forced prefixes) are in it."""
        marks = self._marks.clone()
        marks[self.table[listed(sources)].flatten()] = True
        marks[listed(also)] = True
        return marks.nonzero().flatten()


def listed(rows: Iterable[Sequence[int]]) -> Int[Tensor, " ids"]:
    """Every id that occurs in the rows, once."""
    return torch.tensor(sorted({token for row in rows for token in row}), dtype=torch.long)


class Narrowed:
    """An output layer of which only the rows `ids` are left: logits[c] = (W x + b)[ids[c]]. `ids` are sorted.

    What follows works on columns: `ids[columns]` are the ids of a choice, and `columns` says where given ids went.
    The softmax of these logits sums to 1 over the listed ids alone, so its probabilities are a little too high.
    """

    def __init__(self, output: OutputLayer, ids: Int[Tensor, " listed"]) -> None:
        self.ids = ids
        self.weight = output.weight[ids]
        self.bias = None if output.bias is None else output.bias[ids]

    def __call__(self, features: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows listed"]:
        return F.linear(features, self.weight, self.bias)

    def columns_of(self, table: Int[Tensor, "n p"]) -> Int[Tensor, "n p"]:
        """Every id, all of them listed, as its column; −1, which is no id, stays."""
        return torch.where(table < 0, table, torch.searchsorted(self.ids, table))

    def columns(self, ids: Iterable[int]) -> Int[Tensor, " found"]:
        """The columns of those of these ids that are listed, in their order."""
        wanted = torch.tensor(list(ids), dtype=torch.long, device=self.ids.device)
        places = torch.searchsorted(self.ids, wanted)
        return places[self.ids[places.clamp(max=len(self.ids) - 1)] == wanted]


def learn_shortlist(examples: Sequence[Example], source: Tokeniser, target: Tokeniser, seed: int) -> Shortlist | None:
    """The shortlist of this parallel text; none where the vocabulary is so small that it could not pay.

    Beside its likely targets, every source id lists the target id of the same name: names and numbers are copied.
    """
    if len(target) < SMALLEST:
        return None
    links = link(telling(examples, seed))
    likely = best_targets(links, estimate(links), vocab=len(source), most=LIKELY, least=LEAST, fill=EOS)
    table = np.concatenate([copies(source, target)[:, None], likely], axis=1)
    always = np.concatenate([most_frequent(examples, FREQUENT), spelling(examples, target)])
    return Shortlist(torch.from_numpy(table), torch.from_numpy(np.unique(always)), len(target))


def copies(source: Tokeniser, target: Tokeniser) -> Int[np.ndarray, " source"]:
    """For each source id the target id of the same name, or the end token."""
    ids = {target.name(id): id for id in range(len(target))}
    return np.array([ids.get(source.name(id), EOS) for id in range(len(source))])


def spelling(examples: Sequence[Example], target: Tokeniser) -> Int[np.ndarray, " bytes"]:
    """The byte pieces that occur in the targets: a rare letter is spelt with them, whatever the source says."""
    met = np.unique(np.concatenate([example.target for example in examples]))
    return np.array([id for id in met.tolist() if target.name(id).startswith("<0x")], dtype=np.int64)


def coverage(shortlist: Shortlist, examples: Sequence[Example]) -> float:
    """The share of the target tokens of these examples that the list of their own source has."""
    found = [np.isin(example.target, shortlist.ids([example.source.tolist()]).numpy()) for example in examples]
    return float(np.concatenate(found).mean()) if found else 1.0
