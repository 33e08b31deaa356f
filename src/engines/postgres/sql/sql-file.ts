import { readFileSync } from 'node:fs'

/**
 * Returns the text of an SQL file in this folder, without comments. The build replaces this module by one that contains
 * the texts.
 */
export function sqlFile(name: string): string {
  const text = readFileSync(new URL(`${name}.sql`, import.meta.url), 'utf8')
  return text.replaceAll(/^\s*--.*\n/gm, '')
}
