"use strict";
/* The report without its plots: what is folded, what scrolls by the keyboard, and paper. */
(() => {
  function unfold(hash) {
    const found = hash.length > 1 ? document.getElementById(decodeURIComponent(hash.slice(1))) : null;
    if (found === null) return;
    let folded = false;
    for (let one = found; one !== null; one = one.parentElement) {
      if (one.tagName === "DETAILS" && !one.open) { one.open = true; folded = true; }
    }
    if (folded) found.scrollIntoView();
  }

  /* What is wider than its place scrolls, and must be reached by the keyboard. */
  function reachable() {
    for (const one of document.querySelectorAll(".scroll, pre")) {
      const wide = one.scrollWidth > one.clientWidth + 1;
      if (wide === one.hasAttribute("tabindex")) continue;
      if (!wide) { one.removeAttribute("tabindex"); one.removeAttribute("role"); one.removeAttribute("aria-label"); continue; }
      one.tabIndex = 0;
      one.setAttribute("role", "group");
      const caption = one.querySelector("caption")?.textContent ?? one.closest("section")?.querySelector("h2")?.textContent;
      one.setAttribute("aria-label", `${(caption ?? "Table").trim()}, scrolls sideways`);
    }
  }

  function begin() {
    addEventListener("hashchange", () => unfold(location.hash));
    unfold(location.hash);
    if (typeof requestIdleCallback === "function") requestIdleCallback(reachable); else setTimeout(reachable, 200);
    addEventListener("resize", reachable);
    document.addEventListener("toggle", reachable, true);
  }

  const opened = [];
  addEventListener("beforeprint", () => {
    for (const one of document.querySelectorAll("details:not([open]):not(.bulk)")) { one.open = true; opened.push(one); }
  });
  /* A plot is as wide as the window, and paper is not: what is printed is a picture of it, painted at once since no
     frame is drawn between here and the paper. Comes after the listener that recolours for paper. */
  const pictures = [];
  function picture(view) {
    const place = view.el?.closest(".plot");
    if (place === null || place === undefined || typeof view.export !== "function") return;
    view.repaint?.();
    const {canvas} = view.export("png", true);
    canvas.className = "paper";
    canvas.removeAttribute("style");
    place.append(canvas);
    place.classList.add("printed");
    pictures.push([place, canvas]);
  }
  addEventListener("load", () => addEventListener("beforeprint", () => {
    if (typeof Bokeh === "undefined") return;
    for (const doc of Bokeh.documents) {
      for (const root of doc.roots()) {
        const view = Bokeh.index[root.id];
        if (view !== undefined && view !== null) picture(view);
      }
    }
  }));
  addEventListener("afterprint", () => {
    for (const [place, canvas] of pictures.splice(0)) { canvas.remove(); place.classList.remove("printed"); }
  });
  addEventListener("afterprint", () => { while (opened.length > 0) opened.pop().open = false; });
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin); else begin();
})();
