"""Training rows from three sources: traces, the oracle on a suite of tasks, and synthetic agents."""

from remora_lab.train._export import ExportResult, export_rows
from remora_lab.train._hard import is_hard
from remora_lab.train._rows import RowCounts, RowFile, TrainingRow, answer_text, write_rows
from remora_lab.train._run import TrainingResult, run_training
from remora_lab.train._suite import EpisodeRows, suite_rows
from remora_lab.train._trace_rows import Verdicts, read_verdicts, rows_of_stream
from remora_lab.train.synthetic import request_rows, spoken_rows, synthetic_rows

__all__ = [
    "EpisodeRows",
    "ExportResult",
    "RowCounts",
    "RowFile",
    "TrainingResult",
    "TrainingRow",
    "Verdicts",
    "answer_text",
    "export_rows",
    "is_hard",
    "read_verdicts",
    "request_rows",
    "rows_of_stream",
    "run_training",
    "spoken_rows",
    "suite_rows",
    "synthetic_rows",
    "write_rows",
]
