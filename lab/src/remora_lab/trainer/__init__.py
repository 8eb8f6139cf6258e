"""Trains adapters for the embedded model with torch.

    python -m remora_lab.trainer --base MODEL.gguf --rows rows.jsonl.gz --out DIR

`remora train run` starts it. It also runs alone on a machine that has torch, numpy and tokenizers but none of Remora's
dependencies: of the core it imports only `remora.gguf` and `remora.errors`. From a checkout, put both source folders on
the path: `PYTHONPATH=src:lab/src`.
"""
