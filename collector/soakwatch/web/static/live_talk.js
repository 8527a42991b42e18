/* Talking to the server: one answer or one sentence, never an exception. */

/* Sends and waits: {ok, status, data, error}; status 0 is a server that does not answer. With a body it is a POST. */
export async function ask(path, {body = null, timeout = 10000} = {}) {
  const given = body === null ? {} :
    {method: "POST", headers: {"content-type": "application/json"}, body: JSON.stringify(body)};
  try {
    const response = await fetch(path, {...given, signal: AbortSignal.timeout(timeout), credentials: "same-origin"});
    const json = (response.headers.get("content-type") ?? "").includes("json");
    const data = json ? await response.json() : null;
    const error = response.ok ? "" : data?.error ?? `the server answers ${response.status}`;
    return {ok: response.ok, status: response.status, data, error};
  } catch {
    return {ok: false, status: 0, data: null, error: "the server does not answer"};
  }
}

let wake = () => {};

/* Who waits for the next look at the run. */
export function onWake(told) { wake = told; }

/* Look at the run again in so many ms, if that is sooner than planned. */
export function later(ms) { wake(ms); }
