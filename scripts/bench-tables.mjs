/**
 * Generates pages from the committed reports of the bench: a page of tables next to each report, and the tables between
 * `<!-- bench: NAME -->` and `<!-- /bench -->` in docs/benchmarks.md. Run `node scripts/bench-tables.mjs` after `npm
 * run bench`.
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from './command.mjs'

/** Path of the page that summarizes the reports, relative to the checkout. */
export const summaryPage = 'docs/benchmarks.md'
/** Folder of the reports, relative to the checkout. */
export const reportFolder = 'bench/reports'

/** Matches a table of the page: its name, and its content. */
export const TABLE = /<!-- bench: (\w+) -->\n([\s\S]*?)<!-- \/bench -->/g

/**
 * Returns a page whose tables are replaced with new ones.
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

/**
 * Returns the page of a report.
 * @param {string} name name of the report
 * @param {string} tables
 */
export function reportPage(name, tables) {
  const title = `# Benchmark report: ${name}`
  const back = 'What the columns mean, and a summary: [benchmarks](../../docs/benchmarks.md).'
  return `${title}\n\n${back}\n\n![Speed, waits and fairness of each subject](${name}.svg)\n\n${tables}`
}

/** @param {...string} argv arguments of the bench */
function bench(...argv) {
  return execFileSync(process.execPath, ['build/bench/main.js', ...argv], { cwd: root, encoding: 'utf8' })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const path = join(root, summaryPage)
  const page = readFileSync(path, 'utf8')
  /** @type {Record<string, string>} */
  const tables = JSON.parse(bench('--summaries', reportFolder))
  writeFileSync(
    path,
    withTables(page, name => tables[name] ?? ''),
  )
  for (const file of readdirSync(join(root, reportFolder)).filter(file => file.endsWith('.json'))) {
    const name = file.replace('.json', '')
    const text = reportPage(name, bench('--table', `${reportFolder}/${file}`))
    writeFileSync(join(root, reportFolder, `${name}.md`), text)
  }
}
