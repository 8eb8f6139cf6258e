"""Training rows: from traces, from a suite's oracle, and from made-up agents."""

from remora.train._rows import Kept, Row, answer_text, write_rows
from remora.train.variety import variety

__all__ = ["Kept", "Row", "answer_text", "variety", "write_rows"]
