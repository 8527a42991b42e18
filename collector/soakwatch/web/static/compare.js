"use strict";
/* What is wider than its place scrolls, and must be reached by the keyboard. The plots are drawn by plots.js. */
(() => {
  function reachable() {
    for (const table of document.querySelectorAll(".scroll")) {
      const wide = table.scrollWidth > table.clientWidth + 1;
      if (wide === table.hasAttribute("tabindex")) continue;
      if (!wide) { for (const name of ["tabindex", "role", "aria-label"]) table.removeAttribute(name); continue; }
      table.tabIndex = 0;
      table.setAttribute("role", "group");
      table.setAttribute("aria-label", `${table.querySelector("caption")?.textContent.trim() ?? "Table"}, scrolls sideways`);
    }
  }
  addEventListener("resize", reachable);
  document.addEventListener("toggle", reachable, true);
  reachable();
})();
