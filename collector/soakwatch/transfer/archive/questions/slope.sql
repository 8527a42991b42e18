-- How fast a metric rises, by device and release: the median over its nights, and the extremes
-- needs: --metric
-- in unit: median, lowest, highest
SELECT
    release,
    device,
    metric,
    coalesce(process, object) AS object,
    count(DISTINCT night) FILTER (WHERE per_hour IS NOT NULL) AS nights,
    median(per_hour) AS median,
    min(per_hour) AS lowest,
    max(per_hour) AS highest,
    any_value(unit) || '/h' AS unit,
    CASE WHEN count(per_hour) = 0
        THEN device || ': ' || metric || ' ' || coalesce(process, object) || ' has too few readings for a slope'
    END AS _unknown
FROM series
WHERE kind <> 'state'
GROUP BY release, device, metric, coalesce(process, object)
ORDER BY release, median(per_hour) DESC NULLS LAST, device, metric, object
