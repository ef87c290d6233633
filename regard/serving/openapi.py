"""The service described for programs: OpenAPI 3.1, made from the limits that hold."""

import json
from importlib.resources import files
from typing import Any, get_args

from regard.explaining.explanation import Method
from regard.serving.limits import TextLimits

Json = dict[str, Any]
STRING: Json = {"type": "string"}
NUMBER: Json = {"type": "number"}
WHOLE: Json = {"type": "integer"}
MEASURE: Json = {"oneOf": [NUMBER, {"type": "null"}]}
FLAG: Json = {"type": "boolean"}
CODE: Json = {"type": "string", "examples": ["en", "de"]}
KEY: Json = {"type": ["string", "null"]}
ERRORS = {
    "400": "what was sent cannot be answered",
    "403": "the key is missing or wrong, or this is not offered here",
    "404": "not there",
    "405": "another method",
    "408": "sent too slowly",
    "413": "more bytes than are taken",
    "415": "another form than JSON or a form",
    "422": "a limit is exceeded, or the text cannot be answered as asked",
    "429": "too many texts are waiting; Retry-After says how long to wait",
    "431": "more headers than are taken",
    "500": "a mistake of the service",
    "503": "the model is not there; Retry-After says how long to wait",
    "504": "no answer in time; Retry-After says how long to wait",
}


def specification(limits: TextLimits, prefix: str) -> Json:
    return {
        "openapi": "3.1.0",
        "info": {"title": "Regard", "version": "1", "description": "Translation by your own models."},
        "servers": [{"url": prefix or "/"}],
        "paths": {**translating(limits), **judging(limits), **looking(limits), **asked_of_the_service()},
        "components": {"schemas": {"Error": obj({"error": STRING}), **explanation()}},
    }


def explanation() -> Json:
    """`Explanation` and what it is made of, from the schema that the package has of it."""
    text = files("regard.explaining").joinpath("explanation.schema.json").read_text(encoding="utf-8")
    whole = json.loads(text.replace("#/$defs/", "#/components/schemas/"))
    return {**whole.pop("$defs"), "Explanation": whole}


# ---------------------------------------------------------------- routes
def translating(limits: TextLimits) -> Json:
    language, terms = obj({"confidence": NUMBER, "language": CODE}), terminology(limits)
    options = {"format": {"enum": ["text", "html"]}, "alternatives": count(limits), **terms, "check": FLAG}
    said = obj({"translatedText": one_or_many(STRING)})
    said["properties"] |= {
        "detectedLanguage": one_or_many(language),
        "alternatives": {"type": "array"},
        "concerns": one_or_many_lists(
            obj({"source": STRING, "target": STRING, "concerns": {"oneOf": [{"type": "array"}, {"type": "null"}]}}),
            "with check: the sentences that a person should look at, and why, as Concern has it; null: not checked",
        ),
        "checks": one_or_many_lists(
            obj({"source": STRING, "target": STRING, "dependence": MEASURE, "confidence": MEASURE}),
            "with check: of every sentence what was measured, as Explanation describes it; null: not checked",
        ),
    }
    return {
        "/translate": post("Translate a text or several", {"q": texts(limits), **PAIR}, said, options),
        "/stream": post(
            "Translate a text, each sentence as it comes: server-sent events piece, end, error",
            {"q": STRING, **PAIR},
            STRING,
            terms,
            media="text/event-stream",
        ),
        "/detect": post("Which language is this?", {"q": texts(limits)}, listing(language)),
        "/translate_file": upload(terms),
        "/download_file/{name}": get("A translated file", STRING, "application/octet-stream", "name"),
        "/languages": get(
            "What can be translated into what", listing(obj({"code": CODE, "name": STRING, "targets": listing(CODE)}))
        ),
    }


def judging(limits: TextLimits) -> Json:
    link = {"type": "array", "items": WHOLE}
    score = obj({"logProbability": NUMBER, "tokens": WHOLE, "perplexity": NUMBER})
    better = {"oneOf": [{"enum": [0, 1]}, {"type": "null"}]}
    return {
        "/score": post(
            "How probable are these translations?",
            {"q": texts(limits), "s": texts(limits), **PAIR},
            obj({"scores": listing(score)}),
        ),
        "/align": post(
            "Which words of these translations stand for which: [source word, target word], words between white space",
            {"q": texts(limits), "s": texts(limits), **PAIR},
            obj({"alignments": listing(listing(link))}),
        ),
        "/suggest": post("A better translation", {"q": STRING, "s": STRING, **PAIR}, obj({"success": FLAG})),
        "/compare": post(
            "What two models make of a text, in random order, and a token by which to say which is better",
            {"q": STRING, **PAIR},
            obj({"outputs": listing(STRING), "token": STRING}),
        ),
        "/prefer": post(
            "Which of two outputs is better, by its place; null: neither",
            {"token": STRING, "better": better},
            obj({"success": FLAG}),
        ),
    }


def looking(limits: TextLimits) -> Json:
    candidate = obj({"text": STRING, "score": NUMBER, "logProbability": NUMBER, "tokens": listing(STRING)})
    return {
        "/alternatives": post(
            "Translations of one sentence that begin in a given way",
            {"q": STRING, **PAIR},
            obj({"candidates": listing(candidate)}),
            {"prefix": STRING, "alternatives": count(limits), **terminology(limits)},
        ),
        "/explain": post(
            "What a model looks at while it writes; q is one sentence, target_text what it is to have written",
            {"q": STRING, **PAIR},
            {"$ref": "#/components/schemas/Explanation"},
            {
                "target_text": STRING,
                "alternatives": count(limits),
                "method": {"enum": list(get_args(Method))},
                "check": FLAG,
            },
        ),
    }


def asked_of_the_service() -> Json:
    return {
        "/frontend/settings": get("What a page needs to know", obj({"charLimit": WHOLE, "keyRequired": FLAG})),
        "/health": get("The service is there", obj({"status": STRING})),
        "/ready": ready(),
        "/metrics": get("Figures for Prometheus", STRING, "text/plain"),
        "/spec": get("This description", obj({"openapi": STRING})),
    }


def ready() -> Json:
    """Says the same whether it is or not; the status tells."""
    state = obj({"status": STRING, "workers": {"type": "object"}})
    found = get("Every model can answer; 503 otherwise", state)
    content = {"application/json": {"schema": state}}
    found["get"]["responses"]["503"] = {
        "description": "not ready; Retry-After says how long to wait",
        "content": content,
    }
    return found


# ---------------------------------------------------------------- parts of a description
PAIR: Json = {"source": CODE, "target": CODE}


def obj(properties: Json) -> Json:
    """An object that has all of these."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def listing(items: Json) -> Json:
    return {"type": "array", "items": items}


def one_or_many(items: Json) -> Json:
    return {"oneOf": [items, listing(items)]}


def one_or_many_lists(items: Json, description: str) -> Json:
    return {"anyOf": [listing(items), listing(listing(items))], "description": description}


def texts(limits: TextLimits) -> Json:
    return {
        "oneOf": [
            {"type": "string", "maxLength": limits.characters},
            {"type": "array", "items": STRING, "maxItems": limits.texts},
        ]
    }


def terminology(limits: TextLimits) -> Json:
    return {
        "glossary": {"type": "object", "additionalProperties": STRING, "maxProperties": limits.glossary},
        "do_not_translate": {"type": "array", "items": STRING, "maxItems": limits.glossary},
    }


def count(limits: TextLimits) -> Json:
    return {"type": "integer", "minimum": 0, "maximum": limits.alternatives}


def post(
    summary: str, fields: Json, answer: Json, options: Json | None = None, *, media: str = "application/json"
) -> Json:
    """A route that takes JSON or a form: all fields, and perhaps some of the options."""
    body = obj(fields)
    body["properties"] = {**fields, **(options or {}), "api_key": KEY}
    content = {kind: {"schema": body} for kind in ("application/json", "application/x-www-form-urlencoded")}
    return {"post": operation(summary, answers({media: {"schema": answer}}), content)}


def get(summary: str, schema: Json, media: str = "application/json", parameter: str | None = None) -> Json:
    given = [{"name": parameter, "in": "path", "required": True, "schema": STRING}] if parameter else []
    return {"get": {**operation(summary, answers({media: {"schema": schema}})), "parameters": given}}


def upload(options: Json) -> Json:
    body = obj({"file": {"type": "string", "format": "binary"}, **PAIR})
    body["properties"] |= options
    said = answers({"application/json": {"schema": obj({"translatedFileUrl": STRING})}})
    return {"post": operation("Translate a file", said, {"multipart/form-data": {"schema": body}})}


def operation(summary: str, responses: Json, content: Json | None = None) -> Json:
    body = {"requestBody": {"required": True, "content": content}} if content else {}
    return {"summary": summary, **body, "responses": responses}


def answers(content: Json) -> Json:
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    refusals = {status: {"description": text, "content": error} for status, text in ERRORS.items()}
    return {"200": {"description": "done", "content": content}, **refusals}
