"""The bench: does the packet help a small model, and does the model help at all? Measured over files, not words."""
