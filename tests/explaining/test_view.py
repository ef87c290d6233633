"""A view is one map or the mean of some, by tokens or words, and what is not there is refused by what is."""

import pytest
import torch

from regard.errors import DecodingError
from regard.explaining.explanation import Block, Explanation, Saliency, Step
from regard.explaining.sides import given, special
from regard.explaining.view import View, Which, by_words, grouped, listed, merged, saliency_view, view
from regard.text.characters import Characters
from regard.text.special import BOS, EOS

LETTERS = Characters(list("abcdefg "))
STEP = Step(probability=0.5, rank=1, alternatives=())


def random_block(kind, layer, head, size, seed):
    torch.manual_seed(seed)
    weights = torch.randn(size, dtype=torch.float64).softmax(-1).tolist()
    return Block(kind=kind, layer=layer, head=head, entropy=0.1, roles=(), weights=weights)


def explanation(*blocks):
    """ "ab c" → "de f g" in characters, with these blocks; source tokens 5, target tokens 7."""
    source, target = given(LETTERS, "ab c", after=(EOS,)), given(LETTERS, "de f g", after=(EOS,))
    return Explanation(
        model="tiny",
        source=source,
        start=special(BOS, 0),
        target=target,
        steps=(STEP,) * 7,
        log_probability=-1,
        score=-1,
        attention=blocks,
    )


SIZES = {"encoder": (5, 5), "decoder": (7, 7), "cross": (7, 5)}


@pytest.fixture(scope="module")
def whole():
    return explanation(
        *(
            random_block(kind, layer, head, SIZES[kind], 100 * layer + 10 * head + place)
            for place, kind in enumerate(SIZES)
            for layer in (1, 2)
            for head in (1, 2, 3)
        )
    )


def weights_of(whole, kind, layer, head):
    (block,) = [b for b in whole.attention if (b.kind, b.layer, b.head) == (kind, layer, head)]
    return torch.tensor(block.weights, dtype=torch.float64)


# ---------------------------------------------------------------- choosing
@pytest.mark.parametrize("kind", SIZES)
def test_a_head_is_shown_as_it_is(whole, kind):
    seen = view(whole, Which(kind, 2, 3))
    assert torch.equal(seen.weights, weights_of(whole, kind, 2, 3))
    assert seen.title == f"{kind} attention, layer 2, head 3"
    assert (seen.rows, seen.columns) == tuple(tuple(token.text for token in axis) for axis in whole.axes(kind))


def test_a_layer_is_the_mean_of_its_heads(whole):
    seen = view(whole, Which("encoder", 1))
    expected = sum(weights_of(whole, "encoder", 1, head) for head in (1, 2, 3)) / 3
    torch.testing.assert_close(seen.weights, expected)
    assert seen.title == "encoder attention, layer 1, mean of 3 heads"


def test_without_a_wish_it_is_the_cross_attention_of_the_layer_that_agrees_most():
    firm = torch.eye(5)[[0, 1, 2, 3, 4, 4, 4]].tolist()
    vague = torch.full((7, 5), 0.2).tolist()
    block = {"kind": "cross", "head": 1, "entropy": 0, "roles": ()}
    for order in ((firm, vague), (vague, firm)):
        found = explanation(*(Block(layer=i, weights=w, **block) for i, w in enumerate(order, start=1)))
        assert view(found, Which()).title == f"cross attention, layer {1 + order.index(firm)}, head 1"
    even = explanation(*(Block(layer=i, weights=vague, **block) for i in (1, 2)))
    assert "layer 2" in view(even, Which()).title


def test_within_a_text_it_is_the_last_layer(whole):
    assert "layer 2" in view(whole, Which("encoder")).title
    alone = explanation(*(block for block in whole.attention if block.kind == "decoder"))
    assert view(alone, Which()).title.startswith("decoder attention, layer 2")


@pytest.mark.parametrize(
    ("which", "words"),
    [
        (Which("cross", 3), ["layer 3", "cross", "layers 1 and 2"]),
        (Which("cross", 0), ["layer 0", "layers 1 and 2"]),
        (Which("encoder", 1, 4), ["head 4", "layer 1", "heads 1, 2 and 3"]),
    ],
)
def test_what_is_not_there_is_refused_by_what_is(whole, which, words):
    with pytest.raises(DecodingError) as caught:
        view(whole, which)
    assert all(word in str(caught.value) for word in words)


def test_a_kind_that_a_model_has_not_and_a_model_that_has_none_are_refused(whole):
    alone = explanation(*(block for block in whole.attention if block.kind == "encoder"))
    with pytest.raises(DecodingError, match="kind cross: not in this model, which has encoder;"):
        view(alone, Which("cross"))
    with pytest.raises(DecodingError, match=r"tiny: a model without attention.*--map rise"):
        view(explanation(), Which())


def test_lists_are_read_aloud():
    assert [listed([1]), listed(["a", "b"]), listed([1, 2, 3])] == ["1", "a and b", "1, 2 and 3"]


# ---------------------------------------------------------------- maps
def test_a_map_is_of_the_source_or_of_what_was_read():
    values = torch.arange(35).reshape(7, 5).double()
    read = torch.arange(49).reshape(7, 7).double()
    found = Saliency(method="rise", values=values.tolist(), previous=read.tolist(), masks=9)
    bare = Saliency(method="attention", values=values.tolist())
    for kind, expected in ((None, values), ("cross", values), ("decoder", read)):
        seen = saliency_view(explanation(), found, kind)
        assert torch.equal(seen.weights, expected)
        axes = explanation().axes("decoder" if kind == "decoder" else "cross")
        assert (seen.rows, seen.columns) == tuple(tuple(token.text for token in axis) for axis in axes)
    for one, kind in ((bare, "decoder"), (found, "encoder")):
        with pytest.raises(DecodingError, match=f"^kind {kind}: the map {one.method} does not tell"):
            saliency_view(explanation(), one, kind)


def test_a_map_by_words_adds_up_what_the_pieces_of_a_source_word_do():
    values = torch.zeros(7, 5).double()
    values[0, :2] = torch.tensor([0.25, 0.5]).double()  # "a" and "b" to the first letter of "de"
    found = Saliency(method="rise", values=values.tolist(), masks=9)
    seen = by_words(explanation(), saliency_view(explanation(), found, None))
    assert seen.columns == ("ab", "c", "</s>")
    assert float(seen.weights[0, 0]) == 0.375  # the mean over both letters


# ---------------------------------------------------------------- words
def test_words_are_named_as_the_user_wrote_them(whole):
    names = {kind: by_words(whole, view(whole, Which(kind))) for kind in SIZES}
    assert names["cross"].columns == names["encoder"].rows == ("ab", "c", "</s>")
    assert names["cross"].rows == ("de", "f", "g", "</s>")
    assert names["decoder"].columns == ("<s>", "de", "f", "g")


@pytest.mark.parametrize("kind", SIZES)
def test_rows_of_words_sum_to_one_as_those_of_tokens_do(whole, kind):
    seen = by_words(whole, view(whole, Which(kind)))
    assert isinstance(seen, View)
    torch.testing.assert_close(seen.weights.sum(-1), torch.ones(len(seen.rows), dtype=torch.float64))


def test_a_word_is_given_the_sum_and_gives_the_mean():
    weights = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.3, 0.6], [0.0, 0.0, 1.0]])
    expected = torch.tensor([[(0.75 + 0.4) / 2, (0.25 + 0.6) / 2], [0.0, 1.0]])
    torch.testing.assert_close(merged(weights, [[0, 1], [2]], [[0, 1], [2]]), expected)


def test_tokens_of_one_word_stand_together_and_those_of_none_alone():
    side = given(LETTERS, "ab c", (BOS,), (EOS,))
    assert grouped(side.tokens, side.words) == [("<s>", [0]), ("ab", [1, 2]), ("c", [3, 4]), ("</s>", [5])]


def test_a_token_of_two_words_joins_them():
    side = given(LETTERS, "a b c", ())
    joined = side.tokens[1].model_copy(update={"words": (0, 1)})
    tokens = (side.tokens[0], joined, *side.tokens[2:])
    assert grouped(tokens, side.words) == [("a b", [0, 1, 2]), ("c", [3, 4])]
