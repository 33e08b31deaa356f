import { shown, UnavailableError } from '../../base/errors.js'
import { DATABASE } from './folder.js'

/**
 * Reads a row that another program, or a fault of the disk, may have spoiled.
 * @param column where `key` names the row in the table.
 * @throws UnavailableError that names the row and how to remove it.
 */
export function readable<T>(table: string, column: string, key: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    const row = `${column} = '${key.replaceAll("'", "''")}'`
    throw new UnavailableError(
      `can't read a row of ${DATABASE}: ${shown(key)} in the table ${table}. Delete it with SQLite, and what it ` +
        `held with it: delete from ${table} where ${row}`,
      { cause },
    )
  }
}
