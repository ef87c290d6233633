"""The grammar lets out the beginnings of trees, all of them and nothing else, so every search ends in a tree."""

import itertools
import random

import pytest
import torch
from toy_decoders import toy, toy_memory

from regard.data.treebank import WORD, unlinearise
from regard.decoding.grammar import Grammar, Prefix, takes_word
from regard.decoding.options import SamplingOptions, SearchOptions
from regard.decoding.sampling import sample
from regard.decoding.search import Adjust, beam_search
from regard.errors import DecodingError
from regard.evaluation.trees import DEEPEST
from regard.text.special import BOS, EOS, NAMES

NO_CAP = 10_000


def grammar_of(labels, **settings):
    names = [*NAMES, "(half", WORD, *(mark + label for label in labels for mark in "()"), "junk", ")other"]
    return names, Grammar(names, **settings)


# ---------------------------------------------------------------- the language, by brute force
def compositions(words):
    """Every way to cut so many words into parts."""
    for cuts in itertools.product([False, True], repeat=words - 1):
        sizes = [1]
        for cut in cuts:
            sizes = [*sizes, 1] if cut else [*sizes[:-1], sizes[-1] + 1]
        yield sizes


def constituents(words, labels, chains):
    """(symbols, length of the chain from it down) of each constituent over so many words."""
    found = []
    for sizes in compositions(words):
        if len(sizes) == 1 and words > 1:
            continue
        within = [constituents(size, labels, chains) if len(sizes) > 1 else [] for size in sizes]
        bare = [[(WORD,)] if size == 1 else [] for size in sizes]
        children = [one + [symbols for symbols, _ in more] for one, more in zip(bare, within, strict=True)]
        for parts in itertools.product(*children):
            found += [((f"({label}", *itertools.chain(*parts), f"){label}"), 1) for label in labels]
    for links in range(1, chains):
        inner = [symbols for symbols, chain in found if chain == links]
        found += [((f"({label}", *symbols, f"){label}"), links + 1) for symbols in inner for label in labels]
    return found


def language(words, labels, chains, cap=NO_CAP):
    every = [(*symbols, NAMES[EOS]) for symbols, _ in constituents(words, labels, chains)]
    return [symbols for symbols in every if len(symbols) <= cap]


def test_the_language_counted_by_hand():
    assert set(language(1, ["A"], 2)) == {("(A", "XX", ")A", "</s>"), ("(A", "(A", "XX", ")A", ")A", "</s>")}
    assert len(language(2, ["A"], 1)) == 4  # both words bare or in a constituent of their own
    assert len(language(2, ["A", "B"], 2)) == 294  # 2·(1 + 6)² that branch, 1 + 2 chains on each


@pytest.mark.parametrize(
    ("words", "labels", "chains", "cap"),
    [
        (1, "A", 1, NO_CAP),
        (1, "AB", 3, NO_CAP),
        (2, "AB", 2, NO_CAP),
        (2, "A", 4, NO_CAP),
        (2, "AB", 3, 9),
        (3, "A", 1, NO_CAP),
        (3, "A", 2, NO_CAP),
        (3, "A", 2, 10),
        (3, "AB", 2, 8),
        (3, "A", 3, 6),
        (4, "A", 1, NO_CAP),
        (4, "A", 2, 11),
    ],
)
def test_what_is_let_out_are_the_beginnings_of_trees_and_nothing_else(words, labels, chains, cap):
    names, grammar = grammar_of(labels, chains=chains, cap=cap)
    ids = {name: id for id, name in enumerate(names)}
    follow = {}
    for symbols in language(words, labels, chains, cap):
        row = tuple(ids[symbol] for symbol in symbols)
        for t in range(len(row)):
            follow.setdefault(row[:t], set()).add(row[t])
    rule, longest = grammar.over([words]), max(map(len, follow)) + 1
    assert cap < NO_CAP or longest == grammar.limit(words)
    for t in range(longest):
        rows = sorted(prefix for prefix in follow if len(prefix) == t)
        tokens = torch.tensor(rows, dtype=torch.long).view(len(rows), t)
        out = rule(torch.zeros(len(rows), len(names)), tokens, torch.zeros(len(rows), dtype=torch.long))
        assert [set(line.isfinite().nonzero().flatten().tolist()) for line in out] == [follow[row] for row in rows]


def test_a_numbered_word_is_let_out_with_its_own_number_and_after_the_last_the_first_comes_again():
    names = [*NAMES, "②", "(A", "①", ")A", "③"]
    grammar = Grammar(names)
    assert grammar.numbers == 3
    rule, row = grammar.over([5]), [names.index("(A")]
    for number in ("①", "②", "③", "①", "②"):
        out = rule(torch.zeros(1, len(names)), torch.tensor([row]), torch.tensor([0]))
        assert [names[id] for id in grammar.words if out[0, id].isfinite()] == [number]
        row.append(names.index(number))
    wrong = rule(torch.zeros(1, len(names)), torch.tensor([[*row[:2], names.index("③")]]), torch.tensor([0]))
    assert not wrong.isfinite().any()


def test_numbers_must_all_be_there():
    with pytest.raises(DecodingError, match="expected XX"):
        Grammar([*NAMES, "①", "③", "(A", ")A"])


def test_what_is_let_out_keeps_the_models_probability():
    names, grammar = grammar_of("A")
    log_probs = torch.randn(1, len(names), dtype=torch.float64).log_softmax(-1)
    out = grammar.over([2])(log_probs.clone(), torch.tensor([[names.index("(A")]]), torch.tensor([0]))
    open_ = [names.index("(A"), names.index("XX")]
    assert torch.equal(out[0, open_], log_probs[0, open_])
    assert out.isfinite().sum() == 2


def test_a_row_of_which_no_tree_begins_is_forbidden_everything_and_so_is_what_follows_an_end():
    names, grammar = grammar_of("AB")
    rule, (a, b) = grammar.over([1, 2]), (names.index("(A"), names.index(")B"))
    close, word = names.index(")A"), names.index("XX")
    rows = [[a, word, close, EOS], [a, word, b, 0], [word, a, a, a], [a, close, a, a], [a, word, close, EOS]]
    rows += [[a, names.index("junk"), a, word], [a, names.index("(half"), a, word], [a, word, close, a]]
    out = rule(torch.zeros(len(rows), len(names)), torch.tensor(rows), torch.tensor([0, 0, 0, 1, 1, 0, 0, 0]))
    assert not out.isfinite().any()


def test_what_is_remembered_changes_nothing():
    names, grammar = grammar_of("AB", chains=2)
    rng, rule, rows = random.Random(0), grammar.over([5, 3, 4]), [[], [], []]
    sentences = torch.tensor([0, 1, 2])
    for _ in range(12):
        blank, tokens = torch.zeros(3, len(names)), torch.tensor(rows, dtype=torch.long).view(3, -1)
        stepwise = rule(blank.clone(), tokens, sentences)
        assert torch.equal(stepwise, grammar.over([5, 3, 4])(blank.clone(), tokens, sentences))
        turned = rule(blank.clone(), tokens.flip(0), sentences.flip(0))  # and a second part of the same step
        assert torch.equal(turned.flip(0), stepwise)
        choices = [line.isfinite().nonzero().flatten().tolist() or [EOS] for line in stepwise]
        rows = [[*row, rng.choice(possible)] for row, possible in zip(rows, choices, strict=True)]


# ---------------------------------------------------------------- searches
LENGTHS = [1, 2, 3, 5, 8, 12]


def assert_trees(names, found, lengths):
    for hypotheses, count in zip(found, lengths, strict=True):
        for hypothesis in hypotheses:
            words = [f"w{i}" for i in range(count)]
            assert hypothesis.finished
            assert unlinearise([names[id] for id in hypothesis.tokens], words).words == words


@pytest.mark.parametrize(
    ("kind", "beam", "chains", "cap"),
    [("recurrent", 1, 4, 512), ("windowed", 3, 1, 512), ("caching", 1, 2, 60), ("caching", 4, 4, 40)],
)
def test_a_random_model_writes_trees_over_the_given_words(kind, beam, chains, cap):
    names, grammar = grammar_of("ABC", chains=chains, cap=cap)
    rule, decoder = grammar.over(LENGTHS), toy(kind, vocab=len(names), seed=beam)
    assert isinstance(rule, Adjust)
    found = beam_search(
        decoder,
        toy_memory(len(LENGTHS)),
        max_lengths=rule.max_lengths,
        options=SearchOptions(beam=beam, n_best=beam, length_penalty=0.0),
        bos=BOS,
        eos=EOS,
        adjust=(rule,),
    )
    assert all(found)
    assert_trees(names, found, LENGTHS)


def test_random_draws_are_trees_over_the_given_words():
    names, grammar = grammar_of("ABC", chains=2, cap=60)
    rule = grammar.over(LENGTHS)
    found = sample(
        toy("recurrent", vocab=len(names)),
        toy_memory(len(LENGTHS)),
        max_lengths=rule.max_lengths,
        options=SamplingOptions(samples=3),
        bos=BOS,
        eos=EOS,
        generator=torch.Generator().manual_seed(0),
        adjust=(rule,),
    )
    assert_trees(names, found, LENGTHS)
    assert len({hypothesis.tokens for hypothesis in found[-1]}) > 1


def test_a_wide_beam_finds_the_likeliest_of_all_trees():
    names, grammar = grammar_of("A", chains=2)
    decoder, memory, rule = toy("recurrent", vocab=len(names)), toy_memory(2), grammar.over([2, 1])
    options = SearchOptions(beam=64, n_best=2, length_penalty=0.0)
    found = beam_search(
        decoder, memory, max_lengths=rule.max_lengths, options=options, bos=BOS, eos=EOS, adjust=(rule,)
    )
    for row, words in enumerate([2, 1]):
        trees = [tuple(names.index(symbol) for symbol in symbols) for symbols in language(words, "A", 2)]
        scored = sorted(((sum(steps_from_bos(decoder, memory, row, tree)), tree[:-1]) for tree in trees), reverse=True)
        assert [h.tokens for h in found[row]] == [tokens for _, tokens in scored[:2]]
        assert [h.score for h in found[row]] == pytest.approx([score for score, _ in scored[:2]])


def steps_from_bos(decoder, memory, row, tokens):
    """log p of each of these tokens in turn, after our start token."""
    with torch.no_grad():
        logits, _ = decoder(torch.tensor([[BOS, *tokens[:-1]]]), decoder.begin(memory.select(torch.tensor([row]))))
    return logits[0].log_softmax(-1)[torch.arange(len(tokens)), torch.tensor(tokens)].tolist()


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 0, 1)])
def test_who_always_opens_always_writes_or_always_closes_comes_to_an_end(order):
    names, grammar = grammar_of("A", cap=NO_CAP)
    wishes, words = [["(A", "XX", ")A"][i] for i in order], 60
    prefix, symbols = Prefix(), []
    while not prefix.closed:
        choice = grammar.choice(prefix, words, grammar.limit(words) - len(symbols))
        allowed = ~grammar.forbidden[choice]
        allowed[names.index(WORD)] = takes_word(choice)
        symbols.append(next(wish for wish in wishes if allowed[names.index(wish)]))
        prefix = grammar.after(prefix, names.index(symbols[-1]))
    tree = unlinearise(symbols, ["w"] * words)
    assert tree.depth == (DEEPEST if order[0] == 0 else tree.depth)
    assert len(symbols) < grammar.limit(words)


# ---------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("names", "chains", "message"),
    [
        ([*NAMES, "(A", ")A", "XX"], 0, "chains: found 0, expected 1 or more"),
        ([*NAMES, "(A", ")A"], 4, "vocabulary of 6: expected XX and brackets"),
        ([*NAMES, "(A", ")B", "XX"], 4, "vocabulary of 7: expected XX and brackets"),
    ],
)
def test_a_vocabulary_without_trees_is_refused(names, chains, message):
    with pytest.raises(DecodingError, match=message):
        Grammar(names, chains=chains)


@pytest.mark.parametrize("words", [0, 8, 500])
def test_a_sentence_that_no_tree_fits_is_refused(words):
    _, grammar = grammar_of("A", cap=10)
    assert grammar.limit(7) == 10
    grammar.over([7])
    with pytest.raises(DecodingError, match=f"sentence 1: found {words} words, expected 1 to 7"):
        grammar.over([3, words])
