"use strict";
/* The plots of a page: painted when they come near, linked in time, moved by the mouse, by keys and by links.

   A report holds each plot as JSON in a script element of the class plot-piece, whose data-element names the element of
   the plot, and what several share in the one with the id plots-shared. A page with plots of its own (the live
   page) calls soakwatchPlots.put(). A link with data-zoom="BEGIN,END" (ms since 1970) zooms all plots. */
const soakwatchPlots = (() => {
  const NEAR = "700px 0px";
  const paper = matchMedia("print");
  const groups = new Map(); // name of a time axis -> {members, start, end, whole: [start, end]}
  const figures = new Map(); // element -> figure
  const waiting = new Map(); // element -> the script that holds its plot
  const watchers = new Set();
  let shared = null;
  let busy = false;

  /* --- linked axes and pointer --- */

  function group(name) {
    if (!groups.has(name)) groups.set(name, {name, members: new Set(), start: null, end: null, whole: null});
    return groups.get(name);
  }

  function spread(axis, start, end) {
    if (busy || !(end > start)) return;
    busy = true;
    axis.start = start;
    axis.end = end;
    for (const figure of axis.members) figure.paint();
    busy = false;
    for (const watcher of watchers) watcher(start, end);
  }

  function pointed(figure, at) {
    if (busy) return;
    busy = true;
    for (const other of figure.axis.members) if (other !== figure && other.near) other.point(at);
    busy = false;
  }

  /* --- drawing --- */

  const sight = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const figure = figures.get(entry.target);
      if (figure !== undefined) {
        figure.near = entry.isIntersecting;
        if (figure.near) { figure.fit(); if (figure.due) figure.paint(); }
      } else if (entry.isIntersecting) draw(entry.target);
    }
  }, {rootMargin: NEAR});
  const sizes = new ResizeObserver((entries) => { for (const {target} of entries) figures.get(target)?.fit(); });

  function place(element, plot, held) {
    remove(element);
    const {name, begin, end} = plot.time, axis = group(name);
    axis.whole ??= [begin, end];
    if (axis.start === null) [axis.start, axis.end] = axis.whole;
    const figure = soakwatchFigure.make(element, plot, held, axis);
    figure.pointed = (at) => pointed(figure, at);
    figures.set(element, figure);
    axis.members.add(figure);
    if (!plot.small) tools(figure);
    drag(figure);
    focusable(element);
    sight.observe(element);
    sizes.observe(element);
    return figure;
  }

  function remove(element) {
    const figure = figures.get(element);
    if (figure === undefined) return;
    figure.axis.members.delete(figure);
    figure.destroy();
    sight.unobserve(element);
    sizes.unobserve(element);
    figures.delete(element);
  }

  /* Plots of a page that has them from its server, as {shared, plots: {element: plot}}; those before them go. */
  function put(held) {
    for (const element of [...figures.keys()]) remove(element);
    groups.clear();
    const shared = soakwatchFigure.shared(held.shared);
    for (const [id, plot] of Object.entries(held.plots)) {
      const element = document.getElementById(id);
      if (element !== null) place(element, plot, shared);
    }
  }

  function draw(element) {
    const script = waiting.get(element);
    if (script === undefined) return;
    waiting.delete(element);
    shared ??= soakwatchFigure.shared(JSON.parse(document.getElementById("plots-shared")?.textContent ?? "[]"));
    place(element, JSON.parse(script.textContent), shared);
    script.remove();
  }

  async function drawAll() {
    await ready;
    for (const element of [...waiting.keys()]) draw(element);
    settleAll();
  }

  function settleAll() { for (const figure of figures.values()) { figure.fit(); if (figure.due) figure.paint(true); } }

  function drawOneInIdleTime() {
    const next = [...waiting.keys()].find((element) => element.offsetParent !== null);
    if (next === undefined) return;
    const soon = typeof requestIdleCallback === "function" ? requestIdleCallback : (work) => setTimeout(work, 200);
    soon(() => { draw(next); drawOneInIdleTime(); });
  }

  function drawWhenVisible() {
    for (const script of document.querySelectorAll("script.plot-piece")) {
      const element = document.getElementById(script.dataset.element);
      if (element === null) continue;
      waiting.set(element, script);
      focusable(element);
      sight.observe(element);
    }
    if (document.readyState === "complete") drawOneInIdleTime();
    else addEventListener("load", drawOneInIdleTime);
  }

  /* --- mouse, keys and links --- */

  const later = (axis, share) => { const by = (axis.end - axis.start) * share; spread(axis, axis.start + by, axis.end + by); };
  const nearer = (axis, share) => { const by = (axis.end - axis.start) * share; spread(axis, axis.start + by, axis.end - by); };
  const whole = (axis) => { if (axis.whole !== null) spread(axis, ...axis.whole); };

  /* A drag moves all plots in time; with shift, or after "Zoom to a stretch", it zooms to what was drawn over. */
  function drag(figure) {
    const {over} = figure.u, axis = figure.axis;
    over.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const box = over.getBoundingClientRect(), from = event.clientX, [start, end] = [axis.start, axis.end];
      const perPixel = (end - start) / box.width, select = event.shiftKey || figure.selecting === true;
      const moved = (now) => {
        if (!select) { spread(axis, start - (now.clientX - from) * perPixel, end - (now.clientX - from) * perPixel); return; }
        const left = Math.max(0, Math.min(from, now.clientX) - box.left), width = Math.min(box.width - left, Math.abs(now.clientX - from));
        figure.u.setSelect({left, width, top: 0, height: box.height}, false);
      };
      const done = () => {
        over.removeEventListener("pointermove", moved);
        for (const name of ["pointerup", "pointercancel"]) over.removeEventListener(name, done);
        if (!select) return;
        const {left, width} = figure.u.select;
        figure.u.setSelect({left: 0, width: 0, top: 0, height: 0}, false);
        figure.selecting = false;
        if (width > 4) spread(axis, start + left * perPixel, start + (left + width) * perPixel);
      };
      over.setPointerCapture(event.pointerId);
      over.addEventListener("pointermove", moved);
      for (const name of ["pointerup", "pointercancel"]) over.addEventListener(name, done);
    });
  }

  function tools(figure) {
    const bar = document.createElement("div"), axis = figure.axis;
    bar.className = "plot-tools";
    for (const [sign, title, act] of [
      ["+", "Zoom in", () => nearer(axis, 0.25)], ["−", "Zoom out", () => nearer(axis, -0.5)], ["⟺", "Zoom to a stretch: draw over it", () => { figure.selecting = true; }],
      ["⤢", "Show all", () => whole(axis)], ["↓", "Save as a picture", () => save(figure)],
    ]) {
      const button = document.createElement("button");
      button.type = "button";
      button.tabIndex = -1; // the plot itself takes the focus, and has keys
      button.title = title;
      button.setAttribute("aria-label", title);
      button.textContent = sign;
      button.addEventListener("click", act);
      bar.append(button);
    }
    figure.element.append(bar);
  }

  function save(figure) {
    figure.u.ctx.canvas.toBlob((blob) => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = `${figure.element.id}.png`;
      link.click();
      URL.revokeObjectURL(link.href);
    });
  }

  function focusable(element) {
    if (element.tabIndex >= 0) return;
    element.tabIndex = 0;
    if (!element.hasAttribute("role")) element.setAttribute("role", "group");
    if (!element.hasAttribute("aria-label")) {
      const near = element.closest(".card, figure, section")?.querySelector("figcaption, h4, h3, h2");
      const name = near === null || near === undefined ? "" : near.textContent.trim().slice(0, 120);
      element.setAttribute("aria-label", `Plot: ${name}. Arrow keys move in time, plus and minus zoom, 0 shows all, 1 to 9 hide and show a line.`);
    }
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.target instanceof Element)) return;
    const element = event.target.closest(".plot");
    if (element === null || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    const figure = figures.get(element), axis = figure?.axis ?? groups.get("time");
    if (axis === undefined || axis.whole === null) return;
    if (event.key === "ArrowLeft") later(axis, -0.2);
    else if (event.key === "ArrowRight") later(axis, 0.2);
    else if (event.key === "+" || event.key === "=") nearer(axis, 0.25);
    else if (event.key === "-") nearer(axis, -0.5);
    else if (event.key === "0" || event.key === "Home") whole(axis);
    else if (/^[1-9]$/.test(event.key)) figure?.show(Number(event.key));
    else return;
    event.preventDefault();
  }

  function zoom(start, end, name = "time") {
    const axis = group(name);
    axis.start = start; // for plots that are drawn later
    axis.end = end;
    spread(axis, start, end);
  }

  function onClick(event) {
    const link = event.target instanceof Element ? event.target.closest("[data-zoom]") : null;
    if (link === null) return;
    const [start, end] = link.dataset.zoom.split(",").map(Number);
    if (end > start) zoom(start, end);
  }

  soakwatchTheme.watch(() => { for (const figure of figures.values()) figure.recolour(); });
  paper.addEventListener("change", settleAll);
  addEventListener("beforeprint", () => { for (const element of [...waiting.keys()]) draw(element); settleAll(); });
  document.addEventListener("keydown", onKey);
  document.addEventListener("click", onClick);
  const ready = new Promise((done) => {
    const begin = () => { drawWhenVisible(); done(); };
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
    else begin();
  });
  return {put, drawAll, zoom, reset: (name = "time") => whole(group(name)), focusable, figures: () => [...figures.values()],
    watch: (watcher) => { watchers.add(watcher); return () => watchers.delete(watcher); }};
})();
