"use strict";
/* The list of runs: fetched as JSON, filtered, sorted and grouped here, every text set as text. Rows are kept by the run's
   name, so that what has the focus keeps it while the list is renewed. runs_row.js makes the cells of a row, runs_groups.js
   the rows above groups. */
(() => {
  const MAX_COMPARED = 6;
  const SOON = 700, BUSY = 4000, CALM = 20000, WORST = 60000; // milliseconds until the next question
  const BAD = ["fail", "inconclusive", "warn", "not judged", "pass"];
  const FILTERS = ["q", "target", "release", "verdict", "state", "group"];
  const byId = (id) => document.getElementById(id);
  const table = byId("runs"), rows = byId("rows"), form = byId("filter");
  const acting = table.dataset.acting === "1";
  const kept = new Map(); // name of a run -> {run, text, row}
  const chosen = new Set(), unfolded = new Set(); // names of runs
  const page = {
    acting, chosen, unfolded, wishes,
    choose(names, on) {
      for (const name of names) if (on) chosen.add(name); else chosen.delete(name);
      show();
    },
    wish(word) {
      const others = wishes().filter((other) => other !== word);
      byId("q").value = (others.length < wishes().length ? others : [...others, word]).join(" ");
      filtered();
    },
    unfold(name, key) {
      unfolded.add(name);
      renew(kept.get(name));
      kept.get(name).row.querySelector(`[data-key="${key}"]`)?.focus();
    },
    erase: (run) => askToDelete(run, deleted),
    changed: () => show()
  };
  let order = "-begin", tag = "", failed = 0, lostSince = null, timer = 0, read = 0, there = null;

  function renew(entry) {
    const focused = entry.row.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    entry.row.replaceChildren(...runRow.cells(entry.run, page));
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
        entry = {row: runRow.make("tr")};
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
    options("group", ["plan", "release", ...[...kept.values()].flatMap((entry) => Object.keys(entry.run.labels ?? {}))], "nothing");
    show();
  }

  function forget(name) {
    kept.get(name)?.row.remove();
    kept.delete(name);
    chosen.delete(name);
  }

  function options(id, words, none = "all") {
    const select = byId(id);
    const wanted = select.value || select.dataset.wanted || "";
    const values = [...new Set(words.filter((word) => word !== ""))].sort();
    if (wanted !== "" && !values.includes(wanted)) values.unshift(wanted);
    if (values.join("\n") === [...select.options].slice(1).map((option) => option.value).join("\n")) return;
    const all = runRow.make("option", none);
    all.value = "";
    select.replaceChildren(all, ...values.map((word) => runRow.make("option", word)));
    select.value = wanted;
  }

  function fits(entry) {
    const run = entry.run, wish = (id) => byId(id).value;
    if (wish("verdict") !== "" && runRow.verdictOf(run) !== wish("verdict")) return false;
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
    verdict: (run) => BAD.indexOf(runRow.verdictOf(run)), run: (run) => run.run, release: (run) => run.release ?? "",
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
    const lines = runGroups.arranged(shown.map((entry) => entry.run), byId("group").value, page)
      .map((line) => line.header ?? kept.get(line.run.run).row);
    const wished = new Set(wishes());
    for (const chip of rows.querySelectorAll(".chip")) chip.setAttribute("aria-pressed", String(wished.has(chip.dataset.wish)));
    const focused = document.activeElement;
    const inside = rows.contains(focused);
    lines.forEach((row, index) => {
      if (rows.children[index] !== row) rows.insertBefore(row, rows.children[index] ?? null);
    });
    while (rows.children.length > lines.length) rows.lastElementChild.remove();
    for (const entry of shown) {
      const box = entry.row.querySelector('[data-key="box"]');
      if (box !== null && box.checked !== chosen.has(entry.run.run)) box.checked = chosen.has(entry.run.run);
    }
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
    byId("copy").disabled = count === 0;
    if (acting) byId("delete-many").disabled = count === 0;
    const text = count === 0 ? "" : count === 1 ? "1 selected, one more to compare" : count > MAX_COMPARED
      ? `${count} selected (${MAX_COMPARED} at most are compared)` : `${count} selected`;
    if (byId("chosen").textContent !== text) byId("chosen").textContent = text;
    const shown = [...rows.querySelectorAll('[data-key="box"]:not(:disabled)')];
    const all = byId("all");
    all.checked = shown.length > 0 && shown.every((box) => box.checked);
    all.indeterminate = !all.checked && shown.some((box) => box.checked);
  }

  /* --- the address holds filter and order --- */

  function fromAddress() {
    const words = new URLSearchParams(location.search);
    for (const name of FILTERS) {
      const field = byId(name), value = words.get(name) ?? "";
      field.value = value;
      if (field.tagName === "SELECT" && field.value !== value) {
        field.dataset.wanted = value;
        field.append(runRow.make("option", value));
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

  function deleted(...names) {
    for (const name of names) forget(name);
    there -= names.length;
    read -= names.length;
    tag = "";
    show();
    const gone = names.length === 1 ? `${names[0]} was deleted` : `${names.length} runs were deleted`;
    byId("count").textContent = `${gone}. ${there} ${there === 1 ? "run" : "runs"} left.`;
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
  byId("all").addEventListener("change", () => {
    const shown = [...rows.querySelectorAll('[data-key="box"]:not(:disabled)')].map((box) => box.dataset.run);
    page.choose(shown, byId("all").checked);
  });
  byId("copy").addEventListener("click", async () => {
    const names = [...chosen].sort().join(" ");
    try {
      await navigator.clipboard.writeText(names);
      byId("count").textContent = `${chosen.size === 1 ? "1 name is" : `${chosen.size} names are`} on the clipboard, for commands such as soakwatch judge.`;
    } catch {
      byId("count").textContent = names; // no clipboard without a secure address: to be selected by hand
    }
  });
  byId("delete-many")?.addEventListener("click", () => {
    const going = [...chosen].filter((name) => kept.get(name)?.run.state === "running");
    askToDeleteMany([...chosen].filter((name) => !going.includes(name)).sort().map((name) => kept.get(name).run), going, deleted);
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
