-- Which runs are in the archive: verdict, devices, seal
SELECT
    night,
    run,
    release,
    count(*) FILTER (WHERE role = 'dut') AS devices,
    round(any_value(hours), 2) AS hours,
    any_value(verdict) AS verdict,
    sum(fails)::BIGINT AS fails,
    min(coverage) AS coverage,
    any_value(seal) AS seal,
    any_value(reason) AS reason
FROM runs
GROUP BY night, run, release, key
ORDER BY night, run, key
