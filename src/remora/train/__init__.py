"""Training rows: from traces, from a suite's oracle, and from made-up agents."""

from remora.train._export import Proven, proven, rows_of_stream
from remora.train._exporting import Exported, export_rows
from remora.train._rows import Kept, Row, RowFile, answer_text, write_rows
from remora.train._running import Trained, run_training
from remora.train._suite import Made, suite_rows
from remora.train.variety import variety

__all__ = [
    "Exported",
    "Kept",
    "Made",
    "Proven",
    "Row",
    "RowFile",
    "Trained",
    "answer_text",
    "export_rows",
    "proven",
    "rows_of_stream",
    "run_training",
    "suite_rows",
    "variety",
    "write_rows",
]
