"use strict";
/* The dialog that deletes a run: says what is lost, and wants the run's name typed. askToDelete(run, then) opens it;
   then(name) is called when the run is gone. */
const askToDelete = (() => {
  const at = (id) => document.getElementById(id);

  function item(text) {
    const made = document.createElement("li");
    made.textContent = text;
    return made;
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
    at("delete-lost").replaceChildren(item("reading what is lost …"));
    at("delete").showModal();
    at("delete-name").focus();
    try {
      const answer = await fetch(`/api/runs/${encodeURIComponent(run.run)}/loss`, {cache: "no-store"});
      const told = await answer.json();
      if (doomed !== run.run) return;
      if (!answer.ok) throw new Error(told.error);
      at("delete-lost").replaceChildren(...told.lost.map(item));
      const more = [];
      if (told.lends_to.length > 0) more.push(`Its baseline was lent to ${told.lends_to.join(", ")}: they keep the readings they were held against, but no other run can borrow it any more.`);
      if (told.others.length > 0) more.push(`In its folder lie files that Soakwatch did not write: ${told.others.join(", ")}.`);
      at("delete-more").textContent = more.join(" ");
      at("delete-more").hidden = more.length === 0;
      if (told.refusal !== "") {
        at("delete-error").textContent = `${told.refusal}.`;
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
      const told = await answer.json();
      if (!answer.ok) throw new Error(told.error);
      const then = done;
      at("delete").close();
      then(name);
    } catch (error) {
      at("delete-error").textContent = `It is not deleted: ${error.message}`;
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
