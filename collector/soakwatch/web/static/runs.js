"use strict";
/* The list of runs: fetched as JSON, filtered and sorted here, every text set as text. Rows are kept by the run's name,
   so that what has the focus keeps it while the list is renewed. */
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const MAX_COMPARED = 6, MAX_CHIPS = 4;
  const SOON = 700, BUSY = 4000, CALM = 20000, WORST = 60000; // milliseconds until the next question
  const BAD = ["fail", "inconclusive", "warn", "not judged", "pass"];
  const FILTERS = ["q", "target", "release", "verdict", "state"];
  const SYMBOLS = {fail: "✗", inconclusive: "?", warn: "!", pass: "✓"};
  const byId = (id) => document.getElementById(id);
  const table = byId("runs"), rows = byId("rows"), form = byId("filter");
  const acting = table.dataset.acting === "1";
  const kept = new Map(); // name of a run -> {run, text, row}
  const chosen = new Set(), unfolded = new Set(); // names of runs
  let order = "-begin", tag = "", failed = 0, lostSince = null, timer = 0, read = 0, there = null;

  /* --- small things --- */

  function make(kind, text = "", name = "") {
    const element = document.createElement(kind);
    if (text !== "") element.textContent = text;
    if (name !== "") element.className = name;
    return element;
  }

  function isolated(text, name = "") { return make("bdi", text, name); }

  function badge(word, symbol = SYMBOLS[word] ?? "") {
    return make("span", `${symbol} ${word}`.trim(), `badge ${word in SYMBOLS ? word : ""}`.trim());
  }

  function verdictOf(run) { return run.verdict ?? "not judged"; }

  function sparkline(spark) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 120 28");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `${spark.target} ${spark.about}, from ${spark.reach}`);
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", spark.path);
    svg.append(path);
    return svg;
  }

  /* --- one row --- */

  function cell(name, label, ...parts) {
    const element = make("td", "", name);
    element.setAttribute("role", "cell");
    if (label !== "") element.dataset.name = label;
    element.append(...parts);
    return element;
  }

  function box(run) {
    const input = make("input");
    input.type = "checkbox";
    input.checked = chosen.has(run.run);
    input.disabled = run.state === "unreadable";
    input.dataset.key = "box";
    input.setAttribute("aria-label", `Select ${run.run} for comparison`);
    input.addEventListener("change", () => {
      if (input.checked) chosen.add(run.run); else chosen.delete(run.run);
      showChosen();
    });
    return input;
  }

  function link(run) {
    const element = make("a", "");
    element.append(isolated(run.run));
    element.href = `/runs/${encodeURIComponent(run.run)}/`;
    element.dataset.key = "link";
    return element;
  }

  function standing(run) {
    if (run.state !== "running") {
      const parts = run.state === "unreadable" ? [badge("unreadable", "✗")] : [badge(verdictOf(run))];
      if (run.state === "broken off") parts.push(document.createTextNode(" "), badge("broken off", "–"));
      return parts;
    }
    const parts = [badge("running", "▶")];
    if (run.planned_s > 0 && run.seconds !== null) {
      const bar = make("progress");
      bar.max = run.planned_s;
      bar.value = Math.min(run.seconds, run.planned_s);
      bar.setAttribute("aria-label", `Progress of ${run.run}`);
      parts.push(bar, make("span", `${run.duration} of ${run.planned}`, "small"));
    }
    return parts;
  }

  function worst(run) {
    if (run.trouble !== null) return [make("span", run.trouble, "flag")];
    if (run.worst === null) return [make("span", run.verdict === "pass" ? "no findings" : "none", "soft")];
    const finding = run.worst;
    const head = make("div");
    head.append(badge(finding.outcome, finding.symbol), " ", isolated(finding.rule, "name"), " on ", isolated(finding.target, "name"));
    const why = make("div", "", "why");
    why.append(isolated(finding.reason));
    why.title = finding.reason;
    return [head, why];
  }

  function spark(run) {
    if (!run.spark) return [];
    const about = make("span", "", "small cut");
    about.append(isolated(run.spark.target), " ", isolated(run.spark.about));
    about.title = `${run.spark.target} ${run.spark.about}`;
    return [sparkline(run.spark), about, make("span", run.spark.reach, "small cut")];
  }

  /* The devices; generators and monitors are in the tool tip. */
  function targets(run) {
    const list = make("span");
    const all = run.targets ?? [];
    const devices = all.filter((target) => target.role === "dut");
    const shown = (devices.length > 0 ? devices : all).slice(0, 8);
    for (const [n, target] of shown.entries()) list.append(n > 0 ? ", " : "", isolated(target.name, "name"));
    const more = all.length - shown.length;
    if (more > 0) list.append(make("span", ` + ${more}`, "soft"));
    list.title = all.slice(0, 40).map((target) => `${target.name} (${target.role})`).join(", ");
    return list;
  }

  /* The labels: one that is clicked is searched for, and once more it is not. The first ones, unless all are wanted. */
  function labels(run) {
    const all = Object.entries(run.labels ?? {});
    if (all.length === 0) return [];
    const list = make("div", "", "labels");
    const shown = unfolded.has(run.run) || all.length <= MAX_CHIPS + 1 ? all : all.slice(0, MAX_CHIPS);
    for (const [name, text] of shown) {
      const chip = make("button", "", "chip");
      const wish = `${name}:${/[\s"]/.test(text) ? `"${text.replaceAll('"', "")}"` : text}`;
      chip.type = "button";
      chip.dataset.key = `label ${name}`;
      chip.dataset.wish = wish;
      chip.append(make("span", name, "soft"), " ", isolated(text));
      chip.title = `${name}: ${text}`;
      chip.setAttribute("aria-pressed", String(wishes().includes(wish)));
      chip.addEventListener("click", () => {
        const others = wishes().filter((word) => word !== wish);
        byId("q").value = (others.length < wishes().length ? others : [...others, wish]).join(" ");
        filtered();
      });
      list.append(chip);
    }
    if (shown.length < all.length) {
      const rest = all.slice(shown.length);
      const more = make("button", `+ ${rest.length}`, "more");
      more.type = "button";
      more.dataset.key = "labels";
      more.title = rest.map(([name, text]) => `${name}: ${text}`).join(", ");
      more.setAttribute("aria-label", `Show ${rest.length} more labels of ${run.run}`);
      more.addEventListener("click", () => {
        unfolded.add(run.run);
        renew(kept.get(run.run));
        kept.get(run.run).row.querySelector(`[data-key="label ${CSS.escape(rest[0][0])}"]`)?.focus();
      });
      list.append(more);
    }
    return [list];
  }

  function cells(run) {
    const named = make("div", "", "small");
    named.append("plan ", isolated(run.name, "name"));
    const known = run.trouble === null;
    const columns = [
      cell("box", "", box(run)), cell("verdict", "", ...standing(run)),
      cell("run", "", link(run), ...(known && run.name !== run.run ? [named] : []), ...note(run), ...labels(run)),
      cell("release", "Release", ...(run.release ? [isolated(run.release)] : [])),
      cell("targets", "Targets", ...(run.targets?.length ? [targets(run)] : [])),
      cell("keep begin", "Start", ...(run.began ? [run.began.slice(0, 16)] : [])),
      cell("num", "Length", ...(run.duration ? [run.duration] : [])), cell("worst", "", ...worst(run)),
      cell("spark", "", ...spark(run)), cell("num", "Coverage", ...(run.covered ? [run.covered] : [])),
      cell("num", "Size", run.size)
    ];
    if (run.began) columns[5].title = `${run.began} UTC`;
    if (run.covered) columns[9].title = run.uncovered;
    if (acting) columns.push(cell("gone", "", deleteButton(run)));
    return columns;
  }

  function note(run) {
    if (!run.note) return [];
    const words = make("div", "", "small");
    words.append(isolated(run.note));
    return [words];
  }

  function deleteButton(run) {
    const button = make("button", "Delete…", "delete");
    button.type = "button";
    button.dataset.key = "delete";
    button.disabled = run.state === "running";
    button.setAttribute("aria-label", `Delete ${run.run} …`);
    if (button.disabled) button.title = "This run is still being written: stop it first";
    button.addEventListener("click", () => askToDelete(run, deleted));
    return button;
  }

  function renew(entry) {
    const focused = entry.row.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    entry.row.replaceChildren(...cells(entry.run));
    entry.row.className = entry.run.state === "running" ? "running" : "";
    if (focused !== undefined) entry.row.querySelector(`[data-key="${focused}"]`)?.focus();
  }

  /* --- all rows --- */

  function take(answer) {
    const seen = new Set();
    for (const run of answer.runs) {
      seen.add(run.run);
      const text = JSON.stringify(run);
      let entry = kept.get(run.run);
      if (entry !== undefined && entry.text === text) continue;
      if (entry === undefined) {
        entry = {row: make("tr")};
        entry.row.setAttribute("role", "row");
        kept.set(run.run, entry);
      }
      entry.run = run;
      entry.text = text;
      entry.words = [run.run, run.name, run.release, run.reason, run.trouble, run.note, run.worst?.rule, run.worst?.about, run.worst?.reason,
        ...Object.entries(run.labels ?? {}).map(([name, text]) => `${name}:${text}`),
        ...(run.targets ?? []).map((target) => target.name)].filter(Boolean).join(" ").toLowerCase();
      renew(entry);
    }
    for (const name of [...kept.keys()]) if (!seen.has(name)) forget(name);
    read = answer.read;
    there = answer.there;
    options("target", [...kept.values()].flatMap((entry) => (entry.run.targets ?? []).map((target) => target.name)));
    options("release", [...kept.values()].map((entry) => entry.run.release ?? ""));
    show();
  }

  function forget(name) {
    kept.get(name)?.row.remove();
    kept.delete(name);
    chosen.delete(name);
  }

  function options(id, words) {
    const select = byId(id);
    const wanted = select.value || select.dataset.wanted || "";
    const values = [...new Set(words.filter((word) => word !== ""))].sort();
    if (wanted !== "" && !values.includes(wanted)) values.unshift(wanted);
    if (values.join("\n") === [...select.options].slice(1).map((option) => option.value).join("\n")) return;
    const all = make("option", "all");
    all.value = "";
    select.replaceChildren(all, ...values.map((word) => make("option", word)));
    select.value = wanted;
  }

  function fits(entry) {
    const run = entry.run, wish = (id) => byId(id).value;
    if (wish("verdict") !== "" && verdictOf(run) !== wish("verdict")) return false;
    if (wish("state") !== "" && run.state !== wish("state")) return false;
    if (wish("release") !== "" && run.release !== wish("release")) return false;
    if (wish("target") !== "" && !(run.targets ?? []).some((target) => target.name === wish("target"))) return false;
    return wishes().every((word) => hasLabel(entry.run, word) ?? entry.words.includes(word.toLowerCase()));
  }

  /* The words of the search field; what is in quotes is one: testbed:"rack 3". */
  function wishes() { return byId("q").value.match(/[^\s":=]+[:=]"[^"]*"?|\S+/g) ?? []; }

  /* Whether a run has the label of release:7.2 (7.* is any that begins so); undefined if no run has a label of that name. */
  function hasLabel(run, word) {
    const [, name, wanted] = /^([a-z][a-z0-9_-]*)[:=]"?([^"]*)"?$/.exec(word) ?? [];
    if (name === undefined || ![...kept.values()].some((entry) => name === "release" || name in (entry.run.labels ?? {}))) return undefined;
    const text = (run.labels?.[name] ?? (name === "release" ? run.release ?? "" : "")).replaceAll('"', "").toLowerCase();
    const part = wanted.toLowerCase();
    return part.endsWith("*") ? text !== "" && text.startsWith(part.slice(0, -1)) : text === part;
  }

  const KEYS = {
    verdict: (run) => BAD.indexOf(verdictOf(run)), run: (run) => run.run, release: (run) => run.release ?? "",
    targets: (run) => (run.targets ?? []).map((target) => target.name).join(" "), begin: (run) => run.begin ?? "",
    duration: (run) => run.seconds ?? -1, worst: (run) => run.worst ? BAD.indexOf(run.worst.outcome) * 2 : 99,
    coverage: (run) => run.coverage ?? -1, size: (run) => run.bytes
  };

  function compared(entry, other) {
    const first = (other.run.state === "running") - (entry.run.state === "running"); // running runs come first
    if (first !== 0) return first;
    const down = order.startsWith("-"), key = KEYS[order.replace("-", "")];
    const [a, b] = [key(entry.run), key(other.run)];
    const differs = typeof a === "string" ? a.localeCompare(b, "en", {numeric: true}) : a - b;
    return (down ? -differs : differs) || other.run.run.localeCompare(entry.run.run, "en");
  }

  function show() {
    const shown = [...kept.values()].filter(fits).sort(compared);
    const wished = new Set(wishes());
    for (const chip of rows.querySelectorAll(".chip")) chip.setAttribute("aria-pressed", String(wished.has(chip.dataset.wish)));
    const focused = document.activeElement;
    const inside = rows.contains(focused);
    shown.forEach((entry, index) => {
      if (rows.children[index] !== entry.row) rows.insertBefore(entry.row, rows.children[index] ?? null);
    });
    while (rows.children.length > shown.length) rows.lastElementChild.remove();
    if (inside && document.activeElement !== focused && focused.isConnected) focused.focus();
    for (const head of table.querySelectorAll("th[data-sort]")) {
      if (head.dataset.sort !== order.replace("-", "")) head.removeAttribute("aria-sort");
      else head.setAttribute("aria-sort", order.startsWith("-") ? "descending" : "ascending");
    }
    table.hidden = shown.length === 0;
    byId("none").hidden = there === null || shown.length > 0 || read < there;
    byId("none").textContent = there === 0
      ? "No runs yet. Start one with soakwatch run PLAN or soakwatch demo." : "No run matches this filter.";
    showCount(shown.length);
    showChosen();
  }

  function showCount(shown) {
    if (there === null) return;
    const runs = `${there} ${there === 1 ? "run" : "runs"}`;
    const text = read < there ? `Reading ${read} of ${there} runs …` : shown === kept.size ? runs : `${shown} of ${runs}`;
    if (byId("count").textContent !== text) byId("count").textContent = text;
  }

  function showChosen() {
    const count = chosen.size;
    byId("compare").disabled = count < 2 || count > MAX_COMPARED;
    const text = count === 0 ? "" : count === 1 ? "1 selected, one more to compare" : count > MAX_COMPARED
      ? `${count} selected, ${MAX_COMPARED} at most` : `${count} selected`;
    if (byId("chosen").textContent !== text) byId("chosen").textContent = text;
  }

  /* --- the address holds filter and order --- */

  function fromAddress() {
    const words = new URLSearchParams(location.search);
    for (const name of FILTERS) {
      const field = byId(name), value = words.get(name) ?? "";
      field.value = value;
      if (field.tagName === "SELECT" && field.value !== value) {
        field.dataset.wanted = value;
        field.append(make("option", value));
        field.value = value;
      }
    }
    const sort = words.get("sort") ?? "-begin";
    order = sort.replace("-", "") in KEYS && /^-?[a-z]+$/.test(sort) ? sort : "-begin";
  }

  function toAddress() {
    const words = new URLSearchParams();
    for (const name of FILTERS) if (byId(name).value !== "") words.set(name, byId(name).value);
    if (order !== "-begin") words.set("sort", order);
    const text = words.toString();
    history.replaceState(null, "", text === "" ? location.pathname : `?${text}`);
  }

  /* --- asking --- */

  async function ask() {
    clearTimeout(timer);
    let wait = CALM;
    try {
      const answer = await fetch("/api/summaries", {headers: tag === "" ? {} : {"if-none-match": tag}, cache: "no-store"});
      if (answer.status === 401) { location.reload(); return; }
      if (answer.status === 200) {
        tag = answer.headers.get("etag") ?? "";
        take(await answer.json());
      } else if (answer.status !== 304) throw new Error(String(answer.status));
      failed = 0;
      lostSince = null;
      if (!byId("lost").hidden) byId("lost").hidden = true;
      wait = read < there ? SOON : [...kept.values()].some((entry) => entry.run.state === "running") ? BUSY : CALM;
    } catch {
      failed += 1;
      lostSince ??= new Date();
      const message = `No answer since ${lostSince.toTimeString().slice(0, 8)}: this page shows the state of that time.`;
      if (byId("lost").textContent !== message) byId("lost").textContent = message;
      byId("lost").hidden = false;
      wait = Math.min(WORST, 1000 * 2 ** failed);
    }
    timer = setTimeout(ask, document.hidden ? Math.max(wait, CALM) : wait);
  }

  function deleted(name) {
    forget(name);
    there -= 1;
    read -= 1;
    tag = "";
    show();
    byId("count").textContent = `${name} was deleted. ${there} ${there === 1 ? "run" : "runs"} left.`;
    form.q.focus();
  }

  function filtered() { toAddress(); show(); }

  /* --- begin --- */

  for (const head of table.querySelectorAll("th[data-sort]")) {
    head.querySelector("button").addEventListener("click", () => {
      const name = head.dataset.sort;
      order = order === name ? `-${name}` : order === `-${name}` ? name : /^(begin|duration|size)$/.test(name) ? `-${name}` : name;
      toAddress();
      show();
    });
  }
  form.addEventListener("input", filtered);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    for (const name of FILTERS) byId(name).value = "";
    filtered();
  });
  byId("compare").addEventListener("click", () => {
    byId("chosen").textContent = "Comparing …";
    const words = [...chosen].sort().map((name) => `run=${encodeURIComponent(name)}`);
    location.assign(`/compare?${words.join("&")}`);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || document.querySelector("dialog[open]") !== null) return;
    event.preventDefault();
    form.q.focus();
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });
  fromAddress();
  ask();
})();
