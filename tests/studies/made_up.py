"""Results that nobody trained, for the tests of what is told about them."""

from regard.studies.rows import Result


def result(name, outputs=("a",), *, ppl=8.0, dev=30.0, flops=1e12):
    """A row with these figures; what the tests do not look at is the same in all."""
    return Result(
        name=name,
        settings=(),
        parameters=1_000,
        optimiser="adamw 0.003",
        steps=10,
        epochs=2.0,
        train_minutes=1.0,
        minutes=1.5,
        flops=flops,
        dev_perplexity=ppl,
        dev_bleu=dev,
        test_bleu=dev - 1,
        test_chrf=50.0,
        beam=5,
        signature="sig",
        date="2026-01-01T00:00:00+00:00",
        outputs=tuple(outputs),
    )
