"""The page for those whom the server does not know yet, and the headers that guard every answer."""

from __future__ import annotations

from collections.abc import Mapping

GUARDS: Mapping[str, str] = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
}
"""Nothing is loaded from elsewhere, nothing of the page's own text is run as a script, nobody frames it."""

ENTRANCE = """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Soakwatch</title>
<style>
body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:12vh auto;padding:0 1rem}
input,button{font:inherit;padding:.4rem .6rem}
input{width:100%;box-sizing:border-box;margin:.3rem 0 .6rem}
code{background:color-mix(in srgb,currentColor 10%,transparent);padding:.1rem .3rem}
</style></head><body><main>
<h1>Soakwatch</h1>
<p role="status">{sentence}</p>
<p>A link that lets you in: <code>soakwatch open last</code> on the machine where the run is.
For looking only: <code>soakwatch open last --view-only</code>.</p>
<form method="post" action="/enter"><label>Or the token of this server, from its file <code>web.token</code>
<input type="password" name="token" autocomplete="off" required></label><button>Enter</button></form>
</main></body></html>
"""
