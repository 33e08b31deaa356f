/**
 * Writes what each engine guarantees, as its boxes say it, into docs/guarantees.md: `node scripts/guarantees.mjs`, after
 * `npm run build`.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { open } from 'signalbox'

const begin = '<!-- guarantees -->\n'
const end = '<!-- /guarantees -->\n'

/** The page that the block stands in. */
export const page = fileURLToPath(new URL('../docs/guarantees.md', import.meta.url))

/**
 * The page with a fresh block in place of the one that it has.
 * @param {string} text of the page
 */
export async function withGuarantees(text) {
  const [before, rest] = text.split(begin)
  const after = rest?.split(end)[1]
  if (before === undefined || after === undefined)
    throw new Error(`the page lacks ${begin.trim()} ... ${end.trim()}`)
  return `${before}${begin}${await block()}${end}${after}`
}

async function block() {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-guarantees-'))
  try {
    /** @type {[url: string, guarantees: Guarantees][]} */
    const boxes = [
      ['`memory:`', await guaranteesOf('memory:')],
      ['`file:./dir`', await guaranteesOf(`file:${folder}`)],
      ['`file:./dir?durable=false`', await guaranteesOf(`file:${folder}?durable=false`)],
      ...(await overNetwork()),
    ]
    return [
      '| box | excludes within one | frees what a dead process held | keeps committed state | weakened |',
      '|-|-|-|-|-|',
      ...boxes.map(row),
      '',
      ...boxes.flatMap(listed),
      '',
    ].join('\n')
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** @param {string} url */
async function guaranteesOf(url) {
  const box = await open(url)
  await box.close()
  return box.guarantees
}

/**
 * What the boxes of engines over servers say; none can be opened here, because that would need those servers.
 * @returns {Promise<[url: string, guarantees: Guarantees][]>}
 */
async function overNetwork() {
  /** @type {{ redisGuarantees: (cluster: boolean) => Guarantees }} */
  const { redisGuarantees } = await import(built('engines/redis/guarantees.js'))
  /** @type {{ quorumGuarantees: Guarantees }} */
  const { quorumGuarantees } = await import(built('engines/redis-quorum/guarantees.js'))
  /** @type {{ ZOOKEEPER_GUARANTEES: Guarantees }} */
  const { ZOOKEEPER_GUARANTEES: zookeeperGuarantees } = await import(built('engines/zookeeper/guarantees.js'))
  /** @type {{ HAZELCAST_GUARANTEES: Guarantees }} */
  const { HAZELCAST_GUARANTEES: hazelcastGuarantees } = await import(built('engines/hazelcast/guarantees.js'))
  return [
    ['`redis://host`', redisGuarantees(false)],
    ['`redis+cluster://host,host`', redisGuarantees(true)],
    ['`redis-quorum://host,host,host`', quorumGuarantees],
    ['`zookeeper://host,host,host`', zookeeperGuarantees],
    ['`hazelcast://host,host,host`', hazelcastGuarantees],
  ]
}

/** @param {string} module */
function built(module) {
  return new URL(`../dist/src/${module}`, import.meta.url).href
}

/** @typedef {import('signalbox').Guarantees} Guarantees */

/** @satisfies {Record<Guarantees['durability'], string>} */
const kept = {
  none: 'keeps none',
  process: 'as long as the process',
  'process crash': 'over the crash of a process',
  'power loss': 'over a power cut',
  replication: 'as far as it was replicated',
}

/** @param {[url: string, guarantees: Guarantees]} box */
function row([url, { scope, deadHolder, durability, weaknesses }]) {
  const weakened = weaknesses.map(({ promise }) => promise).join(', ') || 'nothing'
  return `| ${url} | ${scope} | ${deadHolder} | ${kept[durability]} | ${weakened} |`
}

/** @param {[url: string, guarantees: Guarantees]} box */
function listed([url, { weaknesses }]) {
  return weaknesses.map(({ promise, how }) => `- ${url}, **${promise}**: ${how}`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(page, await withGuarantees(readFileSync(page, 'utf8')))
}
