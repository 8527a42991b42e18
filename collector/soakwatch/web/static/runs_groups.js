"use strict";
/* Runs in groups of a plan, a release or a label: a row above each with its verdicts and the course of one key figure
   over its runs, oldest first. The figures come from /api/trend, once a grouping is asked for. */
const runGroups = (() => {
  const {SVG, make, isolated, badge} = runRow;
  const ORDER = ["fail", "inconclusive", "pass", "not judged"], AGAIN = 1500, LEAST = 2; // milliseconds; runs of a line
  const folded = new Set(), headers = new Map(); // keys of groups
  let figures = null, known = "", asking = false;

  function groupOf(run, by) {
    return by === "plan" ? run.name : by === "release" ? run.release ?? "" : run.labels?.[by] ?? "";
  }

  /* Lines of the table in their order: {header} or {run}. Groups stand where their first run stands. */
  function arranged(runs, by, page) {
    if (by === "") return runs.map((run) => ({run}));
    const groups = new Map();
    for (const run of runs) {
      const name = groupOf(run, by);
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(run);
    }
    readFigures(runs, page);
    return [...groups].flatMap(([name, members]) => {
      const header = headerOf(by, name, members, page);
      return [{header}, ...(folded.has(`${by}=${name}`) ? [] : members.map((run) => ({run})))];
    });
  }

  async function readFigures(runs, page) {
    const state = runs.filter((run) => run.verdict !== null).map((run) => `${run.run} ${run.verdict}`).sort().join("\n");
    if (asking || state === known) return;
    asking = true;
    try {
      const answer = await fetch("/api/trend", {cache: "no-store"});
      if (!answer.ok) throw new Error(String(answer.status));
      const trend = await answer.json();
      figures = trend.plans.flatMap((plan) => plan.figures.map((figure) => ({...figure, plan: plan.plan})));
      if (trend.read === trend.there) known = state;
    } catch {
      known = state; // the list does not need the lines
    }
    asking = false;
    page.changed();
    if (known !== state) setTimeout(page.changed, AGAIN);
  }

  /* The figure of a plan that most of these runs have, the most important of such, and its values, oldest first. */
  function course(members) {
    const there = new Map(members.map((run) => [run.run, run]));
    let best = null;
    for (const figure of figures ?? []) {
      const values = figure.values.filter((value) => value.value !== null && there.has(value.run));
      if (values.length >= LEAST && values.length > (best?.values.length ?? 0)) best = {figure, values};
    }
    if (best === null) return null;
    best.values.sort((a, b) => (there.get(a.run).begin ?? "").localeCompare(there.get(b.run).begin ?? ""));
    return best;
  }

  function trendLine({figure, values}, members) {
    const verdicts = new Map(members.map((run) => [run.run, run.verdict]));
    const low = Math.min(...values.map((value) => value.value)), high = Math.max(...values.map((value) => value.value));
    const x = (place) => 4 + 112 * (values.length === 1 ? 0.5 : place / (values.length - 1));
    const y = (value) => high > low ? 24 - 20 * (value - low) / (high - low) : 14;
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 120 28");
    svg.setAttribute("role", "img");
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", `M${values.map((value, place) => `${x(place).toFixed(1)} ${y(value.value).toFixed(1)}`).join("L")}`);
    svg.append(path);
    values.forEach((value, place) => {
      const dot = document.createElementNS(SVG, "circle");
      dot.setAttribute("cx", x(place).toFixed(1));
      dot.setAttribute("cy", y(value.value).toFixed(1));
      dot.setAttribute("r", "2.6");
      dot.setAttribute("class", verdicts.get(value.run) ?? "none");
      svg.append(dot);
    });
    const whose = new Set(members.map((run) => run.name)).size > 1 ? ` of plan ${figure.plan}` : ""; // plans are no repetitions
    const words = `${figure.name}${whose}: ${values[0].text} → ${values.at(-1).text}`;
    svg.setAttribute("aria-label", `${words}, over ${values.length} runs`);
    const line = make("span", "", "course");
    line.append(svg, make("span", words, "small"));
    line.title = values.map((value) => `${value.run}: ${value.text}`).join("\n");
    return line;
  }

  function headerOf(by, name, members, page) {
    const key = `${by}=${name}`;
    if (!headers.has(key)) {
      const row = make("tr", "", "group");
      row.setAttribute("role", "row");
      headers.set(key, {row, text: ""});
    }
    const header = headers.get(key);
    const chosen = members.filter((run) => page.chosen.has(run.run)).length;
    const counts = ORDER.map((verdict) => [verdict, members.filter((run) => runRow.verdictOf(run) === verdict).length]);
    const drawn = course(members);
    const text = JSON.stringify([members.map((run) => [run.run, run.verdict]), chosen, folded.has(key), drawn?.figure.name,
      drawn?.values]);
    if (text === header.text) return header.row;
    header.text = text;
    const focused = header.row.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    const box = make("input");
    box.type = "checkbox";
    box.dataset.key = "group-box";
    box.checked = chosen === members.length;
    box.indeterminate = chosen > 0 && chosen < members.length;
    const title = name === "" ? `no ${by}` : `${by} ${name}`;
    box.setAttribute("aria-label", `Select the runs of ${title}`);
    const able = members.filter((run) => run.state !== "unreadable").map((run) => run.run);
    box.addEventListener("change", () => page.choose(able, box.checked));
    const fold = make("button", "", "fold");
    fold.type = "button";
    fold.dataset.key = "fold";
    fold.setAttribute("aria-expanded", String(!folded.has(key)));
    fold.append(make("span", by, "soft"), " ", name === "" ? make("span", "not given", "soft") : isolated(name));
    fold.addEventListener("click", () => {
      if (folded.has(key)) folded.delete(key); else folded.add(key);
      page.changed();
    });
    const cell = make("td");
    cell.setAttribute("role", "cell");
    cell.colSpan = page.acting ? 11 : 10;
    const line = make("div", "", "group-line");
    line.append(fold, make("span", `${members.length} ${members.length === 1 ? "run" : "runs"}`, "small"));
    for (const [verdict, count] of counts) {
      if (count === 0) continue;
      const sign = badge(verdict);
      sign.append(` ${count}`);
      line.append(sign);
    }
    if (drawn !== null) line.append(trendLine(drawn, members));
    cell.append(line);
    const first = make("td", "", "box");
    first.setAttribute("role", "cell");
    first.append(box);
    header.row.replaceChildren(first, cell);
    if (focused !== undefined) header.row.querySelector(`[data-key="${focused}"]`)?.focus();
    return header.row;
  }

  return {arranged};
})();
