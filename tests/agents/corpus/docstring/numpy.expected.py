def mean(values, weights=None):
    """Return the mean.

    Parameters
    ----------
    values : list
        The numbers.
    weights
        The weights. Optional.

    Returns
    -------
    float
        The mean.
    """
    return sum(values) / len(values)


def scale(values: list[float], by: float) -> list[float]:
	"""Return the scale of `values` and `by`.

	Parameters
	----------
	values : list[float]
	    The values.
	by : float
	    The by.

	Returns
	-------
	list[float]
	    A value of type `list[float]`.

	Raises
	------
	ZeroDivisionError
	    Raised in the body.
	"""
	if by == 0:
		raise ZeroDivisionError
	return [value / by for value in values]
