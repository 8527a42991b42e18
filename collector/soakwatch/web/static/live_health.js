/* Progress, polls, the monitor itself, events. */
import {byId, bytes, clock, keyed, length, make, name, put, show} from "./live_dom.js";

const WORDS = {answering: "✓ answering", failing: "✗ failing", silent: "? silent", waiting: "– waiting", over: "– over"};

export function showCourse(state) {
  const {phases} = state;
  const begin = Date.parse(state.begin);
  const last = phases.length === 0 ? NaN : Math.max(...phases.map((one) => Date.parse(one.end)));
  const end = Math.max(last, Date.parse(state.end_planned) || 0);
  const share = (ms) => `${(100 * Math.min(1, Math.max(0, (ms - begin) / (end - begin)))).toFixed(3)}%`;
  const bar = byId("bar");
  keyed(bar, phases.map((one, at) => ({...one, at})), (one) => `${one.at}`, () => make("div", {class: "phase"}, name("")),
    (element, one) => {
      element.className = `phase ${one.state}`;
      put(element.firstChild, one.name);
      const wide = (Date.parse(one.end) - Date.parse(one.begin)) / (end - begin);
      element.style.flexGrow = `${Math.max(wide, 0.001) * 1000}`;
      element.title = `${one.name}: ${clock(Date.parse(one.begin))} to ${clock(Date.parse(one.end))} UTC`;
    });
  const ended = state.state === "ended" || state.state === "broken off";
  const now = ended ? Date.parse(state.until) : Date.parse(state.now);
  bar.style.setProperty("--now", share(now));
  const told = state.phase === null ? (ended ? `It lasted ${length(state.elapsed_s)}.` : "") : `Phase ${state.phase.name} (${1 + phases.findIndex((one) => one.state === "now")} of ${phases.length}).`;
  bar.setAttribute("aria-label", `Phases: ${phases.map((one) => `${one.name} ${one.state}`).join(", ")}`);
  put(byId("phase"), told);
  put(byId("left"), ended ? "" : state.state === "waiting" ? `Begins in ${length((begin - Date.parse(state.now)) / 1000)}.` :
    `${length(state.elapsed_s)} of ${length(state.elapsed_s + state.left_s)} gone, ${length(state.left_s)} left.`);
  const next = state.next;
  put(byId("next"), next === null || (next.kind === "end") ? "" : `Next: ${next.kind} ${next.what} in ${length(next.in_s)}.`);
  put(byId("load"), state.load.length === 0 ? "" : `Load now: ${state.load.map((one) => one.words).join(", ")}.`);
  show(byId("load"), state.load.length > 0 && state.state === "running");
}

export function showSources(state) {
  const rows = [...state.sources].sort((a, b) => rank(a) - rank(b));
  keyed(byId("sources"), rows, (one) => `${one.target}\n${one.source}`,
    (one) => make("tr", {}, make("th", {scope: "row"}, name(one.source), make("span", {class: "soft every"})),
      make("td"), make("td", {class: "num"}), make("td")),
    (row, one) => {
      const [source, how, answered, last] = row.children;
      put(source.lastChild, ` each ${length(one.interval_s) === "0 s" || one.interval_s < 1 ? `${Math.round(one.interval_s * 1000)} ms` : length(one.interval_s)}`);
      const since = one.state === "failing" && one.failing_since !== null ? ` since ${clock(Date.parse(one.failing_since))}` : "";
      put(how, `${WORDS[one.state] ?? one.state}${since}`);
      how.className = `how ${one.state}`;
      put(answered, one.due === 0 ? "none due" : `${one.got} / ${one.due}`);
      answered.title = Object.entries(one.outcomes).map(([word, number]) => `${number} ${word}`).join(", ");
      put(last, one.last_ok === null ? "never" : clock(Date.parse(one.last_ok)));
    });
}

const rank = (one) => ["failing", "silent"].indexOf(one.state) < 0 ? 1 : 0;

export function showSelf(state) {
  const own = state.self;
  const known = (value, text) => value === null || value === undefined ? "not known" : text(value);
  const rows = [
    ["loop lag, worst", known(own.lag_s, (s) => `${Number((s * 1000).toPrecision(3))} ms`)],
    ["polls missed", known(own.missed, (n) => `${n}`)],
    ["memory", known(own.rss_bytes, bytes)],
    ["CPU", known(own.cpu, (share) => `${Number((100 * share).toPrecision(3))} % of a core`)],
    ["disk free", known(own.disk_free_bytes, bytes)],
    ["record", known(own.record_bytes, bytes)],
  ];
  keyed(byId("self"), rows.map(([term, text]) => ({term, text})), (row) => row.term,
    (row) => make("div", {}, make("dt", {}, row.term), make("dd")), (pair, row) => put(pair.lastChild, row.text));
  keyed(byId("sinks"), own.sinks, (one) => one.sink, () => make("li"), (item, one) => {
    const late = one.lag === undefined ? "" : `, ${length(one.lag)} behind`;
    const lost = one.rejected > 0 ? `, ${one.rejected} lines rejected` : "";
    put(item, `sink ${one.sink}: ${one.backlog ?? 0} polls to write${late}${lost}`);
  });
}

export function showEvents(told) {
  show(byId("no-events"), told.length === 0);
  keyed(byId("events"), told, (one) => `${one.id}`,
    (one) => make("li", {}, make("time", {datetime: new Date(one.begin).toISOString()}, clock(one.begin)), " ",
      make("b", {}, one.kind), " ", make("span", {class: "of"}, name(one.target), " ", name(one.object)), " ",
      make("span", {class: "soft"})),
    (item, one) => {
      const lasted = one.open ? "goes on" : one.lasted_s ? `lasted ${length(one.lasted_s)}` : "";
      put(item.lastChild, [lasted, one.detail, one.origin === "user" ? "told by people" : ""].filter((part) => part !== "").join("; "));
    });
}
