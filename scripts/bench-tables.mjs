/**
 * Writes the committed reports of the bench as tables into the pages that have a place for them,
 * `<!-- bench: NAME -->` ... `<!-- /bench -->`: `node scripts/bench-tables.mjs`, after `npm run bench`.
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** The tables of a page: their names, and what stands there. */
export const TABLE = /<!-- bench: (\w+) -->\n([\s\S]*?)<!-- \/bench -->/g

/**
 * A page with fresh tables in place of those that it has.
 * @param {string} page
 * @param {(name: string) => string} tableOf
 */
export function withTables(page, tableOf) {
  return page.replace(
    TABLE,
    (_, /** @type {string} */ name) =>
      `<!-- bench: ${name} -->\n\n${tableOf(name).trim()}\n\n<!-- /bench -->`,
  )
}

/** @param {string} name */
function tableOf(name) {
  const argv = ['build/bench/main.js', '--table', `bench/reports/${name}.json`]
  return execFileSync(process.execPath, argv, { cwd: root, encoding: 'utf8' })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const name of readdirSync(`${root}docs`).filter(file => file.endsWith('.md'))) {
    const page = readFileSync(`${root}docs/${name}`, 'utf8')
    const fresh = withTables(page, tableOf)
    if (fresh !== page) writeFileSync(`${root}docs/${name}`, fresh)
  }
}
