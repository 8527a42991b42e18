-- What the devices dropped by their own counters, night by night
-- metrics: $drops
-- in unit: dropped
SELECT
    night,
    release,
    device,
    metric,
    sum(increase) AS dropped,
    any_value(unit) AS unit,
    count(*) FILTER (WHERE increase > 0) AS "counters that rose",
    count(increase) AS "counters read",
    sum(restarts)::BIGINT AS restarts,
    min(coverage) AS coverage,
    CASE WHEN count(increase) = 0
        THEN device || ', ' || night || ': ' || metric || ' was read too rarely: not known'
    END AS _unknown
FROM series
WHERE kind = 'counter'
GROUP BY night, release, device, metric
ORDER BY night, dropped DESC NULLS LAST, device, metric
