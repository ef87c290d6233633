"""The four ids every vocabulary shares."""

PAD, UNK, BOS, EOS = 0, 1, 2, 3
NAMES = ("<pad>", "<unk>", "<s>", "</s>")


def sentinel(place: int) -> str:
    """The name of what stands for the stretch of a text that was left out at this place among them: T5's."""
    return f"<extra_id_{place}>"
