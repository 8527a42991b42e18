"use strict";
/* The plots of a page: drawn when they come near, linked in time, moved by keys and by links.

   A report holds each plot as JSON in a script element of the class plot-piece, whose data-element names the element of
   the plot, and what several share in the one with the id plots-shared. A page that embeds a document of its own (the
   live page) calls soakwatchPlots.join() after it did, and leave() before it embeds it anew. A link with
   data-zoom="BEGIN,END" (ms since 1970) zooms all plots. */
const soakwatchPlots = (() => {
  const NEAR = "700px 0px";
  const NARROW = 560; // pixels
  const paper = matchMedia("print");
  const LETTER = 16, LETTER_WIDTH = 6.6, KEY_ROOM = 40, TIME_ROOM = 105, AXIS_ROOM = 62, LOAD_ROOM = 78; // pixels
  const BARE = 30; // less room than that right of a plot: no plot has an axis there
  const groups = new Map(); // name of a time axis -> {members, start, end, whole: [start, end]}
  const pointers = new Set();
  const joined = new WeakSet();
  const usual = new WeakMap(); // figure -> its borders on a wide screen
  const whole = new WeakMap(); // item of a legend -> its words in full
  const waiting = new Map(); // element -> the script that holds its plot
  const underway = new Map(); // element -> promise
  const watchers = new Set();
  const seen = new Map(); // figure's view -> {near, due: () => void or null}
  let shared = null;
  let busy = false;

  /* --- linked axes and pointer --- */

  function group(name) {
    if (!groups.has(name)) groups.set(name, {members: new Set(), start: null, end: null, whole: null});
    return groups.get(name);
  }

  function spread(axis, start, end) {
    if (busy || !(end > start)) return;
    busy = true;
    axis.start = start;
    axis.end = end;
    for (const range of axis.members) {
      if (range.start !== start || range.end !== end) range.setv({start, end});
    }
    busy = false;
    for (const watcher of watchers) watcher(start, end);
  }

  function joinRange(range) {
    const axis = group(range.name);
    if (axis.whole === null) axis.whole = [range.start, range.end];
    if (axis.start !== null && (range.start !== axis.start || range.end !== axis.end)) {
      range.setv({start: axis.start, end: axis.end});
    }
    axis.members.add(range);
    const moved = () => spread(axis, range.start, range.end);
    range.properties.start.change.connect(moved);
    range.properties.end.change.connect(moved);
  }

  function joinPointer(span) {
    pointers.add(span);
    span.properties.location.change.connect(() => {
      if (busy || pointers.size < 2) return;
      busy = true;
      for (const other of pointers) if (other !== span) other.location = span.location;
      busy = false;
    });
  }

  function join() {
    for (const doc of Bokeh.documents) {
      if (joined.has(doc)) continue;
      joined.add(doc);
      const models = new Set();
      for (const root of doc.all_roots ?? doc.roots()) for (const model of root.references()) models.add(model);
      for (const model of models) {
        const name = model.name ?? "";
        if (name === "pointer") joinPointer(model);
        else if (model.type === "Range1d" && (name === "time" || name.startsWith("time:"))) joinRange(model);
        else if (model.type === "DatetimeTickFormatter") addLocal(model);
      }
    }
    spare();
    fit();
    if (typeof soakwatchTheme === "function") soakwatchTheme();
  }

  /* Below each time in UTC the reader's own, where his clock differs; with its day where the one in UTC has it. */
  function addLocal(formatter) {
    const utc = formatter.doFormat.bind(formatter), two = (value) => String(value).padStart(2, "0");
    formatter.doFormat = (ticks, ...given) => utc(ticks, ...given).map((text, index) => {
      const at = new Date(ticks[index]);
      if (text === "" || !/:/.test(text) || at.getTimezoneOffset() === 0) return text;
      const day = / /.test(text) ? `${two(at.getDate())} ${at.toLocaleString("en", {month: "short"})} ` : "";
      return `${text}\n${day}${two(at.getHours())}:${two(at.getMinutes())}${/:.*:/.test(text) ? `:${two(at.getSeconds())}` : ""}`;
    });
  }

  /* Forget the documents that were joined: the page has taken them away, or is about to embed others. */
  function leave() {
    groups.clear();
    pointers.clear();
  }

  /* A figure that nobody sees is painted when it comes near, or for paper: painting all of them takes a second. */
  const sight = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      for (const [view, state] of seen) {
        if (view.el !== entry.target) continue;
        state.near = entry.isIntersecting;
        if (state.near) settle(state);
      }
    }
  }, {rootMargin: NEAR});

  function settle(state) {
    const paint = state.due;
    state.due = null;
    if (paint !== null) paint();
  }

  function settleAll() { for (const state of seen.values()) settle(state); }

  function spare() {
    for (const [view, state] of seen) if (!view.el.isConnected) { sight.unobserve(view.el); seen.delete(view); }
    for (const doc of Bokeh.documents) {
      for (const root of doc.all_roots ?? doc.roots()) {
        const view = Bokeh.index[root.id];
        if (typeof view?.paint !== "function" || seen.has(view)) continue;
        const state = {near: true, due: null};
        const paint = view.paint.bind(view);
        view.paint = (...given) => {
          if (state.near || paper.matches) paint(...given);
          else state.due = () => paint(...given);
        };
        seen.set(view, state);
        sight.observe(view.el);
      }
    }
  }

  /* As many times and legend columns as there is room for; on a narrow plot the room beside the axes goes to the lines. */
  function fit() {
    const named = new Set();
    for (const doc of Bokeh.documents) {
      for (const root of doc.all_roots ?? doc.roots()) {
        const width = Bokeh.index[root.id]?.el?.clientWidth ?? 0;
        if (width === 0 || root.min_border_left === null || root.min_border_left === undefined) continue;
        const legend = root.below.find((item) => item.type === "Legend");
        const ticker = root.below.find((item) => item.type === "DatetimeAxis")?.ticker;
        if (!usual.has(root)) {
          usual.set(root, {
            left: root.min_border_left, right: root.min_border_right, height: root.height,
            columns: legend?.ncols, ticks: ticker?.desired_num_ticks
          });
        }
        const was = usual.get(root);
        const narrow = width < NARROW;
        // The same for all, so that moments stand below one another, whether a plot has the load's axis or not.
        const left = narrow ? AXIS_ROOM : was.left, right = narrow ? (was.right > BARE ? LOAD_ROOM : 5) : was.right;
        const legendRoom = width - (narrow ? 10 : left + right);
        const inner = width - Math.max(left, AXIS_ROOM) - right;
        const columns = legend === undefined ? 1 : columnsFor(legend, was.columns, legendRoom);
        const more = legend === undefined ? 0 : LETTER * (rowsOf(legend, columns) - rowsOf(legend, was.columns));
        const size = {min_border_left: left, min_border_right: right, height: was.height + Math.max(0, more)};
        if (Object.entries(size).some(([key, value]) => root[key] !== value)) root.setv(size);
        if (legend !== undefined) shorten(legend, legendRoom);
        if (legend !== undefined && legend.ncols !== columns) legend.ncols = columns;
        const ticks = ticker === undefined ? 0 : Math.max(3, Math.min(was.ticks, Math.floor(inner / TIME_ROOM)));
        if (ticker !== undefined && ticker.desired_num_ticks !== ticks) ticker.desired_num_ticks = ticks;
        stackNames(root, inner, named);
      }
    }
  }

  const words = (item) => `${item.label?.value ?? item.label ?? ""}`;

  /* A name that is wider than its plot would make the plot wider than its card. */
  function shorten(legend, room) {
    const letters = Math.max(8, Math.floor((room - KEY_ROOM) / LETTER_WIDTH));
    for (const item of legend.items) {
      if (!whole.has(item)) whole.set(item, words(item));
      const text = whole.get(item), cut = text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
      if (cut !== words(item)) item.label = {type: "value", value: cut};
    }
  }

  function rowsOf(legend, columns) {
    return columns === "auto" ? 1 : Math.ceil(legend.items.length / columns);
  }

  /* In a row of its own width each name stands in full, and none beyond the card. */
  function columnsFor(legend, wanted, room) {
    const widths = legend.items.map((item) => KEY_ROOM + LETTER_WIDTH * words(item).length);
    if (wanted === "auto" && widths.reduce((sum, width) => sum + width, 0) <= room) return "auto";
    const fitting = Math.max(1, Math.floor(room / Math.max(1, ...widths)));
    return wanted === "auto" ? fitting : Math.min(wanted, fitting);
  }

  /* Names of phases that would lie over one another move down a row; one that would leave its plot ends with its phase. */
  function stackNames(root, room, done) {
    for (const source of root.references()) {
      if (source.type !== "ColumnDataSource" || source.name !== "phase-names" || done.has(source)) continue;
      done.add(source);
      const {start, end} = root.x_range, ends = [], {begin: begins, end: stops, text, align: was} = source.data;
      const x = [], y = [], align = [], place = (ms) => Math.max(0, (ms - start) / (end - start)) * room;
      for (const [index, from] of Array.from(begins).entries()) {
        const width = LETTER_WIDTH * (text[index].length + 1);
        const atEnd = place(from) + width > room && place(stops[index]) > width;
        const begin = atEnd ? place(stops[index]) - width : place(from);
        const free = ends.findIndex((taken) => taken <= begin), row = free < 0 ? ends.length : free;
        ends[row] = begin + width;
        x.push(atEnd ? stops[index] : from);
        align.push(atEnd ? "right" : "left");
        y.push(1 - 0.1 * row);
      }
      if (y.some((value, index) => value !== source.data.y[index] || align[index] !== was[index])) source.data = {...source.data, x, y, align};
    }
  }

  /* --- drawing --- */

  function text(script) {
    if (shared === null) {
      const held = document.getElementById("plots-shared");
      shared = held === null ? [] : JSON.parse(held.textContent);
    }
    return script.textContent.replace(/"data":"#(\d+)"/g, (_, index) => `"data":"${shared[Number(index)]}"`);
  }

  function draw(element) {
    const script = waiting.get(element);
    if (script === undefined) return underway.get(element) ?? Promise.resolve();
    waiting.delete(element);
    const docid = element.id;
    const plot = JSON.parse(text(script));
    const root = plot.roots[0].id;
    const done = Bokeh.embed.embed_items({[docid]: plot}, [{docid, roots: {[root]: docid}, root_ids: [root]}]);
    const linked = done.then(() => { join(); script.remove(); });
    underway.set(element, linked);
    return linked;
  }

  async function drawAll() {
    await ready;
    for (const element of [...waiting.keys()]) await draw(element);
    await Promise.all(underway.values());
    settleAll();
  }

  function drawOneInIdleTime() {
    const next = [...waiting.keys()].find((element) => element.offsetParent !== null);
    if (next === undefined) return;
    const soon = typeof requestIdleCallback === "function" ? requestIdleCallback : (work) => setTimeout(work, 200);
    soon(() => draw(next).then(drawOneInIdleTime));
  }

  function drawWhenVisible() {
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        seen.unobserve(entry.target);
        draw(entry.target);
      }
    }, {rootMargin: NEAR});
    for (const script of document.querySelectorAll("script.plot-piece")) {
      const element = document.getElementById(script.dataset.element);
      if (element === null) continue;
      waiting.set(element, script);
      focusable(element);
      seen.observe(element);
    }
    addEventListener("beforeprint", drawAll);
    if (document.readyState === "complete") drawOneInIdleTime();
    else addEventListener("load", drawOneInIdleTime);
  }

  /* --- keys and links --- */

  function focusable(element) {
    if (element.tabIndex >= 0) return;
    element.tabIndex = 0;
    if (!element.hasAttribute("role")) element.setAttribute("role", "group");
    if (!element.hasAttribute("aria-label")) {
      const near = element.closest(".card, figure, section")?.querySelector("figcaption, h4, h3, h2");
      const name = near === null || near === undefined ? "" : near.textContent.trim().slice(0, 120);
      element.setAttribute("aria-label", `Plot: ${name}. Arrow keys move in time, plus and minus zoom, 0 shows all.`);
    }
  }

  function axisOf(element) {
    for (const doc of Bokeh.documents) {
      for (const root of doc.all_roots ?? doc.roots()) {
        const view = Bokeh.index[root.id];
        if (view !== undefined && view !== null && element.contains(view.el)) return group(root.x_range.name ?? "time");
      }
    }
    return groups.get("time");
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.target instanceof Element)) return;
    const element = event.target.closest(".plot");
    if (element === null || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    const axis = axisOf(element);
    if (axis === undefined || axis.whole === null) return;
    const range = axis.members.values().next().value;
    const [start, end] = [range.start, range.end];
    const span = end - start;
    if (event.key === "ArrowLeft") spread(axis, start - span / 5, end - span / 5);
    else if (event.key === "ArrowRight") spread(axis, start + span / 5, end + span / 5);
    else if (event.key === "+" || event.key === "=") spread(axis, start + span / 4, end - span / 4);
    else if (event.key === "-") spread(axis, start - span / 2, end + span / 2);
    else if (event.key === "0" || event.key === "Home") spread(axis, ...axis.whole);
    else return;
    event.preventDefault();
  }

  function zoom(start, end, name = "time") {
    const axis = group(name);
    axis.start = start; // for plots that are drawn later
    axis.end = end;
    spread(axis, start, end);
  }

  function reset(name = "time") {
    const axis = group(name);
    if (axis.whole !== null) spread(axis, ...axis.whole);
  }

  function onClick(event) {
    const link = event.target instanceof Element ? event.target.closest("[data-zoom]") : null;
    if (link === null) return;
    const [start, end] = link.dataset.zoom.split(",").map(Number);
    if (end > start) zoom(start, end);
  }

  let resized = 0;
  addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(() => { if (typeof Bokeh !== "undefined") fit(); }, 250);
  });
  paper.addEventListener("change", settleAll);
  addEventListener("beforeprint", settleAll);
  document.addEventListener("keydown", onKey);
  document.addEventListener("click", onClick);
  const ready = new Promise((done) => {
    const begin = () => { drawWhenVisible(); done(); };
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
    else begin();
  });
  return {join, leave, drawAll, zoom, reset, focusable, watch: (watcher) => { watchers.add(watcher); return () => watchers.delete(watcher); }};
})();
