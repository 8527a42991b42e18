"use strict";
/* The dialogs that delete one run, or several: they show what is lost, and require the run's name, or how many runs those are, to
   be typed. askToDelete(run, then) and askToDeleteMany(runs, going, then) open them; ``going`` are names that are left out,
   and then(...names) is called with what is deleted. */
const {askToDelete, askToDeleteMany} = (() => {
  const byId = (id) => document.getElementById(id);

  function item(text) {
    const element = document.createElement("li");
    element.textContent = text;
    return element;
  }

  let doomed = null, done = () => {};

  async function ask(run, then) {
    doomed = run.run;
    done = then;
    byId("delete-run").textContent = run.run;
    byId("delete-reason").textContent = run.verdict === null ? "" : `${run.verdict}: ${run.reason}`;
    byId("delete-name").value = "";
    byId("delete-name").disabled = false;
    byId("delete-error").textContent = "";
    byId("delete-more").hidden = true;
    byId("delete-do").disabled = true;
    byId("delete-lost").replaceChildren(item("reading …"));
    byId("delete").showModal();
    byId("delete-name").focus();
    try {
      const answer = await fetch(`/api/runs/${encodeURIComponent(run.run)}/loss`, {cache: "no-store"});
      const loss = await answer.json();
      if (doomed !== run.run) return;
      if (!answer.ok) throw new Error(loss.error);
      byId("delete-lost").replaceChildren(...loss.lost.map(item));
      const more = [];
      if (loss.lends_to.length > 0) more.push(`Its baseline is used by ${loss.lends_to.join(", ")}: they keep their copy, but no other run can use it any more.`);
      if (loss.others.length > 0) more.push(`Its folder contains files that Soakwatch did not write: ${loss.others.join(", ")}.`);
      byId("delete-more").textContent = more.join(" ");
      byId("delete-more").hidden = more.length === 0;
      if (loss.refusal !== "") {
        byId("delete-error").textContent = `${loss.refusal}.`;
        byId("delete-name").disabled = true;
      }
    } catch (error) {
      if (doomed === run.run) byId("delete-error").textContent = `What is lost could not be read: ${error.message}`;
    }
  }

  async function remove(event) {
    event.preventDefault();
    const name = doomed;
    if (name === null || byId("delete-name").value !== name) return;
    byId("delete-do").disabled = true;
    try {
      const path = `/api/runs/${encodeURIComponent(name)}?confirm=${encodeURIComponent(name)}`;
      const answer = await fetch(path, {method: "DELETE"});
      const result = await answer.json();
      if (!answer.ok) throw new Error(result.error);
      const then = done;
      byId("delete").close();
      then(name);
    } catch (error) {
      byId("delete-error").textContent = `Not deleted: ${error.message}`;
      byId("delete-do").disabled = false;
    }
  }

  let many = [], allDone = () => {};

  function askMany(runs, going, then) {
    many = runs.map((run) => run.run);
    allDone = then;
    byId("many-title").textContent = `Delete ${many.length} ${many.length === 1 ? "run" : "runs"}?`;
    const bytes = runs.reduce((sum, run) => sum + run.bytes, 0);
    byId("many-sum").textContent = `${(bytes / 2 ** 20).toLocaleString("en", {maximumFractionDigits: 1})} MiB of records, with all that lies in their folders.`;
    byId("many-names").replaceChildren(...runs.map((run) => item(`${run.run}${run.verdict === null ? "" : `, ${run.verdict}`}`)));
    byId("many-going").hidden = going.length === 0;
    byId("many-going").textContent = `Still being written, and left as it is: ${going.join(", ")}.`;
    byId("many-number").value = "";
    byId("many-error").textContent = "";
    byId("many-do").disabled = true;
    byId("many").showModal();
    byId("many-number").focus();
  }

  async function removeMany(event) {
    event.preventDefault();
    if (many.length === 0 || byId("many-number").value.trim() !== String(many.length)) return;
    byId("many-do").disabled = true;
    const gone = [], kept = [];
    for (const name of many) {
      try {
        const path = `/api/runs/${encodeURIComponent(name)}?confirm=${encodeURIComponent(name)}`;
        const answer = await fetch(path, {method: "DELETE"});
        const result = await answer.json();
        if (!answer.ok) throw new Error(result.error);
        gone.push(name);
      } catch (error) {
        kept.push(`${name}: ${error.message}`);
      }
      byId("many-sum").textContent = `${gone.length} of ${many.length} deleted …`;
    }
    if (gone.length > 0) allDone(...gone);
    if (kept.length === 0) { byId("many").close(); return; }
    many = [];
    byId("many-names").replaceChildren(...kept.map(item));
    byId("many-error").textContent = `Not deleted: ${kept.length} of them, for these reasons. ${gone.length} are gone.`;
  }

  addEventListener("DOMContentLoaded", () => {
    if (byId("delete") === null) return;
    byId("delete-name").addEventListener("input", () => { byId("delete-do").disabled = byId("delete-name").value !== doomed; });
    byId("delete-cancel").addEventListener("click", () => byId("delete").close());
    byId("delete").querySelector("form").addEventListener("submit", remove);
    byId("delete").addEventListener("close", () => { doomed = null; });
    byId("many-number").addEventListener("input", () => { byId("many-do").disabled = byId("many-number").value.trim() !== String(many.length); });
    byId("many-cancel").addEventListener("click", () => byId("many").close());
    byId("many").querySelector("form").addEventListener("submit", removeMany);
    byId("many").addEventListener("close", () => { many = []; });
  });
  return {askToDelete: ask, askToDeleteMany: askMany};
})();
