"""The distribution functions are those of scipy, without what else the package scipy.special loads."""

from __future__ import annotations

import subprocess
import sys

_SEEN = """
import sys
from soakwatch_rules.stats import distributions as d

shapes, shares = (0.5, 1.0, 2.0, 7.25, 900.0), (1e-9, 0.025, 0.5, 0.95, 0.975)
ours = lambda: [
    *(d.gamma_quantile(shape, share) for shape in shapes for share in shares),
    *(d.student_quantile(shape, share) for shape in shapes for share in shares),
    *(d.chi_square_quantile(shape, share) for shape in shapes for share in shares),
    *(float(d.normal_quantile(share)) for share in shares),
    *(d.student_cdf(3.0, x) for x in shapes),
    *(d.normal_cdf(x) for x in shapes),
    *(d.gamma_cdf(2.0, x) for x in shapes),
    d.binomial_above(3, 20, 0.1), float(d.log_choose(50.0, 7.0)),
]
before = ours()
heavy = {"numpy.f2py", "numpy.testing", "scipy._lib._array_api", "scipy.special"} & sys.modules.keys()
assert not heavy, heavy
import scipy.special
d._special = lambda: scipy.special
assert ours() == before
assert scipy.special.logsumexp([0.0]) == 0.0
"""


def test_they_are_those_of_scipy_bit_for_bit_and_little_is_loaded() -> None:
    """Nor is the package harmed for whoever imports it afterwards."""
    done = subprocess.run([sys.executable, "-c", _SEEN], capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
