"""`regard explain` where something takes long, or is longer than the model can read."""

import torch

from regard.commands import rising
from regard.explaining.rise import Saliency, Stop
from regard.run import Request, run

POSITIONS = 64
LEARNED = (
    "text.kind=characters",
    "data.batch_tokens=256",
    "model.width=8",
    "model.heads=2",
    "model.feedforward=8",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.positions=learned",
    f"model.max_length={POSITIONS}",
    "training.validations=0",
    "training.threads=1",
    f"data.max_tokens={POSITIONS}",
    "decoding.cap=8",
)


def test_a_text_longer_than_the_positions_that_were_learned_is_refused(regard, corpus, tmp_path):
    files = {"source": corpus / "train.source", "target": corpus / "train.target"}
    run(Request(**files, out=tmp_path / "model", steps=2, settings=LEARNED, quiet=True))
    assert regard("explain", tmp_path / "model", "ab").code == 0
    regard("explain", tmp_path / "model", "a" * (POSITIONS + 1)).refused(str(POSITIONS))


def estimates(count):
    for masks in range(1, count + 1):
        yield Saliency(torch.tensor([[0.0, 1.0]]), torch.tensor([[0.1, 0.5]]) / masks, 100 * masks)


def test_who_waits_for_rise_is_told_how_far_it_has_come(capsys, monkeypatch):
    monkeypatch.setattr(rising, "EVERY", 0.0)
    assert rising.watched("rise, source", estimates(3), Stop(most=300)).masks == 300
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "rise, source: 100 of at most 300 masks, largest standard error 50.0% of the range"
    assert [line.split()[2] for line in said] == ["100", "200", "300", "300"]
    assert said[-1].endswith("; more --masks make it smaller")


def test_between_two_lines_of_progress_nothing_is_said(capsys, monkeypatch):
    monkeypatch.setattr(rising, "EVERY", 3600.0)
    rising.watched("rise, source", estimates(3), Stop(most=300, tolerance=0.2))
    assert capsys.readouterr().err.splitlines() == [
        "rise, source: 300 of at most 300 masks, largest standard error 16.7% of the range"
    ]
