"""`regard align`: a line of links for each pair, the best head by gold links, scores, two directions, taught heads."""

import json
import re

import pytest

from regard.evaluation.alignment import AlignmentScore, join, parse_gold, parse_links, score_links, turn


def links_of(ended):
    assert ended.code == 0, ended
    return [parse_links(line, "out") for line in ended.lines]


@pytest.fixture
def files(corpus):
    return "--source", corpus / "test.source", "--target", corpus / "test.target"


@pytest.fixture
def gold(tmp_path):
    """Of two words, the first is the first and the second the second."""
    (tmp_path / "gold").write_text("0-0 1-1\n" * 20)
    return tmp_path / "gold"


def test_each_pair_has_a_line_and_each_target_word_a_link(regard, model, files):
    links = links_of(regard("align", model, *files))
    assert len(links) == 20
    assert all(sorted(target for _, target in one) == [0, 1] for one in links)
    assert all(source in (0, 1) for one in links for source, _ in one)


def test_a_file_holds_what_the_terminal_shows(regard, model, files, tmp_path):
    shown = regard("align", model, *files)
    written = regard("align", model, *files, "--output", tmp_path / "links")
    assert (written.out, (tmp_path / "links").read_text()) == ("", shown.out)


def test_a_blank_pair_has_a_blank_line(regard, model, tmp_path):
    for name, text in (("s", "ab cd\n\nab\n"), ("t", "AB\nAB\n \n")):
        (tmp_path / name).write_text(text)
    found = regard("align", model, "--source", tmp_path / "s", "--target", tmp_path / "t")
    assert re.fullmatch(r"[01]-0\n\n\n", found.out)


def test_the_best_head_is_found_and_can_be_asked_for(regard, model, files, gold):
    chosen = regard("align", model, *files, "--gold", gold)
    told = re.search(r": AER (\S+) % on 20 lines \(mean of all: (\S+) %\)\n.*gold links: (--.*)\n", chosen.err)
    best, mean = float(told[1]), float(told[2])
    assert best <= mean
    again = regard("align", model, *files, *told[3].split())
    assert (again.out, again.err) == (chosen.out, "")
    scores = (score_links(links, parse_gold("0-0 1-1", "here")) for links in links_of(again))
    assert sum(scores, AlignmentScore()).aer == pytest.approx(best, abs=0.005)


def test_scores_are_those_of_the_links_that_were_not_chosen_by(regard, model, files, gold, tmp_path):
    more = ("--gold", gold, "--gold-lines", 5, "--score", gold)
    found = json.loads(regard("align", model, *files, *more, "--json", "--output", tmp_path / "links").out)
    links = [parse_links(line, "out") for line in (tmp_path / "links").read_text().splitlines()]
    assert len(links) == 20
    expected = sum((score_links(one, parse_gold("0-0 1-1", "here")) for one in links[5:]), AlignmentScore())
    assert found == {**expected.to_json(), "look": found["look"]}
    assert found["sentences"] == 15
    shown = regard("align", model, *files, *more)
    assert f"AER         {expected.aer:6.2f} %" in shown.lines
    assert f"recall      {expected.recall:6.2f} %" in shown.lines


def test_links_of_two_directions_are_joined(regard, model, files, corpus):
    """Letters of both cases are in its vocabulary, so that the model itself can be asked backwards."""
    turned = ("--source", corpus / "test.target", "--target", corpus / "test.source")
    one = links_of(regard("align", model, *files, "--layer", 1, "--head", 2))
    other = links_of(regard("align", model, *turned, "--layer", 1, "--step", "writing"))
    places = ("--layer", 1, "--head", 2, "--reverse", model, "--reverse-layer", 1, "--reverse-step", "writing")
    for how in ("intersection", "union", "grow-diag-final-and"):
        found = links_of(regard("align", model, *files, *places, "--symmetrise", how))
        assert found == [join(a, turn(b), how) for a, b in zip(one, other, strict=True)]
    assert links_of(regard("align", model, *files, *places)) == found  # the last is what one gets unasked


def test_both_directions_are_chosen_and_told(regard, model, files, gold):
    more = ("--reverse", model, "--gold", gold, "--gold-lines", 10, "--score", gold)
    ended = regard("align", model, *files, *more, "--json")
    found = json.loads(ended.out)
    assert set(found) == {
        *("aer", "precision", "recall", "links", "sentences"),
        *("look", "reverse_look", "symmetrise"),
    }
    assert ended.err.count("AER") == 2
    assert re.search(r": --layer \S+ (--head \d )?--step \w+\n.*\n.*: --reverse-layer \S+ ", ended.err)
    assert "grow-diag-final-and with the reverse model: " in regard("align", model, *files, *more).out


REFUSED = {
    ("--layer", "7"): ("layer 7", "1 layers of 4 heads", "say 1 to 1"),
    ("--layer", "1", "--head", "9"): ("head 9", "say 1 to 4"),
    ("--head", "1"): ("head 1", "of which layer"),
    ("--layer", "all", "--head", "1"): ("head 1", "of which layer"),
    ("--symmetrise", "union"): ("--symmetrise", "--reverse"),
    ("--reverse-head", "2"): ("--reverse-head", "--reverse"),
    ("--gold-lines", "5"): ("--gold-lines", "--gold"),
    ("--json",): ("--json", "--score"),
    ("--gold", "GOLD", "--layer", "1"): ("--gold", "leave it or those out"),
    ("--gold", "GOLD", "--score", "GOLD"): ("--score", "--gold-lines"),
    ("--gold", "GOLD", "--gold-lines", "21"): ("--gold-lines 21", "20 lines"),
    ("--gold", "GOLD", "--gold-lines", "20", "--score", "GOLD"): ("--gold-lines 20", "left to score"),
    ("--gold", "SHORT"): ("short has 1 lines for 20 pairs",),
    ("--score", "WRONG"): ("wrong, line 20: found the link 0-2", "2 source and 2 target"),
    ("--gold", "POSSIBLE"): ("no sure link",),
    ("--score", "nowhere"): ("nowhere", "no such file"),
    ("--reverse", "nowhere"): ("nowhere", "no such model directory"),
}


@pytest.mark.parametrize("options", REFUSED, ids=" ".join)
def test_what_cannot_be_is_one_line(regard, model, files, gold, tmp_path, options):
    texts = {"short": "0-0\n", "wrong": "0-0\n" * 19 + "0-2\n", "possible": "0p0\n" * 20}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    places = {"GOLD": gold} | {name.upper(): tmp_path / name for name in texts}
    regard("align", model, *files, *(places.get(option, option) for option in options)).refused(*REFUSED[options])


@pytest.mark.parametrize("layer", ["0", "-1", "two", "²"])
def test_a_layer_is_a_number_or_all(regard, model, files, layer):
    ended = regard("align", model, *files, "--layer", layer)
    assert (ended.code, ended.out) == (2, "")
    assert "neither a number from 1 on nor 'all'" in ended.err


def test_files_of_other_lengths_are_refused(regard, model, corpus, tmp_path):
    (tmp_path / "one").write_text("ab\n")
    regard("align", model, "--source", corpus / "test.source", "--target", tmp_path / "one").refused(
        "20 lines", "has 1"
    )


# ---------------------------------------------------------------- guided training
@pytest.fixture
def guided(corpus, tmp_path):
    """The corpus of the tests, with links, as a setting."""
    pairs = len((corpus / "train.source").read_text().splitlines())
    (tmp_path / "train.links").write_text("0-0 1-1\n" * pairs)
    texts = f"source: {corpus / 'train.source'}, target: {corpus / 'train.target'}"
    return f"data.corpora=[{{{texts}, alignment: {tmp_path / 'train.links'}}}]"


def test_a_taught_head_aligns_and_is_where_one_looks(regard, train, guided, files, gold, tmp_path):
    settings = (guided, "loss.guided=1", "loss.guided_head=3")
    assert train(tmp_path / "m", "--steps", 60, settings=settings).code == 0
    found = json.loads(regard("align", tmp_path / "m", *files, "--score", gold, "--json").out)
    assert found["look"] == {"layer": 1, "head": 3, "step": "reading"}
    assert found["aer"] < 10
    mean = regard("align", tmp_path / "m", *files, "--layer", "all", "--step", "writing", "--score", gold, "--json")
    assert json.loads(mean.out)["look"] == {"layer": None, "head": None, "step": "writing"}


def test_with_weight_0_a_corpus_with_links_is_one_without(train, guided, tmp_path):
    for name, settings in (("plain", ()), ("linked", (guided,))):
        assert train(tmp_path / name, "--steps", 3, settings=settings).code == 0
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("plain", "linked")]
    assert weights[0] == weights[1]


IMPOSSIBLE = {
    ("loss.guided=0.1",): ("loss.guided: 0.1, but no corpus has an alignment",),
    ("GUIDED", "loss.guided=-1"): ("loss.guided", "greater than or equal to 0"),
    ("GUIDED", "loss.guided=0.1", "loss.guided_head=5"): ("loss.guided_head: 5", "say 1 to 4"),
    ("GUIDED", "loss.guided=0.1", "loss.guided_layer=2"): ("loss.guided_layer: 2", "say 1 to 1"),
    ("GUIDED", "loss.guided=0.1", "text.kind=bpe", "text.dropout=0.1"): ("text.dropout: 0.1, but loss.guided",),
    ("GUIDED", "data.bad_lines=drop"): ("bad_lines: drop",),
}


@pytest.mark.parametrize("settings", IMPOSSIBLE, ids=" ".join)
def test_an_impossible_wish_to_guide_is_refused_with_its_key(train, guided, tmp_path, settings):
    asked = tuple(guided if setting == "GUIDED" else setting for setting in settings)
    train(tmp_path / "m", "--steps", 9, settings=asked).refused(*IMPOSSIBLE[settings])
    assert not (tmp_path / "m").exists()


def test_links_of_another_text_are_refused(train, guided, tmp_path):
    (tmp_path / "train.links").write_text("0-0\n")
    train(tmp_path / "m", "--steps", 9, settings=(guided, "loss.guided=1")).refused("train.links has 1 lines", "pairs")
