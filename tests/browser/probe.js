"use strict";
/* What the tests ask a page: what its plots hold and how they look. Put into every page before its own scripts. */
globalThis.soakwatchProbe = (() => {
  const plots = () => typeof soakwatchPlots === "undefined" ? [] : soakwatchPlots.figures();
  const list = (column) => Array.from(column ?? [], Number);

  function canvases(root) { return [...root.querySelectorAll("canvas")].filter((one) => one.width > 99); }

  /* What each line and each heat map holds; a line is seen if uPlot shows it. */
  function models() {
    const found = [];
    for (const figure of plots()) {
      for (const {points, index, line} of figure.lines) {
        found.push({
          element: figure.element.id, name: points.name, glyph: line.steps ? "Step" : "Line",
          visible: index.every((at) => figure.u.series[at].show), factor: points.factor, rate: points.rate, unit: points.unit,
          time: list(points.time), value: list(points.value), rows: [], image: [], begin: 0, span: 0,
        });
      }
      if (figure.cells === null) continue;
      const {name, names, begin, end} = figure.plot.cells, {values, bins} = figure.cells;
      found.push({
        element: figure.element.id, name, glyph: "Image", visible: true, factor: NaN, rate: false, unit: "", time: [], value: [],
        rows: names, image: names.map((_, row) => list(values.slice(row * bins, (row + 1) * bins))), begin, span: end - begin,
      });
    }
    return found;
  }

  /* How each plot looks: what uPlot's axis of time shows (of one out of sight: will show), and the colours of its pixels. */
  function figures() {
    return plots().map((figure) => {
      const {u, axis} = figure, shown = figure.due ? axis : {start: u.scales.x.min, end: u.scales.x.max};
      const corner = u.ctx.getImageData(1, 1, 1, 1).data;
      return {
        element: figure.element.id, axis: axis.name, load: figure.load(), start: shown.start, end: shown.end,
        ground: figure.due ? soakwatchTheme.tint("#ffffff") : `#${[...corner].slice(0, 3).map((one) => one.toString(16).padStart(2, "0")).join("")}`, border: soakwatchTheme.tint("#ffffff"),
        lines: figure.lines.filter(({points}) => /^series:/.test(points.name)).map(({index}) => u.series[index[0]].stroke(u, index[0])),
        labels: u.axes[0].stroke(u, 0), width: figure.element.clientWidth, card: figure.element.closest("figure")?.clientWidth ?? 0,
        ticks: figure.ticks().length, names: figure.names, size: u.width,
        legend: [...figure.element.querySelectorAll(".plot-legend button")].map((one) => one.textContent),
      };
    });
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
  function overlaid() { return plots().flatMap((figure) => figure.lines).map(({points}) => list(points.value)); }

  /* Elements that none of our pages makes, and attributes that run something. */
  function foreign() {
    return everything().filter((one) =>
      ["IMG", "IFRAME", "OBJECT", "EMBED", "MJX-CONTAINER", "VIDEO"].includes(one.tagName)
      || one.hasAttribute("onerror") || one.hasAttribute("onload")
      || (one.getAttribute("href") ?? "").startsWith("javascript:")).map((one) => one.outerHTML.slice(0, 100));
  }

  return {foreign, overlaid, tooWide, models, figures, colours, stops, visit, disorder, everything};
})();
