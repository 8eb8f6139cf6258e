"""Synthetic agents and their episodes: invented tools, with packets from the real fold and renderer."""

from remora_lab.train.synthetic import _words as words
from remora_lab.train.synthetic._dice import Dice
from remora_lab.train.synthetic._episodes import CONTROLS, Control, episode, synthetic_rows

__all__ = ["CONTROLS", "Control", "Dice", "episode", "synthetic_rows", "words"]
