"""The Python that the pages show, run as it stands on a tiny model."""

import re
from pathlib import Path

from regard.engine import load

ROOT = Path(__file__).parents[2]


def shown(page: str) -> str:
    """The Python block of a page."""
    return re.search(r"```python\n(import.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)[1]


def test_the_example_in_the_readme_prints_a_translation(model, capsys):
    code = shown("README.md").replace("models/en-de", str(model)).replace("A man rides a bike.", "abc de")
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == load(model).translate(["abc de"])[0].text + "\n"


def test_the_example_in_the_page_on_attention_draws_a_row_for_each_token_and_the_end(model, capsys):
    code = shown("docs/attention.md").replace("demo/model", str(model)).replace("jeudi 3 mars 2022", "abc de")
    exec(compile(code, "docs/attention.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    answer = load(model).translate(["abc de"])[0].candidates[0].tokens
    assert [line.split()[0] for line in lines if line.strip().startswith((*answer, "</s>"))] == [*answer, "</s>"]
