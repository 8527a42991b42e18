"use strict";
/* The page of a campaign: while runs wait it is kept fresh. What is folded and what scrolls is as in a report. */
(() => {
  const EVERY_MS = 5000;

  async function renew() {
    const here = document.getElementById("campaign");
    if (here === null || here.dataset.live !== "yes") return;
    if (!document.hidden) {
      try {
        const answer = await fetch(location.pathname, {headers: {accept: "text/html"}});
        const there = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("campaign");
        if (answer.ok && there !== null && there.innerHTML !== here.dataset.was) put(here, there);
      } catch { /* the server is away: what is shown stays */ }
    }
    setTimeout(renew, EVERY_MS);
  }

  function put(here, there) {
    const open = [...here.querySelectorAll("details")].map((one) => one.open);
    const focused = here.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    here.dataset.was = there.innerHTML;
    here.dataset.live = there.dataset.live;
    here.replaceChildren(...there.childNodes);
    [...here.querySelectorAll("details")].forEach((one, index) => { one.open = open[index] ?? one.open; });
    if (focused !== null) [...here.querySelectorAll("a")].find((one) => one.getAttribute("href") === focused)?.focus({preventScroll: true});
    dispatchEvent(new Event("resize")); // for report.js: what is wide may be another table
  }

  setTimeout(renew, EVERY_MS);
})();
