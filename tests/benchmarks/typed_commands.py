"""A stand-in for the command line, for benchmarks that train and test by it."""

import json


class Typed:
    """Stands for `regard`: every training takes a minute; the other commands get the answers one after the other."""

    def __init__(self, answers):
        self.commands, self.answers = [], iter(answers)

    def __call__(self, *words):
        self.commands.append([str(word) for word in words])
        if words[0] != "train":
            return json.dumps(next(self.answers))
        folder = words[words.index("--out") + 1]
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text(json.dumps({"seconds": 60, "steps": 1}))
        return ""
