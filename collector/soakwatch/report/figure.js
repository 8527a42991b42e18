"use strict";
/* One plot (plot.py has its fields), painted with uPlot: phases, load, lines, events, findings, heat maps.

   soakwatchFigure.shared(list) unpacks what several plots hold; soakwatchFigure.make(element, plot, held, axis) paints a
   plot whose points and phases are held[n] or its own, over a time axis {start, end} that plots.js moves. */
const soakwatchFigure = (() => {
  const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
  const BLACK = "#000000", GROUND = "#ffffff", GRID = "#e6e6e6", OUTLINE = "#cccccc", AXIS = "#999999", TEXT = "#444444", GREY = "#767676", NAME = "#333333";
  const DASHES = [[], [7, 4], [2, 3]];
  const NARROW = 560, TIME_ROOM = 105, LEFT = 78, RIGHT = 72, LEGEND = 22, NEAR = 24; // pixels
  const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
  const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
    ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE), ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
    ...[1, 2, 7, 14, 30, 90, 365].map((n) => n * DAY)];
  const VIRIDIS = ["#440154", "#48196b", "#462f7c", "#404387", "#38568b", "#30678d", "#29788e", "#23888d", "#1e988a", "#22a784",
    "#35b778", "#53c567", "#79d151", "#a5da35", "#d2e11b", "#fde724"];
  const SIGNS = {square_x: "⊠", diamond: "◇", triangle: "△", circle: "○", dash: "–"};
  const tint = soakwatchTheme.tint;
  const two = (value) => String(value).padStart(2, "0");
  const number = new Intl.NumberFormat("en", {maximumFractionDigits: 3});
  const small = new Intl.NumberFormat("en", {maximumSignificantDigits: 4});
  const told = (value, unit) => `${(value !== 0 && Math.abs(value) < 0.01 ? small : number).format(value)} ${unit}`.trim();

  /* --- data --- */

  /* What deflate wrote (RFC 1951). Browsers have an inflater, but it answers later, and paper does not wait. */
  function inflated(packed) {
    let out = new Uint8Array(1 << 13), length = 0, at = 0, held = 0, bits = 0;
    const fill = (count) => { for (; bits < count; bits += 8) held |= packed[at++] << bits; };
    const take = (count) => { fill(count); const value = held & (1 << count) - 1; held >>>= count; bits -= count; return value; };
    const write = (byte) => {
      if (length === out.length) { const longer = new Uint8Array(2 * length); longer.set(out); out = longer; }
      out[length++] = byte;
    };
    /* For each 15 bits that may come next: the symbol that they begin with, and how many bits it has. */
    const codes = (sizes) => {
      const table = new Uint16Array(1 << 15), next = new Uint16Array(17);
      for (const size of sizes) if (size > 0) next[size + 1] += 1;
      for (let size = 1; size < 16; size++) next[size + 1] = next[size + 1] + next[size] << 1;
      for (const [symbol, size] of sizes.entries()) {
        if (size === 0) continue;
        let turned = 0;
        for (let code = next[size]++, bit = 0; bit < size; bit++) turned = turned << 1 | code >> bit & 1;
        for (let index = turned; index < table.length; index += 1 << size) table[index] = symbol << 4 | size;
      }
      return table;
    };
    const symbol = (table) => { fill(15); const found = table[held & 0x7fff]; held >>>= found & 15; bits -= found & 15; return found >> 4; };
    for (let last = false; !last;) {
      last = take(1) === 1;
      const kind = take(2);
      if (kind === 0) {
        take(bits & 7);
        for (let left = take(16), check = take(16); left > 0 && check >= 0; left--) write(take(8));
        continue;
      }
      let sizes = [...Array(288).keys()].map((one) => one < 144 ? 8 : one < 256 ? 9 : one < 280 ? 7 : 8), many = 288;
      let apart = Array(30).fill(5);
      if (kind === 2) {
        many = take(5) + 257;
        const all = many + take(5) + 1, order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15], short = Array(19).fill(0);
        for (let left = take(4) + 4, place = 0; place < left; place++) short[order[place]] = take(3);
        const lengths = codes(short);
        sizes = [];
        while (sizes.length < all) {
          const one = symbol(lengths);
          if (one < 16) sizes.push(one);
          else if (one === 16) sizes.push(...Array(take(2) + 3).fill(sizes.at(-1)));
          else sizes.push(...Array(one === 17 ? take(3) + 3 : take(7) + 11).fill(0));
        }
        apart = sizes.slice(many);
        sizes = sizes.slice(0, many);
      }
      const literals = codes(sizes), distances = codes(apart);
      for (let one = symbol(literals); one !== 256; one = symbol(literals)) {
        if (one < 256) { write(one); continue; }
        const step = one - 257, extra = step < 8 || step === 28 ? 0 : (step >> 2) - 1;
        const run = step === 28 ? 258 : step < 8 ? step + 3 : (4 + (step & 3) << extra) + 3 + take(extra);
        const far = symbol(distances), more = far < 4 ? 0 : (far >> 1) - 1;
        const back = far < 4 ? far + 1 : (2 + (far & 1) << more) + 1 + take(more);
        for (let left = run; left > 0; left--) write(out[length - back]);
      }
    }
    return out.subarray(0, length);
  }

  /* Numbers of so many bytes each. Bytes of one weight stand together (plot.py). */
  function bytes(text, size) {
    const planes = inflated(Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0))), many = planes.length / size;
    const numbers = new Uint8Array(planes.length);
    for (let place = 0; place < size; place++) for (let index = 0; index < many; index++) numbers[index * size + place] = planes[place * many + index];
    return numbers.buffer;
  }

  /* Times are steps of so many ms from the first, or as they are. */
  function times([first, unit, text]) {
    if (first === null) return new Float64Array(bytes(text, 8));
    let at = first;
    return Float64Array.from(new Uint32Array(bytes(text, 4)), (step) => { at += step * unit; return at; });
  }

  function points(raw) {
    const held = {name: raw.name, unit: raw.unit, factor: raw.factor ?? 1, rate: raw.rate ?? false, users: new Set()};
    fill(held, times(raw.time), new Float32Array(bytes(raw.value, 4)));
    return held;
  }

  const shared = (list) => list.map((one) => Array.isArray(one) ? one : points(one));

  /* NaN breaks a line; uPlot asks for null. */
  function fill(held, time, value) {
    held.time = time;
    held.value = value;
    held.drawn = Array.from(value, (one) => Number.isNaN(one) ? null : one);
    const there = held.drawn.filter((one) => one !== null);
    held.low = there.reduce((low, one) => Math.min(low, one), Infinity);
    held.high = there.reduce((high, one) => Math.max(high, one), -Infinity);
  }

  /* Other readings for a line, in every plot that shows it. */
  function refill(held, time, value) {
    fill(held, time, value);
    for (const figure of held.users) figure.refresh();
  }

  /* The place of the last time that is not later; -1 before the first. */
  function before(time, at) {
    let low = 0, high = time.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (time[middle] <= at) low = middle + 1; else high = middle;
    }
    return low - 1;
  }

  /* --- words of the time --- */

  function clock(ms, step, days, local) {
    const at = new Date(ms), of = local ? "" : "UTC";
    const date = `${two(at[`get${of}Date`]())} ${at.toLocaleString("en", {month: "short", ...(local ? {} : {timeZone: "UTC"})})}`;
    if (step >= DAY && !local) return date;
    const time = `${two(at[`get${of}Hours`]())}:${two(at[`get${of}Minutes`]())}`;
    if (step < SECOND) return `${time}:${two(at[`get${of}Seconds`]())}.${String(at.getMilliseconds()).padStart(3, "0")}`;
    if (step < MINUTE) return `${time}:${two(at[`get${of}Seconds`]())}`;
    return days || step >= DAY ? `${date} ${time}` : time;
  }

  /* Times of an axis in UTC, below each the reader's own where his clock differs. */
  function timeWords(plot, ticks) {
    if (plot.time.unit) return ticks.map((at) => `${number.format(at)} ${plot.time.unit}`);
    const step = ticks.length > 1 ? ticks[1] - ticks[0] : HOUR;
    return ticks.map((at) => {
      const utc = clock(at, step, plot.time.days, false);
      return new Date(at).getTimezoneOffset() === 0 || step >= DAY ? utc : `${utc}\n${clock(at, step, plot.time.days, true)}`;
    });
  }

  function timeTicks(begin, end, most, unit) {
    const least = (end - begin) / most;
    const power = 10 ** Math.floor(Math.log10(least));
    const step = unit ? [1, 2, 5, 10].map((n) => n * power).find((one) => one >= least) : STEPS.find((one) => one >= least) ?? 365 * DAY;
    const ticks = [];
    for (let at = Math.ceil(begin / step) * step; at <= end; at += step) ticks.push(at);
    return ticks;
  }

  /* --- colours of a heat map --- */

  function heat(share) {
    const at = Math.max(0, Math.min(1, share)) * (VIRIDIS.length - 1), low = Math.min(Math.floor(at), VIRIDIS.length - 2);
    const part = (text, from) => parseInt(text.slice(from, from + 2), 16);
    return [1, 3, 5].map((from) => Math.round(part(VIRIDIS[low], from) + (at - low) * (part(VIRIDIS[low + 1], from) - part(VIRIDIS[low], from))));
  }

  function picture(cells) {
    const values = new Float32Array(bytes(cells.cells, 4)), bins = values.length / cells.names.length;
    const canvas = document.createElement("canvas");
    canvas.width = bins;
    canvas.height = cells.names.length;
    const image = new ImageData(bins, cells.names.length);
    const scale = cells.log ? Math.log : (value) => value;
    const low = scale(cells.low), high = scale(cells.high);
    for (const [index, value] of values.entries()) {
      if (Number.isNaN(value)) continue;
      image.data.set([...heat(cells.log && value <= 0 ? 0 : (scale(value) - low) / (high - low)), 255], 4 * index);
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
    return {values, bins, canvas};
  }

  /* --- one figure --- */

  function make(element, plot, held, axis) {
    const time = plot.time, isHeat = (plot.cells ?? null) !== null, ticks = plot.ticks ?? [];
    const phases = typeof plot.phases === "number" ? held[plot.phases] : plot.phases ?? [];
    const hidden = new Set();
    const figure = {element, plot, axis, lines: [], names: [], near: true, due: false};
    const load = plot.load ?? [], lines = plot.lines ?? [];
    const cells = isHeat ? picture(plot.cells) : null;
    figure.cells = cells;

    const series = [{}, {auto: false, facets: facets("band"), width: 0, paths: () => null, points: {show: false}}];
    const data = [null, [[time.begin, time.end], [null, null]]];
    for (const [line, scale] of [...load.map((one) => [one, "load"]), ...lines.map((one) => [one, "value"])]) {
      const its = typeof line.points === "number" ? held[line.points] : points(line.points);
      its.users.add(figure);
      const entry = {line, points: its, scale, index: [], words: line.words};
      const strokes = line.halo ? [{colour: line.halo, width: 3.5}] : [];
      for (const {colour, width} of [...strokes, {colour: line.colour, width: line.width ?? 1.4}]) {
        entry.index.push(series.length);
        series.push({
          auto: false, facets: facets(scale), stroke: () => tint(colour), width, alpha: colour === line.halo ? 1 : line.alpha ?? 1,
          dash: DASHES[line.dash ?? 0], points: {show: false}, paths: line.steps ? uPlot.paths.stepped({align: 1}) : uPlot.paths.linear(),
          ...(line.area ? {fill: () => `${tint(GREY)}24`, fillTo: 0} : {}),
        });
        data.push([its.time, its.drawn]);
      }
      figure.lines.push(entry);
    }
    const narrow = () => (figure.u?.width ?? element.clientWidth) < NARROW;
    const right = plot.load_words && load.length > 0;
    const quiet = {font: FONT, stroke: () => tint(TEXT), ticks: {stroke: () => tint(AXIS), size: 4, width: 1}, border: {show: true, stroke: () => tint(AXIS), width: 1}, gap: 3};
    const grid = {show: !isHeat, stroke: () => tint(GRID), width: 1};
    const axes = [
      {...quiet, scale: "x", grid, size: (u, values) => 22 + ((values ?? []).some((one) => one?.includes("\n")) ? 15 : 0),
        splits: (u, index, begin, end) => timeTicks(begin, end, timesFor(u), time.unit), values: (u, splits) => timeWords(plot, splits)},
      {...quiet, scale: "value", grid, size: () => plot.small ? 48 : narrow() ? 48 : LEFT - 16, ...(plot.unit && !plot.small ? {label: plot.unit, labelFont: FONT, labelSize: 16} : {}),
        ...(ticks.length > 0 ? {splits: (u, index, low, high) => ticks.filter((one) => one >= low && one <= high), filter: (u, splits) => splits, values: (u, splits) => splits.map((one) => told(one, ""))} : {}),
        ...(isHeat ? rowNames() : ticks.length > 0 ? {} : {values: (u, splits) => splits.map((one) => told(one, "")), space: plot.small ? 40 : 32})},
      ...(right ? [{...quiet, scale: "load", side: 1, grid: {show: false}, size: () => narrow() ? 46 : RIGHT - 16, stroke: () => tint(GREY),
        label: plot.load_words, labelFont: FONT, labelSize: 16, values: (u, splits) => splits.map((one) => told(one, ""))}] : []),
    ];

    function facets(scale) { return [{scale: "x", auto: false}, {scale, auto: false}]; }

    function rowNames() {
      const rows = plot.cells.names.length, every = Math.ceil(rows * 13 / (plot.height - 90));
      const shown = plot.cells.names.map((name, row) => [rows - row - 0.5, name]).filter((_, row) => row % every === 0);
      const short = (name) => name.length <= 12 ? name : `${name.slice(0, 6)}…${name.slice(-5)}`;
      return {splits: () => shown.map(([at]) => at), filter: (u, splits) => splits, values: () => shown.map(([, name]) => short(name))};
    }

    function timesFor(u) {
      const most = plot.small ? 3 : 8;
      return Math.max(2, Math.min(most, Math.floor((u.bbox.width / devicePixelRatio || u.width - LEFT - RIGHT) / TIME_ROOM)));
    }

    /* Axes of a run that goes on follow what is added to their lines. */
    function reach() {
      if (!plot.growing || isHeat) return plot.reach;
      const own = figure.lines.filter((one) => one.scale === "value").map((one) => one.points);
      const low = Math.min(...own.map((one) => one.low)), high = Math.max(...own.map((one) => one.high));
      const pad = 0.02 * (high - low);
      return Number.isFinite(pad) ? [Math.min(plot.reach[0], ticks.length > 0 ? low : low - pad), Math.max(plot.reach[1], high + 5 * pad)] : plot.reach;
    }

    function loadReach() {
      const high = Math.max(0, ...figure.lines.filter((one) => one.scale === "load").map((one) => one.points.high));
      return [0, plot.growing && high > 0 ? 1.25 * high : plot.load_high ?? 1];
    }

    /* --- painting behind and over the lines --- */

    const place = (u, ms) => u.valToPos(ms, "x", true);

    function inside(u, paint) {
      const {ctx, bbox} = u;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      paint(ctx, bbox, devicePixelRatio);
      ctx.restore();
    }

    function upright(ctx, box, at, {colour, dash = [], width = 1, alpha = 1, ratio}) {
      ctx.strokeStyle = tint(colour);
      ctx.globalAlpha = alpha;
      ctx.lineWidth = width * ratio;
      ctx.setLineDash(dash.map((one) => one * ratio));
      ctx.beginPath();
      ctx.moveTo(at, box.top);
      ctx.lineTo(at, box.top + box.height);
      ctx.stroke();
      ctx.setLineDash([]);
      ctx.globalAlpha = 1;
    }

    function behind(u) {
      const {ctx} = u;
      ctx.fillStyle = tint(GROUND);
      ctx.fillRect(0, 0, ctx.canvas.width, ctx.canvas.height);
      inside(u, (ctx, box, ratio) => {
        if (isHeat) heatMap(u, ctx, box, ratio);
        for (const {begin, end, colour, alpha} of phases) {
          const from = place(u, begin), to = place(u, end);
          ctx.globalAlpha = alpha;
          ctx.fillStyle = tint(colour);
          if (!isHeat) ctx.fillRect(from, box.top, to - from, box.height);
          for (const at of [from, to]) upright(ctx, box, at, {colour: GREY, alpha: 0.35, dash: [1, 3], ratio});
        }
      });
      ctx.strokeStyle = tint(OUTLINE);
      ctx.lineWidth = devicePixelRatio;
      ctx.strokeRect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    }

    function heatMap(u, ctx, box, ratio) {
      const {begin, end, names} = plot.cells, from = place(u, begin), to = place(u, end), row = box.height / names.length;
      const hatch = document.createElement("canvas");
      hatch.width = hatch.height = 8 * ratio;
      const lines = hatch.getContext("2d");
      lines.strokeStyle = tint(GREY);
      lines.globalAlpha = 0.4;
      lines.lineWidth = ratio;
      for (const shift of [-1, 0, 1]) { lines.moveTo(shift * hatch.width, hatch.width); lines.lineTo((shift + 1) * hatch.width, 0); }
      lines.stroke();
      ctx.fillStyle = ctx.createPattern(hatch, "repeat");
      ctx.fillRect(from, box.top, to - from, box.height); // what is later than the drawing is not drawn yet, and not missing
      ctx.imageSmoothingEnabled = false;
      for (const index of names.keys()) {
        ctx.drawImage(cells.canvas, 0, index, cells.bins, 1, from, box.top + (index + 0.06) * row, to - from, 0.94 * row);
      }
    }

    /* Words that can be read over lines, too. */
    function write(ctx, words, x, y, {colour = NAME, align = "left", base = "bottom", ground = false, style = "", ratio}) {
      ctx.font = `${style} ${FONT.replace("11px", `${11 * ratio}px`)}`;
      ctx.textAlign = align;
      ctx.textBaseline = base;
      if (ground) {
        const width = ctx.measureText(words).width, high = 12 * ratio;
        ctx.fillStyle = `${tint(GROUND)}b3`;
        ctx.fillRect(x - (align === "center" ? width / 2 : 0), y - (base === "middle" ? high / 2 : base === "top" ? 0 : high), width, high);
      }
      ctx.fillStyle = tint(colour);
      ctx.fillText(words, x, y);
    }

    function over(u) {
      inside(u, (ctx, box, ratio) => {
        const bandY = (share) => box.top + (1 - share) * box.height;
        for (const entry of figure.lines) if (entry.line.dots && !hidden.has(entry)) dots(u, ctx, entry, ratio);
        if (plot.judged && !hidden.has("judged")) bar(ctx, place(u, plot.judged[0]), place(u, plot.judged[1]), bandY(0.006), {colour: BLACK, width: 4, alpha: 0.75, ratio});
        if ((plot.limit ?? null) !== null && !hidden.has("limit")) {
          const y = u.valToPos(plot.limit, "value", true);
          bar(ctx, box.left, box.left + box.width, y, {colour: BLACK, width: 1.5, dash: [8, 3, 2, 3], ratio});
        }
        for (const trend of plot.trends ?? []) {
          if (hidden.has(trend)) continue;
          slope(ctx, [place(u, trend.begin_ms), u.valToPos(trend.begin, "value", true)], [place(u, trend.end_ms), u.valToPos(trend.end, "value", true)], {colour: BLACK, width: 1.5, dash: [6, 4], ratio});
        }
        for (const some of plot.moments ?? []) if (!hidden.has(some)) moments(u, ctx, box, some, bandY, ratio);
        for (const some of plot.spots ?? []) if (!hidden.has(some)) spots(u, ctx, some, bandY(some.height), ratio);
        for (const {line, scale} of figure.lines) {
          if (!line.mark) continue;
          const [at, value, words] = line.mark;
          const y = Math.max(u.valToPos(value, scale, true) - ratio, box.top + 13 * ratio); // whole, where a line is at the top
          write(ctx, words, place(u, at), y, {align: "center", ground: true, style: "bold", ratio});
        }
        phaseNames(u, ctx, box, ratio);
      });
    }

    function slope(ctx, [x0, y0], [x1, y1], {colour, width, dash = [], alpha = 1, ratio}) {
      ctx.strokeStyle = tint(colour);
      ctx.lineWidth = width * ratio;
      ctx.globalAlpha = alpha;
      ctx.setLineDash(dash.map((one) => one * ratio));
      ctx.beginPath();
      ctx.moveTo(x0, y0);
      ctx.lineTo(x1, y1);
      ctx.stroke();
      ctx.setLineDash([]);
      ctx.globalAlpha = 1;
    }

    function bar(ctx, from, to, y, style) { slope(ctx, [from, y], [to, y], style); }

    function dots(u, ctx, {points: its, line, scale}, ratio) {
      ctx.fillStyle = tint(line.colour);
      for (const [index, value] of its.drawn.entries()) {
        if (value === null) continue;
        ctx.beginPath();
        ctx.arc(place(u, its.time[index]), u.valToPos(value, scale, true), 2 * ratio, 0, 2 * Math.PI);
        ctx.fill();
      }
    }

    function moments(u, ctx, box, some, bandY, ratio) {
      for (const [index, one] of some.moments.entries()) {
        const at = place(u, one.begin);
        if (one.end !== null) {
          ctx.globalAlpha = one.alpha ?? 0;
          ctx.fillStyle = tint(some.colour);
          ctx.fillRect(at, box.top, place(u, one.end) - at, box.height);
          ctx.globalAlpha = 1;
        }
        upright(ctx, box, at, {colour: some.colour, width: 1.5, alpha: 0.85, dash: some.dashed ? [6, 4] : [], ratio});
        if (some.numbered) write(ctx, String(index + 1), at + 3 * ratio, bandY(0.89 - 0.09 * (index % 3)), {colour: BLACK, base: "top", style: "bold", ratio});
        if (!one.name) continue;
        ctx.save();
        ctx.translate(at - 2 * ratio, bandY(0.16));
        ctx.rotate(-Math.PI / 2);
        write(ctx, one.name, 0, 0, {colour: some.colour, ratio});
        ctx.restore();
      }
    }

    function spots(u, ctx, some, y, ratio) {
      for (const [from, to] of some.bars) bar(ctx, place(u, from), place(u, to), y, {colour: some.colour, width: 3, dash: [2, 3], ratio});
      for (const [at, numbers] of some.spots) {
        const x = place(u, at), r = 4.5 * ratio;
        ctx.fillStyle = tint(GROUND);
        ctx.strokeStyle = tint(some.colour);
        ctx.lineWidth = 1.8 * ratio;
        ctx.beginPath();
        if (some.shape === "circle") ctx.arc(x, y, r, 0, 2 * Math.PI);
        else if (some.shape === "diamond") for (const [dx, dy] of [[0, -r], [r, 0], [0, r], [-r, 0]]) ctx.lineTo(x + dx, y + dy);
        else if (some.shape === "triangle") for (const [dx, dy] of [[0, -r], [r, r], [-r, r]]) ctx.lineTo(x + dx, y + dy);
        else if (some.shape === "dash") { ctx.moveTo(x - r, y); ctx.lineTo(x + r, y); }
        else ctx.rect(x - r, y - r, 2 * r, 2 * r);
        ctx.closePath();
        ctx.fill();
        if (some.shape === "square_x") { ctx.moveTo(x - r, y - r); ctx.lineTo(x + r, y + r); ctx.moveTo(x + r, y - r); ctx.lineTo(x - r, y + r); }
        ctx.stroke();
        write(ctx, numbers, x + 7 * ratio, y, {colour: BLACK, base: "middle", ground: true, style: "bold", ratio});
      }
    }

    /* Names of phases that would lie over one another move down a row; one that would leave its plot ends with its phase. */
    function phaseNames(u, ctx, box, ratio) {
      figure.names = [];
      const ends = [];
      for (const {begin, end, name} of phases) {
        if (!name || plot.small) continue;
        ctx.font = FONT.replace("11px", `${11 * ratio}px`);
        const width = ctx.measureText(name).width + 6 * ratio, from = Math.max(place(u, begin), box.left), to = Math.min(place(u, end), box.left + box.width);
        if (to <= box.left || from >= box.left + box.width) continue;
        const atEnd = from + width > box.left + box.width && to - box.left > width;
        const left = atEnd ? to - width : from;
        const free = ends.findIndex((taken) => taken <= left), row = free < 0 ? ends.length : free;
        ends[row] = left + width;
        figure.names.push({text: name, x: atEnd ? end : begin, begin, end, align: atEnd ? "right" : "left"});
        write(ctx, name, left + 3 * ratio, box.top + (2 + 14 * row) * ratio, {base: "top", ratio});
      }
    }

    /* --- the pointer --- */

    const tip = document.createElement("div");
    tip.className = "plot-tip";
    tip.hidden = true;

    function explain(u, left, top) {
      const rows = left < 0 || plot.small && !isHeat ? [] : [...cellAt(u, left, top), ...lineAt(u, left, top), ...momentAt(u, left), ...spotAt(u, left, top)];
      tip.hidden = rows.length === 0;
      if (tip.hidden) return;
      tip.replaceChildren(...rows.map(([name, text]) => {
        const row = document.createElement("div"), term = document.createElement("b");
        term.textContent = `${name}: `;
        row.append(term, text);
        return row;
      }));
      const right = left > u.over.clientWidth / 2;
      tip.style.left = right ? "" : `${left + 14}px`;
      tip.style.right = right ? `${u.over.clientWidth - left + 14}px` : "";
      tip.style.top = `${Math.max(0, Math.min(top, u.over.clientHeight - 20 * rows.length))}px`;
    }

    const when = (at) => time.unit ? ["time", `${number.format(at)} ${time.unit}`] : ["time (UTC)", new Date(at).toISOString().replace("T", " ").slice(0, 19)];

    /* Of one line the reading nearest in time, of several the nearest that is close to the pointer. */
    function lineAt(u, left, top) {
      const at = u.posToVal(left, "x"), own = figure.lines.filter((one) => one.scale === "value" && !hidden.has(one));
      let best = null, least = own.length > 1 ? NEAR : Infinity;
      for (const entry of own) {
        const {time: times, drawn} = entry.points, near = before(times, at);
        for (const index of [near - 1, near, near + 1, near + 2]) {
          if (index < 0 || index >= times.length || drawn[index] === null) continue;
          const dx = Math.abs(u.valToPos(times[index], "x") - left), dy = own.length > 1 ? Math.abs(u.valToPos(drawn[index], "value") - top) : 0;
          if (dx < 80 && dx + dy < least) { least = dx + dy; best = [entry, index]; }
        }
      }
      if (best === null) return [];
      const [entry, index] = best;
      return [when(entry.points.time[index]), ["value", told(entry.points.drawn[index], entry.points.unit)], ...(own.length > 1 ? [["line", entry.words]] : [])];
    }

    function cellAt(u, left, top) {
      if (!isHeat) return [];
      const {begin, end, names, unit, how} = plot.cells, at = u.posToVal(left, "x");
      const bin = Math.floor((at - begin) / (end - begin) * cells.bins), row = Math.floor(top / u.over.clientHeight * names.length);
      if (bin < 0 || bin >= cells.bins || row < 0 || row >= names.length) return [];
      const value = cells.values[row * cells.bins + bin];
      return [when(begin + bin * (end - begin) / cells.bins), ["series", names[row]], [how, Number.isNaN(value) ? "not read" : told(value, unit)]];
    }

    function momentAt(u, left) {
      const found = [];
      for (const some of plot.moments ?? []) {
        for (const one of some.moments) {
          const from = u.valToPos(one.begin, "x"), to = one.end === null ? from : u.valToPos(one.end, "x");
          if (left > from - 5 && left < to + 5 && found.length < 4) found.push([some.tip, one.text]);
        }
      }
      return found;
    }

    function spotAt(u, left, top) {
      return (plot.spots ?? []).flatMap((some) => some.spots.filter(([at]) => Math.abs(u.valToPos(at, "x") - left) < 9
        && Math.abs((1 - some.height) * u.over.clientHeight - top) < 9).map(([, , text]) => [some.words.replace(": ", ", "), text]));
    }

    /* --- legend --- */

    const legend = document.createElement("div");
    legend.className = "plot-legend";
    const swatches = [];

    function named(words, key, colour, style) {
      if (!words) return;
      const item = document.createElement("button"), sign = document.createElement("i");
      item.type = "button";
      item.tabIndex = -1; // a plot with the focus hides and shows its lines by their numbers
      item.setAttribute("aria-pressed", "true");
      sign.className = style;
      if (SIGNS[style]) sign.textContent = SIGNS[style];
      item.append(sign, words);
      item.title = words;
      item.addEventListener("click", () => toggle(key, item));
      swatches.push([sign, colour]);
      legend.append(item);
      return item;
    }

    function toggle(key, item) {
      const gone = !hidden.delete(key);
      if (gone) hidden.add(key);
      item.setAttribute("aria-pressed", `${!gone}`);
      for (const index of key.index ?? []) figure.u.setSeries(index, {show: !gone});
      figure.u.redraw();
    }

    if (!plot.small) {
      const style = (line) => `line ${["", "dashed", "dotted"][line.dash ?? 0]}`;
      figure.items = figure.lines.filter((one) => one.scale === "value").map((one) => [one, named(one.words, one, one.line.colour, style(one.line))]);
      if ((plot.limit ?? null) !== null) named("limit", "limit", BLACK, "line dashed");
      for (const trend of plot.trends ?? []) named(trend.words, trend, BLACK, "line dashed");
      if (plot.judged) named("judged window", "judged", BLACK, "line thick");
      for (const one of figure.lines.filter((each) => each.scale === "load")) named(one.words, one, one.line.colour, style(one.line));
      for (const some of plot.moments ?? []) named(some.words, some, some.colour, some.dashed ? "upright dashed" : "upright");
      for (const some of plot.spots ?? []) named(some.words, some, some.colour, some.shape);
      if (isHeat) legend.append(scaleOfColours());
    }

    function scaleOfColours() {
      const box = document.createElement("span"), strip = document.createElement("i");
      box.className = "plot-colours";
      strip.style.background = `linear-gradient(to right, ${VIRIDIS.join(", ")})`;
      const {low, high, unit, log} = plot.cells;
      box.append(told(low, ""), strip, `${told(high, unit)}${log ? ", logarithmic" : ""}`);
      return box;
    }

    function shade() {
      element.style.color = tint(TEXT);
      for (const [sign, colour] of swatches) sign.style.color = tint(colour);
    }

    /* --- uPlot --- */

    const room = () => Math.max(element.clientWidth - padding(), plot.small ? 160 : 240);
    const padding = () => { const style = getComputedStyle(element); return parseFloat(style.paddingLeft) + parseFloat(style.paddingRight) || 0; };
    const none = () => null;
    element.replaceChildren();
    figure.u = new uPlot({
      mode: 2, ms: 1, width: room(), height: plot.height - (plot.small ? 0 : LEGEND), legend: {show: false}, series, axes,
      padding: [8, () => right ? 0 : plot.bordered ? (narrow() ? 62 : RIGHT) : 16, 0, 0],
      scales: {
        x: {time: false, auto: false, range: () => [axis.start, axis.end]},
        value: {auto: true, distr: ticks.length > 0 ? 3 : 1, range: reach},
        load: {auto: true, range: loadReach}, band: {auto: true, range: [0, 1]},
      },
      cursor: {y: false, points: {show: false}, drag: {x: false, y: false, setScale: false}, dataIdx: none,
        bind: {mousedown: none, mouseup: none, click: none, dblclick: none}},
      hooks: {
        drawClear: [behind], draw: [over],
        setCursor: [(u) => {
          const {left, top} = u.cursor;
          const here = u.cursor.event !== null && u.cursor.event !== undefined && u.over.matches(":hover");
          explain(u, here ? left ?? -1 : -1, top ?? -1);
          if (here) figure.pointed?.(left < 0 ? null : u.posToVal(left, "x"));
        }],
      },
    }, data, element);
    figure.u.over.append(tip);
    if (legend.childElementCount > 0) element.append(legend);
    shade();

    figure.words = (ticksOfTime) => timeWords(plot, ticksOfTime);
    figure.ticks = () => timeTicks(axis.start, axis.end, timesFor(figure.u), time.unit);
    figure.load = () => right ? loadReach()[1] : NaN;
    figure.hidden = hidden;

    /* Paint what has changed: now if somebody sees it, else when it comes near. */
    figure.paint = (force = false) => {
      if (!figure.near && !force) { figure.due = true; return; }
      figure.due = false;
      figure.u.setScale("x", {min: axis.start, max: axis.end});
    };
    figure.refresh = () => {
      for (const {points: its, index} of figure.lines) for (const at of index) data[at] = [its.time, its.drawn];
      figure.u.setData(data, false);
      figure.paint();
    };
    figure.recolour = () => { shade(); figure.paint(); };
    figure.fit = () => {
      if (element.clientWidth > 0 && room() !== figure.u.width) figure.u.setSize({width: room(), height: figure.u.height});
    };
    figure.point = (at) => {
      const left = at === null ? -10 : figure.u.valToPos(at, "x");
      figure.u.setCursor({left, top: at === null ? -10 : 0}, false);
    };
    figure.show = (digit) => {
      const found = figure.items?.[digit - 1];
      if (found !== undefined) toggle(...found);
    };
    figure.destroy = () => {
      for (const {points: its} of figure.lines) its.users.delete(figure);
      figure.u.destroy();
      legend.remove();
    };
    return figure;
  }

  return {make, shared, refill};
})();
