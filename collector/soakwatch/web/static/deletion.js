"use strict";
/* The dialog that deletes a run: shows what is lost, and requires the run's name to be typed. askToDelete(run, then)
   opens it; then(name) is called when the run is deleted. */
const askToDelete = (() => {
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

  addEventListener("DOMContentLoaded", () => {
    if (byId("delete") === null) return;
    byId("delete-name").addEventListener("input", () => { byId("delete-do").disabled = byId("delete-name").value !== doomed; });
    byId("delete-cancel").addEventListener("click", () => byId("delete").close());
    byId("delete").querySelector("form").addEventListener("submit", remove);
    byId("delete").addEventListener("close", () => { doomed = null; });
  });
  return ask;
})();
