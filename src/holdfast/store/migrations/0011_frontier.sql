-- A summary that grows leaves a row behind each time, and whoever reads what stands now is to pass over none of them.
DROP INDEX summaries_parent;
DROP INDEX summaries_id;
CREATE INDEX summaries_parent ON summaries (space, chat, parent, ended, first);
CREATE INDEX summaries_id ON summaries (space, id, ended);
