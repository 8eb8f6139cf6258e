"""The commands that the lab adds to `remora`, through the entry point group `remora.commands`."""

from remora.cli import Command

bench = Command(
    "remora_lab.cli._bench:bench",
    "Run agents on benchmark tasks, and compare models and policies by the files they write.",
)
train = Command("remora_lab.cli._train:train", "Train an adapter for the embedded model from your own traces.")
