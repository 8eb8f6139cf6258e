"""The bench: does the packet help a small model, and does the model help at all? Judged by files, not by words."""
