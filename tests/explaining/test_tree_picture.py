"""A picture of a tree says the whole tree: it can be read back, from text and from SVG, and nothing covers anything."""

import random
import re
import xml.etree.ElementTree as ET

import pytest
from toy_trees import random_tree

from regard.evaluation.trees import Tree, read_tree
from regard.explaining.heatmap import display_width
from regard.explaining.tree_picture import DROP, LEVEL, ROOM, every, own_width, place, sheet, svg, terminal

SVG = "{http://www.w3.org/2000/svg}"
CAT = read_tree("(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)) (. .))")


def trees(count=12, tags=("NN", "DT", ",")):
    rng = random.Random(4)
    return [random_tree(rng, rng.randint(1, 9), tags=tags) for _ in range(count)]


# ---------------------------------------------------------------- terminal
def read_back(drawn):
    """The tree, from where its labels and forks stand: a fork belongs to the label that ends two columns before it."""
    forks, root = {}, None
    for line in drawn.split("\n"):
        branch, tag, word = re.fullmatch(r"(.*─) (\S+) +(\S+)", line).groups()
        owner = forks.get(max((branch.rfind(fork) for fork in "├└"), default=-1))
        for label in re.finditer(r"[^\s─│┬├└]+", branch):
            node = [label[0]]
            if label.start():
                forks[label.start() - 2].append(node)
            root = root or node
            owner = forks[label.end() + 1] = node
        owner.append(Tree(tag, word=word))
    return frozen(root)


def frozen(node):
    return node if isinstance(node, Tree) else Tree(node[0], tuple(map(frozen, node[1:])))


def test_a_small_tree_drawn_by_hand():
    assert terminal(CAT).split("\n") == [
        "S─┬─NP─┬─ DT  the",
        "  │    └─ NN  cat",
        "  ├─VP─── VBZ sleeps",
        "  └────── .   .",
    ]
    assert terminal(Tree("NN", word="cat")) == " NN cat"


def test_a_tree_without_tags_is_drawn_without():
    tree = read_tree("(S (NP (VP (XX a))) (XX b))")
    assert terminal(tree).split("\n") == ["S─┬─NP───VP─── a", "  └─────────── b"]


def test_the_tree_can_be_read_from_its_text():
    for tree in trees():
        assert read_back(terminal(tree)) == tree


def test_words_stand_in_one_column_whatever_the_width_of_labels():
    tree = read_tree("(短语 (A (NN x) (VBZ y)) (词 (語 z)))")
    lines = terminal(tree).split("\n")
    assert len({display_width(line[:-1]) for line in lines}) == 1


def test_nothing_reaches_the_terminal_but_what_can_be_seen():
    assert "\x1b" not in terminal(Tree("S", (Tree("NN", word="a\x1b[31mb"),)))


# ---------------------------------------------------------------- SVG
def texts(drawn, group):
    (found,) = [g for g in ET.fromstring(drawn).iter(f"{SVG}g") if g.get("class") == group]
    return {(mark.get("x"), float(mark.get("y"))): mark.text for mark in found}


def lines_of(drawn):
    """(x, y) of each constituent, and (x, end) of the lines that go down from it."""
    path = ET.fromstring(drawn).find(f"{SVG}path").get("d")
    number = r"-?[\d.]+"
    parents = re.findall(rf"M({number}) ({number})V({number})M{number} \3H{number}((?:M{number} \3V{number})+)", path)
    return {
        (x, float(y) - ROOM): [(cx, float(cy)) for cx, cy in re.findall(rf"M({number}) {bar}V({number})", drops)]
        for x, y, bar, drops in parents
    }


def tree_of(drawn):
    labels, tags, words, lines = (*(texts(drawn, g) for g in ("labels", "tags", "words")), lines_of(drawn))

    def build(x, y):
        if (x, y) in labels:
            return Tree(labels[x, y], tuple(build(cx, cy + ROOM) for cx, cy in lines[x, y]))
        return Tree(tags[x, y], word=words[x, y + DROP])

    top = min(labels, key=lambda place: place[1])
    return build(*top)


def test_the_tree_can_be_read_from_its_svg():
    for tree in trees():
        assert tree_of(svg(tree)) == tree


def test_lines_reach_words_that_have_no_tags():
    drawn = svg(read_tree("(S (XX a) (NP (XX b)))"))
    assert texts(drawn, "tags") == {}
    ends = {end for children in lines_of(drawn).values() for _, end in children if end > LEVEL * 2}
    assert ends == {2 * LEVEL + DROP - ROOM}
    assert sorted(texts(drawn, "words").values()) == ["a", "b"]


def boxes(nodes):
    return [(n.x - own_width(n.tree) / 2, n.x + own_width(n.tree) / 2, n.y, n) for n in nodes]


def test_no_label_covers_another_and_no_line_crosses_one():
    for tree in trees():
        nodes = every(place(tree, 0.0, tree.depth))
        inner, words = boxes(n for n in nodes if n.children), boxes(n for n in nodes if not n.children)
        for left, right, y, node in [*inner, *words]:
            level = [box for box in (*inner, *words) if box[2] == y and box[3] is not node]
            assert all(right < other[0] or other[1] < left for other in level)
        for parent in (n for n in nodes if n.children):
            for child in parent.children:
                crossed = [n for left, right, y, n in inner if left < child.x < right and parent.y < y < child.y]
                assert crossed == []


def test_the_picture_is_as_large_as_what_is_in_it():
    for tree in trees(6):
        drawn = ET.fromstring(svg(tree))
        left, top, width, height = map(float, drawn.get("viewBox").split())
        for box_left, box_right, y, _ in boxes(every(place(tree, 0.0, tree.depth))):
            assert left < box_left
            assert box_right < left + width
            assert top + ROOM < y < top + height - ROOM


def test_a_sheet_holds_each_tree_as_drawn_alone_and_none_covers_another():
    some = list(trees(3))
    whole = ET.fromstring(sheet(some))
    below = 0
    for tree, group in zip(some, whole.findall(f"{SVG}g"), strict=True):
        alone = ET.fromstring(svg(tree))
        assert [ET.tostring(part) for part in group] == [ET.tostring(part) for part in alone]
        assert group.get("transform") == f"translate(0 {below})"
        below += int(alone.get("height"))
        assert int(alone.get("width")) <= int(whole.get("width"))
    assert int(whole.get("height")) == below


@pytest.mark.parametrize("word", ["<script>", "a&b", '"', "'s", "]]>"])
def test_words_stay_words(word):
    drawn = svg(Tree("S", (Tree("NN", word=word),)))
    assert list(texts(drawn, "words").values()) == [word]
    assert "<script" not in drawn
    assert ET.fromstring(drawn).get("aria-label") == f"tree of: {word}"
