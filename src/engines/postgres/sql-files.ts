import { sqlFile } from './sql/sql-file.js'

/** In the order in which they are carried out. */
const NAMES = [
  'tables',
  'rows',
  'upgrade',
  'lock-table',
  'values',
  'simple',
  'many',
  'decide',
  'others',
  'views',
] as const

/** The SQL of the schema by files, written for a schema that is called signalbox. */
export function sqlFiles(): readonly string[] {
  return NAMES.map(sqlFile)
}
