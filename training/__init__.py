"""Trains adapters for the embedded model. Stands alone: torch, numpy and tokenizers, nothing of `remora`.

python3 -m training.train --base MODEL.gguf --rows rows.jsonl.gz --out DIR
"""
