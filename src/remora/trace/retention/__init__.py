"""Which streams and blobs may be deleted, and deleting them."""
