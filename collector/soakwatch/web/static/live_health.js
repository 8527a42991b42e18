/* Progress, polls, the monitor itself, events. */
import {both, byId, bytes, clock, keyed, length, make, name, put, show} from "./live_dom.js";

const WORDS = {answering: "✓ answering", failing: "✗ failing", silent: "? silent", waiting: "– waiting", over: "– over"};

export function showCourse(state) {
  const {phases} = state;
  const begin = Date.parse(state.begin);
  const last = phases.length === 0 ? NaN : Math.max(...phases.map((phase) => Date.parse(phase.end)));
  const end = Math.max(last, Date.parse(state.end_planned) || 0);
  const share = (ms) => `${(100 * Math.min(1, Math.max(0, (ms - begin) / (end - begin)))).toFixed(3)}%`;
  const bar = byId("bar");
  keyed(bar, phases.map((phase, index) => ({...phase, index})), (phase) => `${phase.index}`, () => make("div", {class: "phase"}, name("")),
    (element, phase) => {
      element.className = `phase ${phase.state}`;
      put(element.firstChild, phase.name);
      const wide = (Date.parse(phase.end) - Date.parse(phase.begin)) / (end - begin);
      element.style.flexGrow = `${Math.max(wide, 0.001) * 1000}`;
      element.title = `${phase.name}: ${both(Date.parse(phase.begin))} to ${both(Date.parse(phase.end))}`;
    });
  const ended = state.state === "ended" || state.state === "broken off";
  const now = ended ? Date.parse(state.until) : Date.parse(state.now);
  bar.style.setProperty("--now", share(now));
  const current = state.phase === null ? (ended ? `Length ${length(state.elapsed_s)}.` : "") : `Phase ${state.phase.name} (${1 + phases.findIndex((phase) => phase.state === "now")} of ${phases.length}).`;
  bar.setAttribute("aria-label", `Phases: ${phases.map((phase) => `${phase.name} ${phase.state}`).join(", ")}`);
  put(byId("phase"), current);
  put(byId("left"), ended ? "" : state.state === "waiting" ? `Starts in ${length((begin - Date.parse(state.now)) / 1000)}.` :
    `${length(state.elapsed_s)} of ${length(state.elapsed_s + state.left_s)} elapsed, ${length(state.left_s)} left.`);
  const next = state.next;
  put(byId("next"), next === null || (next.kind === "end") ? "" : `Next: ${next.kind} ${next.what} in ${length(next.in_s)}.`);
  put(byId("load"), state.load.length === 0 ? "" : `Load now: ${state.load.map((figure) => figure.words).join(", ")}.`);
  show(byId("load"), state.load.length > 0 && state.state === "running");
}

/* A name that may break behind its slash, and nowhere else. */
function parted(source) {
  const cut = source.lastIndexOf("/") + 1;
  return cut === 0 ? [name(source)] : [name(source.slice(0, cut)), make("wbr"), name(source.slice(cut))];
}

export function showSources(state) {
  const rows = [...state.sources].sort((a, b) => rank(a) - rank(b));
  keyed(byId("sources"), rows, (entry) => `${entry.target}\n${entry.source}`,
    (entry) => make("tr", {}, make("th", {scope: "row"}, ...parted(entry.source), make("span", {class: "soft every"})),
      make("td"), make("td", {class: "num"}), make("td")),
    (row, entry) => {
      const [source, how, answered, last] = row.children;
      put(source.lastChild, ` every ${length(entry.interval_s) === "0 s" || entry.interval_s < 1 ? `${Math.round(entry.interval_s * 1000)} ms` : length(entry.interval_s)}`);
      const since = entry.state === "failing" && entry.failing_since !== null ? ` since ${clock(Date.parse(entry.failing_since))}` : "";
      put(how, `${WORDS[entry.state] ?? entry.state}${since}`);
      how.className = `how ${entry.state}`;
      put(answered, entry.due === 0 ? "none due" : `${entry.got} / ${entry.due}`);
      answered.title = Object.entries(entry.outcomes).map(([word, number]) => `${number} ${word}`).join(", ");
      put(last, entry.last_ok === null ? "never" : clock(Date.parse(entry.last_ok)));
    });
}

const rank = (entry) => ["failing", "silent"].indexOf(entry.state) < 0 ? 1 : 0;

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
  keyed(byId("sinks"), own.sinks, (sink) => sink.sink, () => make("li"), (item, sink) => {
    const late = sink.lag === undefined ? "" : `, ${length(sink.lag)} behind`;
    const lost = sink.rejected > 0 ? `, ${sink.rejected} lines rejected` : "";
    put(item, `sink ${sink.sink}: ${sink.backlog ?? 0} polls to write${late}${lost}`);
  });
}

export function showEvents(events) {
  show(byId("no-events"), events.length === 0);
  keyed(byId("events"), events, (event) => `${event.id}`,
    (event) => make("li", {}, make("time", {datetime: new Date(event.begin).toISOString(), title: both(event.begin)}, clock(event.begin)), " ",
      make("b", {}, event.kind), " ", make("span", {class: "of"}, name(event.target), " ", name(event.object)), " ",
      make("span", {class: "soft"})),
    (item, event) => {
      const lasted = event.open ? "still open" : event.lasted_s ? `lasted ${length(event.lasted_s)}` : "";
      put(item.lastChild, [lasted, event.detail, event.origin === "user" ? "marked by a user" : ""].filter((part) => part !== "").join("; "));
    });
}
