import { shown, UnavailableError } from '../../base/errors.js'
import { DATABASE } from './folder.js'

/**
 * Reads a row that another program or a disk fault may have corrupted.
 * @param column the column in which `key` identifies the row.
 * @throws UnavailableError that names the row and how to remove it.
 */
export function readable<T>(table: string, column: string, key: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    const row = `${column} = '${key.replaceAll("'", "''")}'`
    throw new UnavailableError(
      `can't read a row of ${DATABASE}: ${shown(key)} in the table ${table}. Delete the row with SQLite, which loses ` +
        `its data: delete from ${table} where ${row}`,
      { cause },
    )
  }
}
