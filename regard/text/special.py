"""The four ids every vocabulary shares."""

PAD, UNK, BOS, EOS = 0, 1, 2, 3
NAMES = ("<pad>", "<unk>", "<s>", "</s>")
