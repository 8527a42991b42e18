"use strict";
/* The dialog that deletes a run: shows what is lost, and requires the run's name to be typed. askToDelete(run, then)
   opens it; then(name) is called when the run is deleted. */
const askToDelete = (() => {
  const at = (id) => document.getElementById(id);

  function item(text) {
    const element = document.createElement("li");
    element.textContent = text;
    return element;
  }

  let doomed = null, done = () => {};

  async function ask(run, then) {
    doomed = run.run;
    done = then;
    at("delete-run").textContent = run.run;
    at("delete-reason").textContent = run.verdict === null ? "" : `${run.verdict}: ${run.reason}`;
    at("delete-name").value = "";
    at("delete-name").disabled = false;
    at("delete-error").textContent = "";
    at("delete-more").hidden = true;
    at("delete-do").disabled = true;
    at("delete-lost").replaceChildren(item("reading …"));
    at("delete").showModal();
    at("delete-name").focus();
    try {
      const answer = await fetch(`/api/runs/${encodeURIComponent(run.run)}/loss`, {cache: "no-store"});
      const loss = await answer.json();
      if (doomed !== run.run) return;
      if (!answer.ok) throw new Error(loss.error);
      at("delete-lost").replaceChildren(...loss.lost.map(item));
      const more = [];
      if (loss.lends_to.length > 0) more.push(`Its baseline is used by ${loss.lends_to.join(", ")}: they keep their copy, but no other run can use it any more.`);
      if (loss.others.length > 0) more.push(`Its folder contains files that Soakwatch did not write: ${loss.others.join(", ")}.`);
      at("delete-more").textContent = more.join(" ");
      at("delete-more").hidden = more.length === 0;
      if (loss.refusal !== "") {
        at("delete-error").textContent = `${loss.refusal}.`;
        at("delete-name").disabled = true;
      }
    } catch (error) {
      if (doomed === run.run) at("delete-error").textContent = `What is lost could not be read: ${error.message}`;
    }
  }

  async function remove(event) {
    event.preventDefault();
    const name = doomed;
    if (name === null || at("delete-name").value !== name) return;
    at("delete-do").disabled = true;
    try {
      const path = `/api/runs/${encodeURIComponent(name)}?confirm=${encodeURIComponent(name)}`;
      const answer = await fetch(path, {method: "DELETE"});
      const result = await answer.json();
      if (!answer.ok) throw new Error(result.error);
      const then = done;
      at("delete").close();
      then(name);
    } catch (error) {
      at("delete-error").textContent = `Not deleted: ${error.message}`;
      at("delete-do").disabled = false;
    }
  }

  addEventListener("DOMContentLoaded", () => {
    if (at("delete") === null) return;
    at("delete-name").addEventListener("input", () => { at("delete-do").disabled = at("delete-name").value !== doomed; });
    at("delete-cancel").addEventListener("click", () => at("delete").close());
    at("delete").querySelector("form").addEventListener("submit", remove);
    at("delete").addEventListener("close", () => { doomed = null; });
  });
  return ask;
})();
