// A made program in Node: made.js KIND SECONDS VARIANT. What leaks is in functions whose names begin with leak.
"use strict";
const [kind, seconds, variant] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const kept = [], table = new Map(), handlers = [], cache = new Map();
let chain = null, n = 0;

function busy() { for (let i = 0; i < 40; i++) cache.set((n * 40 + i) % 1000, new Array(250 + (i % 10)).fill(n)); }
function leakArray() { kept.push(new Array(125).fill(n)); }
function leakEntry(i) { table.set(`${n}-${i}`, new Array(120).fill(i)); }
function leakChain() { chain = { behind: chain, load: new Array(120).fill(n) }; }
function leakHandler() { const load = new Array(120).fill(n); handlers.push(() => load.length); }
function leakText(i) { kept.push(Array.from({ length: 8 }, (_, k) => ({ n, i, k, at: n + k / 3 }))); }
function leakNumbers() { kept.push(new Float64Array(new Array(100).fill(n + 0.5)), new Array(100).fill(n + 0.5)); }
const leaks = [leakArray, leakEntry, leakChain, leakHandler, leakText, leakNumbers];

function level(mib) {
  const wanted = Math.floor((mib * 1048576) / 4000);
  while (kept.length < wanted) kept.push(new Array(500).fill(n));
  kept.length = wanted;
}

const begin = performance.now();
setInterval(() => {
  n++;
  const part = (performance.now() - begin) / 1000 / seconds;
  if (part > 2) process.exit(0);
  if (kind === "leak") { busy(); for (let i = 0; i < 20; i++) leaks[variant % 6](i); }
  else if (kind === "cache") { busy(); level(Math.min(part / 0.5, 1) * 16); }
  else if (kind === "warm-up") { busy(); level(16 * (1 - Math.exp(-part / 0.05))); }
  else if (kind === "load") level(4 + 16 * (0.5 + 0.5 * Math.sin(2 * Math.PI * Date.now() / 1000 / seconds * 1.3)));
  else if (part < 0.35) for (let i = 0; i < 40; i++) kept.push(new Array(500).fill(n));
  else kept.length = 0;
}, 20);
