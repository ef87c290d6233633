"""Constituency parsing as a job: a treebank, words and brackets, bracket F1."""

from collections.abc import Sequence
from pathlib import Path

from regard.data.corpus import Corpus, Loaded
from regard.data.pairs import Pair
from regard.data.treebank import statistics, to_pair, word_symbols
from regard.data.trees import LoadedTrees, load_trees
from regard.errors import DataError, ModelFormatError, RecipeError
from regard.evaluation.parses import ParseScores, score_parses
from regard.evaluation.trees import Tree
from regard.jobs.interface import Prepared, Verdict
from regard.jobs.translate import filmed, fingerprint, translation
from regard.models.interface import SequenceToSequence
from regard.parser import Parser
from regard.recipe.folder import ModelFolder, fresh_model, read_vocabularies, refuse_impossible
from regard.recipe.presets import choose_parser
from regard.recipe.recipe import Recipe
from regard.recipe.recipe import Tree as RecipeTree
from regard.tasks.guiding import refuse_unteachable
from regard.tasks.options import ParseOptions
from regard.tasks.parse import Parsing, grammar_of
from regard.tasks.translate import Vocabularies
from regard.text.learn import learn
from regard.text.special import UNK
from regard.text.symbols import Symbols
from regard.text.tokeniser import Tokeniser
from regard.training.events import Finished


class ParseJob:
    """See jobs/interface.py for what each method promises."""

    def refuse_impossible(self, recipe: Recipe) -> None:
        if recipe.training.stop_on != "loss":
            raise RecipeError(f"training.stop_on: {recipe.training.stop_on}, but a parser stops on its loss; say loss")
        refuse_impossible(recipe)

    def load(self, recipe: Recipe) -> LoadedTrees:
        return load_trees(recipe.data.trees, recipe.data.valid_size, recipe.training.seed)

    def choose(self, loaded: LoadedTrees, name: str, asked: Recipe) -> RecipeTree:  # noqa: ARG002
        return choose_parser(len(loaded.training), name)

    def learn(self, recipe: Recipe, loaded: LoadedTrees) -> Vocabularies:
        """Words are cut as the text section says; brackets are symbols of their own, whatever it says."""
        assert isinstance(recipe.task, ParseOptions)
        numbers = recipe.task.numbers
        pairs = pairs_of(loaded.training, numbers)
        words = learn([pair.source for pair in pairs], recipe.text, recipe.training.seed)
        return Vocabularies(words, Symbols.learn([*(pair.target for pair in pairs), " ".join(word_symbols(numbers))]))

    def read(self, folder: Path, recipe: Recipe) -> Vocabularies:
        found = read_vocabularies(folder, recipe)
        if not isinstance(found.target, Symbols):
            raise ModelFormatError(f"{folder}: its target vocabulary has no brackets; give that of a parser")
        return found

    def prepare(self, recipe: Recipe, loaded: LoadedTrees, lexicon: Vocabularies) -> Prepared:
        options = recipe.task
        assert isinstance(options, ParseOptions)
        # Words and brackets have nothing in common: what a directory says of its vocabularies is true of these two.
        recipe = recipe.model_copy(update={"text": recipe.text.model_copy(update={"shared": False})})
        grammar = grammar_of(lexicon.target, chains=options.chains, cap=recipe.decoding.cap)
        refuse_unreachable(loaded, options.chains, grammar.most_words)
        # So it is with numbers, where the vocabulary is another model's.
        recipe = recipe.model_copy(update={"task": options.model_copy(update={"numbers": grammar.numbers})})
        pairs = as_pairs(loaded, grammar.numbers)
        refuse_unknown(pairs, lexicon.target)
        learning, report = translation(recipe, pairs, lexicon)
        task = Parsing(learning, loaded.validation, grammar)
        text = fingerprint([*learning.data.pairs, *learning.validation.pairs])
        model = fresh_model(recipe, lexicon)
        if recipe.loss.guided:
            refuse_unteachable(model, recipe.loss)
        return Prepared(recipe, report, text, lexicon, task, model, filmed(model, learning.validation.pairs, lexicon))

    def judge(self, prepared: Prepared, folder: Path, finished: Finished) -> Verdict:  # noqa: ARG002
        """Parses the validation sentences with the recipe's own search."""
        task, recipe, words = prepared.task, prepared.recipe, prepared.lexicon
        assert isinstance(task, Parsing)
        assert isinstance(prepared.model, SequenceToSequence)
        assert isinstance(words, Vocabularies)
        parser = Parser(ModelFolder(folder, recipe, words, prepared.model))
        scores = score_parses(task.trees, parser.parse_words([tree.words for tree in task.trees]))
        return Verdict(
            summary=f"bracket F1 {scores.every.f1:.2f}, complete match {scores.every.complete_match:.2f} %",
            usage=[f"regard parse {folder.name} < sentences.txt"],
            scores=described(scores, prepared),
            text=[
                f"words: {recipe.text.kind} vocabulary of {len(words.source):,} entries",
                f"brackets: {len(task.grammar.opens)} labels",
            ],
            facts={"validation": scores.to_json()},
        )


def as_pairs(loaded: LoadedTrees, numbers: int) -> Loaded:
    """The trees as a corpus of words and brackets."""
    corpus = Corpus(pairs_of(loaded.training, numbers), 1.0, loaded.report.corpora[0].name)
    return Loaded((corpus,), pairs_of(loaded.validation, numbers), loaded.report)


def pairs_of(trees: Sequence[Tree], numbers: int) -> list[Pair]:
    return [to_pair(tree, numbers) for tree in trees]


def refuse_unreachable(loaded: LoadedTrees, chains: int, most_words: int) -> None:
    """Trees that the search could never find, whatever it learned from them; sentences that it cannot take."""
    chain = statistics(loaded.training).chain
    if chain > chains:
        raise DataError(
            f"task.chains: {chains}, but {loaded.report.corpora[0].name} has a chain of {chain} constituents, each all "
            f"that is in the one around it; set task.chains to {chain}"
        )
    longest = statistics(loaded.validation).longest
    if longest > most_words:
        raise DataError(
            f"{loaded.report.validation.name}: a sentence has {longest} words, but decoding.cap leaves room for "
            f"{most_words}; raise it, or leave the sentence out"
        )


def refuse_unknown(loaded: Loaded, brackets: Tokeniser) -> None:
    """Labels that a vocabulary has not which another model brought: learned of its own, it has them all."""
    for pair in loaded.corpora[0].pairs:
        ids = brackets.encode(pair.target)
        if UNK in ids:
            unknown = pair.target.split()[ids.index(UNK)]
            raise DataError(
                f"{loaded.report.corpora[0].name}: found the bracket {unknown!r}, which the vocabulary of the other "
                "model has not; leave such trees out, or learn a vocabulary of their own"
            )


def described(scores: ParseScores, prepared: Prepared) -> list[str]:
    """The card's part on quality."""
    decoding = prepared.recipe.decoding
    return [
        f"## Quality on {scores.every.sentences:,} validation trees ({prepared.report.origin})",
        "",
        *(f"- {line}" for line in scores.lines()),
        "",
        "Labelled brackets by the rules of EVALB with Collins's parameters, under the tags of the reference. "
        f"Beam {decoding.beam}, length penalty {decoding.length_penalty:g}. Choices made by looking at these trees "
        "favour them: expect a little less on a test set.",
    ]
