"use strict";
/* The report without its plots: what is folded, what scrolls by the keyboard, and paper. */
(() => {
  function unfold(hash) {
    const target = hash.length > 1 ? document.getElementById(decodeURIComponent(hash.slice(1))) : null;
    if (target === null) return;
    let folded = false;
    for (let element = target; element !== null; element = element.parentElement) {
      if (element.tagName === "DETAILS" && !element.open) { element.open = true; folded = true; }
    }
    if (folded) target.scrollIntoView();
  }

  /* What is wider than its place scrolls, and must be reached by the keyboard. */
  function reachable() {
    for (const element of document.querySelectorAll(".scroll, pre")) {
      const wide = element.scrollWidth > element.clientWidth + 1;
      if (wide === element.hasAttribute("tabindex")) continue;
      if (!wide) { element.removeAttribute("tabindex"); element.removeAttribute("role"); element.removeAttribute("aria-label"); continue; }
      element.tabIndex = 0;
      element.setAttribute("role", "group");
      const caption = element.querySelector("caption")?.textContent ?? element.closest("section")?.querySelector("h2")?.textContent;
      element.setAttribute("aria-label", `${(caption ?? "Table").trim()}, scrolls sideways`);
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
    for (const element of document.querySelectorAll("details:not([open]):not(.bulk)")) { element.open = true; opened.push(element); }
  });
  /* A plot is as wide as the window, and paper is not: what is printed is a picture of it, painted at once since no
     frame is drawn between here and the paper. Comes after the listener that recolours for paper. */
  const pictures = [];
  function picture(view) {
    const figure = view.el?.closest(".plot");
    if (figure === null || figure === undefined || typeof view.export !== "function") return;
    view.repaint?.();
    const {canvas} = view.export("png", true);
    canvas.className = "paper";
    canvas.removeAttribute("style");
    figure.append(canvas);
    figure.classList.add("printed");
    pictures.push([figure, canvas]);
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
    for (const [figure, canvas] of pictures.splice(0)) { canvas.remove(); figure.classList.remove("printed"); }
  });
  addEventListener("afterprint", () => { while (opened.length > 0) opened.pop().open = false; });
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin); else begin();
})();
