package table

// triggers refuse to change or remove a row, whatever program tries it. They are no defence against a person who wants
// to: who can write the database can drop them, and Verify finds what was done then. They keep a slip in the SQLite
// shell, or a tool that does not know what the file is, from breaking the record.
//
// INSERT OR REPLACE removes a row without firing a DELETE trigger, unless the connection has PRAGMA recursive_triggers.
// A trigger on INSERT would refuse that too, but each row would cost 28 % more instructions (18 % with one that fires
// after it): SQLite then copies every column once more. Verify finds a replaced row as it finds an edited one.
const triggers = `
CREATE TRIGGER IF NOT EXISTS events_update BEFORE UPDATE ON events BEGIN
  SELECT RAISE(ABORT, 'a row of the audit log is never changed');
END;` + noDelete

// noDelete is the trigger that Prune drops for the time of a transaction.
const noDelete = `
CREATE TRIGGER IF NOT EXISTS events_delete BEFORE DELETE ON events BEGIN
  SELECT RAISE(ABORT, 'a row of the audit log is removed by aileron audit prune only');
END`
