"use strict";
/* What the tests ask a page: what its plots hold and how they look. Put into every page before its own scripts. */
globalThis.soakwatchProbe = (() => {
  const plots = () => Bokeh.documents.flatMap((doc) => doc.all_roots ?? doc.roots()).filter((root) => root.renderers);
  const element = (root) => Bokeh.index[root.id]?.el?.closest(".plot")?.id ?? "";
  const list = (column) => Array.from(column ?? [], Number);
  const colour = (value) => String(value?.value ?? value);
  const held = (source) => source.data instanceof Map ? Object.fromEntries(source.data) : source.data;

  function canvases(root) {
    return [...root.querySelectorAll("*")].flatMap((one) => [
      ...(one.tagName === "CANVAS" && one.width > 99 ? [one] : []), ...(one.shadowRoot ? canvases(one.shadowRoot) : []),
    ]);
  }

  function models() {
    const found = [];
    for (const root of plots()) {
      for (const model of root.references()) {
        const source = model.type === "GlyphRenderer" ? model.data_source : null;
        if (source === null || !/^(series|heat):/.test(source.name ?? "")) continue;
        const columns = held(source);
        found.push({
          element: element(root), name: source.name, glyph: model.glyph.type, visible: model.visible,
          factor: source.tags[0]?.factor ?? NaN, rate: source.tags[0]?.rate ?? false, unit: source.tags[0]?.unit ?? "",
          time: list(columns.time), value: list(columns.value), rows: Array.from(columns.name ?? [], String),
          image: Array.from(columns.image ?? [], list), begin: list(columns.x)[0] ?? 0, span: list(columns.dw)[0] ?? 0,
        });
      }
    }
    return found;
  }

  function figures() {
    return plots().map((root) => ({
      element: element(root), axis: root.x_range?.name ?? "",
      load: root.extra_y_ranges?.load?.end ?? root.extra_y_ranges?.get?.("load")?.end ?? NaN,
      start: root.x_range?.start ?? NaN, end: root.x_range?.end ?? NaN,
      ground: colour(root.background_fill_color), border: colour(root.border_fill_color),
      lines: root.renderers
        .filter((one) => one.glyph.line_color !== undefined && /^series:/.test(one.data_source.name ?? ""))
        .map((one) => colour(one.glyph.line_color)),
      labels: colour(root.below.find((one) => one.major_label_text_color !== undefined)?.major_label_text_color),
    }));
  }

  /* Each colour of a plot's pixels, the most frequent first. */
  function colours(plot) {
    const times = new Map();
    for (const canvas of canvases(plot)) {
      const dots = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
      for (const dot of dots) times.set(dot, (times.get(dot) ?? 0) + 1);
    }
    return [...times].sort((one, other) => other[1] - one[1]).map(([dot]) => dot).filter((dot) => dot >>> 24 === 255)
      .map((dot) => `rgb(${dot & 255}, ${dot >> 8 & 255}, ${dot >> 16 & 255})`);
  }

  /* What Tab should visit. */
  function stops() {
    return [...document.querySelectorAll("a[href], button, summary, [tabindex='0'], input, select, textarea")].filter(
      (one) => one.checkVisibility({visibilityProperty: true}) && one.tabIndex >= 0 && !one.disabled
        && one.closest("details:not([open]) > :not(summary)") === null);
  }

  /* Remembers where the focus went: [whether it is a new place, whether the place is seen]. */
  function visit(visited) {
    const at = document.activeElement;
    if (at.parentElement?.closest(".plot")) return [true, true]; // what a figure does within itself
    const style = getComputedStyle(at);
    const seen = (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none";
    const fresh = at !== document.body && !visited.includes(at);
    if (fresh) visited.push(at);
    return [fresh, seen];
  }

  /* The first two that stand in another order than in the document; null if none do. */
  function disorder(visited) {
    const at = visited.findIndex((one, n) => n > 0
      && !(visited[n - 1].compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING));
    return at < 0 ? null : [visited[at - 1].outerHTML.slice(0, 120), visited[at].outerHTML.slice(0, 120)];
  }

  /* Elements inside of open shadow roots too. */
  function everything(root = document) {
    return [...root.querySelectorAll("*")].flatMap((one) => [one, ...(one.shadowRoot ? everything(one.shadowRoot) : [])]);
  }

  /* What makes the page scroll sideways, the outermost first. */
  function tooWide() {
    if (document.documentElement.scrollWidth <= innerWidth) return [];
    const kept = (one) => ["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(one).overflowX);
    return [...document.body.querySelectorAll("*")].filter((one) => {
      if (one.getBoundingClientRect().right + scrollX <= innerWidth + 1) return false;
      for (let at = one.parentElement; at !== document.body; at = at.parentElement) if (kept(at)) return false;
      return true;
    }).map((one) => one.outerHTML.slice(0, 120)).slice(0, 5);
  }

  /* The values of each line on a page that lays the lines of several runs over one another. */
  function overlaid() {
    return plots().flatMap((root) => root.renderers)
      .filter((one) => one.glyph.type === "Line" && held(one.data_source).time !== undefined)
      .map((one) => list(held(one.data_source).value));
  }

  /* Elements that none of our pages makes, and attributes that run something. */
  function foreign() {
    return everything().filter((one) =>
      ["IMG", "IFRAME", "OBJECT", "EMBED", "MJX-CONTAINER", "VIDEO"].includes(one.tagName)
      || one.hasAttribute("onerror") || one.hasAttribute("onload")
      || (one.getAttribute("href") ?? "").startsWith("javascript:")).map((one) => one.outerHTML.slice(0, 100));
  }

  return {foreign, overlaid, tooWide, models, figures, colours, stops, visit, disorder, everything};
})();
