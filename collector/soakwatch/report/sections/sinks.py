# ruff: noqa: E501 - lines of HTML are as long as they are
"""The databases that were fed beside the run: what they have, how far behind they were, what they refused."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.report.page import Page
from soakwatch.report.sinks import sink_accounts

ORDER = 45
TITLE = "Databases"
TEMPLATE = """\
<p class="soft">The verdict is made from the record, which waits for no database: what one of them lacks is missing there and not here.</p>
<div class="card{% if not accounts|map(attribute="well")|min %} warn{% endif %} scroll"><table>
<thead><tr><th>sink</th><th class="num">lines written</th><th class="num">refused</th><th>at its worst</th><th>when the run ended</th></tr></thead><tbody>
{% for one in accounts %}
<tr><td class="name">{{ one.name }}</td><td class="num">{{ one.written|number }}</td><td class="num">{{ one.refused|number }}</td>
<td>{{ one.lag }}</td><td>{{ one.end }}</td></tr>
{% endfor %}
</tbody></table>{% if accounts|sum(attribute="refused") %}<p>What was refused is kept beside the record, each line with the database's reason: <code>sink-…-refused.txt</code>.</p>{% endif %}
{% if behind %}<p>The rest is sent by <code>soakwatch sink RUN --to …</code>, unless it was while the verdict was made.</p>{% endif %}</div>
"""


def facts(page: Page) -> Mapping[str, object] | None:
    """A row for each sink; nothing where there was none."""
    accounts = sink_accounts(page.source)
    if not accounts:
        return None
    return {"accounts": accounts, "behind": any(one.end.count("behind") for one in accounts)}
