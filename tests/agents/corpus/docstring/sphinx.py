import os


def join(first, second):
    """Join two paths.

    :param first: The left one,
        which may be empty.
    :param third: Gone.
    :returns: The path.
    """
    return os.path.join(first, second)


def split(path: str, sep: str = "/") -> list[str]:
    return path.split(sep)
