"use strict";
/* What is wider than its place scrolls, and must be reached by the keyboard. The plots are drawn by plots.js. */
(() => {
  function reachable() {
    for (const one of document.querySelectorAll(".scroll")) {
      const wide = one.scrollWidth > one.clientWidth + 1;
      if (wide === one.hasAttribute("tabindex")) continue;
      if (!wide) { for (const name of ["tabindex", "role", "aria-label"]) one.removeAttribute(name); continue; }
      one.tabIndex = 0;
      one.setAttribute("role", "group");
      one.setAttribute("aria-label", `${one.querySelector("caption")?.textContent.trim() ?? "Table"}, scrolls sideways`);
    }
  }
  addEventListener("resize", reachable);
  document.addEventListener("toggle", reachable, true);
  reachable();
})();
