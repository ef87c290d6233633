"""A vocabulary cut down to what a batch of sources can turn into, so that the output layer computes little else.

Jean et al. 2015, §3.2. What the lexicon learned at training says which target ids belong to which source id.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.examples import Example
from regard.data.lexicon import best_targets, estimate, link, most_frequent, telling
from regard.models.interface import OutputLayer
from regard.native.inference import Panels
from regard.text.special import EOS
from regard.text.tokeniser import Tokeniser

SMALLEST = 1000  # target ids; the list of a batch would hardly be shorter
FREQUENT = 1000  # target ids that are always listed, at most, and no more than `SHARE` of the vocabulary
SHARE = 1 / 8
LIKELY = 20  # target ids of each source id, at most: dev BLEU of Multi30k at beam 5 was 0.1 lower with 12, equal at 30
LEAST = 0.001  # p(t | s) of the least likely of them


def log_sum_exp_of_many(variance: Float[Tensor, " n"], count: int) -> Float[Tensor, " n"]:
    """log Σ exp (z − mean) ≈ log count + σ²/2 for `count` values z that lie as a Gaussian has them.

    σ²/2 counts up to log count. What is beyond would be the weight of a tail that so few values do not reach: they
    "freeze" (Derrida 1981). So one value is exactly its mean.
    """
    most = math.log(count)
    return (variance / 2).clamp_(0, most).add_(most)


@dataclass(frozen=True)
class Spread:
    """The rows (w_v, b_v) of an output layer as a cloud: how many they are, their sum and their covariance."""

    rows: int
    total: Float[Tensor, " e"]
    covariance: Float[Tensor, "e e"]

    @classmethod
    def of(cls, output: OutputLayer) -> "Spread":
        weight, bias = output.weight.detach(), output.bias
        last = weight.new_zeros(len(weight)) if bias is None else bias.detach()
        rows = torch.cat([weight, last[:, None]], 1)
        centred = rows - rows.mean(0)
        return cls(len(rows), rows.sum(0), centred.mT @ centred / len(rows))

    def variance(self, x: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """Var_v(w_v·x + b_v) = (x, 1)ᵀ Cov (x, 1)."""
        x = F.pad(x, (0, 1), value=1.0)
        variance: Tensor = torch.linalg.vecdot(x @ self.covariance, x)
        return variance


def with_mean_of_others(
    values: Float[Tensor, "vocab *d"], ids: Int[Tensor, " listed"], total: Float[Tensor, "*d"]
) -> Float[Tensor, "listed+1 *d"]:
    """values[ids], and behind them the mean of all other values, 0 where there is none; `total` is the sum of all."""
    found = values.new_empty(len(ids) + 1, *values.shape[1:])
    torch.index_select(values, 0, ids, out=found[:-1])
    found[-1] = (total - found[:-1].sum(0)) / max(1, len(values) - len(ids))
    return found


class Narrowed:
    """An output layer of which only the rows `ids` are left: logits[c] = (W x + b)[ids[c]]. `ids` are sorted.

    What follows works on columns: `ids[columns]` are the ids of a choice, and `columns` says where given ids went.
    Who narrows the same layer again and again gives its `spread`, which takes longer than all the rest.
    """

    def __init__(self, output: OutputLayer, ids: Int[Tensor, " listed"], spread: Spread | None = None) -> None:
        self.ids, self._spread = ids, spread or Spread.of(output)
        self.others, total = self._spread.rows - len(ids), self._spread.total
        self._weight = with_mean_of_others(output.weight.detach(), ids, total[:-1])
        self._bias = None if output.bias is None else with_mean_of_others(output.bias.detach(), ids, total[-1])
        self.weight, self.bias = self._weight[:-1], None if self._bias is None else self._bias[:-1]

    def __call__(self, features: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows listed"]:
        return F.linear(features, self.weight, self.bias)

    def logits(self, features: Float[Tensor, "rows d"]) -> Float[Tensor, "rows columns"]:
        """Columns whose softmax is p in the whole vocabulary: the listed ids, then one for all others, if any.

        log Σ exp of the others is estimated, as if their logits were Gaussian with their own mean and the variance of
        all logits. That is larger than their own, for the likely ids are listed, and about makes up for their heavy
        tail.
        """
        more = self.more(features)
        if more is None:
            return self(features)
        logits = F.linear(features, self._weight, self._bias)
        logits[:, -1] += more
        return logits

    def more(self, features: Float[Tensor, "rows d"]) -> Float[Tensor, " rows"] | None:
        """log Σ exp of the logits of all others, less their mean; none if there are no others."""
        return log_sum_exp_of_many(self._spread.variance(features), self.others) if self.others else None

    @cached_property
    def panels(self) -> Panels | None:
        """The columns of `logits`, without what is `more`."""
        weight, bias = (self._weight, self._bias) if self.others else (self.weight, self.bias)
        return Panels(weight.mT, bias) if weight.dtype == torch.float32 and weight.is_cpu else None

    def columns_of(self, table: Int[Tensor, "n p"]) -> Int[Tensor, "n p"]:
        """Every id, all of them listed, as its column; −1, which is no id, stays."""
        return torch.where(table < 0, table, torch.searchsorted(self.ids, table))

    def columns(self, ids: Iterable[int]) -> Int[Tensor, " found"]:
        """The columns of those of these ids that are listed, in their order."""
        wanted = torch.tensor(list(ids), dtype=torch.long, device=self.ids.device)
        places = torch.searchsorted(self.ids, wanted)
        return places[self.ids[places.clamp(max=len(self.ids) - 1)] == wanted]


class Shortlist:
    """`table` has the likely target ids of every source id, `always` those that any output may need.

    A row of the table with less to say repeats an id of `always`. The end token is always listed.
    """

    def __init__(self, table: Int[Tensor, "source k"], always: Int[Tensor, " a"], vocab: int) -> None:
        self.table, self.always = table.long(), always.long()
        self._marks = torch.zeros(vocab, dtype=torch.bool)
        self._marks[self.always] = True
        self._marks[EOS] = True
        self._met: tuple[OutputLayer, Spread] | None = None

    def ids(self, sources: Iterable[Sequence[int]], also: Iterable[Sequence[int]] = ()) -> Int[Tensor, " listed"]:
        """The target ids for these sources together, sorted, each once; those of `also` (forced prefixes) are in it."""
        marks = self._marks.clone()
        marks[self.table[listed(sources)].flatten()] = True
        marks[listed(also)] = True
        return marks.nonzero().flatten()

    def narrow(
        self, output: OutputLayer, sources: Iterable[Sequence[int]], also: Iterable[Sequence[int]] = ()
    ) -> Narrowed:
        """The output layer for these sources. What is the same for all of them is computed when a layer is first met:
        its weights may not change any more.
        """
        if self._met is None or self._met[0] is not output:
            self._met = output, Spread.of(output)
        return Narrowed(output, self.ids(sources, also), self._met[1])


def listed(rows: Iterable[Sequence[int]]) -> Int[Tensor, " ids"]:
    """Every id that occurs in the rows, once."""
    return torch.tensor(sorted({token for row in rows for token in row}), dtype=torch.long)


def learn_shortlist(examples: Sequence[Example], source: Tokeniser, target: Tokeniser, seed: int) -> Shortlist | None:
    """The shortlist of this parallel text; none where the vocabulary is so small that it could not pay.

    Beside its likely targets, every source id lists the target id of the same name: names and numbers are copied.
    """
    if len(target) < SMALLEST:
        return None
    links = link(telling(examples, seed))
    likely = best_targets(links, estimate(links), vocab=len(source), most=LIKELY, least=LEAST, fill=EOS)
    table = np.concatenate([copies(source, target)[:, None], likely], axis=1)
    frequent = most_frequent(examples, min(FREQUENT, int(SHARE * len(target))))
    always = np.concatenate([frequent, spelling(examples, target)])
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
