-- Values of metadata are read when a filter needs them, and noted in no table.
DROP TABLE meta_values;
DROP TABLE meta_keys;

ALTER TABLE spaces ADD COLUMN labels BIGINT NOT NULL DEFAULT 0;
