import os


def join(first, second):
    """Join two paths.

    :param first: The left one,
        which may be empty.
    :param second: The second.
    :returns: The path.
    """
    return os.path.join(first, second)


def split(path: str, sep: str = "/") -> list[str]:
    """Split `path` with `sep`.

    :param path: The path.
    :param sep: The sep.
    :returns: A value of type `list[str]`.
    """
    return path.split(sep)
