"""Any model directory that reads text can be looked into, and what it says there is what it says elsewhere."""

import math
from dataclasses import replace

import pytest
import torch
from toy_texts import SETTINGS, records, sentences, write_records

from regard.commands.explain import ExplainRequest
from regard.commands.explain_page import write_explanations
from regard.data.pairs import Pair
from regard.decoding.options import SearchOptions
from regard.engine import load
from regard.errors import DecodingError, ModelFormatError
from regard.explainer import LONGEST, Asked, Explainer, load_explainer
from regard.explaining.explain_page import explanation_page
from regard.generator import load_generator
from regard.reader import load_classifier
from regard.run import Request, run
from regard.serving import worker
from regard.serving.wishes import pair
from regard.text.special import EOS


@pytest.fixture(scope="module")
def explainer(model):
    return load_explainer(model)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("looking")
    (place / "text.txt").write_text("\n".join(sentences(60, 1)), encoding="utf-8")
    write_records(place / "train.tsv", records(60, 2))
    write_records(place / "valid.tsv", records(20, 3))
    return place


@pytest.fixture(scope="module")
def bard(place):
    settings = (*SETTINGS, "task.context=20", "text.kind=characters")
    run(Request(text=(place / "text.txt",), out=place / "bard", steps=3, settings=settings, quiet=True))
    return place / "bard"


@pytest.fixture(scope="module")
def reader(place):
    settings = (*SETTINGS, "task.context=14")
    run(Request(text=(place / "text.txt",), masked=True, out=place / "reader", steps=3, settings=settings, quiet=True))
    return place / "reader"


@pytest.fixture(scope="module")
def sorter(place):
    request = Request(labelled=place / "train.tsv", valid_labelled=place / "valid.tsv", out=place / "sorter", steps=3)
    run(replace(request, settings=(*SETTINGS, "data.max_tokens=16"), quiet=True))
    return place / "sorter"


# ---------------------------------------------------------------- translators
def test_the_outputs_are_those_of_the_engine(explainer, model):
    assert isinstance(explainer, Explainer)
    engine = load(model)
    asked = engine.search.model_copy(update={"beam": max(4, engine.search.beam), "n_best": 4})
    for text in ("abc de", "edc ba"):
        candidates = engine.translate([text], asked)[0].candidates
        found = explainer.explain(text, Asked(n_best=4))
        assert [one.target.text for one in found] == [candidate.text for candidate in candidates]
        assert [one.score for one in found] == pytest.approx([candidate.score for candidate in candidates], abs=1e-4)
        for one, candidate in zip(found, candidates, strict=True):
            assert one.log_probability == pytest.approx(candidate.log_probability, abs=1e-4)
            assert tuple(token.text for token in one.target.tokens if token.id != EOS) == candidate.tokens


def test_a_given_target_is_as_probable_as_it_is_scored(explainer, model):
    (found,) = explainer.explain("ab", Asked(target="AB D"))
    (scored,) = load(model).score([Pair("ab", "AB D")])
    assert found.log_probability == pytest.approx(scored.log_probability, abs=1e-4)
    assert sum(math.log(step.probability) for step in found.steps) == pytest.approx(found.log_probability)
    assert found.target.text == "AB D"


def test_the_best_output_as_a_target_gives_its_own_explanation(explainer):
    (own,) = explainer.explain("abc de", Asked())
    assert explainer.explain("abc de", Asked(target=own.target.text)) == [own]


def test_an_output_that_the_length_limit_cut_is_explained_as_far_as_it_goes(explainer):
    explainer.search, kept = SearchOptions(beam=1, max_ratio=0, max_extra=2), explainer.search
    try:
        (found,) = explainer.explain("abc de", Asked())
    finally:
        explainer.search = kept
    assert [token.text for token in found.target.tokens].count("</s>") == 0
    assert len(found.steps) == 2


def test_maps_and_concerns_come_with_every_output_if_asked(explainer):
    found = explainer.explain("abc de", Asked(n_best=2, maps=("rise", "gradient"), masks=30, concerns=True))
    assert [[one.method for one in each.saliency] for each in found] == [["rise", "gradient"]] * 2
    (bare,) = explainer.explain("abc de", Asked())
    assert (bare.saliency, bare.concerns, bare.dependence, bare.confidence) == ((), (), None, None)
    for one in found:
        assert one.confidence == pytest.approx(math.exp(one.log_probability / len(one.steps)), abs=1e-4)
    assert found[0].dependence != found[1].dependence
    (odd,) = explainer.explain("abc de", Asked(target="ABC ABC ABC", concerns=True))
    assert "repetition" in [concern.kind for concern in odd.concerns]


def test_the_model_is_named_without_its_place(explainer, model):
    assert explainer.explain("ab", Asked())[0].model == model.name


# ---------------------------------------------------------------- models of one text
def test_a_language_model_tells_how_it_reads(bard):
    text = "die kuh frisst gras"
    (found,) = load_explainer(bard).explain(text, Asked(alternatives=3))
    assert found.source is None
    assert found.target.text == text
    assert {block.kind for block in found.attention} == {"decoder"}
    generator = load_generator(bard)
    whole = generator.score(text).log_probability  # with the end of the document
    nothing = torch.zeros(1, 0, dtype=torch.long)
    ids = torch.tensor([[generator.start, *(token.id for token in found.target.tokens)]])
    logits = generator.model(nothing, nothing.bool(), ids).detach()
    assert found.log_probability + float(logits[0, -1].log_softmax(-1)[EOS]) == pytest.approx(whole, abs=1e-3)


@pytest.mark.parametrize("name", ["reader", "sorter"])
def test_an_encoder_tells_how_it_reads(name, request):
    (found,) = load_explainer(request.getfixturevalue(name)).explain("die kuh", Asked())
    assert (found.target is None) == (name == "reader")
    assert [token.text for token in found.source.tokens][:: len(found.source.tokens) - 1] == ["<s>", "</s>"]
    assert [(block.layer, block.head) for block in found.attention] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    for block in found.attention:
        assert [sum(row) for row in block.weights] == pytest.approx([1] * len(found.source.tokens), abs=1e-4)


def test_a_classifier_tells_its_labels_as_it_decides(sorter):
    text, looking = "kuh rot", load_explainer(sorter)
    (decision,) = load_classifier(sorter).classify([text])
    ranking = sorted(decision.probabilities, key=lambda label: -decision.probabilities[label])
    found = looking.explain(text, Asked(n_best=2, alternatives=9))
    assert [one.target.text for one in found] == ranking[:2]
    for rank, one in enumerate(found, start=1):
        (step,) = one.steps
        assert step.rank == rank
        assert step.probability == pytest.approx(decision.probabilities[one.target.text], abs=1e-5)
        assert [other.text for other in step.alternatives] == ranking
        assert sum(other.probability for other in step.alternatives) == pytest.approx(1)
        assert math.exp(one.log_probability) == pytest.approx(step.probability)
        assert one.start == one.source.tokens[0]
        assert {block.kind for block in one.attention} == {"encoder"}
    assert looking.explain(text, Asked(target=ranking[1], alternatives=9)) == found[1:]
    with pytest.raises(DecodingError, match=f"target 'x': no label of this model; give one of .*{ranking[0]}"):
        looking.explain(text, Asked(target="x"))


def test_a_model_of_pairs_of_texts_shows_how_it_reads_one(place):
    rows = [(text, "rot", label) for text, label in records(40, 5)]
    file = write_records(place / "pairs.tsv", rows, ("text", "other", "label"))
    columns = {"text_column": "text", "second_column": "other", "label_column": "label"}
    request = Request(labelled=file, valid_labelled=file, **columns, out=place / "pairs", steps=1)
    run(replace(request, settings=(*SETTINGS, "data.max_tokens=16"), quiet=True))
    (found,) = load_explainer(place / "pairs").explain("die kuh", Asked())
    assert found.target is None


@pytest.mark.parametrize("name", ["bard", "reader"])
def test_outputs_mean_nothing_to_a_model_that_writes_none(name, request):
    looking = load_explainer(request.getfixturevalue(name))
    with pytest.raises(DecodingError, match="target: has no meaning here"):
        looking.explain("die kuh", Asked(target="x"))
    with pytest.raises(DecodingError, match="n-best: has no meaning here"):
        looking.explain("die kuh", Asked(n_best=2))


@pytest.mark.parametrize("name", ["reader", "sorter"])
def test_a_model_that_writes_nothing_has_nothing_that_could_depend(name, request):
    looking = load_explainer(request.getfixturevalue(name))
    with pytest.raises(
        DecodingError, match="map rise: tells what written tokens depend on, and this model writes none"
    ):
        looking.explain("die kuh", Asked(maps=("rise",)))
    with pytest.raises(DecodingError, match="check: has no meaning here"):
        looking.explain("die kuh", Asked(concerns=True))


def test_a_language_model_is_asked_what_it_depends_on(bard):
    (found,) = load_explainer(bard).explain("die kuh", Asked(maps=("rise", "rollout"), masks=30))
    assert [one.method for one in found.saliency] == ["rise", "rollout"]
    assert [len(row) for row in found.saliency[0].previous] == [len(found.target.tokens)] * len(found.target.tokens)
    with pytest.raises(DecodingError, match="check: has no meaning here"):
        load_explainer(bard).explain("die kuh", Asked(concerns=True))


def test_a_worker_says_null_of_what_it_could_not_check(model, explainer):
    texts = [pair("abc", "ABC"), pair("a" * LONGEST, "A")]
    one, other = worker.check(worker.Model(model, load(model)), {"texts": texts})
    (same,) = explainer.explain("abc", Asked(target="ABC", concerns=True))
    assert (one["dependence"], one["confidence"]) == (same.dependence, same.confidence)
    assert other == {"concerns": None, "dependence": None, "confidence": None}


# ---------------------------------------------------------------- pages
@pytest.mark.parametrize(("name", "maps"), [("bard", ("rise",)), ("reader", ()), ("sorter", ())])
def test_a_page_has_by_itself_what_its_model_can_tell(name, maps, request, tmp_path, capsys):
    path, out = request.getfixturevalue(name), tmp_path / "page.html"
    write_explanations(path, ExplainRequest(text="die kuh", out=out))
    found = load_explainer(path).explain("die kuh", Asked(maps=maps, masks=300))
    assert out.read_text(encoding="utf-8") == explanation_page(found, [])
    assert capsys.readouterr().err == ""


def test_masks_that_a_model_cannot_be_asked_by_are_refused(sorter, tmp_path):
    with pytest.raises(DecodingError, match="map rise"):
        write_explanations(sorter, ExplainRequest(text="die kuh", masks=50, out=tmp_path / "page.html"))


def test_a_text_without_anything_to_leave_out_has_its_page_and_a_line_that_says_so(bard, tmp_path, capsys):
    """A language model of one token has read nothing before it."""
    out = tmp_path / "page.html"
    write_explanations(bard, ExplainRequest(text="d", out=out))
    assert out.read_text(encoding="utf-8") == explanation_page(load_explainer(bard).explain("d", Asked()), [])
    assert "'d': the page has only what was asked for; text: has no token" in capsys.readouterr().err
    with pytest.raises(DecodingError, match="has no token"):
        write_explanations(bard, ExplainRequest(text="d", maps=("rise",), out=out))


# ---------------------------------------------------------------- bad input
@pytest.mark.parametrize(
    ("text", "words"),
    [("", "nothing to explain"), (" \t", "nothing to explain"), ("a\udcff", "no UTF-8"), ("a" * LONGEST, "513 tokens")],
)
def test_texts_that_cannot_be_explained_are_refused(explainer, text, words):
    with pytest.raises(DecodingError, match=f"text.*{words}"):
        explainer.explain(text, Asked())
    with pytest.raises(DecodingError, match=f"target.*{words}"):
        explainer.explain("ab", Asked(target=text))


def test_a_text_beyond_what_a_model_reads_together_is_refused(bard, reader):
    with pytest.raises(DecodingError, match="27 tokens, expected at most 20"):
        load_explainer(bard).explain("die kuh frisst gras . die k", Asked())
    with pytest.raises(DecodingError, match="expected at most 14"):
        load_explainer(reader).explain("die kuh frisst gras " * 9, Asked())


def test_a_model_of_something_else_is_sent_where_it_belongs(tmp_path, model):
    with pytest.raises(ModelFormatError, match="no such model"):
        load_explainer(tmp_path / "nowhere")
    (tmp_path / "model.bin").touch()
    with pytest.raises(ModelFormatError, match="exported for CTranslate2"):
        load_explainer(tmp_path)
