-- How many devices passed, failed or were undecided, by release and night
SELECT
    release,
    night,
    count(DISTINCT device) AS devices,
    count(DISTINCT device) FILTER (WHERE verdict = 'pass') AS pass,
    count(DISTINCT device) FILTER (WHERE verdict = 'fail') AS fail,
    count(DISTINCT device) FILTER (WHERE verdict = 'inconclusive') AS inconclusive,
    count(DISTINCT device) FILTER (WHERE verdict IS NULL) AS "not judged",
    min(coverage) AS "lowest coverage",
    count(DISTINCT device) FILTER (WHERE seal IN ('unsealed', 'changed')) AS "not sealed"
FROM runs
WHERE role = 'dut'
GROUP BY release, night
ORDER BY release, night
