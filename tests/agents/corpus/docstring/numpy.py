def mean(values, weights=None):
    """Return the mean.

    Parameters
    ----------
    values, old : list
        The numbers.

    Returns
    -------
    float
        The mean.
    """
    return sum(values) / len(values)


def scale(values: list[float], by: float) -> list[float]:
	if by == 0:
		raise ZeroDivisionError
	return [value / by for value in values]
