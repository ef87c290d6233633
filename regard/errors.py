"""Everything a user can do wrong, as one family: the command line prints one line and exits with code 1."""


class RegardError(Exception):
    """A mistake that the message alone explains: where, what was found, what was expected, what to do."""


class RecipeError(RegardError):
    """A recipe that names an unknown key or asks for something impossible."""


class DataError(RegardError):
    """A corpus that cannot be read, or that does not say what it should."""


class ModelFormatError(RegardError):
    """A model directory or checkpoint that is damaged, incomplete or not ours."""


class TrainingError(RegardError):
    """A run that cannot start or go on."""


class DecodingError(RegardError):
    """A request to translate, score or sample that cannot be met."""


class ServingError(RegardError):
    """A service that cannot begin."""
