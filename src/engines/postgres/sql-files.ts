import { readFileSync } from 'node:fs'

/** In the order in which they are carried out. */
const NAMES = ['tables', 'rows', 'upgrade', 'lock-table', 'values', 'decide', 'others', 'views'] as const

/** The SQL of the schema by files, written for a schema that is called signalbox. A package has the texts in this place. */
export function sqlFiles(): readonly string[] {
  return NAMES.map(name => readFileSync(new URL(`sql/${name}.sql`, import.meta.url), 'utf8'))
}
