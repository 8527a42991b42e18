-- Where a metric stood, by device and release: means, lowest and highest values over its nights
-- needs: --metric
-- in unit: mean, lowest, highest
SELECT
    release,
    device,
    metric,
    coalesce(process, object) AS object,
    count(DISTINCT night) AS nights,
    avg(mean) AS mean,
    min(lowest) AS lowest,
    max(highest) AS highest,
    any_value(unit) AS unit,
    min(coverage) AS coverage
FROM series
WHERE kind = 'gauge' AND readings > 0
GROUP BY release, device, metric, coalesce(process, object)
ORDER BY release, device, metric, object
