"""The codec of blocks gives back every bit, or says that it cannot."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soakwatch.record._blocks import decode, encode
from soakwatch.record.model import Values

ANY_FLOATS = st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=80)
FEW_FLOATS = st.lists(st.sampled_from([0.1, -0.0, 0.0, 5e-324, 1 / 3]), max_size=80)


def same_bits(values: Values) -> None:
    """Assert that a block gives back dtype and bits."""
    back = decode(encode(values))
    assert back.dtype == values.dtype
    assert back.tobytes() == values.tobytes()


@settings(max_examples=200, deadline=None, derandomize=True)
@given(ANY_FLOATS | FEW_FLOATS)
def test_floats_come_back_bit_for_bit(values: list[float]) -> None:
    """Floats come back with every bit, subnormals and negative zeros included."""
    same_bits(np.array(values, dtype=np.float64))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=80), st.lists(st.integers(0, 2**64 - 1), max_size=80))
def test_integers_come_back_exactly(signed: list[int], unsigned: list[int]) -> None:
    """Signed and unsigned integers of 64 bits come back exactly."""
    same_bits(np.array(signed, dtype=np.int64))
    same_bits(np.array(unsigned, dtype=np.uint64))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_whole_floats_come_back_as_floats(sign: float) -> None:
    """Floats that are whole numbers are packed as integers and come back as floats, up to the last exact one."""
    same_bits(sign * np.array([1.0, 2.0**53, 0.0 if sign > 0 else 3.0, 2.0**53 - 1]))


def test_every_changed_byte_is_noticed() -> None:
    """A block with any byte changed, or cut short anywhere, is refused."""
    block = encode(np.cumsum(np.random.default_rng(1).poisson(50, 300)))
    for index in range(len(block)):
        broken = bytearray(block)
        broken[index] ^= 0x20
        with pytest.raises(ValueError, match="block"):
            decode(bytes(broken))
        with pytest.raises(ValueError, match="block"):
            decode(block[:index])
