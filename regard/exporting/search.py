"""Search by CTranslate2 with the meaning of ours: the same limits, the same scores, the same forbidden tokens.

One thing differs: without a patience it ends a search once `beam` hypotheses have finished, also when one alive is
still ahead of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from regard.decoding.batching import order_by_length
from regard.decoding.options import SearchOptions
from regard.errors import DecodingError
from regard.exporting.ctranslate2 import Exported
from regard.text.special import BOS, EOS, NAMES, PAD, UNK

Ids = Sequence[int]
NEVER = frozenset((PAD, UNK, BOS))  # what no output may hold
BATCH_TOKENS = 1024  # source tokens decoded together
DEAD = -1e9  # below this is no score, but CTranslate2's mark of a hypothesis that is none


@dataclass(frozen=True)
class Output:
    """A decoded sequence without its end token; `score` is log_probability / length**length_penalty."""

    tokens: tuple[int, ...]
    score: float
    log_probability: float
    finished: bool

    @property
    def length(self) -> int:
        """Tokens, the end token among them."""
        return len(self.tokens) + self.finished


@dataclass(frozen=True)
class Work:
    """What is searched: sources, how each output begins ([]: freely), the most tokens of each, and how to search."""

    sources: Sequence[Ids]
    starts: Sequence[Ids]
    limits: Sequence[int]
    options: SearchOptions


class Searcher:
    """The n best target sequences of many sources."""

    def __init__(self, exported: Exported) -> None:
        self.translator, self.positions = exported.translator, exported.positions
        self.source, self.target = exported.source, exported.target
        self.ids = {name: id for id, name in enumerate(exported.target)}

    def translate(
        self, sources: Sequence[Ids], options: SearchOptions, prefixes: Sequence[Ids] | None = None
    ) -> list[list[Output]]:
        """Outputs in the order of the sources, best first.

        First a search that is only nearly ours: CTranslate2 has one maximum length a batch, and to forbid tokens it
        changes the probabilities of all others. Few outputs are too long for their source or hold a forbidden token;
        their sources are searched again, without the shortcuts.
        """
        lengths = [len(source) + 1 for source in sources]
        starts = [[] for _ in sources] if prefixes is None else prefixes
        work = Work(sources, starts, [options.max_length(length) for length in lengths], options)
        self.refuse(work)
        parts = order_by_length(lengths, BATCH_TOKENS)
        found = self.search(work, parts, banned=False)
        wrong = [i for i, outputs in found.items() if any(is_wrong(output, work, i) for output in outputs)]
        if any(starts):
            found = self.rescored(work, found)
        if wrong:
            limits = sorted({work.limits[i] for i in wrong})
            parts = [[i for i in wrong if work.limits[i] == limit] for limit in limits]
            found |= self.rescored(work, self.search(work, parts, banned=True))
        return [best(found[i], options.n_best) for i in range(len(sources))]

    def search(self, work: Work, parts: Sequence[Sequence[int]], *, banned: bool) -> dict[int, list[Output]]:
        """All that was found for each source, best first; `parts` are batches, `banned` leaves no forbidden token."""
        options = work.options
        asked = [
            self.translator.translate_batch(
                names([work.sources[i] for i in part], self.source),
                names([work.starts[i] for i in part], self.target) if any(work.starts) else None,
                asynchronous=True,
                beam_size=options.beam,
                num_hypotheses=options.beam,
                length_penalty=options.length_penalty,
                patience=options.patience or 1.0,
                max_decoding_length=max(work.limits[i] for i in part),
                min_decoding_length=0,
                max_input_length=0,
                disable_unk=banned,
                suppress_sequences=[[NAMES[PAD]], [NAMES[BOS]]] if banned else None,
                return_end_token=True,  # so that lengths count it, as ours do
                return_scores=True,
            )
            for part in parts
        ]
        return {
            i: self.outputs(result.result(), options)
            for part, results in zip(parts, asked, strict=True)
            for i, result in zip(part, results, strict=True)
        }

    def outputs(self, result: Any, options: SearchOptions) -> list[Output]:
        found = []
        for names, score in zip(result.hypotheses, result.scores, strict=True):
            tokens = tuple(self.ids[name] for name in names)
            finished = tokens[-1] == EOS
            if score > DEAD:
                log_probability = score * len(tokens) ** options.length_penalty
                found.append(Output(tokens[:-1] if finished else tokens, score, log_probability, finished))
        return found

    def rescored(self, work: Work, found: dict[int, list[Output]]) -> dict[int, list[Output]]:
        """The same outputs at the model's own probabilities: not those of a search that banned or forced tokens."""
        rows = [(i, output) for i, outputs in found.items() for output in outputs]
        scores = self.score([work.sources[i] for i, _ in rows], [output.tokens for _, output in rows])
        counted: dict[int, list[Output]] = {i: [] for i in found}
        for (i, output), steps in zip(rows, scores, strict=True):
            total = sum(steps[: output.length])
            score = total / output.length**work.options.length_penalty
            counted[i].append(Output(output.tokens, score, total, output.finished))
        return {i: sorted(outputs, key=lambda output: -output.score) for i, outputs in counted.items()}

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """log p of every target token (the end token last) given its source."""
        self.refuse_long([len(ids) + 1 for ids in (*sources, *targets)], "a text of")
        results = self.translator.score_batch(
            names(sources, self.source),
            names(targets, self.target),
            max_input_length=0,
            max_batch_size=4 * BATCH_TOKENS,
            batch_type="tokens",
        )
        return [list(result.log_probs) for result in results]

    def refuse(self, work: Work) -> None:
        """What cannot be searched, before anything is."""
        self.refuse_long([len(source) + 1 for source in work.sources], "a text of")
        self.refuse_long(work.limits, "outputs of up to")
        for row, (start, limit) in enumerate(zip(work.starts, work.limits, strict=True)):
            if len(start) >= limit:
                raise DecodingError(
                    f"prefix of sentence {row}: {len(start)} tokens leave no room below the maximum length {limit}; "
                    "shorten it or raise max_ratio, max_extra or cap"
                )

    def refuse_long(self, lengths: Iterable[int], what: str) -> None:
        longest = max(lengths, default=0)
        if self.positions is not None and longest > self.positions:
            raise DecodingError(
                f"positions: {what} {longest} tokens, but the exported model has {self.positions} positions; "
                "shorten or split the text, or use the torch engine"
            )


def names(rows: Iterable[Ids], known: Sequence[str]) -> list[list[str]]:
    return [[known[id] for id in row] for row in rows]


def is_wrong(output: Output, work: Work, i: int) -> bool:
    """Longer than its source allows, or with a forbidden token that no prefix asked for."""
    return output.length > work.limits[i] or not NEVER.isdisjoint(output.tokens[len(work.starts[i]) :])


def best(outputs: Sequence[Output], n_best: int) -> list[Output]:
    """The first `n_best` that finished; only where none did, those that the maximum length cut."""
    return ([output for output in outputs if output.finished] or list(outputs))[:n_best]
