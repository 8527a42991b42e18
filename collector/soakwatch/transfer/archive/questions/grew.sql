-- Which processes grew, by the rules of growth; with --not-in, and did not in another release
-- metrics: process.*
-- in unit: fastest
-- Undecided is neither: a series that was not judged in the other release is told apart, never taken for one that did
-- not grow.
WITH here AS (
    SELECT
        metric,
        coalesce(process, object) AS process,
        list(DISTINCT device ORDER BY device) FILTER (WHERE grew) AS devices,
        count(DISTINCT device) FILTER (WHERE grew) AS grew_on,
        count(DISTINCT device) AS judged_on,
        max(per_hour) FILTER (WHERE grew) AS fastest,
        any_value(series_unit) || '/h' AS unit
    FROM findings
    WHERE grew IS NOT NULL AND (len($releases) = 0 OR list_contains($releases, release))
    GROUP BY ALL
    HAVING bool_or(grew)
),
there AS (
    SELECT
        metric,
        coalesce(process, object) AS process,
        count(DISTINCT device) FILTER (WHERE grew) AS grew_on,
        count(DISTINCT device) AS judged_on
    FROM findings
    WHERE grew IS NOT NULL AND list_contains($others, release)
    GROUP BY ALL
)
SELECT
    here.process,
    here.metric,
    here.grew_on AS "grew on",
    here.judged_on AS "judged on",
    array_to_string(list_slice(here.devices, 1, 3), ', ') || CASE WHEN here.grew_on > 3 THEN ' …' ELSE '' END AS devices,
    here.fastest,
    here.unit,
    CASE WHEN len($others) > 0 THEN coalesce(there.judged_on, 0) END AS "other: judged on",
    CASE WHEN len($others) > 0 AND there.judged_on IS NULL
        THEN here.process || ' grew (' || here.metric || '), and was not judged in ' || array_to_string($others, ', ')
    END AS _unknown
FROM here
LEFT JOIN there USING (metric, process)
WHERE coalesce(there.grew_on, 0) = 0
ORDER BY here.grew_on DESC, here.process, here.metric
