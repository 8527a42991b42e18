"use strict";
/* The page of the queue: asks for its state, draws what changed, and sends what is asked for. lab_tables.js draws. */
(() => {
  const SHOWN = 25, CALM = 3000, WORST = 30000; // entries of the audit at first; milliseconds until the next question
  const byId = (id) => document.getElementById(id);
  const form = byId("order"), acting = form !== null;
  const drawn = {}; // by table, the JSON of what it shows
  let tag = "", timer = 0, failed = 0, older = [], newest = [], plans = [];

  async function send(method, path, body) {
    const answer = await fetch(path, {method, headers: {"content-type": "application/json"}, credentials: "same-origin",
      ...(method === "GET" ? {} : {body: JSON.stringify(body ?? {})})});
    const data = await answer.json();
    if (!answer.ok) throw new Error((data.problems ?? [data.error]).join("\n"));
    return data;
  }

  /* --- what is there --- */

  function draw(name, data, how) {
    const text = JSON.stringify(data);
    if (drawn[name] === text) return;
    drawn[name] = text;
    how();
  }

  function number(count, word) { return `${count} ${word}`; }

  function take(state) {
    draw("running", state.running, () => labTables.running(byId("running"), state.running, acting, act));
    draw("queue", state.queue, () => labTables.queue(byId("queue"), state.queue, acting, act));
    draw("schedules", state.schedules, () => labTables.schedules(byId("schedules"), state.schedules, acting, act));
    draw("recent", state.recent, () => labTables.recent(byId("recent"), state.recent, acting, act));
    byId("trouble").hidden = state.trouble === "";
    byId("trouble").textContent = state.trouble === "" ? "" : `The queue is not worked on: ${state.trouble}. What runs goes on.`;
    newest = state.audit;
    drawAudit();
    const words = `${number(state.running.length, "running")}, ${number(state.queue.length, "waiting")}, ${number(state.schedules.length, state.schedules.length === 1 ? "schedule" : "schedules")}`;
    if (byId("count").textContent !== words) byId("count").textContent = words;
  }

  function drawAudit() {
    const last = newest.length > 0 ? newest[newest.length - 1].id : Infinity;
    const all = [...newest, ...older.filter((entry) => entry.id < last)];
    draw("audit", all, () => labTables.audit(byId("audit"), all));
    byId("older").hidden = all.length === 0 || all[all.length - 1].id <= 1 || newest.length < SHOWN;
  }

  async function ask() {
    clearTimeout(timer);
    try {
      const answer = await fetch("/api/lab", {headers: tag === "" ? {} : {"if-none-match": tag}, cache: "no-store", credentials: "same-origin"});
      if (answer.status === 401) { location.reload(); return; }
      if (answer.status !== 304) {
        if (!answer.ok) throw new Error(`the server answered with status ${answer.status}`);
        tag = answer.headers.get("etag") ?? "";
        take(await answer.json());
      }
      document.querySelectorAll("progress").forEach(labTables.tick);
      failed = 0;
      byId("lost").hidden = true;
    } catch (error) {
      failed += 1;
      byId("lost").textContent = `The server does not answer (${error.message}). What runs goes on; this page asks again.`;
      byId("lost").hidden = failed < 2;
    }
    later(document.hidden ? WORST : Math.min(WORST, CALM * 2 ** Math.min(failed, 4)));
  }

  function later(ms) {
    clearTimeout(timer);
    timer = setTimeout(ask, ms);
  }

  byId("older").addEventListener("click", async () => {
    const all = [...newest, ...older];
    const answer = await send("GET", `/api/lab/audit?before=${all[all.length - 1].id}&limit=100`);
    older = [...older, ...answer.audit];
    drawAudit();
    if (answer.audit.length === 0) byId("older").hidden = true;
  });

  /* --- what is asked for --- */

  let doomed = null;

  function act(what, thing) {
    const path = {up: `jobs/${thing.id}/move`, top: `jobs/${thing.id}/move`, resume: `jobs/${thing.id}/resume`}[what] ?? `schedules/${thing.id}/${what}`;
    if (what === "cancel" || what === "remove") { sure(what, thing); return; }
    send("POST", `/api/lab/${path}`, what === "up" || what === "top" ? {to: what} : {}).then(() => told(""), (error) => told(error.message)).finally(() => later(0));
  }

  function told(problem) { byId("wrong").textContent = problem === "" ? "" : `${problem}`; }

  function sure(what, thing) {
    const runs = what === "cancel" && thing.state === "running", kills = runs && thing.stopping;
    doomed = {what, thing};
    const name = what === "remove" ? `schedule ${thing.id}` : `job ${thing.id}`;
    byId("sure-title").textContent = `${what === "remove" ? "Remove" : kills ? "Kill" : runs ? "Stop" : "Cancel"} ${name} (${thing.plan})?`;
    byId("sure-words").textContent = what === "remove" ? "It queues nothing any more. Jobs that it has queued stay." :
      kills ? "It was asked to stop. If it still runs a minute after that, its processes are killed: what was recorded is kept, and Resume goes on with it." :
        runs ? "It ends after its last polls, and is judged by what it has." : "It leaves the queue.";
    byId("sure-why").hidden = what === "remove";
    byId("sure-reason").value = "";
    byId("sure-error").textContent = "";
    byId("sure-do").textContent = what === "remove" ? "Remove" : kills ? "Kill" : runs ? "Stop" : "Cancel the job";
    byId("sure").showModal();
    (what === "remove" ? byId("sure-no") : byId("sure-reason")).focus();
  }

  async function confirmed(event) {
    event.preventDefault();
    const {what, thing} = doomed;
    try {
      if (what === "remove") await send("DELETE", `/api/lab/schedules/${thing.id}`);
      else await send("POST", `/api/lab/jobs/${thing.id}/cancel`, {reason: byId("sure-reason").value});
      byId("sure").close();
    } catch (error) {
      byId("sure-error").textContent = error.message;
    }
    later(0);
  }

  /* --- the form --- */

  function listed(text, between) { return text.split(between).map((word) => word.trim()).filter((word) => word !== ""); }

  function chosen() { return plans.find((one) => one.plan === byId("plan").value); }

  function about() {
    const one = chosen();
    byId("about").textContent = one === undefined ? "" : one.trouble !== "" ? `It cannot be run: ${one.trouble}` :
      `${one.kind === "campaign" ? "Campaign" : "Run"} ${one.name} on ${one.testbed}, ${one.planned} long.`;
    for (const id of ["labels-of", "set-of"]) byId(id).hidden = one?.kind === "campaign";
    byId("do").disabled = one === undefined || one.trouble !== "";
  }

  async function readPlans() {
    try {
      plans = (await send("GET", "/api/lab/plans")).plans;
      plans.sort((one, other) => (one.trouble !== "") - (other.trouble !== "")); // those that can be run come first
    } catch (error) {
      told(`The plans could not be read: ${error.message}`);
      return;
    }
    const was = byId("plan").value;
    byId("plan").replaceChildren(...plans.map((one) => {
      const option = labTables.make("option", `${one.plan}${one.trouble === "" ? "" : " (cannot be run)"}`);
      option.value = one.plan;
      return option;
    }));
    if (plans.length === 0) byId("plan").append(labTables.make("option", "the folder has no plans"));
    if (plans.some((one) => one.plan === was)) byId("plan").value = was;
    about();
  }

  async function submit(event) {
    event.preventDefault();
    const when = byId("when").value, one = chosen();
    if (one === undefined) return;
    const labels = Object.fromEntries(listed(byId("labels").value, ",").map((word) => [word.split("=")[0], word.split("=").slice(1).join("=")]));
    const order = one.kind === "campaign" ? {plan: one.plan} : {plan: one.plan, labels, set: listed(byId("set").value, "\n")};
    byId("said").textContent = "";
    told("");
    byId("do").disabled = true;
    try {
      if (when === "now") {
        const job = await send("POST", "/api/lab/jobs", order);
        byId("said").textContent = `Job ${job.id} is queued.`;
      } else {
        if (when === "at" && byId("at").value === "") throw new Error("Choose a time.");
        const time = when === "at" ? {at: new Date(byId("at").value).toISOString()} : {cron: byId("cron").value, zone: byId("zone").value};
        const made = await send("POST", "/api/lab/schedules", {...order, ...time});
        byId("said").textContent = `Schedule ${made.id} is made, next at ${made.next.slice(0, 16).replace("T", " ")} UTC.`;
      }
    } catch (error) {
      told(error.message);
    }
    byId("do").disabled = false;
    later(0);
  }

  if (acting) {
    byId("when").addEventListener("change", () => {
      for (const label of document.querySelectorAll("[data-when]")) label.hidden = label.dataset.when !== byId("when").value;
    });
    byId("plan").addEventListener("change", about);
    form.addEventListener("submit", submit);
    byId("sure").querySelector("form").addEventListener("submit", confirmed);
    byId("sure-no").addEventListener("click", () => byId("sure").close());
    readPlans();
  }
  addEventListener("visibilitychange", () => { if (!document.hidden) later(0); });
  ask();
})();
