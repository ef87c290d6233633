"""A glossary says one thing of each term, or says where it does not."""

import gzip

import pytest

from regard.data.glossary import read_glossary
from regard.errors import DataError


def test_terms_with_their_targets(tmp_path):
    text = "network\tNetz\nUnited Nations\tVereinte Nationen \nnetwork\tNetz\n"
    (tmp_path / "a.tsv").write_text(text, encoding="utf-8")
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(text.encode()))
    expected = {"network": "Netz", "United Nations": "Vereinte Nationen"}
    assert read_glossary(tmp_path / "a.tsv") == read_glossary(tmp_path / "a.tsv.gz") == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\tb\nnetwork Netz\n", ("line 2", "no tab")),
        ("a\tb\nc\td\te\n", ("line 2", "2 tabs")),
        ("a\tb\n\tNetz\n", ("line 2", "one side only")),
        ("a\tb\na\tc\n", ("line 2", "'a' is 'c' here and 'b' before")),
    ],
)
def test_a_line_that_says_nothing_or_something_else_is_named(tmp_path, text, words):
    (tmp_path / "a.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as error:
        read_glossary(tmp_path / "a.tsv")
    for word in (str(tmp_path / "a.tsv"), *words):
        assert word in str(error.value)
