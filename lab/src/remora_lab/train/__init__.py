"""Training rows: from traces, from a suite's oracle, and from synthetic agents."""

from remora_lab.train._export import Exported, export_rows
from remora_lab.train._rows import RowCounts, RowFile, TrainingRow, answer_text, write_rows
from remora_lab.train._run import Trained, run_training
from remora_lab.train._suite import EpisodeRows, suite_rows
from remora_lab.train._trace_rows import Proven, proven, rows_of_stream
from remora_lab.train.synthetic import synthetic_rows

__all__ = [
    "EpisodeRows",
    "Exported",
    "Proven",
    "RowCounts",
    "RowFile",
    "Trained",
    "TrainingRow",
    "answer_text",
    "export_rows",
    "proven",
    "rows_of_stream",
    "run_training",
    "suite_rows",
    "synthetic_rows",
    "write_rows",
]
