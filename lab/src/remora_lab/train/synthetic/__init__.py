"""Synthetic agents and their episodes: invented tools, with packets from the real fold and renderer."""

from remora_lab.train.synthetic import _words as words
from remora_lab.train.synthetic._dice import Dice
from remora_lab.train.synthetic._episodes import CONTROLS, Control, episode, synthetic_rows
from remora_lab.train.synthetic._requests import request_rows
from remora_lab.train.synthetic._spoken import spoken_rows

__all__ = ["CONTROLS", "Control", "Dice", "episode", "request_rows", "spoken_rows", "synthetic_rows", "words"]
