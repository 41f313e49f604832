-- SPDX-License-Identifier: Apache-2.0
-- What the truth test calls; :library is truth_postgres.so.
CREATE FUNCTION truth_work(int, int) RETURNS int AS :'library', 'truth_work_sql' LANGUAGE C VOLATILE PARALLEL SAFE;
CREATE FUNCTION truth_plan(int, int) RETURNS int AS :'library', 'truth_work_sql' LANGUAGE C IMMUTABLE; -- called by the planner
CREATE FUNCTION truth_nothing(int) RETURNS int AS :'library', 'truth_nothing_sql' LANGUAGE C VOLATILE;

-- Works as K, has a statement of its own work as INNER_K, works as K again. Simple expressions are no statements.
CREATE FUNCTION truth_outer(k int, us int, inner_k int) RETURNS int AS $$
DECLARE x int;
BEGIN
    x := truth_work(k, us);
    EXECUTE format('/* work %s */ SELECT truth_work(%s, %s)', inner_k, inner_k, us);
    x := truth_work(k, us);
    RETURN x;
END $$ LANGUAGE plpgsql;

-- The same, where the inner statement fails.
CREATE FUNCTION truth_caught(k int, us int, inner_k int) RETURNS int AS $$
DECLARE x int;
BEGIN
    x := truth_work(k, us);
    BEGIN
        EXECUTE format('/* work %s */ SELECT truth_work(%s, %s), 1 / (truth_work(%s, 1) - 1)', inner_k, inner_k, us, inner_k);
    EXCEPTION WHEN division_by_zero THEN
        x := truth_work(k, us);
    END;
    RETURN x;
END $$ LANGUAGE plpgsql;

CREATE TABLE rows_of_truth AS SELECT i FROM generate_series(1, 2000) AS i;
ALTER TABLE rows_of_truth SET (parallel_workers = 2);
ANALYZE rows_of_truth;
