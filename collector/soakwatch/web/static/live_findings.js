/* The findings so far: worst first, updated in place, chosen by keys. */
import {byId, keyed, make, name, put, show} from "./live_dom.js";

const SIGNS = JSON.parse(byId("symbols").textContent);
const act = document.documentElement.dataset.may === "act";
let acknowledge = () => {};

export function badge(element, outcome, word = outcome) {
  const text = `${SIGNS[outcome] ?? ""} ${word}`.trim();
  put(element, text);
  element.className = `badge ${outcome.replaceAll(" ", "-")}`;
}

export function onAcknowledge(listener) { acknowledge = listener; }

function part(item, role) { return item.querySelector(`[data-part="${role}"]`); }

function build(finding) {
  const item = make("li", {class: "card finding", tabindex: "-1"},
    make("p", {class: "head"}, make("span", {class: "badge", "data-part": "badge"}), " ", make("b", {"data-part": "title"})),
    make("p", {class: "warning", "data-part": "forecast"}),
    make("p", {class: "reason", "data-part": "reason"}),
    make("p", {class: "soft", "data-part": "numbers"}),
    make("p", {class: "known", "data-part": "known"}),
    make("p", {class: "soft of"}, make("b", {}, finding.rule), " on ", name(finding.target), finding.about === "" ? null : " · ",
      finding.about === "" ? null : name(finding.about)),
    make("details", {}, make("summary", {}, "Definition and numbers"), make("dl", {class: "pairs", "data-part": "pairs"})),
    make("p", {class: "ends"},
      make("a", {href: "#plots-title", "data-part": "zoom"}, "Show in the plots"),
      act ? make("button", {type: "button", "data-part": "ack"}, "Acknowledge…") : null));
  part(item, "ack")?.addEventListener("click", () => acknowledge(item.finding));
  return item;
}

function pairs(list, finding) {
  const rows = [
    ["definition", finding.definition], ["measured", finding.measured], ["limit", finding.limit ?? "none stated"],
    ["samples", `${finding.samples}, coverage ${finding.coverage}`],
    ["smallest detectable", finding.detectable ?? "not stated"], ["window (UTC)", finding.stretch],
    ...finding.marks.map(([begin, , text]) => [`at ${new Date(begin).toISOString().slice(11, 19)}`, text]),
    ...finding.doubts.map((text) => ["doubt", text]),
    ...(finding.settle === "" ? [] : [["to resolve", finding.settle]]),
  ];
  keyed(list, rows.map(([term, text], index) => ({term, text, index})), (row) => `${row.index}`,
    () => make("div", {}, make("dt"), make("dd")),
    (pair, row) => { put(pair.firstChild, row.term); put(pair.lastChild, row.text); });
}

function change(item, finding) {
  if (item.rendered === JSON.stringify(finding)) return;
  item.rendered = JSON.stringify(finding);
  item.finding = finding;
  item.classList.remove("fail", "warn", "inconclusive");
  item.classList.add(finding.outcome);
  badge(part(item, "badge"), finding.outcome);
  put(part(item, "title"), finding.title);
  put(part(item, "reason"), finding.reason);
  const ahead = finding.forecast === "" ? "" : `${finding.outcome === "warn" ? "Early warning: at" : "At"} this rate ${finding.forecast}.`;
  put(part(item, "forecast"), ahead);
  show(part(item, "forecast"), ahead !== "");
  const figures = [["measured", finding.measured === "not known" ? null : finding.measured], ["limit", finding.limit]];
  const told = figures.filter(([, text]) => text !== null).map(([word, text]) => `${word} ${text}`).join(", ");
  put(part(item, "numbers"), [told, finding.why ?? ""].filter((text) => text !== "").join("; "));
  const known = finding.acknowledged;
  put(part(item, "known"), known === null ? "" : `acknowledged: ${known.reason} (${known.at} UTC)`);
  show(part(item, "known"), known !== null);
  item.classList.toggle("is-known", known !== null);
  const zoom = part(item, "zoom");
  const [begin, end] = stretch(finding);
  zoom.dataset.window = `${begin},${end}`;
  pairs(part(item, "pairs"), finding);
  item.setAttribute("aria-label", `${finding.outcome}: ${finding.rule} on ${finding.target} ${finding.about}`);
}

/* The time range to show: around the marks of the finding, else all that was judged. */
function stretch(finding) {
  if (finding.marks.length === 0) return finding.window;
  const begin = Math.min(...finding.marks.map(([from]) => from));
  const end = Math.max(...finding.marks.map(([from, to]) => to ?? from));
  const room = Math.max(30000, (end - begin) * 0.25);
  return [Math.max(begin - room, finding.window[0] - 5000), end + room];
}

export function showFindings(alarms, judged, ended) {
  const worst = alarms.filter((finding) => finding.outcome !== "inconclusive");
  const doubts = alarms.filter((finding) => finding.outcome === "inconclusive");
  keyed(byId("findings"), worst, (finding) => finding.key, build, change);
  keyed(byId("doubts"), doubts, (finding) => finding.key, build, change);
  show(byId("doubts-box"), doubts.length > 0);
  put(byId("doubts-title"), `${ended ? "Inconclusive" : "Inconclusive so far"}: ${doubts.length}`);
  show(byId("no-findings"), worst.length === 0);
  put(byId("no-findings"), !judged ? "None yet." :
    ended ? "No findings." : "No findings so far.");
}

/* What grows so far: no finding yet, and gone when it no longer holds. */
export function showRates(rates) {
  show(byId("rates-box"), rates.length > 0);
  keyed(byId("rates"), rates, (rate) => JSON.stringify([rate.target, rate.metric, rate.object]), () => make("li", {}), (item, rate) => put(item, rate.words));
}

/* Many devices: those with a failure or a warning by kind of trouble, the others counted. */
export function showFleet(fleet) {
  show(byId("fleet-box"), fleet !== null);
  if (fleet === null) return;
  show(byId("fleet-head"), fleet.rows.length > 0);
  keyed(byId("fleet-head"), ["device", ...fleet.families], (text) => text, () => make("th", {scope: "col"}), put);
  keyed(byId("fleet-rows"), fleet.rows, (row) => row.target,
    (row) => make("tr", {}, make("th", {scope: "row"}, name(row.target))),
    (line, row) => {
      if (line.rendered === JSON.stringify(row)) return;
      line.rendered = JSON.stringify(row);
      line.replaceChildren(line.firstChild, ...row.cells.map((cell) => {
        if (cell === null) return make("td", {}, make("span", {class: "soft"}, "–"));
        const mark = make("span", {title: cell.rules});
        badge(mark, cell.outcome, cell.outcome === "pass" ? "" : `${cell.outcome}${cell.count > 1 ? ` ${cell.count}` : ""}`);
        mark.setAttribute("role", "img");
        mark.setAttribute("aria-label", `${cell.outcome}, ${cell.rules}`);
        return make("td", {}, mark);
      }));
    });
  const calm = `${fleet.calm} ${fleet.rows.length > 0 ? "others" : "devices"} without a failure or warning so far`;
  put(byId("fleet-calm"), fleet.more > 0 ? `${calm}; ${fleet.more} more with one are not listed.` : `${calm}.`);
}

export function selected() {
  const item = document.activeElement?.closest?.(".finding");
  return item === null || item === undefined ? null : item.finding;
}

export function step(by) {
  const items = [...document.querySelectorAll(".finding")].filter((item) => item.offsetParent !== null);
  if (items.length === 0) return;
  const index = items.indexOf(document.activeElement?.closest?.(".finding"));
  const next = index < 0 ? (by > 0 ? 0 : items.length - 1) : Math.min(items.length - 1, Math.max(0, index + by));
  items[next].focus();
  items[next].scrollIntoView({block: "nearest"});
}
