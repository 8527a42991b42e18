/* The plots: drawn by the server now and then, filled with new readings in between, in full resolution where somebody
   zooms. At most MAX_POINTS points of a line are kept, however long the page stays open. */
/* global soakwatchFigure, soakwatchPlots */
import {ask, later} from "./live_talk.js";
import {byId, clock, keyed, make, name, put, show} from "./live_dom.js";

const POINTS = 2000, MAX_POINTS = 3000, SERIES_PER_REQUEST = 100;
const TICK_MS = 5000, PAUSE_MS = 150, REDRAW_MS = 20000, AGAIN_MS = 120000;
const MINUTE = 60000, MAX_NAMED = 12;

const run = document.documentElement.dataset.run;
const alone = document.documentElement.dataset.single === "yes";
const base = `/runs/${encodeURIComponent(run)}`;
let lines = []; // {points, key, text, elements, last, full}
let whole = [0, 1]; // what the run has so far, ms
let mode = {span: 0, held: null}; // follow the last span seconds (0: all), or hold a stretch
let patience = 1; // what is slow to draw is drawn less often
let drawn = "", drawnAt = 0, heats = false;
let own = false; // we move the axes ourselves
let busy = false, again = false, timer = null;
let seenUntil = 0, shownEnd = 0, over = false;
const visible = new Set();
const sight = new IntersectionObserver((entries) => {
  let came = false;
  for (const entry of entries) {
    if (entry.isIntersecting && !visible.has(entry.target.id)) came = true;
    if (entry.isIntersecting) visible.add(entry.target.id);
    else visible.delete(entry.target.id);
  }
  if (came) soon(PAUSE_MS);
}, {rootMargin: "200px 0px"});

/* --- drawing --- */

/* A long run takes seconds to draw: the few plots that come first are shown before, of few points. */
async function draw() {
  if (drawnAt === 0) {
    put(byId("plots-note"), "Drawing the plots…");
    const first = await ask(`${base}/plots?part=first`, {timeout: 60000});
    if (first.ok && first.status !== 202 && first.data.panels.length > 0) {
      placePlots(first.data.panels);
      soakwatchPlots.put(first.data.plots);
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
      performance.mark("first curves");
    }
  }
  const answer = await ask(`${base}/plots`, {timeout: 60000});
  if (answer.status === 202) return false; // another request is drawing them
  if (!answer.ok) {
    if (drawnAt === 0) put(byId("plots-note"), `The plots could not be drawn: ${answer.error}. Retrying.`);
    return false;
  }
  const plots = answer.data;
  drawnAt = performance.now();
  drawn = plots.drawn;
  patience = Math.max(1, plots.cost_s * 20000 / REDRAW_MS);
  if (plots.panels.length === 0) { put(byId("plots-note"), "Nothing to plot yet."); return true; }
  put(byId("plots-note"), "");
  const focus = document.activeElement?.closest?.(".plot")?.id ?? null;
  placePlots(plots.panels);
  const before = range();
  whole = [plots.begin, Math.max(plots.end, plots.begin + 1)];
  soakwatchPlots.put(plots.plots);
  gather(plots.end);
  if (focus !== null) byId(focus)?.focus({preventScroll: true});
  move(...(mode.held === null ? range() : before));
  return true;
}

/* The places of the plots; one that was there stays where it is. */
function placePlots(panels) {
  const several = new Set(panels.map((panel) => panel.target)).size > 2; // the monitor is one of them
  const first = panels.filter((panel) => panel.rank > 0).sort((one, other) => one.rank - other.rank);
  placeFigures(byId("key-plots"), first, (panel) => several ? `${panel.target}: ${panel.title}` : panel.title);
  put(byId("key-note"), first.length > 0 ? "" : "Nothing that is watched moves so far.");
  show(byId("key-note"), first.length === 0);
  const flat = panels.filter((panel) => panel.rank === 0 && panel.flat);
  placeGroups(byId("plots"), panels.filter((panel) => panel.rank === 0 && !panel.flat));
  placeGroups(byId("flat-plots"), flat);
  show(byId("flat-box"), flat.length > 0);
  const names = flat.map((panel) => several ? `${panel.title} of ${panel.target}` : panel.title);
  put(byId("flat-title"), `Zero all the time: ${names.slice(0, MAX_NAMED).join(", ")}${names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : ""}`);
}

function placeGroups(place, panels) {
  const groups = [];
  for (const panel of panels) {
    if (groups.at(-1)?.target !== panel.target) groups.push({target: panel.target, figures: []});
    groups.at(-1).figures.push(panel);
  }
  keyed(place, groups, (group) => group.target,
    (group) => make("section", {class: "target"}, make("h3", {}, name(group.target)), make("div", {class: "figures"})),
    (section, group) => placeFigures(section.lastChild, group.figures, (panel) => panel.title));
}

function placeFigures(place, panels, titled) {
  keyed(place, panels, (panel) => panel.element,
      (panel) => make("figure", {}, make("figcaption", {}, make("h4"), make("p", {class: "soft"})),
        make("div", {class: "plot", id: panel.element})),
      (figure, panel) => {
        figure.className = panel.small ? "card small" : "card";
        const [title, note] = figure.firstChild.children;
        put(title, titled(panel));
        put(note, panel.note);
        show(note, panel.note !== "");
        const plot = figure.lastChild;
        plot.style.minHeight = `${panel.height + 10}px`;
        plot.removeAttribute("aria-label");
        sight.observe(plot);
      });
}

function gather(until) {
  const byPoints = new Map();
  heats = false;
  for (const figure of soakwatchPlots.figures()) {
    if (figure.cells !== null) heats = true;
    for (const {points} of figure.lines) {
      if (!points.name.startsWith("series:")) continue;
      const line = byPoints.get(points) ?? {points, key: JSON.parse(points.name.slice(7)), elements: new Set(), last: until, full: null};
      line.text = JSON.stringify(line.key);
      line.elements.add(figure.element.id);
      byPoints.set(points, line);
    }
  }
  lines = [...byPoints.values()];
  seenUntil = until;
}

/* --- the stretch that is shown --- */

function range() {
  if (mode.held !== null) return mode.held;
  const [begin, end] = whole;
  return mode.span === 0 ? [begin, end] : [Math.max(begin, end - mode.span * 1000), end];
}

function move(begin, end) {
  own = true;
  soakwatchPlots.zoom(begin, end);
  own = false;
  shownEnd = end;
  tell();
}

/* The run reaches further. Less than a pixel or two is not worth drawing all plots again. */
function grow(until) {
  if (until <= whole[1]) return;
  whole = [whole[0], until];
  const [begin, end] = range();
  if (mode.held === null && end - shownEnd > (end - begin) / 500) move(begin, end);
}

function tell() {
  const held = mode.held;
  put(byId("following"), held === null ? (over ? "the whole run" : "✓ following the run") : `showing ${clock(held[0])} to ${clock(held[1])} UTC`);
  byId("following").classList.toggle("held", held !== null);
  for (const button of document.querySelectorAll("[data-span]")) {
    button.setAttribute("aria-pressed", `${held === null && Number(button.dataset.span) === mode.span}`);
  }
}

export function follow(span = mode.span) {
  mode = {span, held: null};
  move(...range());
  stale();
  soon(0);
}

export function hold(begin, end) {
  mode = {...mode, held: [begin, end]};
  move(begin, end);
  stale();
  soon(0);
}

/* What was read for another stretch is read again. */
function stale() { for (const line of lines) line.full = null; }

function moved(begin, end) {
  if (own) return;
  if (Math.abs(begin - whole[0]) < 2 && Math.abs(end - whole[1]) < 2) mode = {span: 0, held: null};
  else mode = {...mode, held: [begin, end]};
  tell();
  stale();
  soon(PAUSE_MS);
}

/* --- readings --- */

function soon(ms) {
  again = true;
  clearTimeout(timer);
  timer = setTimeout(fill, ms);
}

async function fill() {
  if (busy || document.hidden) return;
  busy = true;
  again = false;
  try {
    await fillVisible();
  } finally {
    busy = false;
    if (again) soon(PAUSE_MS);
  }
}

async function fillVisible() {
  const shown = range();
  const near = lines.filter((line) => [...line.elements].some((element) => visible.has(element)));
  const grown = [], missing = [];
  for (const line of near) {
    if (line.full === null || line.points.time.length > MAX_POINTS) missing.push(line);
    else if (line.last < seenUntil && shown[1] >= line.last) grown.push(line);
  }
  const pad = mode.held === null ? 0 : (shown[1] - shown[0]) / 4;
  const begin = Math.max(whole[0], Math.floor(shown[0] - pad));
  const end = mode.held === null ? null : Math.ceil(shown[1] + pad);
  await fetchLines(missing, begin, end, false);
  if (grown.length > 0) await fetchLines(grown, Math.min(...grown.map((line) => line.last)) + 1, null, true);
}

async function fetchLines(wanted, begin, end, added) {
  const keys = [...new Map(wanted.map((line) => [line.text, line.key])).values()];
  for (let index = 0; index < keys.length; index += SERIES_PER_REQUEST) {
    const some = keys.slice(index, index + SERIES_PER_REQUEST);
    if (end !== null && end <= begin) return;
    const answer = await ask(`/api${base}/series/data`, {body: {series: some, begin, end, points: POINTS}, timeout: 30000});
    if (!answer.ok) return;
    const got = new Map(answer.data.series.map((entry) => [JSON.stringify(entry.key), entry]));
    const until = answer.data.until ?? 0;
    for (const line of wanted) {
      const fresh = got.get(line.text);
      if (fresh === undefined) continue;
      if (added) append(line, fresh);
      else refill(line, fresh, [begin, end]);
      line.last = end === null ? until : Math.min(end, until);
    }
    grow(until);
  }
}

const scaled = (values, factor) => Float64Array.from(values, (value) => value === null ? NaN : value * factor);

function refill(line, fresh, stretch) {
  line.full = stretch;
  soakwatchFigure.refill(line.points, Float64Array.from(fresh.time), scaled(fresh.value, line.points.factor));
}

function append(line, fresh) {
  const {time, value, factor} = line.points;
  const last = time.length === 0 ? -Infinity : time[time.length - 1];
  const first = fresh.time.findIndex((time) => time > last);
  if (first < 0) return;
  const [from] = range();
  let drop = 0;
  if (mode.held === null && mode.span > 0) while (drop < time.length - 1 && time[drop + 1] < from - MINUTE) drop += 1;
  soakwatchFigure.refill(line.points, joined(time, drop, fresh.time, first), joined(value, drop, scaled(fresh.value, factor), first));
}

function joined(old, drop, more, first) {
  const result = new Float64Array(old.length - drop + more.length - first);
  for (let index = drop; index < old.length; index += 1) result[index - drop] = old[index];
  for (let index = first; index < more.length; index += 1) result[old.length - drop + index - first] = more[index];
  return result;
}

/* --- what the page tells us --- */

let ticked = 0, drawing = false;

/* A new state of the run: fetch what is new, draw anew what can only be drawn anew. */
export async function tick(state, mark) {
  if (typeof soakwatchPlots === "undefined" || document.hidden) return;
  const now = performance.now();
  if (over !== (state.state === "ended" || state.state === "broken off")) { over = !over; tell(); }
  if (over && !state.report && drawnAt > 0) return; // its record is being closed: nobody looks into it now
  if (over && alone && patience > 2 && drawnAt > 0) return; // nor is there time: its server ends
  const until = state.until === null ? 0 : Date.parse(state.until);
  const old = now - drawnAt;
  if (!drawing && (drawnAt === 0 || (mark !== drawn && old > REDRAW_MS * patience) || (heats && state.state === "running" && old > AGAIN_MS * patience))) {
    drawing = true;
    try { if (!(await draw()) && drawnAt === 0) later(1000); } finally { drawing = false; }
  }
  if (now - ticked > TICK_MS - 500 && until > seenUntil) {
    ticked = now;
    seenUntil = until;
    grow(until);
    soon(0);
  }
}

export function begin() {
  soakwatchPlots.watch(moved);
  for (const button of document.querySelectorAll("[data-span]")) {
    button.addEventListener("click", () => follow(Number(button.dataset.span)));
  }
  byId("follow-button").addEventListener("click", () => follow());
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("[data-window]") : null;
    if (link === null) return;
    const [from, to] = link.dataset.window.split(",").map(Number);
    if (to > from) hold(from, to);
  });
  // "0" in a plot is the whole run, which has grown since the plot was drawn.
  document.addEventListener("keydown", (event) => {
    if (!(event.target instanceof Element) || event.target.closest(".plot") === null) return;
    if (event.key !== "0" && event.key !== "Home") return;
    event.preventDefault();
    event.stopImmediatePropagation();
    follow(0);
  }, true);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) { stale(); soon(0); } });
  tell();
}
