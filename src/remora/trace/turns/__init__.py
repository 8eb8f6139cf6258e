"""Tool calls by trace key: one view, over the index or over a key-value file."""
