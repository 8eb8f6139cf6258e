"""The ladder: an agent moves to a larger model when it is stuck, and back when that step is done.

Every move is a recorded rule over recorded events, so a resumed run stands on the same rung.
"""

from remora.escalation._climber import Climber, OneModel
from remora.escalation._ladder import Ladder, Meter, Price, Rung
from remora.escalation._rules import LadderState, Move, advance, next_move

__all__ = ["Climber", "Ladder", "LadderState", "Meter", "Move", "OneModel", "Price", "Rung", "advance", "next_move"]
