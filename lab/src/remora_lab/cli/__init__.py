"""The commands that the lab adds to `remora`, through the entry point group `remora.commands`."""

from remora.cli import Command

bench = Command(
    "remora_lab.cli._bench:bench", "Run agents on tasks that are judged by their files, and compare who decides."
)
train = Command("remora_lab.cli._train:train", "Train an adapter for the embedded model from your own traces.")
