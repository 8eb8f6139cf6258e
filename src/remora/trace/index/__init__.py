"""The index over all streams of a state folder: an SQLite file that can be deleted and rebuilt."""
