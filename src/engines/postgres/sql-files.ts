import { sqlFile } from './sql/sql-file.js'
import { withConstants } from './sql-constants.js'

/** The names of the files, in the order in which they are run. */
const NAMES = [
  'tables',
  'rows',
  'upgrade',
  'lock-table',
  'values',
  'simple',
  'many',
  'decide',
  'limiters',
  'others',
  'views',
] as const

/** Returns the SQL of the schema, file by file, for a schema called signalbox. */
export function sqlFiles(): readonly string[] {
  return NAMES.map(name => withConstants(sqlFile(name)))
}
