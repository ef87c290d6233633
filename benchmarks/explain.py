"""Understanding measured: what it costs, how faithful maps are, how good alignments and warnings are.

python -m benchmarks.explain --model M --images V                → results/explain.json and .md
python -m benchmarks.explain --model M --only flags              a part of it; the result says so

M translates from --source to --target (en and de), V knows digits. The part `alignment` trains its own models, for half
an hour. Needs REGARD_DATA (for multi30k, mnist, tatoeba, wordalign), or --data. A part that is finished stays in
.bench/explain/PART.json; the same command goes on where an earlier one ended. Delete it to measure the part again.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.explained import aligners, flags, links, maps
from benchmarks.explained.cost import MASKS, ROUNDS, TOKENS, rise_seconds, unused
from benchmarks.family.bench import Bench
from benchmarks.results import RESULTS, ROOT, Result, page, write
from benchmarks.stage import say
from regard.data.readers import read_lines
from regard.explainer import TranslationExplainer
from regard.files import write_atomically
from regard.studies.provenance import commit

PARTS = ("recorder", "rise", "text", "image", "alignment", "flags")
GOLD = (("en", "de", ("europarl-de-en-bicici", "smultron-de-en")), ("en", "fr", ("hansards-en-fr",)))
DIGITS = ("mnist/t10k-images-idx3-ubyte.gz", "mnist/t10k-labels-idx1-ubyte.gz")
DECODED = 1000  # sentences of one turn of decoding
WORK = ROOT / ".bench" / "explain"
SEEN = 18  # sentences that the thresholds of concerns were looked at with: none of them is counted


@dataclass(frozen=True)
class Kept:
    """What a finished part found, and with which commit."""

    commit: str
    figures: dict[str, float]


def measured(chosen: Any) -> dict[str, Kept]:
    """What the parts that are asked for found."""
    texts = list(read_lines(chosen.data / f"multi30k/test_2016_flickr.{chosen.source}.gz"))
    explainer = TranslationExplainer(chosen.model)
    some = list(islice(texts, chosen.sentences))
    with tempfile.TemporaryDirectory() as temporary:
        parts = {
            "recorder": lambda: unused(chosen.model, texts[:DECODED], Path(temporary)),
            "rise": lambda: rise_seconds(explainer, texts),
            "text": lambda: maps.of_texts(explainer, some),
            "image": lambda: maps.of_images(
                chosen.images, chosen.data / DIGITS[0], chosen.data / DIGITS[1], chosen.sentences
            ),
            "alignment": lambda: links.figures(Bench(chosen.data, WORK), GOLD),
            "flags": lambda: flags.figures(explainer, texts[SEEN : SEEN + chosen.cases]),
        }
        return {name: kept(name, chosen, parts[name]) for name in chosen.only}


def kept(name: str, chosen: Any, measure: Callable[[], dict[str, float]]) -> Kept:
    """The figures of a part and the commit that they are of; from disk, where the same was asked before."""
    path = WORK / f"{name}.json"
    asked = [str(what) for what in (chosen.model, chosen.images, chosen.sentences, chosen.cases)]
    if path.exists() and (found := json.loads(path.read_bytes()))["asked"] == asked:
        say(f"{name}: finished, see {path}")
    else:
        say(f"{name} ...")
        found = {"asked": asked, "commit": commit(), "figures": measure()}
        write_atomically(path, json.dumps(found, indent=1) + "\n")
    return Kept(found["commit"], found["figures"])


def notes(chosen: Any, found: Mapping[str, Kept]) -> str:
    told = {
        "recorder": f"recorder_unused_ratio: speed of decoding, beam 5, with an explainer of the same model alive in "
        f"the process over that without; the median of the quotients of {ROUNDS} rounds in turns, which decode "
        f"{DECODED} sentences several times over. recorder_unused_spread is half the width of its interval of 95 %.",
        "rise": f"rise_seconds: one sentence of {TOKENS} source tokens, {MASKS:,} masks over the source and as many "
        "over what was written, to the last mask.",
        "text": f"deletion_auc_text, insertion_auc_text: mean probability of the tokens of the model's own output for "
        f"the first {chosen.sentences} sentences of Multi30k test_2016_flickr, as source tokens go and come.",
        "image": f"deletion_auc_image, insertion_auc_image: mean probability of the likeliest digit of the first "
        f"{chosen.sentences} test images of mnist, as pixels go and come.",
        "alignment": "aer: per cent, on the second halves of the gold sets, those of en-de together; the best head "
        "was chosen by the first half of each; average is the mean of all heads as a word is written, which, like the "
        "taught head, nothing was chosen for. The models (3+3 layers, "
        f"width 128, {aligners.BUDGET} each) read Tatoeba's everyday sentences; the gold sets are speeches, reports "
        "and minutes of parliaments. The taught head learned eflomal's links of that text; eflomal itself had the "
        "sentences of the gold sets beside it.",
        "flags": f"flag_precision, flag_recall: {chosen.cases} outputs of the model as they are (for sentences after "
        f"the first {SEEN} of test_2016_flickr, with which thresholds were first tried), and as many spoiled: "
        "a third each paired with another source (detached), cut in half (untranslated), with words said three times "
        "(repetition). Some of the outputs that count as whole are truly wrong. Unsure counts in neither figure: of as "
        "many outputs with one word of another in the place of one of theirs, those of which it names that word.",
    }
    lines = ["One model, one seed; low deletion and high insertion are good.", ""]
    lines += [f"- {told[name]} (commit {found[name].commit})" for name in chosen.only]
    missing = [name for name in PARTS if name not in chosen.only]
    lines += [f"- not measured: {', '.join(missing)}"] if missing else []
    return "\n".join(lines)


# ---------------------------------------------------------------- the command
def asked_for(arguments: Sequence[str] | None) -> Any:
    """The command line, refused before anything is measured if something is missing."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.explain", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, help="a translator with attention")
    parser.add_argument("--images", type=Path, help="a classifier of digits")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("REGARD_DATA", "")), help="else REGARD_DATA")
    parser.add_argument("--source", default="en", help="the language that the model reads")
    parser.add_argument("--target", default="de", help="and the one that it writes")
    parser.add_argument("--sentences", type=int, default=50, help="texts, and images, whose maps are judged")
    parser.add_argument("--cases", type=int, default=300, help="outputs that are checked as they are, and spoiled")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="measure these parts; all that there are models for")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the result files")
    chosen = parser.parse_args(arguments)
    chosen.only = chosen.only or [name for name in PARTS if name != "image" or chosen.images]
    if "image" in chosen.only and not chosen.images:
        parser.error("--only image: needs --images, a classifier of digits")
    needed = [f"multi30k/test_2016_flickr.{chosen.source}.gz"]
    needed += DIGITS if "image" in chosen.only else []
    if "alignment" in chosen.only:
        needed += [f"wordalign/{name}/gold.talp" for _, _, names in GOLD for name in names]
        needed += [f"tatoeba/{source}-{target}/train.{target}.gz" for source, target, _ in GOLD]
    for name in needed:
        if not (chosen.data / name).is_file():
            parser.error(f"--data: {chosen.data} does not hold {name}; name the folder that does")
    return chosen


def command(chosen: Any) -> str:
    words = ["python -m benchmarks.explain", "--model", chosen.model.name]
    words += ["--images", chosen.images.name] if chosen.images else []
    words += ["--only", *chosen.only] if len(chosen.only) < len(PARTS) else []
    return " ".join([*words, "--sentences", str(chosen.sentences), "--cases", str(chosen.cases)])


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = asked_for(arguments)
    began = time.perf_counter()
    found = measured(chosen)
    figures = {name: value for part in found.values() for name, value in part.figures.items()}
    result = Result(command(chosen), (time.perf_counter() - began) / 60, figures, notes(chosen, found))
    sys.stdout.write(page("explain", write("explain", result, chosen.out)))


if __name__ == "__main__":
    main()
