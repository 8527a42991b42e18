"""The keys of the source ``snmp``, and the access that they make."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from soakwatch.core.secrets import SecretRef, secret
from soakwatch.sources.abc import HostName, SourceConfig
from soakwatch.sources.transport.snmp.snmp_access import Access, AuthProtocol, PrivProtocol


def _version(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Version = Annotated[Literal["1", "2c", "3"], BeforeValidator(_version)]


class Config(SourceConfig):
    """Keys of the source ``snmp``."""

    asks_management = True
    resting = "cpu"

    host: Annotated[HostName, Field(description="address or name of the device")]
    port: Annotated[int, Field(default=161, ge=1, le=65535, description="UDP port of its agent")]
    version: Annotated[Version, Field(default="2c", description="version of SNMP")]
    community: Annotated[SecretRef | None, Field(default=None, description="community of v1 and v2c; default: public")]
    user: Annotated[str, Field(default="", description="user of v3")]
    auth: Annotated[SecretRef | None, Field(default=None, description="authentication pass phrase of v3")]
    auth_protocol: Annotated[AuthProtocol, Field(default="SHA", description="authentication protocol of v3")]
    priv: Annotated[SecretRef | None, Field(default=None, description="privacy pass phrase of v3")]
    priv_protocol: Annotated[
        PrivProtocol, Field(default="AES", description="privacy protocol of v3; -C is Cisco's key extension")
    ]
    context: Annotated[str, Field(default="", max_length=32, description="context of v3; needs engine: pysnmp")]
    engine: Annotated[
        Literal["gufo", "pysnmp"], Field(default="gufo", description="SNMP library; pysnmp costs far more CPU")
    ]
    profile: Annotated[str, Field(default="auto", description="profile of the device; auto chooses it")]
    profiles: Annotated[str | None, Field(default=None, description="folder with your own profiles")]
    groups: Annotated[list[str] | None, Field(default=None, description="only these groups of the profile")]
    without: Annotated[list[str], Field(default_factory=list, description="not these groups of the profile")]
    max_repetitions: Annotated[int, Field(default=20, ge=1, le=200, description="rows of the first GETBULK")]
    retries: Annotated[int, Field(default=1, ge=0, le=5, description="repeats of a request within a poll")]

    def require_known(self) -> None:
        """Raises PlanError for an unknown profile, a wrong one, and a folder of profiles that is not there."""
        if self.profile != "auto" or self.profiles is not None:
            from soakwatch.sources.profiles.loading import load_profiles  # a plan is read without it

            profiles = load_profiles(self.profiles_folder)
            if self.profile != "auto":
                profiles[self.profile]
            else:
                profiles.heads()

    @property
    def profiles_folder(self) -> Path | None:
        """The folder with the user's own profiles."""
        return Path(self.profiles).expanduser() if self.profiles else None


def access_of(config: Config) -> Access:
    """The access with its secrets resolved. Raises PlanError for those that are not there."""
    return Access(
        config.host,
        config.port,
        config.version,
        _secret(config.community) if config.community else "" if config.version == "3" else "public",
        config.user,
        _secret(config.auth),
        config.auth_protocol,
        _secret(config.priv),
        config.priv_protocol,
        config.context,
    )


def _secret(reference: str | None) -> str:
    return secret(reference).reveal() if reference else ""
