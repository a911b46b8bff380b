ALTER TABLE records ADD COLUMN wordings TEXT;
