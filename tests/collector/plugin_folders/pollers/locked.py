"""A source that needs a host and a secret."""

from __future__ import annotations

from contextlib import AsyncExitStack

from soakwatch.core.secrets import SecretRef, secret
from soakwatch.sources.abc import Poller, SourceConfig, SourceContext, SourceError


class Config(SourceConfig):
    """Keys of the source."""

    host: str
    password: SecretRef
    community: SecretRef | None = None


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> Poller:
    """Resolves the secret, and gives up."""
    del site, stack
    raise SourceError(f"{config.host} does not accept {secret(config.password)}")
