-- Which processes grew, by the rules of growth; with --not-in, and did not in another release
-- metrics: process.*
-- in unit: fastest
-- Undecided is neither: a series that was not judged in the other release is told apart, never taken for one that did not grow.
WITH judged AS (
    SELECT
        metric,
        coalesce(process, object) AS process,
        release,
        device,
        bool_or(grew) AS grew
    FROM findings
    WHERE grew IS NOT NULL
    GROUP BY ALL
),
here AS (
    SELECT
        metric,
        process,
        list(DISTINCT device ORDER BY device) FILTER (WHERE grew) AS devices,
        count(DISTINCT device) FILTER (WHERE grew) AS grew_on,
        count(DISTINCT device) AS judged_on
    FROM judged
    WHERE len($releases) = 0 OR list_contains($releases, release)
    GROUP BY ALL
    HAVING bool_or(grew)
),
there AS (
    SELECT
        metric,
        process,
        count(DISTINCT device) FILTER (WHERE grew) AS grew_on,
        count(DISTINCT device) AS judged_on
    FROM judged
    WHERE list_contains($others, release)
    GROUP BY ALL
),
rates AS (
    SELECT
        metric,
        coalesce(process, object) AS process,
        any_value(unit) || '/h' AS unit,
        max(per_hour) AS fastest
    FROM series
    WHERE phase = '' AND (len($releases) = 0 OR list_contains($releases, release))
        AND (metric, coalesce(process, object)) IN (SELECT (metric, process) FROM here)
    GROUP BY ALL
)
SELECT
    here.process,
    here.metric,
    here.grew_on AS "grew on",
    here.judged_on AS "judged on",
    array_to_string(list_slice(here.devices, 1, 3), ', ') || CASE WHEN here.grew_on > 3 THEN ' …' ELSE '' END
        AS devices,
    rates.fastest,
    rates.unit,
    CASE WHEN len($others) > 0 THEN coalesce(there.judged_on, 0) END AS "other: judged on",
    CASE WHEN len($others) > 0 AND there.judged_on IS NULL
        THEN here.process || ' grew (' || here.metric || '), and was not judged in ' || array_to_string($others, ', ')
    END AS _unknown
FROM here
LEFT JOIN there USING (metric, process)
LEFT JOIN rates USING (metric, process)
WHERE coalesce(there.grew_on, 0) = 0
ORDER BY here.grew_on DESC, here.process, here.metric
