"use strict";
/* Light and dark for the plots: every colour of a light figure has its counterpart on a dark page (palette.py).
   Follows html[data-theme="light|dark"], else the browser's wish; paper is always light. Call soakwatchTheme() after
   plots were added; it changes only what must change. */
const soakwatchTheme = (() => {
  const DARK = {
    "#000000": "#eef1f4", "#e69f00": "#f5c04a", "#56b4e9": "#a5dcfa", "#009e73": "#2cc094", "#f0e442": "#f0e442",
    "#0072b2": "#4c9fe6", "#d55e00": "#f2793a", "#cc79a7": "#e3a3c8", "#ffffff": "#1d2126", "#e6e6e6": "#343a41",
    "#cccccc": "#4a525a", "#999999": "#8b949d", "#444444": "#c6ccd2", "#767676": "#9aa3ab", "#333333": "#cdd3d9",
    "#fefefe": "#101214"
  };
  const light = new WeakMap(); // model -> {property: its value on a light page}
  const shown = new WeakMap(); // document -> "light" or "dark"
  const wish = matchMedia("(prefers-color-scheme: dark)");
  const paper = matchMedia("print");
  let printing = false;

  function mode() {
    if (printing || paper.matches) return "light";
    const chosen = document.documentElement.dataset.theme;
    return chosen === "light" || chosen === "dark" ? chosen : wish.matches ? "dark" : "light";
  }

  /* The dark counterpart of a property's value; undefined for what is no colour of ours. */
  function darkened(value) {
    if (typeof value === "string") return DARK[value.toLowerCase()];
    if (value !== null && typeof value === "object" && typeof value.value === "string") {
      const dark = DARK[value.value.toLowerCase()];
      return dark === undefined ? undefined : {...value, value: dark};
    }
    return undefined;
  }

  /* What of a model is coloured: its light values, read once. */
  function lightOf(model) {
    let kept = light.get(model);
    if (kept === undefined) {
      kept = {};
      for (const property of model) {
        const name = property.attr;
        if (!/color$/.test(name)) continue;
        const value = property.is_unset ? undefined : property.get_value();
        if (darkened(value) !== undefined) kept[name] = value;
      }
      light.set(model, kept);
    }
    return kept;
  }

  function recolour(doc, wanted) {
    const models = new Set();
    for (const root of doc.all_roots ?? doc.roots()) for (const model of root.references()) models.add(model);
    for (const model of models) {
      const kept = lightOf(model);
      if (Object.keys(kept).length === 0) continue;
      const change = {};
      for (const [name, value] of Object.entries(kept)) change[name] = wanted === "dark" ? darkened(value) : value;
      model.setv(change);
    }
    shown.set(doc, wanted);
  }

  function apply() {
    if (typeof Bokeh === "undefined") return;
    const wanted = mode();
    for (const doc of Bokeh.documents) {
      if ((shown.get(doc) ?? "light") !== wanted) recolour(doc, wanted);
    }
  }

  addEventListener("beforeprint", () => { printing = true; apply(); });
  addEventListener("afterprint", () => { printing = false; apply(); });
  wish.addEventListener("change", apply);
  paper.addEventListener("change", apply);
  new MutationObserver(apply).observe(document.documentElement, {attributes: true, attributeFilter: ["data-theme"]});
  return apply;
})();
