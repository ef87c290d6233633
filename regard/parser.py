"""A parser that is ready to work: sentences in, constituency trees out."""

from collections.abc import Sequence
from pathlib import Path

from regard.data.treebank import sentence_of
from regard.decoding.bulk import LONGEST
from regard.decoding.options import SearchOptions
from regard.errors import DecodingError
from regard.evaluation.trees import ESCAPES, Tree
from regard.recipe.folder import ModelFolder, read_model
from regard.recipe.inference import for_inference
from regard.tasks.options import ParseOptions
from regard.tasks.parse import find_trees, grammar_of


class Parser:
    """Finds the tree of a sentence; `search` is how its recipe searches."""

    def __init__(self, folder: ModelFolder) -> None:
        options, search = folder.recipe.task, folder.recipe.decoding
        assert isinstance(options, ParseOptions)
        self.folder, self.vocabularies = folder, folder.vocabularies
        self.model = for_inference(folder.recipe.model, folder.model.eval())
        self.grammar = grammar_of(folder.vocabularies.target, chains=options.chains, cap=search.cap)
        self.search = search.model_copy(update={"n_best": 1})

    def parse(self, sentences: Sequence[str], search: SearchOptions | None = None) -> list[Tree | None]:
        """The tree of each sentence, whose words stand between spaces; none where there is no word.

        A tree is always well formed and over exactly these words. Its root is TOP and every tag XX.
        """
        words = [sentence.split() for sentence in sentences]
        found = iter(self.parse_words([some for some in words if some], search))
        return [next(found) if some else None for some in words]

    def parse_words(self, sentences: Sequence[Sequence[str]], search: SearchOptions | None = None) -> list[Tree]:
        """`parse` for sentences that are cut into words already, each of one word or more."""
        for words in sentences:
            self.refuse_endless(words)
        return find_trees(self.model, self.vocabularies, self.grammar, sentences, search or self.search)

    def refuse_endless(self, words: Sequence[str]) -> None:
        text, most = sentence_of(words, self.grammar.numbers), self.grammar.most_words
        if len(words) > most:
            raise DecodingError(
                f"{text[:40]!r}…: found {len(words)} words in one sentence, expected at most {most}, which this "
                "model's decoding.cap allows; put each sentence on a line of its own"
            )
        tokens = len(self.vocabularies.source.encode(text.translate(ESCAPES)))
        if tokens > LONGEST:
            raise DecodingError(
                f"{text[:40]!r}…: {tokens} tokens in one sentence, expected at most {LONGEST}; is this text?"
            )


def load_parser(path: str | Path) -> Parser:
    """The parser in this directory; ModelFormatError where it is damaged, or learned something else."""
    return Parser(read_model(Path(path), "parse"))
