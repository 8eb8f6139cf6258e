"""Names of models in what leaves the project: reports and exports."""

from __future__ import annotations

WEIGHTS = ".gguf"


def shared_model_name(model: str) -> str:
    """The model without the folders of a weights file: what is shared must not name the user's folders."""
    if not model.casefold().endswith(WEIGHTS):
        return model
    return model.replace("\\", "/").rpartition("/")[2]
