"""Speed of the Long Track, measured beside its floors and a peer in one run: `python -m benchmarks`."""
