-- Which processes grew, by the rules of growth; with --not-in, and did not in another release
-- metrics: process.*
-- in unit: fastest
-- Undecided is neither: a series that was not judged in the other release is told apart, never taken for one that did
-- not grow. First what grew, which is little, then what else was judged of that.
WITH grown AS (
    SELECT
        metric,
        coalesce(process, object) AS process,
        list(DISTINCT device ORDER BY device) AS devices,
        max(per_hour) AS fastest,
        any_value(series_unit) || '/h' AS unit
    FROM findings
    WHERE grew AND (len($releases) = 0 OR list_contains($releases, release))
    GROUP BY ALL
),
judged AS (
    SELECT
        metric,
        coalesce(process, object) AS process,
        len($releases) = 0 OR list_contains($releases, release) AS here,
        list_contains($others, release) AS there,
        device,
        bool_or(grew) AS grew
    FROM findings
    WHERE grew IS NOT NULL AND (metric, coalesce(process, object)) IN (SELECT (metric, process) FROM grown)
    GROUP BY ALL
),
counted AS (
    SELECT
        metric,
        process,
        count(DISTINCT device) FILTER (WHERE here) AS here_on,
        count(DISTINCT device) FILTER (WHERE there) AS there_on,
        coalesce(bool_or(grew) FILTER (WHERE there), false) AS grew_there
    FROM judged
    GROUP BY ALL
)
SELECT
    process,
    metric,
    len(devices) AS "grew on",
    here_on AS "judged on",
    array_to_string(list_slice(devices, 1, 3), ', ') || CASE WHEN len(devices) > 3 THEN ' …' ELSE '' END AS devices,
    fastest,
    unit,
    CASE WHEN len($others) > 0 THEN there_on END AS "other: judged on",
    CASE WHEN len($others) > 0 AND there_on = 0
        THEN process || ' grew (' || metric || '), and was not judged in ' || array_to_string($others, ', ')
    END AS _unknown
FROM grown
JOIN counted USING (metric, process)
WHERE NOT grew_there
ORDER BY len(grown.devices) DESC, process, metric
