"""A language model at work: trained on text alone, it goes on from a prompt and knows what it has read."""

import json
import math

import pytest
import torch

from regard.decoding.options import SamplingOptions
from regard.errors import DecodingError, ModelFormatError, RecipeError
from regard.generator import load_generator, readable, until_end
from regard.models.interface import nothing_read
from regard.run import Request, run
from regard.text.bytes import Bytes
from regard.text.characters import Characters
from regard.text.special import BOS, EOS

LINE = "der hund läuft, die katze schläft. "
SETTINGS = (
    "model.width=32",
    "model.heads=2",
    "model.feedforward=64",
    "model.layers=2",
    "model.dropout=0.0",
    "task.context=32",
    "data.batch_tokens=512",
    "training.learning_rate=0.01",
    "training.validations=2",
    "text.kind=characters",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("language")
    (place / "text.txt").write_text(LINE * 60, encoding="utf-8")
    run(Request(text=(place / "text.txt",), out=place / "model", steps=120, settings=SETTINGS, quiet=True))
    return place / "model"


@pytest.fixture(scope="module")
def generator(folder):
    return load_generator(folder)


# ---------------------------------------------------------------- text from tokens
@pytest.mark.parametrize("text", ["katze", "läuft ☃ 東京 🙂", "a\N{COMBINING ACUTE ACCENT}\n\n b"])
def test_the_pieces_are_the_text_and_never_half_a_character(text):
    tokeniser = Bytes()
    ids = tokeniser.encode("x" + text)
    pieces = list(readable(tokeniser, ids[0], ids[1:]))
    assert "".join(pieces) == text
    assert "\N{REPLACEMENT CHARACTER}" not in "".join(pieces)


def test_bytes_that_make_no_character_are_shown_and_hold_nothing_up():
    tokeniser = Bytes()
    first, lone = tokeniser.encode("x")[0], tokeniser.encode("ä")[0]
    found = "".join(readable(tokeniser, first, [lone, *tokeniser.encode("abc")]))
    assert found == "\N{REPLACEMENT CHARACTER}abc"


def test_a_text_that_ends_within_a_character_shows_what_there_is():
    tokeniser = Bytes()
    assert list(readable(tokeniser, tokeniser.encode("x")[0], tokeniser.encode("ä")[:1])) == [
        "\N{REPLACEMENT CHARACTER}"
    ]


def test_nothing_is_read_beyond_the_end_of_a_document():
    assert list(until_end([4, 5, EOS, 6])) == [4, 5]


def test_characters_come_one_by_one():
    tokeniser = Characters(list("abc"))
    assert list(readable(tokeniser, BOS, tokeniser.encode("cab"))) == ["c", "a", "b"]


# ---------------------------------------------------------------- a trained model
def test_it_goes_on_as_its_text_did(generator):
    found = "".join(generator.generate("der hund ", SamplingOptions(top_k=1), limit=len(LINE), seed=1))
    assert (LINE * 3).startswith("der hund " + found)


def test_the_same_seed_writes_the_same_text(generator):
    texts = [
        "".join(generator.generate("d", SamplingOptions(temperature=3.0), limit=60, seed=seed)) for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]


def test_a_score_is_the_sum_over_rows_that_follow_one_another(generator):
    text = "die katze läuft, der hund schläft."
    ids, total, before = [*generator.tokeniser.encode(text), EOS], 0.0, EOS
    for start in range(0, len(ids), 32):
        row = ids[start : start + 32]
        inputs = torch.tensor([[BOS if before == EOS else before, *row[:-1]]])
        with torch.no_grad():
            logits = generator.model.decoder(inputs, generator.model.decoder.begin(nothing_read(1)))[0]
        total += float(logits.log_softmax(-1)[0, torch.arange(len(row)), torch.tensor(row)].sum())
        before = row[-1]
    found = generator.score(text)
    assert found.log_probability == pytest.approx(total, rel=1e-4)
    assert found.tokens == len(ids)
    assert found.perplexity == pytest.approx(math.exp(-total / len(ids)), rel=1e-4)
    assert found.bits_per_character == pytest.approx(-total / math.log(2) / len(text), rel=1e-4)


def test_it_finds_its_own_language_likelier_than_noise(generator):
    known, noise = generator.score(LINE), generator.score("".join(sorted(LINE)))
    assert known.bits_per_character < 1 < noise.bits_per_character


def test_an_empty_text_has_no_score(generator):
    with pytest.raises(DecodingError, match="empty text"):
        generator.score("")


@pytest.mark.parametrize("kind", ["characters", "bpe", "bytes"])
def test_line_ends_are_text_too(tmp_path, kind):
    verse = "so long\n  lives this\n\nand this\n"
    (tmp_path / "text.txt").write_text(verse * 40, encoding="utf-8")
    settings = (*SETTINGS, f"text.kind={kind}")
    run(Request(text=(tmp_path / "text.txt",), out=tmp_path / "model", steps=1, settings=settings, quiet=True))
    tokeniser = load_generator(tmp_path / "model").tokeniser
    assert tokeniser.decode(tokeniser.encode(verse)) == verse


# ---------------------------------------------------------------- its directory and its commands
def test_the_card_tells_how_to_use_it_and_how_good_it_is(folder):
    card = (folder / "README.md").read_text(encoding="utf-8")
    facts = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["validation"]
    assert "regard generate model" in card
    assert f"{facts['bits_per_character']:.4f} bits per character" in card
    assert f"{(60 * len(LINE) + 1) // 10 + 1} characters of held-out text" in card  # the last tenth


def test_the_command_writes_the_prompt_and_what_follows(folder, regard):
    found = regard("generate", folder, "--prompt", "der hund ", "--tokens", "15", "--top-k", "1")
    assert found.out == "der hund läuft, die katz\n"


def test_a_text_is_scored_by_the_command(folder, generator, regard, tmp_path):
    text = "die katze läuft,\nder hund schläft.\n"
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    found, expected = (
        json.loads(regard("score", folder, "--text", tmp_path / "text.txt", "--json").out),
        generator.score(text),
    )
    assert found["bits_per_character"] == pytest.approx(expected.bits_per_character)
    assert found["loss"] == pytest.approx(math.log(expected.perplexity))
    assert (found["tokens"], found["characters"]) == (expected.tokens, len(text))
    shown = regard("score", folder, "--text", tmp_path / "text.txt").out
    assert f"{expected.bits_per_character:.4f} bits per character" in shown
    assert regard("score", folder, "--text", tmp_path / "text.txt", "--source", "x").code == 2


def test_as_json_each_sample_says_its_seed(folder, regard):
    options = ("--samples", "2", "--seed", "4", "--tokens", "9", "--json", "--temperature", "2")
    lines = [json.loads(line) for line in regard("generate", folder, *options).out.splitlines()]
    assert [line["seed"] for line in lines] == [4, 5]
    assert lines[0]["text"] != lines[1]["text"]


def test_a_language_model_does_not_translate_and_a_translator_does_not_continue(folder, model, regard):
    found = regard("translate", folder, stdin=b"x\n")
    assert found.code == 1
    assert "task language-model, expected one of the task translate; use it with regard generate" in found.err
    with pytest.raises(ModelFormatError, match="use it with regard translate"):
        load_generator(model)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"text": True, "source": True, "target": True}, "--text: plain text teaches a language model"),
        ({"valid_text": True}, "--valid-text: given without --text"),
        ({"text": True, "settings": ("model.kind=recurrent",)}, "model.kind: recurrent cannot language-model; use gpt"),
        ({"text": True, "settings": ("text.shared=false",)}, "task language-model has one vocabulary"),
        ({"text": True, "settings": ("task.kind=langage-model",)}, "did you mean 'language-model'"),
        ({"text": True, "settings": ("model.positions=learned", "model.max_length=9")}, "task.context asks for 256"),
    ],
)
def test_what_cannot_be_learned_is_refused_in_one_line(tmp_path, options, said):
    file = tmp_path / "text.txt"
    file.write_text(LINE * 9, encoding="utf-8")
    named = {name: (file,) if "text" in name else file if value is True else value for name, value in options.items()}
    with pytest.raises(RecipeError, match=said):
        run(Request(out=tmp_path / "model", quiet=True, **named))
    assert not (tmp_path / "model").exists()


def test_a_resumed_run_ends_as_one_that_was_never_interrupted(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text(LINE * 20, encoding="utf-8")
    settings = (*SETTINGS, "model.dropout=0.2", "training.save_every=5")
    whole = Request(text=(file,), out=tmp_path / "whole", steps=10, settings=settings, quiet=True)
    run(whole)
    from dataclasses import replace

    from regard import run as module

    part = replace(whole, out=tmp_path / "part")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(part)
    run(Request(resume=tmp_path / "part", quiet=True))
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "part")]
    assert weights[0] == weights[1]
