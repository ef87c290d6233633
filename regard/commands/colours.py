"""What colours a terminal has."""

from rich.console import Console

from regard.explaining.heatmap import Colour


def colour_of(console: Console) -> Colour:
    """For heat maps; "none" where the console is no terminal."""
    return "true" if console.color_system == "truecolor" else "256" if console.color_system else "none"
