import { readFileSync } from 'node:fs'

/**
 * The text of a file of SQL in this folder, without its comments: the package has the same texts in the place of this
 * function.
 */
export function sqlFile(name: string): string {
  const text = readFileSync(new URL(`${name}.sql`, import.meta.url), 'utf8')
  return text.replaceAll(/^\s*--.*\n/gm, '')
}
