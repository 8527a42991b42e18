/* Making and changing elements. Whatever comes from a run is text and nothing else. */

export const byId = (id) => document.getElementById(id);

/* An element with attributes and children; a string is text. Null children are left out. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/* Changes a text only if it is another one: what is read aloud is not read again. */
export function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function show(element, wanted) {
  if (element.hidden === wanted) element.hidden = !wanted;
}

/* A name of a run, a device, a process: it may be written from right to left. */
export const name = (text) => make("bdi", {class: "name"}, text);

/* Makes the children of a list those of rows, by key. What is there already is changed in place and keeps the focus;
   what has the focus is not moved. build(row) makes an element, change(element, row) brings it up to date. */
export function keyed(list, rows, keyOf, build, change) {
  const there = new Map([...list.children].map((child) => [child.dataset.key, child]));
  let cursor = list.firstElementChild;
  for (const row of rows) {
    const key = keyOf(row);
    let element = there.get(key);
    if (element === undefined) {
      element = build(row);
      element.dataset.key = key;
    }
    there.delete(key);
    change(element, row);
    if (element === cursor) {
      cursor = cursor.nextElementSibling;
    } else if (element.parentNode === list && element.contains(document.activeElement)) {
      while (cursor !== null && cursor !== element) { // the others go round it
        const next = cursor.nextElementSibling;
        list.append(cursor);
        cursor = next;
      }
      cursor = element.nextElementSibling;
    } else {
      list.insertBefore(element, cursor);
    }
  }
  for (const gone of there.values()) gone.remove();
}

/* Seconds in few words: 5 d 4 h, 72 h, 5 min 7 s. */
export function length(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const d = whole < 4 * 86400 ? 0 : Math.floor(whole / 86400);
  const [h, m, s] = [Math.floor(whole / 3600) - 24 * d, Math.floor(whole / 60) % 60, whole % 60];
  if (d > 0) return h > 0 ? `${d} d ${h} h` : `${d} d`;
  if (h > 0) return m > 0 ? `${h} h ${m} min` : `${h} h`;
  if (m > 0) return s > 0 && m < 10 ? `${m} min ${s} s` : `${m} min`;
  return `${s} s`;
}

/* The clock in UTC of a time in ms, with the day where it is not today. */
export function clock(ms) {
  const text = new Date(ms).toISOString();
  const today = new Date().toISOString().slice(0, 10);
  return text.slice(0, 10) === today ? text.slice(11, 19) : `${text.slice(5, 10)} ${text.slice(11, 19)}`;
}

/* How far the reader's clock is from UTC at a time in ms: "UTC+5:30"; empty where it is UTC. */
export function zone(ms) {
  const minutes = -new Date(ms).getTimezoneOffset(), size = Math.abs(minutes), rest = size % 60;
  return minutes === 0 ? "" : `UTC${minutes < 0 ? "−" : "+"}${Math.floor(size / 60)}${rest === 0 ? "" : `:${String(rest).padStart(2, "0")}`}`;
}

/* The clock in UTC with the reader's own beside it, where the two differ: "10:14:22 UTC (15:44:22 local)". */
export function both(ms) {
  if (zone(ms) === "") return `${clock(ms)} UTC`;
  const at = new Date(ms), two = (value) => String(value).padStart(2, "0");
  return `${clock(ms)} UTC (${[at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":")} local)`;
}

export function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let index = 0;
  for (; number >= 1024 && index < units.length - 1; index += 1) number /= 1024;
  return `${index === 0 || number >= 999.5 ? number.toFixed(0) : Number(number.toPrecision(3))} ${units[index]}`;
}
