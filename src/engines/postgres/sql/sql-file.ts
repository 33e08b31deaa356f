import { readFileSync } from 'node:fs'

/** The text of a file of SQL in this folder. The package has the texts in the place of this function. */
export function sqlFile(name: string): string {
  return readFileSync(new URL(`${name}.sql`, import.meta.url), 'utf8')
}
