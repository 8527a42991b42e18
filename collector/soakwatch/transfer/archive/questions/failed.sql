-- What failed on which release, and on how many of its devices
-- in unit: worst, limit
WITH those AS (
    SELECT release, role, count(DISTINCT device) AS devices FROM runs WHERE verdict IS NOT NULL GROUP BY ALL
)
SELECT
    findings.release,
    rule,
    metric,
    coalesce(process, object) AS object,
    count(DISTINCT device) AS "failed on",
    any_value(those.devices) AS "of devices",
    count(DISTINCT (device, night)) AS nights,
    max(night) AS "last night",
    arg_max(measured, abs(measured)) AS worst,
    any_value(limit_value) AS "limit",
    any_value(unit) AS unit,
    arg_max(device || ': ' || reason, night) AS "last reason"
FROM findings
LEFT JOIN those ON those.release IS NOT DISTINCT FROM findings.release AND those.role = findings.role
WHERE outcome = 'fail'
GROUP BY findings.release, findings.role, rule, metric, coalesce(process, object)
ORDER BY findings.release, "failed on" DESC, rule, metric, object
