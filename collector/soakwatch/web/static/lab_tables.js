"use strict";
/* The tables of the queue: every text set as text. ``act(what, thing)`` is called with what is clicked. */
const labTables = (() => {
  const SYMBOLS = {fail: "✗", inconclusive: "?", pass: "✓"};

  function make(kind, text = "", name = "") {
    const element = document.createElement(kind);
    if (text !== "") element.textContent = text;
    if (name !== "") element.className = name;
    return element;
  }

  function moment(text) { return text === null ? "–" : `${text.slice(0, 16).replace("T", " ")}`; }

  function second(text) { return `${text.slice(0, 19).replace("T", " ")}`; }

  function cell(label, name, ...parts) {
    const element = make("td", "", name);
    element.setAttribute("role", "cell");
    if (label !== "") element.dataset.name = label;
    element.append(...parts.filter((part) => part !== ""));
    return element;
  }

  function row(key, ...cells) {
    const element = make("tr");
    element.setAttribute("role", "row");
    element.dataset.key = key;
    element.append(...cells);
    return element;
  }

  function button(key, text, label, act) {
    const element = make("button", text);
    element.type = "button";
    element.dataset.key = key;
    element.setAttribute("aria-label", label);
    element.addEventListener("click", act);
    return element;
  }

  function link(path, text) {
    const element = make("a");
    element.href = path;
    element.append(make("bdi", text));
    return element;
  }

  function isolated(text) { return text === "" ? "" : make("bdi", text); }

  function small(text) { return text === "" ? "" : make("div", text, "small"); }

  function asked(thing) {
    return [...Object.entries(thing.labels).map(([name, text]) => `${name}=${text}`), ...thing.set].join(", ");
  }

  function plan(thing) {
    return cell("", "plan", isolated(thing.plan), small(asked(thing)), small(thing.resumes ? `goes on with ${thing.resumes}` : ""), small(thing.note ?? ""));
  }

  function output(job) {
    if (job.state === "cancelled" || (job.state === "refused" && job.begin === null)) return "";
    const element = make("a", "output", "small");
    element.href = `/api/lab/jobs/${job.id}/log`;
    element.setAttribute("aria-label", `Output of job ${job.id}`);
    const line = make("div");
    line.append(element);
    return line;
  }

  function badge(job) {
    const word = job.verdict ?? job.state;
    const known = job.verdict ?? (job.state === "refused" || job.state === "broken off" ? "warn" : "");
    return make("span", `${SYMBOLS[job.verdict] ?? ""} ${word}`.trim(), `badge ${known}`.trim());
  }

  function table(place, caption, heads, rows, none) {
    const focused = place.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    if (rows.length === 0) {
      place.replaceChildren(make("p", none, "none"));
      return;
    }
    const element = make("table"), head = make("tr"), top = make("thead"), body = make("tbody");
    element.setAttribute("role", "table");
    for (const part of [top, body]) part.setAttribute("role", "rowgroup");
    head.setAttribute("role", "row");
    element.append(make("caption", caption, "hidden"));
    for (const text of heads) {
      const name = make("th", "", "");
      name.setAttribute("role", "columnheader");
      name.scope = "col";
      name.append(text === "" ? make("span", "Actions", "hidden") : text);
      head.append(name);
    }
    top.append(head);
    body.append(...rows);
    element.append(top, body);
    place.replaceChildren(element);
    if (focused !== undefined) (place.querySelector(`[data-key="${CSS.escape(focused)}"]`) ?? place.querySelector("button"))?.focus();
  }

  function progress(job) {
    const bar = make("progress");
    bar.max = Math.max(1, job.planned_s);
    bar.dataset.begin = job.begin;
    tick(bar);
    bar.setAttribute("aria-label", `Time of job ${job.id}`);
    return bar;
  }

  function tick(bar) { bar.value = Math.min(bar.max, Math.max(0, (Date.now() - Date.parse(bar.dataset.begin)) / 1000)); }

  function running(place, jobs, acting, act) {
    table(place, "Jobs that run", ["Job", "Plan", "Testbed", "Started", "Planned for", "By", ...(acting ? [""] : [])], jobs.map((job) => row(
      `r${job.id}`, cell("Job", "", String(job.id)), plan(job), cell("Testbed", "", job.testbed),
      cell("Started", "when", job.page === "" ? moment(job.begin) : link(job.page, moment(job.begin))),
      cell("Planned for", "when", job.planned, progress(job)), cell("By", "", isolated(job.user)),
      ...(acting ? [cell("", "acts", job.stopping ? make("span", "stopping …", "soft") : "",
        button(`stop${job.id}`, job.stopping ? "Kill …" : "Stop …", `${job.stopping ? "Kill" : "Stop"} job ${job.id}`, () => act("cancel", job)))] : []))), "Nothing runs.");
  }

  function queue(place, jobs, acting, act) {
    table(place, "Jobs that wait, in their order", ["Place", "Job", "Plan", "Testbed", "Waits for", "By", ...(acting ? [""] : [])], jobs.map((job) => row(
      `q${job.id}`, cell("Place", "", String(job.place)), cell("Job", "", String(job.id)), plan(job), cell("Testbed", "", job.testbed),
      cell("Waits for", "", job.waits), cell("By", "", isolated(job.user)),
      ...(acting ? [cell("", "acts", ...(job.place === 1 ? [] : [
        button(`up${job.id}`, "Up", `Move job ${job.id} up`, () => act("up", job)),
        button(`top${job.id}`, "Top", `Move job ${job.id} to the top`, () => act("top", job))]),
      button(`cancel${job.id}`, "Cancel …", `Cancel job ${job.id}`, () => act("cancel", job)))] : []))), "Nothing waits.");
  }

  function noted(made) {
    const notes = [];
    if (!made.enabled) notes.push(made.at === null ? "disabled" : "its time has come");
    if (made.missed.length > 0) {
      const more = made.missed_count > made.missed.length ? `${made.missed_count} times, the last ` : "";
      notes.push(`missed ${more}${made.missed.map(moment).join(", ")}: no server was running`);
    }
    if (made.trouble !== "") notes.push(made.trouble);
    return notes.join("; ");
  }

  function schedules(place, listed, acting, act) {
    table(place, "Schedules", ["Schedule", "Plan", "When", "Next", "By", "Notes", ...(acting ? [""] : [])], listed.map((made) => {
      const element = row(made.id, cell("Schedule", "", made.id), plan(made),
        cell("When", "", made.cron === "" ? `once, ${moment(made.at)}` : made.cron, small(made.cron === "" ? "" : made.zone)),
        cell("Next", "when", moment(made.next)), cell("By", "", isolated(made.user)), cell("Notes", "", noted(made)),
        ...(acting ? [cell("", "acts",
          ...(made.enabled || made.at === null ? [made.enabled ? button(`off${made.id}`, "Disable", `Disable schedule ${made.id}`, () => act("disable", made)) :
            button(`off${made.id}`, "Enable", `Enable schedule ${made.id}`, () => act("enable", made))] : []),
          button(`now${made.id}`, "Start now", `Start schedule ${made.id} now`, () => act("start", made)),
          button(`gone${made.id}`, "Remove …", `Remove schedule ${made.id}`, () => act("remove", made)))] : []));
      if (!made.enabled) element.className = "off";
      return element;
    }), "Nothing is scheduled.");
  }

  function resume(job, acting, act) {
    if (!acting || job.state !== "broken off" || job.run === "") return "";
    return button(`resume${job.id}`, "Resume", `Resume job ${job.id}`, () => act("resume", job));
  }

  function recent(place, jobs, acting, act) {
    table(place, "Jobs that have ended, the newest first", ["Job", "Verdict", "Plan", "Run", "Reason", "By", "Ended", ...(acting ? [""] : [])], jobs.map((job) => row(
      `o${job.id}`, cell("Job", "", String(job.id)), cell("", "", badge(job)), plan(job),
      cell("Run", "name", job.page === "" ? "" : link(job.page, job.run)), cell("Reason", "", isolated(job.reason), output(job)),
      cell("By", "", isolated(job.user)), cell("Ended", "when", moment(job.end)),
      ...(acting ? [cell("", "acts", resume(job, acting, act))] : []))), "Nothing has ended yet.");
  }

  function audit(place, listed) {
    table(place, "Who did what, the newest first", ["Time", "User", "Action", "Plan", "Job", "Run", "Details"], listed.map((entry) => row(
      `d${entry.id}`, cell("Time", "when", second(entry.time)), cell("User", "", isolated(entry.user), ` (${entry.role})`),
      cell("Action", "", entry.action), cell("Plan", "", isolated(entry.plan)),
      cell("Job", "", [entry.job === null ? "" : String(entry.job), entry.schedule ?? ""].filter((text) => text !== "").join(", ")),
      cell("Run", "name", isolated(entry.run)), cell("Details", "", isolated(entry.words)))), "Nobody did anything yet.");
  }

  return {running, queue, schedules, recent, audit, make, tick};
})();
