"use strict";
/* The report without its plots: what is folded, the filter, the text for an issue, what scrolls by the keyboard, paper. */
(() => {
  function unfold(hash) {
    const target = hash.length > 1 ? document.getElementById(decodeURIComponent(hash.slice(1))) : null;
    if (target === null) return;
    let folded = false;
    for (let element = target; element !== null; element = element.parentElement) {
      if (element.tagName === "DETAILS" && !element.open) { element.open = true; folded = true; }
    }
    if (folded) target.scrollIntoView();
  }

  /* What is wider than its place scrolls, and must be reached by the keyboard. */
  function reachable() {
    for (const element of document.querySelectorAll(".scroll, pre")) {
      const wide = element.scrollWidth > element.clientWidth + 1;
      if (wide === element.hasAttribute("tabindex")) continue;
      if (!wide) { element.removeAttribute("tabindex"); element.removeAttribute("role"); element.removeAttribute("aria-label"); continue; }
      element.tabIndex = 0;
      element.setAttribute("role", "group");
      const caption = element.querySelector("caption")?.textContent ?? element.closest("section")?.querySelector("h2")?.textContent;
      element.setAttribute("aria-label", `${(caption ?? "Table").trim()}, scrolls sideways`);
    }
  }

  /* The filter: leaves only what holds all its words, unfolds where that is, and puts everything back when it is empty.
     A unit is the smallest thing that makes sense alone; its text is read once. */
  const UNITS = "tbody tr, article.card, .facts > div, .panel, .grid > .card, dl.words > dt, ul.events > li, pre";
  let units = null, folds = null, asked = 0, filtering = false;
  function gather() {
    units = [];
    for (const element of document.querySelectorAll("#findings, #parts")) {
      for (const unit of element.querySelectorAll(UNITS)) {
        if (unit.parentElement.closest("article.card, tbody tr") !== null && unit.tagName !== "ARTICLE") continue;
        let text = unit.textContent;
        for (let up = unit.parentElement; up !== null; up = up.parentElement) {
          if (up.tagName === "DETAILS") text += ` ${up.firstElementChild.textContent.split(":")[0]}`; // its heading
        }
        units.push([unit, text.toLowerCase()]);
      }
    }
    folds = [...document.querySelectorAll("#findings details, #parts details")].map((one) => [one, one.open]);
  }
  function find(text) {
    const words = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
    const found = document.getElementById("found");
    if (units === null) { if (words.length === 0) return; gather(); }
    const kept = new Set();
    let hits = 0;
    for (const [unit, held] of units) {
      const hit = words.every((word) => held.includes(word));
      unit.hidden = !hit;
      if (!hit || words.length === 0) continue;
      hits += 1;
      for (let up = unit; up !== null && !kept.has(up); up = up.parentElement) kept.add(up);
    }
    const asks = words.length > 0;
    for (const [fold, open] of folds) {
      if (!fold.matches(".evidence")) fold.open = asks ? kept.has(fold) : open;
      fold.hidden = asks && !kept.has(fold) && fold.closest("article.card, tbody") === null;
    }
    for (const part of document.querySelectorAll("#findings, #parts > section")) part.hidden = asks && !kept.has(part);
    if (asks && !filtering) document.querySelector("#findings:not([hidden]), #parts > section:not([hidden])")?.scrollIntoView();
    filtering = asks;
    found.textContent = words.length === 0 ? "" : `${hits} found`;
    if (words.length === 0) { units = null; folds = null; }
  }
  function finder() {
    const input = document.getElementById("find");
    if (input === null) return;
    document.getElementById("finder").hidden = false;
    input.addEventListener("input", () => { clearTimeout(asked); asked = setTimeout(() => find(input.value), 60); });
    input.addEventListener("keydown", (event) => { if (event.key === "Escape") { input.value = ""; find(""); } });
  }

  /* A file has no clipboard of its own in some browsers: what cannot be written there is selected for Ctrl-C. */
  function copying() {
    const button = document.getElementById("copy");
    if (button === null) return;
    button.hidden = false;
    button.addEventListener("click", async () => {
      const text = document.getElementById("issue"), told = document.getElementById("copied");
      let done = false;
      try { await navigator.clipboard.writeText(text.value); done = true; } catch { /* not allowed here */ }
      if (!done) {
        text.classList.remove("unseen");
        text.select();
        done = document.execCommand("copy");
        if (done) text.classList.add("unseen"); else text.removeAttribute("aria-hidden");
      }
      told.textContent = done ? "Copied: paste it into an issue." : "Press Ctrl-C: the text is selected.";
      if (done) button.focus();
    });
  }

  /* The reader's own time beside UTC, where the two differ: below the times of the plot, behind the run's and the
     moment's. What the page says in its text is UTC and stays so. */
  function localTimes() {
    const offset = (ms) => -new Date(ms).getTimezoneOffset();
    const zone = (ms) => {
      const at = Math.abs(offset(ms));
      return `UTC${offset(ms) < 0 ? "−" : "+"}${Math.floor(at / 60)}${at % 60 ? `:${String(at % 60).padStart(2, "0")}` : ""}`;
    };
    const two = (value) => String(value).padStart(2, "0");
    const day = (at) => `${two(at.getDate())} ${at.toLocaleString("en", {month: "short"})} `;
    const clock = (ms, seconds, dated) => {
      const at = new Date(ms);
      return `${dated ? day(at) : ""}${two(at.getHours())}:${two(at.getMinutes())}${seconds ? `:${two(at.getSeconds())}` : ""}`;
    };
    for (const element of document.querySelectorAll("[data-local]")) {
      const times = element.dataset.local.split(",").map(Number);
      if (offset(times[0]) === 0) continue;
      const dated = new Date(times[0]).getDate() !== new Date(times[0]).getUTCDate() || times.at(-1) - times[0] > 72e6;
      const told = document.createElement("span");
      told.className = "soft local";
      told.textContent = ` (${times.map((ms) => clock(ms, times.length === 1, dated)).join(" to ")} local, ${zone(times[0])})`;
      element.append(told);
    }
    for (const plot of document.querySelectorAll("svg.proof")) {
      const ticks = [...plot.querySelectorAll("text[data-ms]")].map((text) => [text, Number(text.dataset.ms)]);
      if (ticks.length === 0 || offset(ticks[0][1]) === 0) continue;
      const box = plot.viewBox.baseVal;
      for (const [text, ms] of ticks) {
        const own = text.cloneNode(false);
        own.removeAttribute("data-ms");
        own.classList.add("local");
        own.setAttribute("y", Number(text.getAttribute("y")) + 14);
        own.textContent = clock(ms, /:.*:/.test(text.textContent), / /.test(text.textContent));
        plot.append(own);
      }
      plot.setAttribute("viewBox", `0 0 ${box.width} ${box.height + 14}`);
      const legend = plot.parentElement.querySelector(".legend");
      if (legend !== null && legend.querySelector(".local") === null) {
        const told = document.createElement("li");
        told.className = "local";
        told.textContent = `times: UTC, below them local (${zone(ticks[0][1])})`;
        legend.append(told);
      }
    }
  }

  function begin() {
    finder();
    localTimes();
    copying();
    addEventListener("hashchange", () => unfold(location.hash));
    unfold(location.hash);
    if (typeof requestIdleCallback === "function") requestIdleCallback(reachable); else setTimeout(reachable, 200);
    addEventListener("resize", reachable);
    document.addEventListener("toggle", reachable, true);
  }

  const opened = [];
  addEventListener("beforeprint", () => {
    for (const element of document.querySelectorAll("details:not([open]):not(.bulk), details.device.fail:not([open])")) { element.open = true; opened.push(element); }
  });
  addEventListener("afterprint", () => { while (opened.length > 0) opened.pop().open = false; });
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin); else begin();
})();
