"use strict";
/* The page of a campaign: what is wider than its place scrolls by the keyboard, and while runs wait it is kept fresh. */
(() => {
  const EVERY_MS = 5000;

  function reachable() {
    for (const element of document.querySelectorAll(".scroll")) {
      const wide = element.scrollWidth > element.clientWidth + 1;
      if (wide === element.hasAttribute("tabindex")) continue;
      if (!wide) { for (const name of ["tabindex", "role", "aria-label"]) element.removeAttribute(name); continue; }
      element.tabIndex = 0;
      element.setAttribute("role", "group");
      element.setAttribute("aria-label", `${(element.querySelector("caption")?.textContent ?? "Table").trim()}, scrolls sideways`);
    }
  }

  function unfold() {
    const target = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
    for (let element = target; element !== null; element = element.parentElement) {
      if (element.tagName === "DETAILS") element.open = true;
    }
    target?.scrollIntoView();
  }

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
    reachable();
  }

  reachable();
  unfold();
  addEventListener("resize", reachable);
  addEventListener("hashchange", unfold);
  document.addEventListener("toggle", reachable, true);
  setTimeout(renew, EVERY_MS);
})();
