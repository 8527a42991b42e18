/* Dialogs: marking an event, acknowledging a finding, stopping the run, the keys. */
import {byId, keyed, length, make, put} from "./live_dom.js";
import {ask, later} from "./live_talk.js";

const base = `/api/runs/${encodeURIComponent(document.documentElement.dataset.run)}`;
let latest = null; // the last state
let about = null; // the finding that is being acknowledged
let opened = null; // when the dialog was opened, by the run's clock
let came = 0; // when the last state arrived, ms of this page

export const isOpen = () => document.querySelector("dialog[open]") !== null;

export function know(state) {
  latest = state;
  came = performance.now();
}

function open(id) {
  const dialog = byId(id);
  if (dialog === null || isOpen()) return false;
  put(dialog.querySelector(".error") ?? make("p"), "");
  dialog.showModal();
  return true;
}

/* Sends a form when it is submitted; the dialog stays with the sentence if that was refused. */
function sends(id, request) {
  const dialog = byId(id);
  if (dialog === null) return;
  const form = dialog.querySelector("form");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button[type=submit]");
    if (button.disabled) return;
    button.disabled = true;
    const answer = await request();
    button.disabled = false;
    if (answer.ok) { dialog.close(); form.reset(); later(0); } else put(form.querySelector(".error"), `Failed: ${answer.error}.`);
  });
}

export function mark() {
  if (latest === null || !open("mark-dialog")) return;
  opened = new Date(Date.parse(latest.now) + performance.now() - came);
  const time = byId("mark-time");
  time.dateTime = opened.toISOString();
  put(time, opened.toISOString().slice(11, 19));
  const kinds = latest.shown.kinds;
  keyed(byId("mark-kinds"), kinds, (kind) => kind, (kind) => {
    const button = make("button", {type: "button"}, kind);
    button.addEventListener("click", () => { byId("mark-kind").value = kind; byId("mark-note").focus(); });
    return button;
  }, () => {});
  const target = byId("mark-target");
  keyed(target, ["", ...latest.shown.targets], (name) => `:${name}`, (name) => make("option", {value: name}, name === "" ? "the whole run" : name), () => {});
  byId("mark-kind").focus();
}

export function acknowledge(finding) {
  if (finding === null || !open("ack-dialog")) return;
  about = finding;
  put(byId("ack-about"), `${finding.outcome}: ${finding.rule} on ${finding.target} ${finding.about}`);
  byId("ack-reason").value = finding.acknowledged?.reason ?? "";
  byId("ack-reason").focus();
}

export function stop() {
  if (latest === null || !open("stop-dialog")) return;
  put(byId("stop-left"), length(latest.left_s));
  byId("stop-reason").focus();
}

export function keys() { open("keys-dialog"); }

export function begin() {
  sends("mark-dialog", () => {
    const note = byId("mark-note").value.trim();
    return ask(`${base}/events`, {body: {
      kind: byId("mark-kind").value.trim(), at: opened.toISOString(), target: byId("mark-target").value,
      ...(note === "" ? {} : {labels: {note}}),
    }});
  });
  sends("ack-dialog", () => ask(`${base}/findings/acknowledge`, {body: {
    rule: about.rule, target: about.target, metric: about.metric, object: about.object, reason: byId("ack-reason").value.trim(),
  }}));
  sends("stop-dialog", () => ask(`${base}/stop`, {body: {reason: byId("stop-reason").value.trim()}}));
  for (const button of document.querySelectorAll("[data-close]")) {
    button.addEventListener("click", () => button.closest("dialog").close());
  }
  byId("mark-button")?.addEventListener("click", mark);
  byId("stop-button")?.addEventListener("click", stop);
  byId("keys-button").addEventListener("click", keys);
}
