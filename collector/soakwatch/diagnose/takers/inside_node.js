// Runs as a program of its own beside a Node that is looked at, by that Node's own executable: asks it over its inspector.
// argv: pid, its pid in its own container, stop_s, last (1 or 0). Prints one line of JSON. The inspector is closed again at the last look.
"use strict";
const http = require("http");
const crypto = require("crypto");
const [pid, inner, stop, last] = process.argv.slice(-4).map(Number);

// What is evaluated inside the process. Sampling belongs to a session of its own there, or it would end with this program.
const inside = `(async () => {
  if (process.pid !== ${inner}) return JSON.stringify({ error: "another process answered: it has the port of the inspector" });
  const key = Symbol.for("soakwatch"), v8 = require("v8"), inspector = require("inspector");
  const out = { pid: process.pid, version: process.version, stops: [], heap: v8.getHeapStatistics(), memory: process.memoryUsage() };
  let kept = globalThis[key];
  const post = (name, given) => new Promise((done, failed) => kept.session.post(name, given, (e, r) => e ? failed(e) : done(r)));
  const timed = async (name, given) => { const begin = performance.now(); const r = await post(name, given); out.stops.push((performance.now() - begin) / 1000); return r; };
  const began = kept !== undefined;
  if (!began) {
    kept = globalThis[key] = { session: new inspector.Session(), since: Date.now() };
    kept.session.connect();
  }
  out.since = kept.since;
  if (out.heap.used_heap_size / 200e6 < ${stop}) {
    await timed("HeapProfiler.collectGarbage");
    out.collected = true;
    out.heap = v8.getHeapStatistics();
  }
  if (began) {
    const { profile } = await timed("HeapProfiler.getSamplingProfile");
    const rows = new Map(), todo = [[profile.head, null]];
    while (todo.length) {
      const [node, own] = todo.pop(), f = node.callFrame;
      const here = f.url && !f.url.startsWith("node:") ? f.url.replace("file://", "") + ":" + (f.lineNumber + 1) + " in " + (f.functionName || "(anonymous)") : own;
      if (node.selfSize) rows.set(here || f.functionName, (rows.get(here || f.functionName) || 0) + node.selfSize);
      for (const child of node.children) todo.push([child, here]);
    }
    out.lines = [...rows].sort((a, b) => b[1] - a[1]).slice(0, 300);
  }
  if (${last}) {
    if (began) {
      await post("HeapProfiler.stopSampling");
      v8.setFlagsFromString("--turbo-inlining");
      v8.setFlagsFromString("--maglev-inlining");
    }
    kept.session.disconnect();
    delete globalThis[key];
    setTimeout(() => inspector.close(), 500).unref();
  } else if (!began) {
    // A sample names the function that runs, not those that were inlined into it: until the last look none is.
    v8.setFlagsFromString("--no-turbo-inlining");
    v8.setFlagsFromString("--no-maglev-inlining");
    await post("Profiler.enable");
    await timed("Profiler.startPreciseCoverage", { callCount: false, detailed: false }); // drops the compiled code
    await post("Profiler.stopPreciseCoverage");
    await post("Profiler.disable");
    await post("HeapProfiler.startSampling", { samplingInterval: 32768 });
  }
  return JSON.stringify(out);
})()`;

function fail(text) {
  console.log(JSON.stringify({ error: String(text).slice(0, 200) }));
  process.exit(0);
}

function list(tries) {
  const again = (why) => (tries > 0 ? setTimeout(list, 100, tries - 1) : fail(why));
  const asked = http.get({ host: "127.0.0.1", port: 9229, path: "/json/list" }, (answer) => {
    let text = "";
    answer.on("data", (part) => (text += part));
    answer.on("end", () => {
      try {
        open(new URL(JSON.parse(text)[0].webSocketDebuggerUrl).pathname);
      } catch (error) {
        again(error);
      }
    });
  });
  asked.on("error", again);
}

function open(path) {
  const headers = {
    Connection: "Upgrade", Upgrade: "websocket", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": crypto.randomBytes(16).toString("base64"),
  };
  const asked = http.request({ host: "127.0.0.1", port: 9229, path, headers });
  asked.on("error", fail);
  asked.on("upgrade", (_, socket, head) => {
    let data = head;
    const take = () => {
      if (data.length < 2) return;
      let size = data[1] & 127, begin = 2;
      if (size === 126) [size, begin] = [data.readUInt16BE(2), 4];
      else if (size === 127) [size, begin] = [Number(data.readBigUInt64BE(2)), 10];
      if (data.length < begin + size) return;
      const message = JSON.parse(data.subarray(begin, begin + size).toString());
      data = data.subarray(begin + size);
      if (message.id === 1) {
        const result = message.result || {};
        if (result.exceptionDetails || !result.result) fail((result.exceptionDetails || message.error || {}).text || "refused");
        console.log(result.result.value);
        socket.destroy();
        process.exit(0);
      }
      take();
    };
    socket.on("data", (part) => { data = Buffer.concat([data, part]); take(); });
    socket.on("error", fail);
    const params = { expression: inside, includeCommandLineAPI: true, awaitPromise: true, returnByValue: true };
    const text = Buffer.from(JSON.stringify({ id: 1, method: "Runtime.evaluate", params }));
    const mask = crypto.randomBytes(4), frame = Buffer.alloc(8 + text.length);
    frame[0] = 0x81;
    frame[1] = 0xfe;
    frame.writeUInt16BE(text.length, 2);
    mask.copy(frame, 4);
    for (let n = 0; n < text.length; n++) frame[8 + n] = text[n] ^ mask[n % 4];
    socket.write(frame);
  });
  asked.end();
}

setTimeout(fail, 60000, "no answer within 60 s").unref();
process.kill(pid, "SIGUSR1");
list(300);
