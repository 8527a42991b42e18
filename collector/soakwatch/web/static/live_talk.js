/* Requests to the server: an answer or an error sentence, never an exception. */

/* Sends and waits: {ok, status, data, error}; status 0 is a server that does not answer. With a body it is a POST. */
export async function ask(path, {body = null, timeout = 10000} = {}) {
  const given = body === null ? {} :
    {method: "POST", headers: {"content-type": "application/json"}, body: JSON.stringify(body)};
  try {
    const response = await fetch(path, {...given, signal: AbortSignal.timeout(timeout), credentials: "same-origin"});
    const json = (response.headers.get("content-type") ?? "").includes("json");
    const data = json ? await response.json() : null;
    const error = response.ok ? "" : data?.error ?? `the server answered with status ${response.status}`;
    return {ok: response.ok, status: response.status, data, error};
  } catch {
    return {ok: false, status: 0, data: null, error: "the server does not answer"};
  }
}

let wake = () => {};

/* Sets the function that schedules the next request for the state. */
export function onWake(listener) { wake = listener; }

/* Request the state again in so many ms, if that is sooner than planned. */
export function later(ms) { wake(ms); }
