"""The quality runner: its scores, its means, its memory of what is finished."""

import gzip
import json
from dataclasses import replace

import pytest

from benchmarks import quality
from benchmarks.quality import Corpus, Trial, bleu_lc_tok, finish_seed, moses_lowercased, summary
from regard.data.readers import read_lines
from regard.studies.provenance import commit


def test_moses_parts_punctuation_from_words_after_lowering_them_and_making_quotes_plain():
    assert moses_lowercased(["„Hallo“, sagt z.B. Herr Müller!"], "de") == ['" hallo " , sagt z.b. herr müller !']
    assert moses_lowercased(["It's a dog's life."], "en") == ["it 's a dog 's life ."]


def test_lowercased_tokenised_bleu_is_worked_out_by_hand():
    """6 of 7 tokens are right, with 4 of 6 pairs, 3 of 5 triples and 2 of 4 quadruples around the wrong one."""
    found = bleu_lc_tok(["Ein Mann, der schnell rennt."], ["ein Hund, der schnell rennt."], "de")
    assert found.score == pytest.approx(100 * (6 / 7 * 4 / 6 * 3 / 5 * 2 / 4) ** 0.25)
    assert found.signature.endswith("tok:none|smooth:exp|version:2.6.0|text:lc.norm.tok")
    assert bleu_lc_tok(["EIN HUND , DER SCHNELL RENNT ."], ["ein Hund, der schnell rennt."], "de").score > 99.99


def seed(number, test, dev):
    def scores(value):
        return {"bleu_cased": value, "bleu_lc_tok": value + 3}

    return {
        "seed": number,
        "minutes": 10.0 * number,
        "scoring_minutes": 1.0,
        "steps": 100,
        "commit": "abc",
        "dev": {"scores": scores(dev), "signatures": ["x"], "outputs": []},
        "test": {"scores": scores(test), "signatures": ["x", "y"], "outputs": ["EINS", "ZWEI"]},
    }


def test_figures_are_means_over_the_seeds_with_their_spread():
    found = summary([seed(1, 30.0, 31.0), seed(2, 33.0, 31.0), seed(3, 36.0, 34.0)])
    assert (found["bleu_cased"], found["bleu_lc_tok"], found["dev_bleu_cased"]) == (33.0, 36.0, 32.0)
    assert (found["bleu_cased_spread"], found["bleu_cased_deviation"]) == (6.0, 3.0)
    assert (found["minutes"], found["seeds"], found["seed 2: bleu_cased"]) == (20.0, 3, 33.0)
    alone = summary([seed(1, 30.0, 31.0)])
    assert not {"bleu_cased_spread", "bleu_cased_deviation"} & set(alone)


@pytest.fixture
def trial(tmp_path):
    """Two lines of test text, whose languages are the same."""
    for side, lines in (("en", "one\ntwo\n"), ("de", "eins\nzwei\n")):
        (tmp_path / f"test.{side}.gz").write_bytes(gzip.compress(lines.encode()))
    pair = ("test.en.gz", "test.de.gz")
    return Trial("tiny", Corpus(pair, pair, pair, "de"), tmp_path, tmp_path / "kept", budget="1s")


def test_a_finished_seed_is_read_and_not_trained_again(trial, monkeypatch):
    monkeypatch.setattr(quality, "regard", lambda *_words: pytest.fail("trains"))
    folder = trial.folder / "seed-2"
    folder.mkdir(parents=True)
    (folder / "seed.json").write_text(json.dumps(seed(2, 30.0, 31.0)))
    assert finish_seed(trial, 2)["test"]["scores"]["bleu_cased"] == 30.0
    quality.run(trial, [2], "the command", results=trial.data)
    content = json.loads((trial.data / "quality-tiny.json").read_text())
    assert (content["command"], content["figures"]["bleu_lc_tok"], content["minutes"]) == ("the command", 33.0, 21.0)
    assert "Choices were made on the dev set." in content["notes"]
    assert "no recipe, budget 1s, seeds 2, whose training began at commit abc; beam 5 on test" in content["notes"]
    page = (trial.data / "quality-tiny.md").read_text()
    assert "2. two\n   - reference: zwei\n   - output: ZWEI\n" in page


def test_seeds_that_were_trained_otherwise_are_not_mixed(trial, monkeypatch):
    quality.agree(trial)
    quality.agree(trial)
    other = Trial(trial.name, trial.corpus, trial.data, trial.folder, budget="2s")
    with pytest.raises(SystemExit, match="trained otherwise"):
        quality.agree(other)


def test_a_recipe_says_itself_what_is_read_and_files_are_named_without_one(trial, tmp_path):
    source = tmp_path / "test.en.gz"
    words = trial.training()
    assert words[:2] == ["--source", source]
    assert words[4:6] == ["--valid-source", source]
    assert words[-2:] == ["--budget", "1s"]
    recipe = Trial("tiny", trial.corpus, tmp_path, tmp_path, recipe=tmp_path / "r.yaml", settings=("model.width=8",))
    assert recipe.training() == [tmp_path / "r.yaml", "--set", "model.width=8"]


def test_a_model_with_teachers_learns_from_both_and_its_minutes_are_those_of_all(trial, monkeypatch, tmp_path):
    commands = []

    def typed(*words):
        commands.append([str(word) for word in words])
        folder = words[words.index("--out") + 1]
        model = folder / "student" if words[0] == "distil" else folder
        model.mkdir(parents=True)
        (model / "manifest.json").write_text(json.dumps({"seconds": 240 if words[0] == "distil" else 60, "steps": 1}))
        (folder / "distil.json").write_text('{"seconds": 30}')

    monkeypatch.setattr(quality, "regard", typed)
    first = tuple(replace(trial, name=name, folder=tmp_path / name) for name in ("there", "back"))
    taught = replace(trial, budget="4s", settings=("model.width=8",), teachers=first)
    assert quality.train_seed(taught, 3) == tmp_path / "kept" / "seed-3" / "made" / "student"
    assert [words[0] for words in commands] == ["train", "train", "distil"]
    asked = commands[2]
    assert asked[1:4] == [str(first[0].model(3)), "--back", str(first[1].model(3))]
    assert asked[asked.index("--start") + 1] == str(first[0].model(3))
    assert asked[-4:] == ["--budget", "4s", "--set", "model.width=8"]
    assert quality.minutes(taught, 3) == 4 + 0.5 + 1 + 1
    for folder in (taught.folder, *(one.folder for one in first)):
        assert (folder / "seed-3" / "commit.txt").read_text() == f"{commit()}\n"
    assert "regard distil --start --back); these two had 1s and 1s" in taught.how
    assert taught.asked() != trial.asked()


def test_only_sets_of_both_directions_have_a_way_back():
    assert quality.back("multi30k-en-de") == "multi30k-de-en"
    assert quality.back("multi30k-de-en") == "multi30k-en-de"
    assert quality.back("tatoeba-en-es") is None


def test_every_set_has_a_recipe_that_reads_the_same_files():
    for name, corpus in quality.CORPORA.items():
        text = (quality.ROOT / "recipes" / f"{name}.yaml").read_text(encoding="utf-8")
        for file in (*corpus.train, *corpus.valid):
            assert f": {file}\n" in text, name
        assert not any(f": {file}\n" in text for file in corpus.test)


def test_a_trial_of_another_kind_needs_a_name(corpus, monkeypatch, capsys):
    pairs = Corpus(("train.source", "train.target"), ("a", "b"), ("a", "b"), "de")
    monkeypatch.setattr(quality, "CORPORA", {"tiny": pairs})
    monkeypatch.setenv("REGARD_DATA", str(corpus))
    monkeypatch.setattr("sys.argv", ["quality", "tiny", "--set", "model.dropout=0.3"])
    with pytest.raises(SystemExit):
        quality.main()
    assert "give --name" in capsys.readouterr().err


def test_choosing_scores_the_dev_set_alone(trial, monkeypatch, capsys):
    parts = []
    monkeypatch.setattr(quality, "CORPORA", {"tiny": trial.corpus})
    monkeypatch.setattr(quality, "WORK", trial.folder)
    monkeypatch.setattr(quality, "train_seed", lambda trial, _seed: trial.folder)
    monkeypatch.setattr(quality, "scored", lambda *asked: parts.append(asked[2]) or {"scores": {"bleu": 1.5}})
    monkeypatch.setenv("REGARD_DATA", str(trial.data))
    monkeypatch.setattr("sys.argv", ["quality", "tiny", "--budget", "1m", "--name", "other", "--dev"])
    quality.main()
    assert parts == ["valid"]
    assert capsys.readouterr().out == '1 {"bleu": 1.5}\n'
    assert (trial.folder / "tiny-1m-other" / "asked.json").exists()


@pytest.mark.slow
def test_two_seeds_are_trained_scored_and_written(corpus, tmp_path):
    names = {part: (f"{part}.source", f"{part}.target") for part in ("train", "test")}
    pairs = Corpus(names["train"], names["test"], names["test"], "de")
    settings = ("text.kind=characters", "model.width=16", "data.batch_tokens=256", "decoding.cap=8")
    trial = Trial("tiny", pairs, corpus, tmp_path / "kept", budget="2s", settings=settings)
    figures = quality.run(trial, [1, 2], "x", results=tmp_path)["figures"]
    assert figures["seeds"] == 2
    assert len(list(read_lines(tmp_path / "kept" / "seed-2" / "test.txt"))) == 20
    assert figures["minutes"] > 0
