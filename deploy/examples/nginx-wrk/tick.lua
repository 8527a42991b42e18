-- One JSON line per wrk run, in the catalogue's names, for Soakwatch's source `command`.
-- delay() keeps each connection to one request per PAUSE_MS, so that the load is a rate and not all the CPU there is.
local pause_ms = tonumber(os.getenv("PAUSE_MS") or "20")

function delay()
  return pause_ms
end

function done(summary, latency, requests)
  local seconds = summary.duration / 1e6
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format(
    '{"load.request.rate": %.3f, "load.failure.rate": %.3f, "load.latency{quantile=p50}": %.6f,' ..
    ' "load.latency{quantile=p99}": %.6f, "load.latency{quantile=max}": %.6f}\n',
    summary.requests / seconds, failed / seconds,
    latency:percentile(50) / 1e6, latency:percentile(99) / 1e6, latency.max / 1e6))
end
