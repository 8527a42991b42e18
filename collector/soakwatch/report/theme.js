"use strict";
/* Light and dark for the plots: every colour of a light plot has its counterpart on a dark page (palette.py).
   Follows html[data-theme="light|dark"], else the browser's wish; paper is always light. */
const soakwatchTheme = (() => {
  const DARK = {
    "#000000": "#eef1f4", "#e69f00": "#f5c04a", "#56b4e9": "#a5dcfa", "#009e73": "#2cc094", "#f0e442": "#f0e442",
    "#0072b2": "#4c9fe6", "#d55e00": "#f2793a", "#cc79a7": "#e3a3c8", "#ffffff": "#1d2126", "#e6e6e6": "#343a41",
    "#cccccc": "#4a525a", "#999999": "#8b949d", "#444444": "#c6ccd2", "#767676": "#9aa3ab", "#333333": "#cdd3d9",
    "#fefefe": "#101214"
  };
  const wish = matchMedia("(prefers-color-scheme: dark)"), paper = matchMedia("print");
  const watchers = new Set();
  let printing = false, was = null;

  function mode() {
    if (printing || paper.matches) return "light";
    const chosen = document.documentElement.dataset.theme;
    return chosen === "light" || chosen === "dark" ? chosen : wish.matches ? "dark" : "light";
  }

  function changed() {
    if (mode() === was) return;
    was = mode();
    for (const watcher of watchers) watcher();
  }

  was = mode();
  addEventListener("beforeprint", () => { printing = true; changed(); });
  addEventListener("afterprint", () => { printing = false; changed(); });
  wish.addEventListener("change", changed);
  paper.addEventListener("change", changed);
  new MutationObserver(changed).observe(document.documentElement, {attributes: true, attributeFilter: ["data-theme"]});
  return {tint: (colour) => was === "dark" ? DARK[colour] ?? colour : colour, watch: (watcher) => { watchers.add(watcher); }};
})();
