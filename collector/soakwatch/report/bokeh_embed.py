"""Plots as texts inside a page: one document of all of them, or one document each with what they share kept apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bokeh import __version__ as _bokeh
from bokeh.core.json_encoder import serialize_json
from bokeh.core.property.descriptors import PropertyDescriptor
from bokeh.core.serialization import AnyRep, Serializer
from bokeh.model import Model

_ID = re.compile(r'"id":"(p\d+)"')
_BUFFER = re.compile(r'"data":"([A-Za-z0-9+/=]{120,})"')
Placed = Sequence[tuple[Any, str]]


@dataclass(frozen=True, slots=True)
class Piece:
    """One plot: the element that will hold it, and its document as JSON that is safe inside a script element."""

    element: str
    text: str


@dataclass(frozen=True, slots=True)
class Pieces:
    """The plots one by one, in order of the page. ``shared`` is a JSON list of arrays (base64) that several of them
    hold; ``"data":"#n"`` stands in a piece for the nth of them."""

    shared: str
    parts: tuple[Piece, ...]


def whole(placed: Placed) -> tuple[str, str]:
    """All plots as one document, and where its plots go, as Bokeh's ``embed_items`` takes them.

    Bokeh numbers its models through the life of the process; here they are numbered by first appearance.
    """
    if not placed:
        return "{}", "[]"
    names: dict[str, str] = {}
    text = _renumbered(_document([plot for plot, _ in placed]), names, "m")
    roots = {names[plot.id]: element for plot, element in placed}
    items = [{"docid": "report", "roots": roots, "root_ids": list(roots)}]
    return _safe(f'{{"report":{text}}}'), _safe(serialize_json(items))


def apart(placed: Placed) -> Pieces:
    """Each plot as a document of its own, so that a page can parse and draw it when it is looked at.

    Models that plots share (a time axis, the load) are in each of their documents; ``plots.js`` links the axes.
    """
    texts = []
    for number, (plot, _) in enumerate(placed, 1):
        texts.append(_renumbered(_document([plot]), {}, f"m{number}_"))
    seen = Counter(data for text in texts for data in dict.fromkeys(_BUFFER.findall(text)))
    indices = {data: position for position, data in enumerate(data for data, times in seen.items() if times > 1)}

    def referred(hit: re.Match[str]) -> str:
        index = indices.get(hit[1])
        return hit[0] if index is None else f'"data":"#{index}"'

    parts = [
        Piece(element, _safe(_BUFFER.sub(referred, text))) for text, (_, element) in zip(texts, placed, strict=True)
    ]
    return Pieces(serialize_json(list(indices)), tuple(parts))


class _SetOnly(Serializer):
    """Bokeh's serializer, which asks a model for the values of all its properties to leave out those that nobody set.
    This one asks for those alone; the text is the same."""

    def _encode(self, obj: Any) -> AnyRep:
        if not isinstance(obj, Model):
            return super()._encode(obj)
        self.add_ref(obj, obj.ref)
        given = {*obj._property_values, *obj._unstable_default_values, *(obj.themed_values() or ())}  # noqa: SLF001

        def is_given(each: PropertyDescriptor[Any]) -> bool:
            return each.name in given and each.serialized

        values = obj.query_properties_with_values(is_given, include_defaults=False)
        attributes = {name: self.encode(value) for name, value in values.items()}
        shown = {"type": "object", "name": obj.__qualified_model__, "id": obj.id}
        return shown | {"attributes": attributes} if attributes else shown


def _document(roots: Sequence[Model]) -> str:
    """The models as a document in JSON."""
    encoded = _SetOnly(deferred=False).encode(list(roots))
    return serialize_json({"version": _bokeh, "title": "", "config": None, "roots": encoded})


def _renumbered(text: str, names: dict[str, str], prefix: str) -> str:
    return _ID.sub(lambda hit: f'"id":"{names.setdefault(hit[1], f"{prefix}{len(names) + 1}")}"', text)


def _safe(text: str) -> str:
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
