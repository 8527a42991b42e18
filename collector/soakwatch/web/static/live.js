/* The page of a run: requests its state, shows it, handles keys. */
import * as dialogs from "./live_dialogs.js";
import {both, byId, clock, keyed, length, make, put, show, zone} from "./live_dom.js";
import {badge, onAcknowledge, selected, showFindings, showFleet, showRates, step} from "./live_findings.js";
import {showCourse, showEvents, showSelf, showSources} from "./live_health.js";
import * as plots from "./live_plots.js";
import {ask, onWake} from "./live_talk.js";

const EVERY_MS = 2000, HIDDEN_MS = 15000, OVER_MS = 15000, LONGEST_MS = 15000, SLOW_MS = 6000, LATE_S = 20;
const {run, may, single} = document.documentElement.dataset;
const path = `/api/runs/${encodeURIComponent(run)}/state`;

let digest = "", alarms = [];
let fine = Date.now(); // when the server answered last
let failures = 0, timer = null, asking = false, framed = false, ready = false, urgent = false;

/* --- showing --- */

const STANDINGS = {running: "running", waiting: "waiting for its start", ended: "ended", "broken off": "broken off"};

function showVerdict(state) {
  const {counts} = state.findings;
  const outcome = state.verdict ?? (counts.fail > 0 ? "fail" : counts.warn > 0 || state.growing ? "warn" : state.findings.judged === null ? "" : "pass");
  const word = state.verdict !== null ? state.verdict : {fail: "failing", warn: counts.warn > 0 ? "warnings" : "growing", pass: "no failure so far", "": "not judged yet"}[outcome];
  badge(byId("badge"), outcome === "" ? "not-applicable" : outcome, word);
  byId("verdict").className = `card banner ${outcome}`;
  const told = state.line.replace(/^(No failure so far|Not judged yet)[.;:]\s*/, ""); // which the badge says
  put(byId("line"), told === state.line ? told : told.charAt(0).toUpperCase() + told.slice(1));
  const judged = state.findings.judged === null ? "" : over(state) || state.verdict !== null
    ? `, judged at ${both(Date.parse(state.findings.judged))}`
    : `, judged ${length(Math.max(0, (Date.parse(state.now) - Date.parse(state.findings.judged)) / 1000))} ago (${clock(Date.parse(state.findings.judged))} UTC)`;
  put(byId("counts"), `${counts.fail} fail, ${counts.warn} warn, ${counts.inconclusive} inconclusive, ${counts.pass} pass${judged}`);
  show(byId("counts"), state.findings.judged !== null);
  put(byId("standing"), state.stopping !== null ? "stopping" : STANDINGS[state.state]);
  byId("standing").className = `state ${state.state.replaceAll(" ", "-")}`;
  document.title = `${state.verdict === null ? word : state.verdict.toUpperCase()}: ${state.name} – Soakwatch`;
}

/* The labels; where there are other runs, each leads to those that have it too. */
function showLabels(labels) {
  show(byId("labels"), Object.keys(labels).length > 0);
  keyed(byId("labels"), Object.entries(labels), ([label]) => label, () => make("li"), (element, [label, text]) => {
    const words = `${label} ${text}`, wish = `${label}:${/[\s"]/.test(text) ? `"${text.replaceAll('"', "")}"` : text}`;
    if (element.textContent === words) return;
    const parts = [make("span", {class: "soft"}, label), " ", make("bdi", {}, text)];
    element.replaceChildren(...(single === "yes" ? parts : [make("a", {href: `/?q=${encodeURIComponent(wish)}`}, ...parts)]));
  });
}

const WRITING_MS = 600_000; // an older run without a report is not about to get one
const over = (state) => state.state === "ended" || state.state === "broken off";

/* A run that is over has a verdict and a report; of its own server nothing is left soon, so the report comes in here. */
function showEnd(state) {
  const ended = over(state);
  document.body.classList.toggle("over", ended);
  for (const id of ["mark-button", "stop-button"]) {
    const button = byId(id);
    if (button !== null) show(button, !ended && !(id === "stop-button" && state.stopping !== null));
  }
  const after = byId("after");
  show(after, ended);
  put(byId("key-title"), ended ? "What mattered most" : "What matters most now");
  if (!ended) return;
  if (!state.report) {
    const fresh = state.state === "ended" && Date.parse(state.now) - Date.parse(state.until) < WRITING_MS;
    put(after, fresh ? "The report is being written."
      : state.verdict === null ? "No report has been written." : `No report has been written: soakwatch report ${run} --html writes it.`);
    return;
  }
  if (framed) return;
  framed = true;
  const report = `/runs/${encodeURIComponent(run)}/report`;
  after.replaceChildren(make("a", {href: single === "yes" ? "#report-title" : report, class: "button"},
    single === "yes" ? "Read the report below" : "Open the report"));
  if (single === "yes") {
    document.body.classList.add("alone");
    put(byId("report-words"), `The server of this run ends with it. The report is also in the file report.html of the run's folder; to see it later, use soakwatch serve or soakwatch report ${run}.`);
    byId("report-frame").replaceChildren(make("iframe", {src: report, title: "The report of this run"}));
    show(byId("report-box"), true);
  }
}

function apply(state) {
  dialogs.know(state);
  if (state.shown.alarms !== null) alarms = state.shown.alarms;
  digest = state.shown.digest;
  showLabels(state.labels);
  showVerdict(state);
  showCourse(state);
  showFindings(alarms, state.findings.judged !== null, over(state));
  showRates(state.rates);
  showFleet(state.shown.fleet);
  showSources(state);
  showSelf(state);
  showEvents(state.shown.told);
  showEnd(state);
  showLateness(state);
  if (ready) plots.tick(state, state.shown.drawn);
}

/* A server that answers although the run records nothing shows old samples as well. */
function showLateness(state) {
  const late = state.state !== "running" || state.until === null ? 0 : (Date.parse(state.now) - Date.parse(state.until)) / 1000;
  if (late > LATE_S + 2 * Math.max(0, ...state.sources.map((source) => source.interval_s)) && !over(state)) {
    warn(`The run has recorded nothing for ${length(late)}: this page shows the state of ${both(Date.parse(state.until))}.`);
  } else warn("");
  put(byId("link"), over(state) ? "" : `live, ${both(Date.parse(state.now))}`);
}

function warn(text) {
  put(byId("lost"), text);
  show(byId("lost"), text !== "");
  document.body.classList.toggle("stale", text !== "");
}

/* --- asking --- */

async function refresh() {
  if (asking) { urgent = true; return; }
  asking = true;
  urgent = false;
  const slow = setTimeout(() => lost("the server has not answered yet"), SLOW_MS);
  const answer = await ask(`${path}?known=${digest}`);
  clearTimeout(slow);
  asking = false;
  let next = document.hidden ? HIDDEN_MS : EVERY_MS;
  if (answer.ok) {
    failures = 0;
    fine = Date.now();
    apply(answer.data);
    if (over(answer.data) && answer.data.report) {
      if (single === "yes") return; // nothing more comes, and its server is about to end
      next = OVER_MS;
    }
  } else {
    failures += 1;
    next = Math.min(LONGEST_MS, 1000 * 2 ** Math.min(failures - 1, 6));
    put(byId("link"), "");
    if (answer.status === 401) warn("The login of this page has expired: get a new link with soakwatch open.");
    else if (failures > 1 || answer.status !== 0) lost(answer.error);
  }
  plan(urgent ? 0 : next);
}

function lost(why) {
  put(byId("link"), "");
  warn(`No connection since ${both(fine)} (${why}): this page shows the state of that time. Retrying.`);
}

function plan(ms) {
  clearTimeout(timer);
  timer = setTimeout(refresh, ms);
}

/* --- keys --- */

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || dialogs.isOpen()) return;
  if (event.target instanceof Element && /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)
    && event.target.checkVisibility()) return; // a closed dialog's field keeps the focus until the next frame
  const actions = {
    "?": dialogs.keys, j: () => step(1), k: () => step(-1), t: () => byId("theme").click(), f: () => plots.follow(),
    ...(may === "act" ? {m: markIfLive, a: () => dialogs.acknowledge(selected())} : {}),
  };
  const action = actions[event.key];
  if (action === undefined) return;
  event.preventDefault();
  action();
}

function markIfLive() {
  if (!byId("mark-button").hidden) dialogs.mark();
}

/* --- beginning --- */

onAcknowledge(dialogs.acknowledge);
onWake(plan);
dialogs.begin();
document.addEventListener("keydown", onKey);
document.addEventListener("visibilitychange", () => { if (!document.hidden) plan(0); });
const first = JSON.parse(byId("first-state").textContent);
apply(first);
if (zone(Date.parse(first.now)) !== "") put(byId("plots-zone"), `Times are UTC, below them yours (${zone(Date.parse(first.now))}).`);
const start = () => {
  ready = typeof soakwatchPlots !== "undefined" && typeof uPlot !== "undefined";
  if (ready) { plots.begin(); plots.tick(first, first.shown.drawn); }
  else put(byId("plots-note"), "The plots cannot be drawn: their script was not loaded. Reload the page.");
};
if (document.readyState === "complete") start();
else addEventListener("load", start);
if (!(over(first) && first.report && single === "yes")) plan(EVERY_MS);
