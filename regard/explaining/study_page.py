"""A study on one page, and the same as Markdown: what was asked, tables of figures, charts, how it was done."""

from collections.abc import Mapping
from dataclasses import dataclass

from regard.explaining.bars import Bar, bars
from regard.explaining.chart import Series, chart
from regard.explaining.document import document, section
from regard.explaining.markup import text

STYLES = ("page.css", "study.css")


@dataclass(frozen=True)
class Table:
    """Cells are ready to be read; the first of a row is its name."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Figure:
    title: str
    series: tuple[Series, ...]
    x_name: str

    def drawn(self) -> str:
        return chart(self.title, self.series, self.x_name)


@dataclass(frozen=True)
class Bars:
    title: str
    rows: tuple[Bar, ...]

    def drawn(self) -> str:
        return bars(self.title, self.rows)


@dataclass(frozen=True)
class Contents:
    """All that one reads of a study. `findings` are sentences that come before every table."""

    title: str
    question: str
    findings: tuple[str, ...]
    tables: tuple[Table, ...]
    figures: tuple[Figure | Bars, ...]
    notes: tuple[str, ...]


def study_page(contents: Contents, facts: Mapping[str, str]) -> str:
    """The page; `facts` say where the figures come from."""
    findings = "".join(f"<li>{text(line)}</li>" for line in contents.findings)
    drawn = "".join(figure.drawn() for figure in contents.figures)
    notes = "".join(f"<p>{text(line)}</p>" for line in contents.notes)
    lines = "\n".join(f"{name:<9}{value}" for name, value in facts.items())
    parts = [
        f"<header><h1>{text(contents.title)}</h1><p>{text(contents.question)}</p></header>\n",
        section("What came out", f"<ul>{findings}</ul>" if findings else ""),
        section("Pictures", f'<div class="charts">{drawn}</div>' if drawn else ""),
        *(section(table.title, drawn_table(table)) for table in contents.tables),
        section("How it was measured", f"{notes}<pre>{text(lines)}</pre>"),
    ]
    return document(contents.title, "".join(parts), STYLES)


def drawn_table(table: Table) -> str:
    heads = "".join(f"<th>{text(head)}</th>" for head in table.heads)
    rows = "".join(drawn_row(table.heads, row) for row in table.rows)
    note = f"<p>{text(table.note)}</p>" if table.note else ""
    return f'<table class="study"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>{note}'


def drawn_row(heads: tuple[str, ...], row: tuple[str, ...]) -> str:
    """A cell without a value is left out where the table stands cell under cell, on a phone."""
    cells = "".join(
        f'<td data-name="{text(head)}">{text(cell)}</td>' if cell else "<td></td>"
        for head, cell in zip(heads[1:], row[1:], strict=True)
    )
    return f"<tr><th scope=row>{text(row[0])}</th>{cells}</tr>"


def study_markdown(contents: Contents, facts: Mapping[str, str]) -> str:
    """The same without its pictures."""
    lines = [f"# {contents.title}", "", contents.question, "", *(f"- {line}" for line in contents.findings), ""]
    for table in contents.tables:
        lines += [f"## {table.title}", "", f"| {' | '.join(table.heads)} |", "|---|" + "--:|" * (len(table.heads) - 1)]
        lines += [f"| {' | '.join(cell or ' ' for cell in row)} |" for row in table.rows]
        lines += ["", table.note, ""] if table.note else [""]
    notes = [line for note in contents.notes for line in (note, "")]
    return "\n".join([*lines, *notes, *(f"- {name}: {value}" for name, value in facts.items()), ""])
