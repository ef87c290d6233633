"""Three small decoders that remember in three ways, and slow, plain references for what a search should find."""

import itertools
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from regard.models.interface import Memory

BOS, EOS = 0, 1


def attend(q, memory):
    scores = (q @ memory.values.mT).masked_fill(~memory.mask[:, None], -torch.inf)
    return scores.softmax(-1) @ memory.values


@dataclass(frozen=True)
class ToyState:
    past: Tensor  # hidden state, keys, or window: rows first
    memory: Memory

    def select(self, rows):
        return ToyState(self.past[rows], self.memory.select(rows))


class Toy(nn.Module):
    def __init__(self, vocab, d):
        super().__init__()
        self.embed, self.out = nn.Embedding(vocab, d), nn.Linear(d, vocab)

    def output(self, features):
        return 3 * self.out(features)  # sharp enough that sequences differ in probability

    def forward(self, tokens, state):
        features, state = self.features(tokens, state)
        return self.output(features), state


class Recurrent(Toy):
    def __init__(self, vocab, d):
        super().__init__(vocab, d)
        self.cell = nn.GRUCell(d, d)

    def begin(self, memory):
        return ToyState(memory.values[:, 0], memory)

    def features(self, tokens, state):
        h, found = state.past, []
        for x in self.embed(tokens).unbind(1):
            h = self.cell(x, h)
            found.append(h + attend(h[:, None], state.memory)[:, 0])
        return torch.stack(found, 1), replace(state, past=h)


class Windowed(Toy):
    def __init__(self, vocab, d):
        super().__init__(vocab, d)
        self.mix = nn.Linear(3 * d, d)

    def begin(self, memory):
        return ToyState(memory.values.new_zeros(len(memory.values), 2, memory.values.shape[-1]), memory)

    def features(self, tokens, state):
        seen = torch.cat([state.past, self.embed(tokens)], 1)
        h = self.mix(seen.unfold(1, 3, 1).flatten(2)).tanh()
        return h + attend(h, state.memory), replace(state, past=seen[:, -2:])


class Caching(Toy):
    def begin(self, memory):
        return ToyState(memory.values.new_zeros(len(memory.values), 0, memory.values.shape[-1]), memory)

    def features(self, tokens, state):
        past, t = state.past.shape[1], tokens.shape[1]
        position = torch.arange(past, past + t)[:, None] * torch.arange(1, self.embed.embedding_dim + 1)
        x = self.embed(tokens) + position.double().sin()
        seen = torch.cat([state.past, x], 1)
        visible = torch.ones(t, past + t, dtype=torch.bool).tril(past)
        h = x + (x @ seen.mT).masked_fill(~visible, -torch.inf).softmax(-1) @ seen
        return h + attend(h, state.memory), replace(state, past=seen)


KINDS = {"recurrent": Recurrent, "windowed": Windowed, "caching": Caching}


def toy(kind, *, vocab, seed=0, d=4):
    torch.manual_seed(seed)
    return KINDS[kind](vocab, d).double().eval()


def toy_memory(n, *, s=3, d=4, seed=1):
    values = torch.randn(n, s, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    mask = torch.arange(s) < torch.tensor([1 + row % s for row in range(n)])[:, None]
    return Memory(values, mask, torch.zeros(n, 0, dtype=torch.float64))


def steps_of(decoder, memory, row, tokens):
    """log p of each of these tokens in turn, by one teacher-forced pass."""
    inputs = torch.tensor([[BOS, *tokens[:-1]]])
    with torch.no_grad():
        logits, _ = decoder(inputs, decoder.begin(memory.select(torch.tensor([row]))))
    return logits[0].log_softmax(-1)[torch.arange(len(tokens)), torch.tensor(tokens)].tolist()


def next_of(decoder, memory, row, tokens):
    """log p of every token that may follow."""
    with torch.no_grad():
        logits, _ = decoder(torch.tensor([[BOS, *tokens]]), decoder.begin(memory.select(torch.tensor([row]))))
    return logits[0, -1].log_softmax(-1).tolist()


def every_finished(decoder, memory, row, *, vocab, limit, alpha, prefix=()):
    """(score, tokens) of each sequence that starts with `prefix` and ends within `limit`, best first."""
    others = [token for token in range(vocab) if token != EOS]
    found = []
    for extra in range(limit - len(prefix)):
        for tail in itertools.product(others, repeat=extra):
            tokens = (*prefix, *tail)
            total = sum(steps_of(decoder, memory, row, [*tokens, EOS]))
            found.append((total / (len(tokens) + 1) ** alpha, tokens))
    return sorted(found, reverse=True)


def plain_beam_search(decoder, memory, row, *, width, n_best, limit, alpha):
    """The n best (score, tokens) found by a beam search without pruning, written with lists: the definition of ours."""
    live, finished = [((), 0.0)], []
    for length in range(1, limit + 1):
        grown = [
            ((*tokens, token), total + step)
            for tokens, total in live
            for token, step in enumerate(next_of(decoder, memory, row, tokens))
        ]
        grown.sort(key=lambda item: -item[1])
        finished += [(total / length**alpha, tokens[:-1]) for tokens, total in grown[:width] if tokens[-1] == EOS]
        live = [item for item in grown[: 2 * width] if item[0][-1] != EOS][:width]
        finished.sort(reverse=True)
        if len(finished) >= width and live[0][1] / length**alpha <= finished[n_best - 1][0]:
            break
    if not finished:
        finished = [(total / limit**alpha, tokens) for tokens, total in live]
    return sorted(finished, reverse=True)[:n_best]
