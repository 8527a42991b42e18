"use strict";
/* The cells of one run of the list. ``page`` says what is selected and sought, and does what is clicked. */
const runRow = (() => {
  const SVG = "http://www.w3.org/2000/svg", MAX_CHIPS = 4, MAX_TARGETS = 3;
  const SYMBOLS = {fail: "✗", inconclusive: "?", warn: "!", pass: "✓"};

  /* --- small things --- */

  function make(kind, text = "", name = "") {
    const element = document.createElement(kind);
    if (text !== "") element.textContent = text;
    if (name !== "") element.className = name;
    return element;
  }

  function isolated(text, name = "") { return make("bdi", text, name); }

  function badge(word, symbol = SYMBOLS[word] ?? "") {
    return make("span", `${symbol} ${word}`.trim(), `badge ${word in SYMBOLS ? word : ""}`.trim());
  }

  function verdictOf(run) { return run.verdict ?? "not judged"; }

  function sparkline(spark) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 120 28");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `${spark.target} ${spark.about}, from ${spark.reach}`);
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", spark.path);
    svg.append(path);
    return svg;
  }

  /* --- one row --- */

  function cell(name, label, ...parts) {
    const element = make("td", "", name);
    element.setAttribute("role", "cell");
    if (label !== "") element.dataset.name = label;
    element.append(...parts);
    return element;
  }

  function box(run, page) {
    const input = make("input");
    input.type = "checkbox";
    input.checked = page.chosen.has(run.run);
    input.disabled = run.state === "unreadable";
    input.dataset.key = "box";
    input.dataset.run = run.run;
    input.setAttribute("aria-label", `Select ${run.run}`);
    input.addEventListener("change", () => page.choose([run.run], input.checked));
    return input;
  }

  function link(run) {
    const element = make("a", "");
    element.append(isolated(run.run));
    element.href = `/runs/${encodeURIComponent(run.run)}/`;
    element.dataset.key = "link";
    return element;
  }

  function standing(run) {
    if (run.state !== "running") {
      const parts = run.state === "unreadable" ? [badge("unreadable", "✗")] : [badge(verdictOf(run))];
      if (run.state === "broken off") parts.push(document.createTextNode(" "), badge("broken off", "–"));
      return parts;
    }
    const parts = [badge("running", "▶")];
    if (run.planned_s > 0 && run.seconds !== null) {
      const bar = make("progress");
      bar.max = run.planned_s;
      bar.value = Math.min(run.seconds, run.planned_s);
      bar.setAttribute("aria-label", `Progress of ${run.run}`);
      parts.push(bar, make("span", `${run.duration} of ${run.planned}`, "small"));
    }
    return parts;
  }

  function worst(run) {
    if (run.trouble !== null) return [make("span", run.trouble, "flag")];
    if (run.worst === null) return [make("span", run.verdict === "pass" ? "no findings" : "none", "soft")];
    const finding = run.worst;
    const head = make("div");
    head.append(badge(finding.outcome, finding.symbol), " ", isolated(finding.title));
    head.title = `${finding.rule} on ${finding.target}`;
    const why = make("div", "", "why");
    why.append(isolated(finding.reason));
    why.title = finding.reason;
    return [head, why];
  }

  function spark(run) {
    if (!run.spark) return [];
    const about = make("span", "", "small cut");
    about.append(isolated(run.spark.target), " ", isolated(run.spark.about));
    about.title = `${run.spark.target} ${run.spark.about}`;
    return [sparkline(run.spark), about, make("span", run.spark.reach, "small cut")];
  }

  /* The devices; generators and monitors are in the tool tip. */
  function targets(run) {
    const list = make("span");
    const all = run.targets ?? [];
    const devices = all.filter((target) => target.role === "dut");
    const shown = (devices.length > 0 ? devices : all).slice(0, MAX_TARGETS);
    for (const [n, target] of shown.entries()) list.append(n > 0 ? ", " : "", isolated(target.name, "name"));
    const more = all.length - shown.length;
    if (more > 0) list.append(make("span", ` + ${more}`, "soft"));
    list.title = all.slice(0, 40).map((target) => `${target.name} (${target.role})`).join(", ");
    return list;
  }

  /* A label: clicked, it is searched for, and once more it is not. */
  function labelChip(name, text, page, ...parts) {
    const chip = make("button", "", "chip");
    const wish = `${name}:${/[\s"]/.test(text) ? `"${text.replaceAll('"', "")}"` : text}`;
    chip.type = "button";
    chip.dataset.key = `label ${name}`;
    chip.dataset.wish = wish;
    chip.append(...parts, isolated(text));
    chip.title = `${name}: ${text}`;
    chip.setAttribute("aria-label", `${name} ${text}`);
    chip.setAttribute("aria-pressed", String(page.wishes().includes(wish)));
    chip.addEventListener("click", () => page.wish(wish));
    return chip;
  }

  const isRelease = (run, name, text) => name === "release" && text === run.release; // which has a column

  function release(run, page) {
    if (!run.release) return [];
    return [run.labels?.release === run.release ? labelChip("release", run.release, page) : isolated(run.release)];
  }

  /* The labels that have no column: the first ones, unless all are wanted. */
  function labels(run, page) {
    const all = Object.entries(run.labels ?? {}).filter(([name, text]) => !isRelease(run, name, text));
    if (all.length === 0) return [];
    const list = make("div", "", "labels");
    const shown = page.unfolded.has(run.run) || all.length <= MAX_CHIPS + 1 ? all : all.slice(0, MAX_CHIPS);
    for (const [name, text] of shown) {
      list.append(labelChip(name, text, page, make("span", name, "soft"), " "));
    }
    if (shown.length < all.length) {
      const rest = all.slice(shown.length);
      const more = make("button", `+ ${rest.length}`, "more");
      more.type = "button";
      more.dataset.key = "labels";
      more.title = rest.map(([name, text]) => `${name}: ${text}`).join(", ");
      more.setAttribute("aria-label", `Show ${rest.length} more labels of ${run.run}`);
      more.addEventListener("click", () => page.unfold(run.run, `label ${CSS.escape(rest[0][0])}`));
      list.append(more);
    }
    return [list];
  }

  function cells(run, page) {
    const named = make("div", "", "small");
    named.append("plan ", isolated(run.name, "name"));
    const known = run.trouble === null;
    const columns = [
      cell("box", "", box(run, page)), cell("verdict", "", ...standing(run)),
      cell("run", "", link(run), ...(known && run.name !== run.run ? [named] : []), ...note(run), ...labels(run, page)),
      cell("release", "Release", ...release(run, page)),
      cell("targets", "Targets", ...(run.targets?.length ? [targets(run)] : [])),
      cell("keep begin", "Start", ...(run.began ? [run.began.slice(0, 16)] : [])),
      cell("num", "Length", ...(run.duration ? [run.duration] : [])), cell("worst", "", ...worst(run)),
      cell("spark", "", ...spark(run)), cell("num", "Coverage", ...(run.covered ? [run.covered] : [])),
      cell("num", "Size", run.size)
    ];
    if (run.began) columns[5].title = `${run.began} UTC`;
    if (run.covered) columns[9].title = run.uncovered;
    if (page.acting) columns.push(cell("gone", "", deleteButton(run, page)));
    return columns;
  }

  function note(run) {
    if (!run.note) return [];
    const words = make("div", "", "small");
    words.append(isolated(run.note));
    return [words];
  }

  function deleteButton(run, page) {
    const button = make("button", "Delete…", "delete");
    button.type = "button";
    button.dataset.key = "delete";
    button.disabled = run.state === "running";
    button.setAttribute("aria-label", `Delete ${run.run} …`);
    if (button.disabled) button.title = "This run is still being written: stop it first";
    button.addEventListener("click", () => page.erase(run));
    return button;
  }

  return {SVG, cells, make, isolated, badge, verdictOf};
})();
