"""An explanation goes to JSON and back unchanged, keeps to the shipped schema, and holds together or is refused."""

import json
from pathlib import Path

import pytest

from regard.errors import DataError
from regard.explaining import explanation as module
from regard.explaining.explanation import (
    Alternative,
    Block,
    Concern,
    Explanation,
    Faithful,
    Saliency,
    Side,
    Step,
    Token,
    Word,
)

SCHEMA = Path(module.__file__).with_name("explanation.schema.json")


def token(id, text, start, end, *words):
    return Token(id=id, text=text, start=start, end=end, words=words)


def made():
    """ "ab" → "x y", of which one head looked across and one back, with two maps and a concern."""
    source = Side(
        text="ab", words=(Word(text="ab", start=0, end=2),), tokens=(token(4, "ab", 0, 2, 0), token(3, "</s>", 2, 2))
    )
    target = Side(
        text="x y",
        words=(Word(text="x", start=0, end=1), Word(text="y", start=2, end=3)),
        tokens=(token(5, "x", 0, 1, 0), token(6, "▁y", 1, 3, 1), token(3, "</s>", 3, 3)),
    )
    step = Step(probability=0.5, rank=1, alternatives=(Alternative(id=5, text="x", probability=0.5),))
    across = Block(
        kind="cross", layer=1, head=2, entropy=0.3, roles=("separator",), weights=((0.75, 0.25), (0, 1), (1, 0))
    )
    back = Block(kind="decoder", layer=2, head=1, entropy=0, roles=(), weights=((1, 0, 0), (0.5, 0.5, 0), (0, 0, 1)))
    asked = Saliency(
        method="rise",
        values=((0.5, 0), (-0.1, 0), (0, 0)),
        errors=((0.01, None),) * 3,
        previous=((0, 0, 0), (0, 0.25, 0), (0, 0.5, 0.5)),
        previous_errors=((None, 0, 0), (None, 0.1, 0), (None, 0.1, 0.1)),
        masks=300,
        faithful=Faithful(deletion=0.2, insertion=0.6),
        chance=Faithful(deletion=0.3, insertion=0.4),
    )
    looked = Saliency(method="attention", values=((1, 0), (0.5, 0.5), (0, 1)))
    concern = Concern(kind="unsure", message="the model is unsure", value=0.1, target_words=(1,))
    return Explanation(
        model="tiny",
        source=source,
        start=token(2, "<s>", 0, 0),
        target=target,
        steps=(step,) * 3,
        log_probability=-2.0,
        score=-0.5,
        attention=(across, back),
        saliency=(asked, looked),
        concerns=(concern,),
        dependence=-0.25,
        confidence=0.75,
    )


# ---------------------------------------------------------------- a small reader of JSON Schema
def breaches(value, schema, root, where="$"):
    """What in a value is not as the schema has it; of the vocabulary, what the schema uses."""
    if "$ref" in schema:
        return breaches(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, where)
    if "anyOf" in schema:
        each = [breaches(value, one, root, where) for one in schema["anyOf"]]
        return [] if [] in each else each[0]
    types = {"object": dict, "array": list, "string": str, "number": (int, float), "integer": int, "null": type(None)}
    if not isinstance(value, types[schema["type"]]) or isinstance(value, bool):
        return [f"{where}: not of type {schema['type']}"]
    found = []
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        found.append(f"{where}: {value!r} is not allowed")
    if isinstance(value, int | float) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        found.append(f"{where}: {value} is out of bounds")
    if isinstance(value, dict):
        known = schema["properties"]
        found += [f"{where}.{key}: missing" for key in schema["required"] if key not in value]
        found += [f"{where}.{key}: unknown" for key in value if key not in known and not schema["additionalProperties"]]
        for key in known.keys() & value.keys():
            found += breaches(value[key], known[key], root, f"{where}.{key}")
    if isinstance(value, list):
        for place, one in enumerate(value):
            found += breaches(one, schema["items"], root, f"{where}[{place}]")
    return found


# ---------------------------------------------------------------- JSON
def test_the_shipped_schema_is_that_of_the_structure():
    """After a change: json.dumps(Explanation.model_json_schema(mode="serialization"), indent=2, ensure_ascii=False)."""
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == Explanation.model_json_schema(mode="serialization")


def test_there_and_back_is_the_same_explanation():
    assert Explanation.from_json(made().to_json()) == made()
    assert "\n" not in made().to_json()


def test_what_is_written_keeps_to_the_schema():
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert breaches(json.loads(made().to_json()), schema, schema) == []


def test_the_reader_of_schemas_finds_breaches():
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    for path, value, words in [
        (("format",), 2, "not allowed"),
        (("source", "tokens", 0, "id"), -1, "out of bounds"),
        (("attention", 0, "kind"), "sideways", "not allowed"),
        (("attention", 1, "weights", 0, 0), "1", "not of type"),
        (("saliency", 0, "method"), "guess", "not allowed"),
        (("saliency", 0, "errors", 0, 0), "0.1", "not of type"),
        (("concerns", 0, "source_words"), [-1], "out of bounds"),
        (("confidence",), 1.5, "out of bounds"),
        (("colour",), "red", "unknown"),
    ]:
        content = json.loads(made().to_json())
        place = content
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        assert words in " ".join(breaches(content, schema, schema)), path
        with pytest.raises(DataError):
            Explanation.from_json(json.dumps(content))
    content = json.loads(made().to_json())
    del content["concerns"]
    assert breaches(content, schema, schema) == ["$.concerns: missing"]


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "the whole"), ("[]", "the whole"), ("{}", "model"), ("no json", "the whole"), ('{"model": 3}', "model")],
)
def test_what_is_no_explanation_is_refused_by_its_place(text, words):
    with pytest.raises(DataError, match=words) as caught:
        Explanation.from_json(text)
    assert "regard explain --json" in str(caught.value)
    assert "\n" not in str(caught.value)


# ---------------------------------------------------------------- what must hold together
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"steps": ()}, "steps: found 0"),
        ({"start": None}, "start and target"),
        ({"source": None}, "cross attention, layer 1, head 2: expected 3 × 0"),
        ({"target": None, "start": None, "steps": ()}, "expected 0 × 2"),
        ({"score": float("nan")}, "finite"),
        ({"saliency": (Saliency(method="rise", values=((1, 0),) * 2),)}, "saliency by rise: expected 3 × 2 values"),
        ({"saliency": (Saliency(method="rise", values=((1, 0),) * 3, errors=((1,),) * 3),)}, "expected 3 × 2"),
        ({"saliency": (Saliency(method="rise", values=((1, 0),) * 3, previous=((1, 0),) * 3),)}, "3 × 3 of previous"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(changed, words):
    with pytest.raises(ValueError, match=words):
        Explanation(**{**dict(made()), **changed})


def test_a_language_model_has_maps_of_what_was_read_alone():
    read = Saliency(method="rollout", values=((),) * 3, previous=((1, 0, 0),) * 3)
    alone = {**dict(made()), "source": None, "attention": (), "concerns": ()}
    assert Explanation(**{**alone, "saliency": (read,)}).saliency == (read,)
    with pytest.raises(ValueError, match="saliency by rollout"):
        Explanation(**{**alone, "saliency": (Saliency(method="rollout", values=((),) * 3),)})


def test_a_token_beyond_its_text_or_its_words_is_refused():
    for bad in (token(4, "ab", 0, 3, 0), token(4, "ab", 2, 1, 0), token(4, "ab", 0, 2, 1)):
        with pytest.raises(ValueError, match="not inside its text"):
            Side(text="ab", words=(Word(text="ab", start=0, end=2),), tokens=(bad,))


def test_the_axes_of_a_map_are_who_looks_and_what_is_seen():
    one = made()
    names = {kind: tuple([t.text for t in axis] for axis in one.axes(kind)) for kind in ("encoder", "cross", "decoder")}
    assert names == {
        "encoder": (["ab", "</s>"], ["ab", "</s>"]),
        "cross": (["x", "▁y", "</s>"], ["ab", "</s>"]),
        "decoder": (["x", "▁y", "</s>"], ["<s>", "x", "▁y"]),
    }
