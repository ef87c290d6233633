"""Commands for models that others have published: options in, calls out."""

from pathlib import Path

import click

from regard.cli.group import FILE, regard


@regard.command("import")
@click.argument("checkpoint", type=FILE)
@click.option("--out", type=FILE, required=True, help="The model directory to make.")
@click.option(
    "--convert-pickle",
    is_flag=True,
    help="Where there is only pytorch_model.bin: convert it first, in a process that can do nothing else.",
)
@click.option("--pairs", is_flag=True, help="A BERT classifier that reads two texts at a time, such as of inference.")
def import_(checkpoint: Path, out: Path, convert_pickle: bool, pairs: bool) -> None:
    """Make a model directory from a published CHECKPOINT: a folder with config.json, safetensors and tokeniser files.

    \b
    GPT-2, T5 (also v1.1 and Flan), Marian (OPUS-MT), BERT and ViT:
      regard import downloads/opus-mt-en-de --out models/opus-en-de
      regard translate models/opus-en-de < in.txt > out.txt
      regard import downloads/gpt2 --out models/gpt2
      regard generate models/gpt2 --prompt "The meaning of life is" --top-k 50
      regard import downloads/t5-small --out models/t5
      echo "translate English to German: A man rides a bike." | regard translate models/t5
      regard import downloads/bert-base-uncased --out models/bert
      regard fill models/bert "Paris is the [MASK] of France."
      regard import downloads/vit-base-patch16-224 --out models/vit
      regard see models/vit tulip.jpg
      regard train --images flowers/ --start models/vit --out models/flowers
    T5 reads the task from the beginning of the text: write it there. Nothing that came with a checkpoint is run, and
    what does not fit is refused by name. `regard export MODEL --to transformers` is the way back.
    """
    from regard.commands.import_checkpoint import import_model

    import_model(checkpoint, out, convert_pickle=convert_pickle, pairs=pairs)
