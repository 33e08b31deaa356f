/**
 * Writes tables from the committed reports of chaos tests into the page next to them: `node scripts/chaos-tables.mjs`.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { withBlock } from './block.mjs'

const reports = fileURLToPath(new URL('../apps/chaos/reports/', import.meta.url))

/** Path of the page with the tables. */
export const page = `${reports}README.md`

/**
 * Returns the page with new tables.
 * @param {string} text text of the page
 */
export function withTables(text) {
  return withBlock(text, 'chaos', `\n${tables()}\n`)
}

function tables() {
  const all = readdirSync(reports)
    .filter(name => name.endsWith('.json'))
    .sort()
    .map(read)
  const ours = all.filter(({ locks }) => locks === 'signalbox')
  const heading =
    '| locks | engine | faults | grants | orders compared | held twice | lost with fencing | lost without | transfers | other promises broken |'
  const rows = [...ours, ...all.filter(report => !ours.includes(report))].map(row)
  return [
    heading,
    '|-|-|-:|-:|-:|-:|-:|-:|-:|-:|',
    ...rows,
    '',
    ...ours.map(conditions),
    '',
    'Milliseconds from a fault to recovery, median and worst:',
    '',
    ...recoveries(ours),
    '',
  ].join('\n')
}

/**
 * @param {string} name
 * @returns {Report}
 */
function read(name) {
  /** @type {Report} */
  const report = JSON.parse(readFileSync(`${reports}${name}`, 'utf8'))
  return report
}

/** @param {Report} report */
function row({ locks, engine, faults, grants, orders, fenced, unfenced, transfers, findings }) {
  const twice = findings.filter(({ promise }) => promise === 'P1').length
  const isOurs = locks === 'signalbox'
  const cells = [
    locks,
    engine,
    faults,
    grants,
    isOurs ? orders : 'none',
    twice,
    isOurs ? `${fenced.lost} of ${fenced.accepted}` : 'no tokens',
    `${unfenced.lost} of ${unfenced.accepted}`,
    isOurs ? transfers.applied : 'none',
    findings.length - twice,
  ]
  return `| ${cells.join(' | ')} |`
}

/** @param {Report} report */
function conditions({ engine, processes, lease, session, seed, seconds, date, machine }) {
  const sessions = session === undefined ? '' : `, session ${session} ms`
  const place = `${machine.cpu}, ${machine.cores} cores, Node ${machine.node}`
  return `- ${engine}: seed ${seed}, ${processes} clients, lease ${lease} ms${sessions}, ${seconds} s on ${date.slice(0, 10)} (${place})`
}

/**
 * Returns the table of the times until all clients continued after each kind of fault, with a column for each engine.
 * @param {readonly Report[]} all
 */
function recoveries(all) {
  const kinds = [...new Set(all.flatMap(({ recoveries }) => recoveries.map(({ kind }) => kind)))].sort()
  return [
    `| fault | ${all.map(({ engine }) => engine).join(' | ')} |`,
    `|-|${'-:|'.repeat(all.length)}`,
    ...kinds.map(kind => `| ${kind} | ${all.map(report => recovery(report, kind)).join(' | ')} |`),
  ]
}

/**
 * @param {Report} report
 * @param {string} kind kind of the fault
 */
function recovery({ recoveries }, kind) {
  const found = recoveries.find(recovery => recovery.kind === kind)
  return found
    ? [found.median, found.worst].map(time => (time === null ? 'never' : Math.round(time))).join(', ')
    : ''
}

/** @typedef {import('../apps/chaos/report.js').Report} Report */

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(page, withTables(readFileSync(page, 'utf8')))
