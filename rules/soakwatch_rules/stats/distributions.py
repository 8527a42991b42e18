"""Distribution functions of scipy. scipy.special (25 MB, a quarter of a second) is imported only when one is used, so
that a collector that only needs the rules' parameters stays small."""

from __future__ import annotations

from typing import overload

import numpy as np

from soakwatch_model.series import Floats, Ints


@overload
def student_cdf(freedom: float, t: float) -> float: ...
@overload
def student_cdf(freedom: float | Floats, t: Floats) -> Floats: ...
def student_cdf(freedom: float | Floats, t: float | Floats) -> float | Floats:
    """The probability that Student's t of this freedom is at most ``t``.

    >>> student_cdf(10.0, 0.0)
    0.5
    """
    from scipy.special import stdtr

    return _plain(stdtr(freedom, t))


def student_quantile(freedom: float, probability: float) -> float:
    """The inverse of ``student_cdf``."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))


@overload
def normal_cdf(z: float) -> float: ...
@overload
def normal_cdf(z: Floats) -> Floats: ...
def normal_cdf(z: float | Floats) -> float | Floats:
    """The probability that a standard normal is at most ``z``."""
    from scipy.special import ndtr

    return _plain(ndtr(z))


def chi_square_quantile(freedom: float, above: float) -> float:
    """The value that chi-square of this freedom exceeds with the probability ``above``."""
    from scipy.special import chdtri

    return float(chdtri(freedom, above))


def gamma_cdf(shape: float, x: float) -> float:
    """The probability that a gamma variable of this shape and scale 1 is at most ``x``."""
    from scipy.special import gammainc

    return float(gammainc(shape, x))


def gamma_quantile(shape: float, probability: float) -> float:
    """The inverse of ``gamma_cdf``; with shape n + 1 it is the upper limit of a Poisson mean of which n were
    counted."""
    from scipy.special import gammaincinv

    return float(gammaincinv(shape, probability))


def binomial_above(k: int, n: int, probability: float) -> float:
    """The probability of more than ``k`` successes in ``n`` trials."""
    from scipy.special import bdtrc

    return float(bdtrc(k, n, probability))


def binomial_at_most(k: Ints, n: int, probability: float) -> Floats:
    """The probability of at most ``k`` successes in ``n`` trials, for each ``k``; 0 for negative ``k``."""
    from scipy.special import bdtr

    result: Floats = np.where(k < 0, 0.0, bdtr(np.maximum(k, 0).astype(np.float64), n, probability))
    return result


def normal_quantile(probability: float | Floats) -> Floats:
    """The inverse of ``normal_cdf``."""
    from scipy.special import ndtri

    result: Floats = np.asarray(ndtri(probability), dtype=np.float64)
    return result


def log_choose(n: float | Ints, k: float | Ints) -> Floats:
    """The logarithm of the binomial coefficient; -inf if k is outside 0 .. n."""
    from scipy.special import gammaln

    n, k = np.asarray(n, dtype=np.float64), np.asarray(k, dtype=np.float64)
    inside = (k >= 0) & (k <= n)
    kept = np.where(inside, k, 0.0)
    whole = np.where(inside, n, 0.0)
    return np.where(inside, gammaln(whole + 1) - gammaln(kept + 1) - gammaln(whole - kept + 1), -np.inf)


def _plain(value: object) -> float | Floats:
    array = np.asarray(value, dtype=np.float64)
    return float(array) if array.ndim == 0 else array
