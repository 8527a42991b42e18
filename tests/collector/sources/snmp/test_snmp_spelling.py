"""Protocols of SNMPv3 in a plan: the spellings of other programs are understood, anything else is refused."""

from __future__ import annotations

from typing import get_args

import pytest
from pydantic import ValidationError

from soakwatch.sources.pollers.traps import TrapUser
from soakwatch.sources.transport.snmp.config import Config
from soakwatch.sources.transport.snmp.snmp_access import AuthName, PrivName

AUTH = {
    "MD5": "md5 MD5 hmac-md5 HMAC-MD5-96 usmHMACMD5AuthProtocol",
    "SHA": "sha SHA sha1 SHA-1 sha-96 hmac-sha hmac-sha1-96 HMAC96-SHA usmHMACSHAAuthProtocol",
    "SHA-224": "sha224 SHA-224 sha2-224 usmHMAC128SHA224AuthProtocol",
    "SHA-256": "sha256 SHA256 sha-256 SHA2-256 SHA_256 hmac-sha256 hmac192-sha-256 usmHMAC192SHA256AuthProtocol",
    "SHA-384": "sha384 SHA-384 usmHMAC256SHA384AuthProtocol",
    "SHA-512": "sha512 SHA-512 sha2-512 HMAC384SHA512",
}
PRIV = {
    "DES": "des DES des56 cbc-des DES-CBC usmDESPrivProtocol",
    "AES": "aes AES aes128 AES128 aes-128 AES-128 aes-128-priv cfb128-aes-128 usmAesCfb128Protocol",
    "AES-192": "aes192 AES-192 aes-192",
    "AES-256": "aes256 AES256 aes-256 AES_256",
    "AES-192-C": "aes192c AES-192-C aes192-cisco",
    "AES-256-C": "aes256c AES256C AES-256-C aes-256-cisco AES256-Reeder",
}


def spelled(key: str, value: object) -> str:
    """As the poller and the receiver of traps take it."""
    config = Config.model_validate({"host": "h", "interval": "1s", key: value})
    user = TrapUser.model_validate({"user": "u", key: value})
    assert getattr(config, key) == getattr(user, key)
    return str(getattr(config, key))


def test_usual_spellings_mean_the_protocol() -> None:
    """All that are used here, and no other ones."""
    assert tuple(AUTH) == get_args(AuthName)
    assert tuple(PRIV) == get_args(PrivName)
    for key, table in (("auth_protocol", AUTH), ("priv_protocol", PRIV)):
        for meant, spellings in table.items():
            for spelling in spellings.split():
                assert (spelling, spelled(key, spelling)) == (spelling, meant)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("auth_protocol", value) for value in ("sha2", "sha3-256", "sha-1024", "md51", "aes", "", "none", 256, None)),
        *(("priv_protocol", value) for value in ("3des", "aes512", "aes128c", "aes256cc", "sha", "", "x" * 10**6)),
    ],
)
def test_other_protocols_are_refused_with_those_that_there_are(key: str, value: object) -> None:
    """The message lists them as the documentation writes them."""
    with pytest.raises(ValidationError) as refusal:
        spelled(key, value)
    (error,) = refusal.value.errors()
    for protocol in get_args(AuthName if key == "auth_protocol" else PrivName):
        assert f"'{protocol}'" in error["msg"]
