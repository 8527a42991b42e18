"""Distribution functions of scipy, which is loaded only when one is used, so that a collector that only needs the
rules' parameters stays small."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from types import ModuleType
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
    return _plain(_special().stdtr(freedom, t))


def student_quantile(freedom: float, probability: float) -> float:
    """The inverse of ``student_cdf``."""
    return float(_special().stdtrit(freedom, probability))


@overload
def normal_cdf(z: float) -> float: ...
@overload
def normal_cdf(z: Floats) -> Floats: ...
def normal_cdf(z: float | Floats) -> float | Floats:
    """The probability that a standard normal is at most ``z``."""
    return _plain(_special().ndtr(z))


def chi_square_quantile(freedom: float, above: float) -> float:
    """The value that chi-square of this freedom exceeds with the probability ``above``."""
    return float(_special().chdtri(freedom, above))


def gamma_cdf(shape: float, x: float) -> float:
    """The probability that a gamma variable of this shape and scale 1 is at most ``x``."""
    return float(_special().gammainc(shape, x))


def gamma_quantile(shape: float, probability: float) -> float:
    """The inverse of ``gamma_cdf``; with shape n + 1 it is the upper limit of a Poisson mean of which n were
    counted."""
    return float(_special().gammaincinv(shape, probability))


def binomial_above(k: int, n: int, probability: float) -> float:
    """The probability of more than ``k`` successes in ``n`` trials."""
    return float(_special().bdtrc(k, n, probability))


def binomial_at_most(k: Ints, n: int, probability: float) -> Floats:
    """The probability of at most ``k`` successes in ``n`` trials, for each ``k``; 0 for negative ``k``."""
    result: Floats = np.where(k < 0, 0.0, _special().bdtr(np.maximum(k, 0).astype(np.float64), n, probability))
    return result


def normal_quantile(probability: float | Floats) -> Floats:
    """The inverse of ``normal_cdf``."""
    result: Floats = np.asarray(_special().ndtri(probability), dtype=np.float64)
    return result


def log_choose(n: float | Ints, k: float | Ints) -> Floats:
    """The logarithm of the binomial coefficient; -inf if k is outside 0 .. n."""
    n, k = np.asarray(n, dtype=np.float64), np.asarray(k, dtype=np.float64)
    inside = (k >= 0) & (k <= n)
    kept = np.where(inside, k, 0.0)
    whole = np.where(inside, n, 0.0)
    log_gamma = _special().gammaln
    return np.where(inside, log_gamma(whole + 1) - log_gamma(kept + 1) - log_gamma(whole - kept + 1), -np.inf)


_NAMES = ("bdtr", "bdtrc", "chdtri", "gammainc", "gammaincinv", "gammaln", "ndtr", "ndtri", "stdtr", "stdtrit")


@cache
def _special() -> ModuleType:
    """The functions of scipy.special as its compiled module has them: 6 MB and 10 ms. The package around it has the
    same functions, and loads numpy.testing, numpy.f2py and other array libraries' interfaces besides: 25 MB and 120 ms.
    """
    name = "scipy.special"
    if name not in sys.modules:
        scipy = import_module("scipy")
        package = sys.modules[name] = ModuleType(name)  # only where the compiled modules find each other
        package.__path__ = [f"{folder}/special" for folder in scipy.__path__]
        try:
            compiled = import_module(f"{name}._ufuncs")
            if all(hasattr(compiled, each) for each in _NAMES):
                return compiled
        except ImportError:
            pass  # another version of scipy: all of it, then
        finally:
            sys.modules.pop(name, None)  # the next import of the package is of the whole one
            vars(scipy).pop("special", None)
    return import_module(name)


def _plain(value: object) -> float | Floats:
    array = np.asarray(value, dtype=np.float64)
    return float(array) if array.ndim == 0 else array
