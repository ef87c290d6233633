"""A constituency tree as text for a terminal, on its side with a word a line, and as SVG with the root on top."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.data.treebank import WORD
from regard.evaluation.trees import Tree
from regard.explaining.heatmap import display_width, printable
from regard.explaining.markup import text

LEVEL = 38  # px between a constituent and the one around it
GAP = 14  # px between neighbours
ROOM = 11  # px from the middle of a label to its lines
DROP = 18  # px from a tag to its word
MARGIN = 8


# ---------------------------------------------------------------- terminal
def terminal(tree: Tree) -> str:
    """A line for each word, the words in one column, with their tags if they have any:

    S─┬─NP─┬── DT  the
      │    └── NN  cat
      └─VP──── VBZ sleeps
    """
    rows = branches(tree)
    reach = max(display_width(branch) for branch, _ in rows)
    tags = ["" if leaf.label == WORD else printable(leaf.label) + " " for _, leaf in rows]
    wide = max(display_width(tag) for tag in tags)
    return "\n".join(
        branch + "─" * (reach - display_width(branch)) + " " + tag + " " * (wide - display_width(tag)) + shown(leaf)
        for (branch, leaf), tag in zip(rows, tags, strict=True)
    )


def branches(tree: Tree) -> list[tuple[str, Tree]]:
    """What leads from the tree to each of its words."""
    if tree.word is not None:
        return [("", tree)]
    label, last = printable(tree.label) + "─", len(tree.children) - 1
    rows = []
    for i, child in enumerate(tree.children):
        fork = "──" if last == 0 else "┬─" if i == 0 else "├─" if i < last else "└─"
        before, beside = " " * display_width(label), "│ " if i < last else "  "
        for j, (branch, leaf) in enumerate(branches(child)):
            rows.append(((label if i == j == 0 else before) + (beside if j else fork) + branch, leaf))
    return rows


def shown(leaf: Tree) -> str:
    return printable(leaf.word or "")


# ---------------------------------------------------------------- SVG
@dataclass(frozen=True)
class Node:
    """A constituent or a word, and where its middle is."""

    tree: Tree
    x: float
    y: float
    children: tuple["Node", ...]


def svg(tree: Tree) -> str:
    """The tree as one SVG element that stands alone or inside a page, whose text colour it takes."""
    width, height = size(tree)
    spoken = f"tree of: {' '.join(map(shown, tree.leaves()))}"
    return frame(width, height, "tree", spoken, drawing(tree))


def sheet(trees: Sequence[Tree]) -> str:
    """One SVG of all trees, one beneath the other."""
    sizes = [size(tree) for tree in trees]
    parts, top = [], 0
    for tree, (_, height) in zip(trees, sizes, strict=True):
        parts.append(f'<g transform="translate(0 {top})">{drawing(tree)}</g>')
        top += height
    return frame(max(width for width, _ in sizes), top, "trees", f"{len(trees)} trees", "".join(parts))


def size(tree: Tree) -> tuple[int, int]:
    """Width and height of the picture with its margins, in px."""
    return round(extent(tree)) + 2 * MARGIN, tree.depth * LEVEL + DROP + 2 * ROOM + 2 * MARGIN


def frame(width: int, height: int, name: str, spoken: str, inner: str) -> str:
    """`inner` in an SVG element; the middle of the highest label is at 0."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{name}" viewBox="{-MARGIN} {-ROOM - MARGIN} '
        f'{width} {height}" width="{width}" height="{height}" font-family="system-ui, sans-serif" font-size="14" '
        f'text-anchor="middle" role="img" aria-label="{text(spoken)}">{inner}</svg>'
    )


def drawing(tree: Tree) -> str:
    """Edges, labels, tags and words.

    Constituents stand right above what they hold, so that lines never cross: each goes straight down to its child.
    """
    nodes = every(place(tree, 0.0, tree.depth))
    inner, leaves = [n for n in nodes if n.children], [n for n in nodes if not n.children]
    labels = "".join(mark(node.x, node.y, node.tree.label) for node in inner)
    tags = "".join(mark(node.x, node.y, node.tree.label) for node in leaves if node.tree.label != WORD)
    words = "".join(mark(node.x, node.y + DROP, shown(node.tree)) for node in leaves)
    return (
        f'<path class="edges" fill="none" stroke="currentColor" stroke-opacity=".4" d="{"".join(map(edges, inner))}"/>'
        f'<g class="labels" fill="#0072b2" font-weight="600" dominant-baseline="central">{labels}</g>'
        f'<g class="tags" fill="currentColor" fill-opacity=".65" font-size="11" dominant-baseline="central">{tags}</g>'
        f'<g class="words" fill="currentColor" dominant-baseline="central">{words}</g>'
    )


def place(tree: Tree, left: float, deepest: int) -> Node:
    """The tree with its left edge at `left`: a constituent in the middle above its first and last child."""
    width, x = extent(tree), left + (extent(tree) - across(tree)) / 2
    children = []
    for child in tree.children:
        children.append(place(child, x, deepest))
        x += extent(child) + GAP
    middle = (children[0].x + children[-1].x) / 2 if children else left + width / 2
    half = own_width(tree) / 2
    middle = min(max(middle, left + half), left + width - half)
    return Node(tree, middle, float((deepest - tree.depth) * LEVEL), tuple(children))


def extent(tree: Tree) -> float:
    """How broad the tree is drawn, in px."""
    return max(own_width(tree), across(tree))


def across(tree: Tree) -> float:
    return sum((extent(child) for child in tree.children), 0.0) + GAP * max(0, len(tree.children) - 1)


def own_width(tree: Tree) -> float:
    """Room for a label of 14 px in capitals, or for a word and its tag."""
    if tree.word is None:
        return 10.0 * display_width(printable(tree.label))
    return max(8.0 * display_width(shown(tree)), 0.0 if tree.label == WORD else 8.0 * display_width(tree.label))


def every(node: Node) -> list[Node]:
    return [node, *(below for child in node.children for below in every(child))]


def edges(node: Node) -> str:
    """Down from the label, across above the children, and down to each of them."""
    bar = node.y + LEVEL / 2
    ends = [node.x, *(child.x for child in node.children)]
    drops = (f"M{child.x:.1f} {bar:g}V{child.y - end(child):g}" for child in node.children)
    return f"M{node.x:.1f} {node.y + ROOM:g}V{bar:g}M{min(ends):.1f} {bar:g}H{max(ends):.1f}" + "".join(drops)


def end(node: Node) -> float:
    """How far above the middle its line ends: a word without a tag is further down."""
    return float(ROOM - DROP if not node.children and node.tree.label == WORD else ROOM)


def mark(x: float, y: float, label: str) -> str:
    return f'<text x="{x:.1f}" y="{y:g}">{text(printable(label))}</text>'
