"""Streams and blobs as files: writing, reading, locks, and who owns the folder."""
