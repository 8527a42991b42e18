"use strict";
/* Light and dark, remembered; a script of the head of every page, so that none flashes. Plots follow by theme.js. */
(() => {
  const root = document.documentElement;
  const KEY = "soakwatch-theme";
  const wish = matchMedia("(prefers-color-scheme: dark)");

  function remembered() {
    try { return localStorage.getItem(KEY); } catch { return null; } // a page from disk may have no storage
  }

  const before = remembered();
  if (before === "light" || before === "dark") root.dataset.theme = before;

  function dark() {
    return root.dataset.theme === "dark" || (root.dataset.theme !== "light" && wish.matches);
  }

  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    if (button === null) return;
    const say = () => { button.textContent = dark() ? "Light" : "Dark"; };
    button.hidden = false;
    say();
    wish.addEventListener("change", say);
    button.addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      try { localStorage.setItem(KEY, root.dataset.theme); } catch { /* then it is for this time only */ }
      say();
    });
  });
})();
