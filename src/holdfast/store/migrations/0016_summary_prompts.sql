-- NULL for the summaries that are there: which prompt they were written with was not noted, and their checksums stay.
ALTER TABLE summaries ADD COLUMN prompt TEXT;
