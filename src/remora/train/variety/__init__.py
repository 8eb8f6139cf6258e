"""Made-up agents and their episodes: true packets by the real fold and the real renderer, of tools nobody has seen."""

from remora.train.variety import _words as words
from remora.train.variety._dice import Dice
from remora.train.variety._episodes import CONTROLS, Control, episode, variety

__all__ = ["CONTROLS", "Control", "Dice", "episode", "variety", "words"]
